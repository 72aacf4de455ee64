package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// cut ends the record of a history as a crash does: what stands behind the last line that last wants is
// not there, or, with before, also that line. What is made of the record goes too.
func cut(t *testing.T, s *testenv.System, id types.UUID, before bool, last func(r *step.Record) bool) {
	t.Helper()
	path := filepath.Join(s.Data, "steps", id.String(), step.StepsFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at, end := 0, 0
	for line := range strings.Lines(string(b)) {
		var r step.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if at += len(line); last(&r) {
			if end = at; before {
				end -= len(line)
			}
		}
	}
	if end == 0 {
		t.Fatalf("%s has no such record", path)
	}
	if err := os.WriteFile(path, b[:end], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{step.CheckpointFile, step.InfoFile, "checkpoint.prev.json"} {
		_ = os.Remove(filepath.Join(filepath.Dir(path), name))
	}
	_ = os.Remove(filepath.Join(s.Data, step.IndexFile))
}

// intentOf tells the intents of a tool; "" = of any.
func intentOf(tool string) func(*step.Record) bool {
	return func(r *step.Record) bool { return r.Kind == step.KindIntent && (tool == "" || r.Intent.Tool == tool) }
}

// Two crashes in one step: what was done between the snapshot at the end of the step before and the edit that
// is taken back stays done.
func TestWhatWasDoneBeforeAnInterruptedEditStays(t *testing.T) { // C-4
	for _, first := range []struct {
		name   string
		before bool // the first crash comes before the intent of the last edit, else behind it
	}{{"the first crash comes before the edit", true}, {"both come in the edit", false}} {
		t.Run(first.name, func(t *testing.T) {
			_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
				calls := func(in ...string) (out llmtest.Reply) {
					for i := 0; i < len(in); i += 2 {
						out.ToolCalls = append(out.ToolCalls, llmtest.ToolCall{ID: fmt.Sprintf("call_%d", ids.Add(1)), Name: in[i], Input: in[i+1]})
					}
					return out
				}
				switch len(r.Messages) {
				case 1:
					return calls("write_file", `{"path":"text","content":"END"}`)
				case 3:
					return calls("edit_file", `{"path":"text","old":"END","new":"one END"}`, "shell", `{"command":"echo x"}`,
						"read_file", `{"path":"text"}`, "edit_file", `{"path":"text","old":"END","new":"two END"}`)
				}
				return llmtest.Reply{Text: "done"}
			})
			s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
			p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
			s.Wait(p.PID)
			again := func(before bool, text string) {
				s.Stop()
				cut(t, s, p.UUID, before, intentOf("edit_file"))
				s.Write("text", text)
				s.Start()
				s.Settle()
				r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env})
				if err != nil {
					t.Fatal(err)
				}
				if w := s.Wait(r.PID); w.Exit.Code != 0 || w.Result != "done" {
					t.Fatalf("%+v", w)
				}
			}
			if first.before {
				again(true, "one END")
			} else {
				again(false, "one two END")
			}
			again(false, "one two END")
			if got := s.Read("text"); got != "one two END" {
				t.Errorf("text is %q", got)
			}
		})
	}
}
