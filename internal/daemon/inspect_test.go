package daemon_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// writes has step n write its number into "all" and into a file of its own.
func writes(n int) llmtest.Reply {
	return tool("shell", fmt.Sprintf(`{"command":"echo %d >> all; mkdir -p sub; echo %d > sub/file-%d"}`, n, n, n))
}

// written starts a system whose process has written in three steps, in a directory of its own inside a git
// work tree if asked for, and has ended.
func written(t *testing.T, git bool) (*testenv.System, ipc.SpawnResponse) {
	t.Helper()
	_, url := llmtest.NewAPI(t, (&worker{steps: 3, call: writes}).reply)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.Write("all", "0\n")
	s.Write("secret", "mine\n")
	if git {
		s.Write(".gitignore", "secret\n")
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "begin"}} {
			c := exec.Command("git", args...)
			c.Dir, c.Env = s.Work, s.Env
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v: %s", args, err, out)
			}
		}
	}
	p := s.Spawn(ipc.SpawnRequest{Intent: "write", ProcSpec: types.ProcSpec{Model: "fake"}})
	if r := s.Wait(p.PID); r.Exit.Code != 0 {
		t.Fatalf("%+v", r)
	}
	return s, p
}

func kinds(t *testing.T, test func(t *testing.T, s *testenv.System, p ipc.SpawnResponse)) {
	for name, git := range map[string]bool{"git": true, "copy": false} {
		t.Run(name, func(t *testing.T) {
			s, p := written(t, git)
			test(t, s, p)
		})
	}
}

