package daemon_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// worker is a model that has a tool called for each step and then completes. It counts how often it is
// asked, and hangs at a step for as long as it is told to.
type worker struct {
	steps int
	call  func(n int) llmtest.Reply
	asked atomic.Int32
	hang  atomic.Int32 // the step at which it hangs; 0 = none
}

func (w *worker) reply(r llmtest.Request) llmtest.Reply {
	w.asked.Add(1)
	n := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	switch n++; {
	case int(w.hang.Load()) == n:
		return llmtest.Reply{Hang: true}
	case n > w.steps:
		return llmtest.Reply{Text: fmt.Sprintf("done after %d", n)}
	}
	return w.call(n)
}

// appends has each step append a line to a file.
func appends(n int) llmtest.Reply {
	return tool("shell", fmt.Sprintf(`{"command":"echo step-%d >> effects"}`, n))
}

func lines(s *testenv.System, name string) []string {
	b, _ := os.ReadFile(filepath.Join(s.Work, name))
	return strings.Fields(string(b))
}

func effects(n int) string {
	var out []string
	for i := 1; i <= n; i++ {
		out = append(out, fmt.Sprintf("step-%d", i))
	}
	return strings.Join(out, " ")
}

func TestProcessGoesOnByItselfAfterTheDaemonWasKilled(t *testing.T) { // C-3, C-4
	for name, end := range map[string]func(*testenv.System){"killed": (*testenv.System).Kill, "stopped": (*testenv.System).Stop} {
		t.Run(name, func(t *testing.T) {
			w := &worker{steps: 12, call: appends}
			w.hang.Store(9)
			_, url := llmtest.NewAPI(t, w.reply)
			s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
			p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
			s.Await(p.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 9 })
			end(s)
			w.hang.Store(0)
			s.Start()
			s.Settle()
			d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID.String()})
			if err != nil || d.UUID != p.UUID || d.PID <= p.PID {
				t.Fatalf("%+v %v", d, err)
			}
			r := s.Wait(d.PID)
			if r.Exit.Code != 0 || r.Result != "done after 13" || r.Steps != 13 {
				t.Errorf("%+v", r)
			}
			if got := strings.Join(lines(s, "effects"), " "); got != effects(12) {
				t.Errorf("effects %s", got)
			}
			l, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: p.UUID.String()})
			if err != nil || len(l.Steps) != 13 || l.Damage != "" {
				t.Errorf("%d steps, %s, %v", len(l.Steps), l.Damage, err)
			}
			for i, st := range l.Steps {
				if st.StepNumber != i+1 {
					t.Errorf("step %d is numbered %d", i+1, st.StepNumber)
				}
			}
		})
	}
}

func TestDeletingTheCheckpointChangesNothing(t *testing.T) { // design 2.11
	w := &worker{steps: 8, call: appends}
	w.hang.Store(8)
	_, url := llmtest.NewAPI(t, w.reply)
	for _, from := range []string{"checkpoint", "history"} {
		s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
		w.hang.Store(8)
		p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
		s.Await(p.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 8 })
		dir := filepath.Join(s.Data, "steps", p.UUID.String())
		until(t, "a checkpoint is there", func() bool { _, err := os.Stat(filepath.Join(dir, step.CheckpointFile)); return err == nil })
		s.Kill()
		if from == "history" {
			if err := os.Remove(filepath.Join(dir, step.CheckpointFile)); err != nil {
				t.Fatal(err)
			}
		}
		w.hang.Store(0)
		s.Start()
		s.Settle()
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env})
		if err != nil || r.From != from || r.Step != 7 || r.Mode != "continue" {
			t.Fatalf("%+v %v", r, err)
		}
		if e := s.Wait(r.PID); e.Exit.Code != 0 || e.Result != "done after 9" {
			t.Errorf("from the %s: %+v", from, e)
		}
		if got := strings.Join(lines(s, "effects"), " "); got != effects(8) {
			t.Errorf("from the %s: effects %s", from, got)
		}
	}
}

