package step

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openLocal(t testing.TB, fsys durable.FS, dir string) *Local {
	t.Helper()
	j, err := OpenLocal(fsys, dir, Synced)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func newWriter(t testing.TB, j Journal, id types.UUID) *Writer {
	t.Helper()
	lease, err := j.Acquire(t.Context(), id, "test")
	if err != nil {
		t.Fatal(err)
	}
	return NewWriter(j, id, lease)
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func user(text string) *rnixctx.Message {
	return &rnixctx.Message{Role: rnixctx.RoleUser, Content: text}
}

// write writes a whole step with one tool call: the prompt has two messages more than the last.
func writeStep(t testing.TB, w *Writer, n int, text string) {
	t.Helper()
	id := "call_1"
	must(t,
		w.Message(user(text)),
		w.Intent(&Intent{Step: n, CallID: id, Tool: "read", Path: "/dev/fs/x", Input: []byte(`{"path": "x"}`), Effect: "none"}),
		w.Commit(t.Context()),
		w.Result(&Result{Step: n, CallID: id, Tool: "read", Output: text, Duration: time.Millisecond}),
		w.Step(&StepRecord{StepNumber: n, MessageCount: 2*n - 1, TokensUsed: 10, RawResponse: text, Action: "tool_call", Summary: "reads",
			ToolCalls: []Call{{ID: id, Name: "read", Path: "/dev/fs/x", Result: text}}, Provider: "p", Model: "m", CostUSD: 0.5}),
		w.Message(&rnixctx.Message{Role: rnixctx.RoleTool, Content: text, ToolCallID: id}),
		w.Commit(t.Context()),
	)
}

// differ is cmp.Diff, and quick for values that are the same.
func differ(want, got any, opts ...cmp.Option) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, opts...)
}

func memory(t testing.TB) (*faultfs.FS, *Local) {
	fsys := faultfs.New("/data")
	return fsys, openLocal(t, fsys, "/data")
}