func diff(t *testing.T, s *testenv.System, req ipc.DiffRequest) ipc.DiffResponse {
	t.Helper()
	r, err := ipc.Call(t.Context(), s.Client, ipc.DiffFiles, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// changes is the list of a diff in a few words.
func changes(list []ipc.FileChange) string {
	var out []string
	for _, f := range list {
		out = append(out, fmt.Sprintf("%s %s +%d -%d", f.Status, f.Path, f.Added, f.Deleted))
	}
	return strings.Join(out, ", ")
}

func at(n int) *int { return &n }

func TestDiffShowsWhatEachStepHasChanged(t *testing.T) {
	kinds(t, func(t *testing.T, s *testenv.System, p ipc.SpawnResponse) {
		id := p.UUID.String()
		for n := 1; n <= 3; n++ {
			r := diff(t, s, ipc.DiffRequest{Target: id, From: n - 1, To: at(n)})
			if got, want := changes(r.Files), fmt.Sprintf("M all +1 -0, A sub/file-%d +1 -0", n); got != want || !strings.Contains(r.Diff, fmt.Sprintf("\n+%d\n", n)) {
				t.Errorf("step %d: %s\n%s", n, got, r.Diff)
			}
		}
		if r := diff(t, s, ipc.DiffRequest{Target: id, From: 3, To: at(4)}); len(r.Files) != 0 || r.To.Kept != 3 {
			t.Errorf("a step that has changed nothing: %+v", r)
		}
		s.Write("all", "9\n")
		if got := changes(diff(t, s, ipc.DiffRequest{Target: id, From: 3, Now: true}).Files); got != "M all +1 -4" {
			t.Errorf("up to now: %s", got)
		}
		if r := diff(t, s, ipc.DiffRequest{Target: id, From: 2}); changes(r.Files) != "M all +1 -0, A sub/file-3 +1 -0" || r.To.Now || r.To.Step != 4 || r.To.Broken != 0 {
			t.Errorf("up to its end: %+v", r)
		}
		if got := changes(diff(t, s, ipc.DiffRequest{Target: id, Paths: []string{"sub"}, Stat: true}).Files); got != "A sub/file-1 +1 -0, A sub/file-2 +1 -0, A sub/file-3 +1 -0" {
			t.Errorf("some paths: %s", got)
		}
		if r := diff(t, s, ipc.DiffRequest{Target: id, To: at(3), MaxBytes: 100}); r.Missing == 0 || len(r.Diff) > 100 || strings.Contains(r.Diff, "bytes more") {
			t.Errorf("%d bytes missing of %q", r.Missing, r.Diff)
		}
		if _, err := ipc.Call(t.Context(), s.Client, ipc.DiffFiles, ipc.DiffRequest{Target: id, To: at(2), Now: true}); types.CodeOf(err) != types.ErrInvalid {
			t.Error(err)
		}
		_, err := ipc.Call(t.Context(), s.Client, ipc.DiffFiles, ipc.DiffRequest{Target: id, From: 7})
		if types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "steps 1 to 4") {
			t.Error(err)
		}
	})
}

func restore(t *testing.T, s *testenv.System, req ipc.RestoreRequest) ipc.RestoreResponse {
	t.Helper()
	r, err := ipc.Call(t.Context(), s.Client, ipc.RestoreFiles, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// files describes the work of a directory, without what git keeps for itself.
func files(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	for line := range strings.Lines(tree(t, dir)) {
		if !strings.Contains(line, "/.git") {
			out = append(out, strings.TrimPrefix(line, dir))
		}
	}
	return strings.Join(out, "")
}

func TestRestorePutsTheFilesBackAndCanBeUndone(t *testing.T) {
	kinds(t, func(t *testing.T, s *testenv.System, p ipc.SpawnResponse) {
		id := p.UUID.String()
		s.Write("sub/by-hand", "not of any step\n")
		before := files(t, s.Work)
		if r := restore(t, s, ipc.RestoreRequest{Target: id, Step: at(1), DryRun: true}); len(r.Changes) != 4 || files(t, s.Work) != before {
			t.Errorf("dry: %+v", r)
		}
		r := restore(t, s, ipc.RestoreRequest{Target: id, Step: at(1)})
		if s.Read("all") != "0\n1\n" || s.Read("sub/file-1") != "1\n" || has(s, "sub/file-2") || has(s, "sub/by-hand") || s.Read("secret") != "mine\n" {
			t.Errorf("%+v\n%s", r, files(t, s.Work))
		}
		if r.Written != 1 || r.Removed != 3 || len(r.Kept) != 0 || !strings.HasPrefix(r.Undo, "rnix restore "+id+" --snapshot ") {
			t.Errorf("%+v", r)
		}
		f := strings.Fields(r.Undo)
		restore(t, s, ipc.RestoreRequest{Target: id, Snapshot: f[len(f)-1]})
		if after := files(t, s.Work); after != before {
			t.Errorf("undone:\n%s\nwas:\n%s", after, before)
		}
		restore(t, s, ipc.RestoreRequest{Target: id, Step: at(0), Paths: []string{"all"}})
		if s.Read("all") != "0\n" || !has(s, "sub/by-hand") || !has(s, "sub/file-3") {
			t.Errorf("some paths:\n%s", files(t, s.Work))
		}
	})
}

func TestRestoreWritesIntoANewDirectory(t *testing.T) {
	kinds(t, func(t *testing.T, s *testenv.System, p ipc.SpawnResponse) {
		id, before := p.UUID.String(), files(t, s.Work)
		there := filepath.Join(s.Dir, "there")
		restore(t, s, ipc.RestoreRequest{Target: id, Step: at(2), To: there})
		if got := files(t, there); !strings.Contains(got, `/all "0\n1\n2\n"`) || strings.Contains(got, "file-3") {
			t.Error(got)
		}
		_, err := ipc.Call(t.Context(), s.Client, ipc.RestoreFiles, ipc.RestoreRequest{Target: id, Step: at(1), To: there})
		if types.CodeOf(err) != types.ErrConflict {
			t.Errorf("into a full directory: %v", err)
		}
		part := filepath.Join(s.Work, "part") // inside the work tree, whose other files must stay
		r := restore(t, s, ipc.RestoreRequest{Target: id, Step: at(2), To: part, Paths: []string{"sub", filepath.Join(s.Work, "all"), "none"}})
		if names, _ := os.ReadDir(part); r.Written != 3 || len(names) != 2 || len(r.Kept) != 1 {
			t.Errorf("%+v %v", r, names)
		}
		if err := os.RemoveAll(part); err != nil {
			t.Fatal(err)
		}
		if after := files(t, s.Work); after != before {
			t.Errorf("the work has changed:\n%s", after)
		}
	})
}

func TestRestoreWaitsForNobodyAtWork(t *testing.T) {
	w := &worker{steps: 3, call: writes}
	w.hang.Store(3)
	_, url := llmtest.NewAPI(t, w.reply)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "write", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(p.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 3 })
	req := ipc.RestoreRequest{Target: p.UUID.String(), Step: at(1)}
	refused := func(who string) {
		t.Helper()
		_, err := ipc.Call(t.Context(), s.Client, ipc.RestoreFiles, req)
		if types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "rnix pause "+who) || !has(s, "sub/file-2") {
			t.Errorf("got %v", err)
		}
	}
	refused(p.PID.String())
	signal(t, s, p.PID, types.SIGPAUSE)
	other := s.Spawn(ipc.SpawnRequest{Intent: "write", ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: filepath.Join(s.Work, "sub")})
	s.Await(other.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 3 })
	refused(other.PID.String())
	signal(t, s, other.PID, types.SIGPAUSE)
	if r := restore(t, s, req); has(s, "sub/file-2") || s.Read("all") != "1\n" {
		t.Errorf("%+v", r)
	}
}