func TestInterruptedCallIsNeverSilentlyRunAgain(t *testing.T) { // C-4, A-43
	for _, c := range []struct {
		policy, told string
		runs         int
	}{
		{"", "its outcome is unknown", 1}, {"skip", "not to be run again", 1}, {"retry", "again", 2},
	} {
		t.Run(c.policy, func(t *testing.T) {
			answers := make(chan string, 4)
			_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
				if res, told := r.LastResult(); told {
					answers <- res.Text
					return llmtest.Reply{Text: "seen"}
				}
				return tool("shell", `{"command":"echo ran >> effects; if [ -e second ]; then echo again; else touch second; sleep 60; fi"}`)
			})
			s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
			p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
			until(t, "the command runs", func() bool { return len(lines(s, "effects")) == 1 && has(s, "second") })
			s.Kill()
			s.Start()
			s.Settle()
			r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, OnInDoubt: c.policy})
			if err != nil || len(r.InDoubt) != 1 || r.InDoubt[0].Tool != "shell" {
				t.Fatalf("%+v %v", r, err)
			}
			if e := s.Wait(r.PID); e.Exit.Code != 0 || e.Result != "seen" {
				t.Errorf("%+v", e)
			}
			if got := <-answers; !strings.Contains(got, c.told) {
				t.Errorf("the model was told %q", got)
			}
			if n := len(lines(s, "effects")); n != c.runs {
				t.Errorf("the command ran %d times, want %d", n, c.runs)
			}
		})
	}
}

func TestResumeInDoubtCanBeRefused(t *testing.T) { // C-4
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return tool("shell", `{"command":"touch begun; sleep 60"}`) })
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	until(t, "the command runs", func() bool { return has(s, "begun") })
	s.Kill()
	s.Start()
	s.Settle()
	path := filepath.Join(s.Data, "steps", p.UUID.String(), step.StepsFile)
	before, _ := os.ReadFile(path)
	_, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, OnInDoubt: "fail"})
	if types.CodeOf(err) != types.ErrInDoubt || !strings.Contains(err.Error(), "shell") {
		t.Errorf("got %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("a resume that was refused has changed the history")
	}
}

func TestBudgetSuspendsAndMoreOfItGoesOn(t *testing.T) { // C-7, C-8
	w := &worker{steps: 3, call: appends}
	_, url := llmtest.NewAPI(t, w.reply)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	budget := 1
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake", ContextBudget: &budget}})
	r := s.Wait(p.PID)
	if r.Exit.Code != types.ExitBudget || !r.Suspended || len(lines(s, "effects")) != 0 {
		t.Fatalf("%+v, effects %v", r, lines(s, "effects"))
	}
	_, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env})
	if types.CodeOf(err) != types.ErrExhausted || !strings.Contains(err.Error(), "--budget") {
		t.Errorf("without more of it: %v", err)
	}
	more := 1_000_000
	asked := w.asked.Load()
	g, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Budget: &more})
	if err != nil {
		t.Fatal(err)
	}
	if r = s.Wait(g.PID); r.Exit.Code != 0 || r.Result != "done after 4" {
		t.Errorf("%+v", r)
	}
	if got := strings.Join(lines(s, "effects"), " "); got != effects(3) || w.asked.Load()-asked != 3 {
		t.Errorf("effects %s after asking %d times more: the answer that was paid for was lost", got, w.asked.Load()-asked)
	}
}

func TestForkLeavesItsOriginByteForByte(t *testing.T) {
	w := &worker{steps: 5, call: func(n int) llmtest.Reply {
		return tool("write_file", fmt.Sprintf(`{"path":"file-%d","content":"%d"}`, n, n))
	}}
	_, url := llmtest.NewAPI(t, w.reply)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	if r := s.Wait(p.PID); r.Exit.Code != 0 {
		t.Fatalf("%+v", r)
	}
	s.Stop()
	s.Start()
	s.Settle()
	dir := filepath.Join(s.Data, "steps", p.UUID.String())
	before := tree(t, dir)
	at := 3
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true, FromStep: &at})
	if err != nil || r.Mode != "fork" || r.UUID == p.UUID || r.OriginUUID != p.UUID || r.Step != 3 {
		t.Fatalf("%+v %v", r, err)
	}
	e := s.Wait(r.PID)
	if e.Exit.Code != 0 || e.Steps != 6 {
		t.Errorf("%+v", e)
	}
	if after := tree(t, dir); after != before {
		t.Errorf("the origin has changed:\n%s\n%s", before, after)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: r.UUID.String()})
	if err != nil || len(l.Steps) != 6 {
		t.Errorf("%d steps %v", len(l.Steps), err)
	}
	if r.WorkDir == s.Work {
		t.Fatal("the fork works in the directory of its origin")
	}
	for n := 1; n <= 5; n++ {
		if _, err := os.Stat(filepath.Join(r.WorkDir, fmt.Sprintf("file-%d", n))); err != nil {
			t.Error(err)
		}
	}
}

