package daemon_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// crowd starts families of a parent and nine children, and waits until all are alive, and each parent waits for its children: with one that does not yet,
// they do not go on. The commands of children end when they read
// a line: see release. They wait without a loop, which would start a program for each look of each child.
func crowd(t *testing.T, families int, config string) (s *testenv.System, alive map[types.UUID]ipc.Proc) {
	t.Helper()
	const children = 9
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		turns := r.Turns()
		switch {
		case r.Messages[0].Text == "parent" && turns == 0:
			var calls []llmtest.ToolCall
			for i := range children {
				calls = append(calls, llmtest.ToolCall{ID: fmt.Sprint("c", i), Name: "spawn", Input: `{"intent":"child","background":true}`})
			}
			return llmtest.Reply{ToolCalls: calls}
		case r.Messages[0].Text == "parent" && turns <= children:
			return tool("wait", `{}`)
		case r.Messages[0].Text == "child" && turns == 0: // no model is asked meanwhile: only so many are at once
			return tool("shell", `{"command":"echo x >>alive; read line <go"}`)
		}
		return llmtest.Reply{Text: "done"}
	})
	s = testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	configure(t, s, "config.yaml", config)
	s.Stop()
	s.Start()
	s.Settle()
	if err := syscall.Mkfifo(filepath.Join(s.Work, "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range families {
		s.Spawn(ipc.SpawnRequest{Intent: "parent", ProcSpec: types.ProcSpec{Model: "fake"}})
	}
	until(t, "all are alive", func() bool {
		waits := 0
		alive = map[types.UUID]ipc.Proc{}
		for _, p := range listed(t, s) {
			alive[p.UUID] = p
			if p.Doing != nil && p.Doing.Tool == "wait" {
				waits++
			}
		}
		b, _ := os.ReadFile(filepath.Join(s.Work, "alive"))
		return len(alive) == families*(children+1) && waits == families && len(b) == 2*families*children
	})
	return s, alive
}

// release lets all go on that wait, and those that will.
func release(t *testing.T, s *testenv.System) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.Work, "go"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.Write(bytes.Repeat([]byte("\n"), 8<<10)); err != nil {
		t.Fatal(err)
	}
}

func listed(t *testing.T, s *testenv.System) []ipc.Proc {
	t.Helper()
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		t.Fatal(err)
	}
	return l.Procs
}

// TestEveryAgentThatWasAliveComesBack has more agents than a daemon once resumed at a start.
func TestEveryAgentThatWasAliveComesBack(t *testing.T) { // R1
	for _, end := range []string{"killed", "stopped"} {
		t.Run(end, func(t *testing.T) {
			s, alive := crowd(t, soak.Number(t, "RNIX_COMEBACK_FAMILIES", "families of ten agents", 7, 200), "")
			if end == "killed" {
				s.Kill()
			} else {
				s.Stop()
			}
			release(t, s)
			s.Start()
			s.Settle()
			until(t, "all have completed", func() bool {
				for _, p := range listed(t, s) {
					if p.State != "dead" && p.State != "zombie" {
						return false
					}
				}
				return true
			})
			for _, p := range listed(t, s) {
				if _, was := alive[p.UUID]; !was || p.Exit == nil || p.Exit.Code != 0 {
					t.Errorf("PID %d (%s) was there before: %t, and ended with %+v", p.PID, p.Intent, was, p.Exit)
				}
			}
			if n := len(listed(t, s)); n != len(alive) {
				t.Errorf("%d were alive, and %d are there", len(alive), n)
			}
		})
	}
}

// TestFewerThanAllAreResumedInWholeFamilies has a limit that is no multiple of a family.
func TestFewerThanAllAreResumedInWholeFamilies(t *testing.T) { // R1
	s, alive := crowd(t, 3, "daemon: {auto_resume_max: 25}\n")
	s.Kill()
	release(t, s)
	s.Start()
	s.Settle()
	until(t, "two families have completed", func() bool {
		n := 0
		for _, p := range listed(t, s) {
			if p.State == "dead" || p.State == "zombie" {
				n++
			}
		}
		return n == 20
	})
	var head types.PID
	for _, p := range listed(t, s) {
		if p.State != "suspended" {
			continue
		}
		if p.Intent == "parent" {
			head = p.PID
		}
		if !strings.Contains(p.Wait, "daemon.auto_resume_max: 25") {
			t.Errorf("PID %d: the reason is %q", p.PID, p.Wait)
		}
	}
	if head == 0 {
		t.Fatalf("no parent is suspended: %+v", listed(t, s))
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: head.String()}); err != nil {
		t.Fatal(err)
	}
	if !testenv.Within(2*time.Minute, func() bool {
		for _, p := range listed(t, s) {
			if p.State != "dead" && p.State != "zombie" {
				return false
			}
		}
		return len(listed(t, s)) == len(alive)
	}) {
		for _, p := range listed(t, s) {
			t.Logf("PID %d, child of %d, %s, step %d: %s %s", p.PID, p.PPID, p.Intent, p.Step, p.State, p.Wait)
		}
		t.Fatalf("the third has not, or not all of %d are there", len(alive))
	}
}