func TestRestoreStaysInTheDirectoryOfTheProcess(t *testing.T) {
	s, _ := written(t, true)
	dir := filepath.Join(s.Work, "sub")
	p := s.Spawn(ipc.SpawnRequest{Intent: "write", ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: dir})
	if r := s.Wait(p.PID); r.Exit.Code != 0 {
		t.Fatalf("%+v", r)
	}
	s.Write("all", "of somebody else\n")
	id := p.UUID.String()
	if r := restore(t, s, ipc.RestoreRequest{Target: id, Step: at(1)}); s.Read("all") != "of somebody else\n" || s.Read("sub/all") != "1\n" || has(s, "sub/sub/file-2") {
		t.Errorf("%+v\n%s", r, files(t, s.Work))
	}
	_, err := ipc.Call(t.Context(), s.Client, ipc.RestoreFiles, ipc.RestoreRequest{Target: id, Step: at(1), Paths: []string{filepath.Join(s.Dir, "x")}})
	if types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a path outside: %v", err)
	}
	there := filepath.Join(s.Dir, "there")
	if err := os.Mkdir(there, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id, Env: s.Env, Fork: true, FromStep: at(1), Cwd: there})
	if err != nil {
		t.Fatal(err)
	}
	s.Wait(f.PID)
	_, err = ipc.Call(t.Context(), s.Client, ipc.RestoreFiles, ipc.RestoreRequest{Target: f.UUID.String(), Step: at(1)})
	if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "--to") {
		t.Errorf("files of elsewhere: %v", err)
	}
}

func TestSnapshotsThatAreSwitchedOffAreNamedAsTheReason(t *testing.T) {
	_, url := llmtest.NewAPI(t, (&worker{steps: 1, call: writes}).reply)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_SNAPSHOTS_ENABLED=false")
	p := s.Spawn(ipc.SpawnRequest{Intent: "write", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(p.PID)
	_, err := ipc.Call(t.Context(), s.Client, ipc.DiffFiles, ipc.DiffRequest{Target: p.UUID.String()})
	if types.CodeOf(err) != types.ErrUnavailable || !strings.Contains(err.Error(), "snapshots.enabled") {
		t.Errorf("got %v", err)
	}
}

func TestHistoryWithoutChangesSaysThatNothingIsKept(t *testing.T) {
	_, url := llmtest.NewAPI(t, (&worker{steps: 1, call: func(int) llmtest.Reply { return tool("list_files", `{"path":"."}`) }}).reply)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "look", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(p.PID)
	_, err := ipc.Call(t.Context(), s.Client, ipc.RestoreFiles, ipc.RestoreRequest{Target: p.UUID.String(), Step: at(1)})
	if types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "could change any") {
		t.Errorf("got %v", err)
	}
}

func TestLedgerOfADamagedHistoryGoesUpToTheDamage(t *testing.T) {
	s, p := written(t, false)
	s.Stop()
	path := filepath.Join(s.Data, "steps", p.UUID.String(), step.StepsFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	i := strings.LastIndex(string(b), `"kind":"result"`)
	b[i+20] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Start()
	s.Settle()
	l, err := ipc.Call(t.Context(), s.Client, ipc.Ledger, ipc.LedgerRequest{Target: p.UUID.String()})
	if err != nil || l.Damage == "" || len(l.Calls) != 3 || l.Counts[step.LedgerDone] != 2 {
		t.Errorf("%+v %v", l, err)
	}
	h, err := ipc.Call(t.Context(), s.Client, ipc.Lineage, ipc.TargetRequest{Target: p.UUID.String()})
	if err != nil || h.Damage == "" || len(h.Runs) != 1 || h.Runs[0].LastStep != 2 || h.Runs[0].End != step.MarkerInterrupted {
		t.Errorf("%+v %v", h, err)
	}
}

func TestForkHasTheFilesOfItsOriginAndItsOwn(t *testing.T) {
	kinds(t, func(t *testing.T, s *testenv.System, p ipc.SpawnResponse) {
		before := files(t, s.Work)
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true, FromStep: at(1)})
		if err != nil {
			t.Fatal(err)
		}
		if e := s.Wait(r.PID); e.Exit.Code != 0 {
			t.Fatalf("%+v", e)
		}
		id := r.UUID.String()
		for n := 1; n <= 3; n++ {
			if got, want := changes(diff(t, s, ipc.DiffRequest{Target: id, From: n - 1, To: at(n)}).Files), fmt.Sprintf("M all +1 -0, A sub/file-%d +1 -0", n); got != want {
				t.Errorf("step %d of the fork: %s", n, got)
			}
		}
		rep := restore(t, s, ipc.RestoreRequest{Target: id, Step: at(0)})
		if b, err := os.ReadFile(filepath.Join(r.WorkDir, "all")); string(b) != "0\n" || rep.Dir != r.WorkDir {
			t.Errorf("%+v: %q %v", rep, b, err)
		}
		if after := files(t, s.Work); after != before {
			t.Errorf("the origin's files have changed:\n%s", after)
		}
		l, err := ipc.Call(t.Context(), s.Client, ipc.Ledger, ipc.LedgerRequest{Target: id})
		if err != nil || len(l.Calls) != 3 || l.OriginUUID != p.UUID || l.OriginStep != 1 {
			t.Errorf("%+v %v", l, err)
		}
	})
}