func TestForkHasTheFilesOfItsStep(t *testing.T) {
	for _, kind := range []string{"copy", "git"} {
		w := &worker{steps: 5, call: func(n int) llmtest.Reply {
			return tool("write_file", fmt.Sprintf(`{"path":"file-%d","content":"%d"}`, n, n))
		}}
		_, url := llmtest.NewAPI(t, w.reply)
		s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
		if kind == "git" {
			if out, err := exec.Command("git", "init", "-q", s.Work).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
		if r := s.Wait(p.PID); r.Exit.Code != 0 {
			t.Fatalf("%+v", r)
		}
		w.hang.Store(4)
		for _, at := range []int{3, 0, 2} {
			if at < 3 {
				w.hang.Store(int32(at) + 1)
			}
			r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true, FromStep: &at})
			if err != nil {
				t.Fatal(err)
			}
			for n := 1; n <= 5; n++ {
				_, err := os.Stat(filepath.Join(r.WorkDir, fmt.Sprintf("file-%d", n)))
				if there := err == nil; there != (n <= at) {
					t.Errorf("%s, fork at step %d: file-%d is there: %t", kind, at, n, there)
				}
			}
			signal(t, s, r.PID, types.SIGKILL)
			s.Wait(r.PID)
		}
	}
}

func TestInterruptedEditIsTakenBackAndDoneOnce(t *testing.T) { // C-4
	big := strings.Repeat("x", 10)
	w := &worker{steps: 2, call: func(n int) llmtest.Reply {
		if n == 1 {
			return tool("write_file", `{"path":"text","content":"one two"}`)
		}
		return tool("edit_file", `{"path":"text","old":"two","new":"two `+big+`"}`)
	}}
	_, url := llmtest.NewAPI(t, w.reply)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(p.PID)
	if s.Read("text") != "one two "+big {
		t.Fatalf("text is %q", s.Read("text"))
	}
	s.Stop()
	// The record is cut behind the intent of the edit, as a crash would: the edit was done, and nothing
	// says so.
	path := filepath.Join(s.Data, "steps", p.UUID.String(), step.StepsFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(b), `"kind":"intent"`)
	end := at + strings.IndexByte(string(b[at:]), '\n') + 1
	if err := os.WriteFile(path, b[:end], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{step.CheckpointFile, step.InfoFile, "checkpoint.prev.json"} {
		_ = os.Remove(filepath.Join(filepath.Dir(path), name))
	}
	_ = os.Remove(filepath.Join(s.Data, step.IndexFile))
	s.Start()
	s.Settle()
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env})
	if err != nil || len(r.InDoubt) != 1 || r.InDoubt[0].Verdict != "undo" {
		t.Fatalf("%+v %v", r, err)
	}
	if e := s.Wait(r.PID); e.Exit.Code != 0 {
		t.Errorf("%+v", e)
	}
	if got := s.Read("text"); got != "one two "+big {
		t.Errorf("text is %q", got)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: p.UUID.String()})
	if err != nil || len(l.Steps) != 3 || len(l.Steps[1].ToolCalls) != 1 || l.Steps[1].ToolCalls[0].Error != "" {
		t.Errorf("%+v %v", l.Steps, err)
	}
}

// tree describes all files below a directory, byte by byte.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %q\n", path, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTwoResumesOfOneHistoryOneWins(t *testing.T) {
	w := &worker{steps: 1, call: appends}
	w.hang.Store(1)
	_, url := llmtest.NewAPI(t, w.reply)
	s := testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(p.PID, event.StepStarted, nil)
	s.Stop()
	s.Start()
	s.Settle()
	const n = 8
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env})
			errs <- err
		}()
	}
	won := 0
	for range n {
		switch err := <-errs; types.CodeOf(err) {
		case "":
			won++
		case types.ErrConflict:
		default:
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d resumes won", won)
	}
}

func TestFinishedProcessTakesNewInput(t *testing.T) {
	said := make(chan string, 4)
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		last := r.Messages[len(r.Messages)-1]
		said <- last.Text
		return llmtest.Reply{Text: "answer to " + last.Text}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "one", ProcSpec: types.ProcSpec{Model: "fake", Name: "talk"}})
	s.Wait(p.PID)
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: "talk", Env: s.Env, NewInput: "two"})
	if err != nil {
		t.Fatal(err)
	}
	if e := s.Wait(r.PID); e.Exit.Code != 0 || e.Result != "answer to two" || e.Steps != 2 {
		t.Errorf("%+v", e)
	}
}

func has(s *testenv.System, name string) bool {
	_, err := os.Stat(filepath.Join(s.Work, name))
	return err == nil
}
