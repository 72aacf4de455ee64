package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/step/journaltest"
	"rnix/ipc"
	"rnix/types"
)

// bytesRead is how many bytes this program has read since it began, from files and sockets: the daemon is in it.
func bytesRead(t testing.TB) (n int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip("needs /proc/self/io:", err)
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "rchar: %d", &n); err == nil {
			return n
		}
	}
	t.Skip("needs rchar in /proc/self/io")
	return 0
}

func call[Req, Resp any](t testing.TB, c *ipc.Client, m ipc.Method[Req, Resp], req Req) Resp {
	t.Helper()
	r, err := ipc.Call(t.Context(), c, m, req)
	if err != nil {
		t.Fatalf("%s: %v", m.Name, err)
	}
	return r
}

// glances are questions about a little of a history, with what they show.
func glances(t testing.TB, c *ipc.Client, id string, steps int) map[string]func() {
	return map[string]func(){
		"get_proc_detail": func() {
			if r := call(t, c, ipc.GetProcDetail, ipc.TargetRequest{Target: id}); r.Damage != "" || len(r.Interrupted) != 0 || r.Step != steps {
				t.Errorf("%+v", r)
			}
		},
		"list_messages": func() {
			r := call(t, c, ipc.ListMessages, ipc.MessagesRequest{Target: id, From: -50, Limit: 50})
			if r.Total != 2*steps+1 || len(r.Messages) != 50 || r.Messages[49].N != 2*steps+1 || r.Messages[49].Step != steps || r.Messages[49].Content == "" {
				t.Errorf("%d messages of %d", len(r.Messages), r.Total)
			}
		},
		"get_step_detail": func() {
			r := call(t, c, ipc.GetStepDetail, ipc.StepRequest{Target: id, Step: 40})
			if len(r.Step.Messages) != 79 || r.Step.Messages[77].Content != "answer 39" || !strings.HasPrefix(r.Step.RawResponse, "answer 40") {
				t.Errorf("%d messages, %.20q", len(r.Step.Messages), r.Step.RawResponse)
			}
		},
		"diff_files": func() {
			_, err := ipc.Call(t.Context(), c, ipc.DiffFiles, ipc.DiffRequest{Target: id})
			if types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "no files are kept") {
				t.Error(err)
			}
		},
	}
}

// What shows a little of a long history reads a little of it: the first time after the outline was made, with its file, and then what is new.
func TestGlanceAtALongHistoryReadsLittleOfIt(t *testing.T) {
	soak.Turn(t)
	const steps = 10_000
	home := shortDir(t)
	data := filepath.Join(home, "data")
	id := journaltest.Long(t, data, steps)
	records, err := os.Stat(filepath.Join(step.Dir(data, id), step.StepsFile))
	if err != nil {
		t.Fatal(err)
	}
	read := func(ask func()) int64 {
		before := bytesRead(t)
		ask()
		return bytesRead(t) - before
	}
	t.Run("outline", func(t *testing.T) {
		_, c, _ := inProcessIn(t, home, 0)
		if n := read(glances(t, c, id.String(), steps)["get_proc_detail"]); n < records.Size() {
			t.Errorf("%d bytes of %d were read before there was an outline: this test measures something else", n, records.Size())
		}
	})
	for _, name := range []string{"get_proc_detail", "list_messages", "get_step_detail", "diff_files"} {
		t.Run(name, func(t *testing.T) {
			_, c, _ := inProcessIn(t, home, 0)
			ask := glances(t, c, id.String(), steps)[name]
			first, again := read(ask), read(ask)
			t.Logf("%d bytes, then %d, of %d", first, again, records.Size())
			if first > records.Size()/20 || again > 500_000 {
				t.Errorf("%d bytes were read, and then %d, of a history of %d", first, again, records.Size())
			}
		})
	}
}