func TestLineageShowsTheRunsAndHowTheyEnded(t *testing.T) {
	w := &worker{steps: 3, call: writes}
	w.hang.Store(2)
	_, url := llmtest.NewAPI(t, w.reply)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	p := s.Spawn(ipc.SpawnRequest{Intent: "write", ProcSpec: types.ProcSpec{Model: "fake"}})
	id := p.UUID.String()
	runs := func() []ipc.Run {
		t.Helper()
		r, err := ipc.Call(t.Context(), s.Client, ipc.Lineage, ipc.TargetRequest{Target: id})
		if err != nil || len(r.Family) != 1 || r.Family[0].UUID != p.UUID {
			t.Fatalf("%+v %v", r, err)
		}
		return r.Runs
	}
	s.Await(p.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 2 })
	if r := runs(); len(r) != 1 || r[0].How != "spawn" || r[0].End != "" || r[0].LastStep != 1 || r[0].PID != p.PID {
		t.Errorf("%+v", r)
	}
	s.Kill()
	s.Start()
	s.Settle()
	w.hang.Store(3)
	again, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id, Env: s.Env, NewInput: "go on"})
	if err != nil {
		t.Fatal(err)
	}
	s.Await(again.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 3 })
	s.Stop()
	s.Start()
	s.Settle()
	w.hang.Store(0)
	steps := 30
	last, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id, Env: s.Env, MaxSteps: &steps})
	if err != nil {
		t.Fatal(err)
	}
	s.Wait(last.PID)
	r := runs()
	var got []string
	for _, x := range r {
		got = append(got, fmt.Sprintf("%d: PID %d %s %d-%d %q %v %s", x.Number, x.PID, x.How, x.FirstStep, x.LastStep, x.Input, x.Changed, x.End))
	}
	want := []string{
		fmt.Sprintf(`1: PID %d spawn 1-1 "" [] interrupted`, p.PID),
		fmt.Sprintf(`2: PID %d resume 2-2 "go on" [] daemon_stop`, again.PID),
		fmt.Sprintf(`3: PID %d resume 3-4 "" [max_steps] exit`, last.PID),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if x := r[2]; x.Exit == nil || x.Exit.Code != 0 || x.MaxSteps != 32 || x.Ended.Before(x.Began) {
		t.Errorf("%+v", x)
	}
}

func TestLineageShowsRelativesThatAreGone(t *testing.T) {
	s := testenv.New(t)
	p := ended(t, s, "first")
	fork := func(of types.UUID) ipc.ResumeResponse {
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: of.String(), Env: s.Env, Fork: true, Cwd: s.Work})
		if err != nil {
			t.Fatal(err)
		}
		s.Wait(r.PID)
		return r
	}
	second := fork(p.UUID)
	third := fork(second.UUID)
	family := func() string {
		t.Helper()
		r, err := ipc.Call(t.Context(), s.Client, ipc.Lineage, ipc.TargetRequest{Target: second.UUID.String()})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range r.Family {
			out = append(out, fmt.Sprintf("%d %s", f.PID, f.State))
		}
		return strings.Join(out, ", ")
	}
	age(t, s, third.UUID)
	collect(t, s, ipc.GCRequest{})
	if got, want := family(), fmt.Sprintf("%d dead, %d dead, %d archived", p.PID, second.PID, third.PID); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	age(t, s, p.UUID)
	collect(t, s, ipc.GCRequest{Delete: true})
	if got, want := family(), fmt.Sprintf("%d deleted, %d dead, %d archived", p.PID, second.PID, third.PID); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
