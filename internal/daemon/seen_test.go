package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// What a process has read it may change after a resume, in a fork and after a crash of the daemon, as long as the file is as it was; what it read only
// behind the step from which it is forked, a fork has not read.
func TestWhatAProcessHasReadItKnowsInItsNextRunAndInItsForks(t *testing.T) {
	call := func(name, input string) llmtest.Reply {
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: name, Input: input}}}
	}
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		said := r.LastUser()
		res, _ := r.LastResult()
		last := r.Messages[len(r.Messages)-1]
		told := len(last.Results) > 0 && !strings.Contains(last.Text, "write ") // a fork is told behind the results that it has
		switch {
		case strings.HasSuffix(said, "write a") && !told:
			return call("write_file", `{"path":"a.txt","content":"new a"}`)
		case strings.HasSuffix(said, "write b") && !told:
			return call("write_file", `{"path":"b.txt","content":"new b"}`)
		case told && strings.HasPrefix(said, "read"):
			if strings.Contains(res.Text, "old a") {
				return call("read_file", `{"path":"b.txt"}`)
			}
			return llmtest.Reply{Text: "both are read"}
		case told:
			return llmtest.Reply{Text: "it came to this: " + res.Text}
		}
		return call("read_file", `{"path":"a.txt"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.Write("a.txt", "old a\n")
	s.Write("b.txt", "old b\n")
	p := s.Spawn(ipc.SpawnRequest{Intent: "read", ProcSpec: types.ProcSpec{Model: "m"}})
	if w := s.Wait(p.PID); w.Result != "both are read" {
		t.Fatalf("%+v", w)
	}
	goesOn := func(name, input, want string, change func(*ipc.ResumeRequest)) {
		t.Helper()
		req := ipc.ResumeRequest{Target: p.UUID.String(), NewInput: input, Env: s.Env}
		if change != nil {
			change(&req)
		}
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if w := s.Wait(r.PID); !strings.Contains(w.Result, want) {
			t.Errorf("%s: %s", name, w.Result)
		}
	}
	fork := func(step int) func(*ipc.ResumeRequest) {
		return func(r *ipc.ResumeRequest) { r.Fork, r.FromStep = true, &step }
	}
	goesOn("a fork from before b was read", "write b", "you have not read it", fork(1))
	goesOn("a fork from there", "write a", "a.txt", fork(1))
	goesOn("a fork from the end", "write b", "b.txt", fork(2))
	if got := s.Read("b.txt"); got != "old b\n" {
		t.Errorf("a fork has written %q where its origin works", got)
	}
	s.Kill()
	s.Start()
	goesOn("after a crash", "write a", "a.txt", nil)
	if got := s.Read("a.txt"); got != "new a" {
		t.Errorf("a.txt: %q", got)
	}
	s.Write("b.txt", "changed by hand\n")
	goesOn("of a file that was changed since", "write b", "has changed since you read it", nil)
	ledger := filepath.Join(s.Data, "steps", p.UUID.String(), "scratch", "seen.jsonl")
	if err := os.WriteFile(ledger, []byte("{\"path\":\"a.txt\",\"sum\":\"zz\"}\nhalf a li"), 0o600); err != nil {
		t.Fatal(err)
	}
	goesOn("with a ledger that is damaged", "write a", "you have not read it", nil)
}
