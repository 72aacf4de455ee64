package journaltest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

// Long writes an ended history of n steps with a call each into a data directory that nobody has, and returns its
// UUID. The result of the call of step n/3 has "the needle" in it.
func Long(t testing.TB, dir string, n int) types.UUID {
	t.Helper()
	j, err := step.OpenLocal(durable.OS, dir, step.Unsynced)
	if err != nil {
		t.Fatal(err)
	}
	ctx, id, now := context.Background(), types.NewUUID(), time.Now()
	lease, err := j.Acquire(ctx, id, "test")
	if err != nil {
		t.Fatal(err)
	}
	w := step.NewWriter(j, id, lease)
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	must(w.Marker(&step.Marker{Name: step.MarkerSpawn, PID: 1, Text: "long"}), w.Message(&rnixctx.Message{Role: rnixctx.RoleUser, Content: "long"}))
	text := strings.Repeat("some text of a tool. ", 20)
	for i := 1; i <= n; i++ {
		rec := step.StepRecord{StepNumber: i, MessageCount: 2*i - 1, TokensUsed: 10, Action: "tool_call", Summary: fmt.Sprint("reads ", i), Timestamp: now,
			ToolCalls: []step.Call{{ID: "c", Name: "read", Path: "/dev/fs/x"}}}
		if i == n/3 {
			text += " the needle"
		}
		must(w.Answer(&rnixctx.Message{Role: rnixctx.RoleAssistant, Content: fmt.Sprint("answer ", i), ToolCalls: []rnixctx.ToolCall{{ID: "c", Name: "read", Input: []byte(`{"path":"x"}`)}}}, rec.Answer()),
			w.Intent(&step.Intent{Step: i, CallID: "c", Tool: "read", Path: "/dev/fs/x", Effect: "none"}), w.Result(&step.Result{Step: i, CallID: "c", Tool: "read"}),
			w.Message(&rnixctx.Message{Role: rnixctx.RoleTool, Content: text, ToolCallID: "c"}), w.Step(&rec))
		text = strings.TrimSuffix(text, " the needle")
		if i%100 == 0 {
			must(w.Commit(ctx))
		}
	}
	info := step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id, PID: 1, Intent: "long", CreatedAt: now, UpdatedAt: now, Step: n, Exit: &types.ExitStatus{Reason: types.ReasonCompleted}}, State: types.StateDead, DeadAt: now}
	must(w.Marker(&step.Marker{Name: step.MarkerExit, PID: 1, Exit: info.Exit}), w.Close(ctx), j.PutInfo(&info), j.Close())
	return id
}
