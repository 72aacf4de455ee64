package daemon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// ended runs a process to its end.
func ended(t *testing.T, s *testenv.System, name string) ipc.SpawnResponse {
	t.Helper()
	p := s.Spawn(ipc.SpawnRequest{Intent: "run `echo " + name + "`", ProcSpec: types.ProcSpec{Name: name}})
	if w := s.Wait(p.PID); w.Exit.Code != 0 {
		t.Fatalf("%+v", w)
	}
	return p
}

// rewrite changes what the small file of a history says, while no daemon runs; the index is made anew.
func rewrite(t *testing.T, s *testenv.System, id types.UUID, change func(*step.ProcInfo)) {
	t.Helper()
	dir := step.Dir(s.Data, id)
	info, err := step.ReadInfo(durable.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	change(info)
	b, err := json.Marshal(info)
	if err == nil {
		err = durable.WriteFile(durable.OS, filepath.Join(dir, step.InfoFile), b, durable.Cached)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(s.Data, step.IndexFile)); err != nil {
		t.Fatal(err)
	}
}

// age stops the daemon, makes histories a hundred days old, and starts it again.
func age(t *testing.T, s *testenv.System, ids ...types.UUID) {
	t.Helper()
	s.Stop()
	for _, id := range ids {
		rewrite(t, s, id, func(p *step.ProcInfo) { p.DeadAt = time.Now().AddDate(0, 0, -100) })
	}
	s.Start()
	s.Settle()
}

func collect(t *testing.T, s *testenv.System, req ipc.GCRequest) ipc.GCResponse {
	t.Helper()
	r, err := ipc.Call(t.Context(), s.Client, ipc.GC, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shownAs returns the state in which ps -a shows a process; "" if it does not.
func shownAs(t *testing.T, s *testenv.System, id types.UUID) string {
	t.Helper()
	r, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		t.Fatal(err)
	}
	state := ""
	for i := range r.Procs {
		if r.Procs[i].UUID == id {
			state += r.Procs[i].State
		}
	}
	return state
}

// refused checks the error of every method that needs the history that text names.
func refused(t *testing.T, s *testenv.System, text string, words ...string) {
	t.Helper()
	_, resume := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: text, Env: s.Env})
	_, fork := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: text, Env: s.Env, Fork: true})
	_, steps := ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: text})
	_, keep := ipc.Call(t.Context(), s.Client, ipc.Keep, ipc.KeepRequest{Target: text})
	for what, err := range map[string]error{"resume": resume, "fork": fork, "steps": steps, "keep": keep} {
		for _, w := range words {
			if types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), w) {
				t.Errorf("%s %s: %v, want NOT_FOUND with %q", what, text, err, w)
			}
		}
	}
}

func TestOldHistoryIsArchivedAndCanBePutBack(t *testing.T) {
	s := testenv.New(t)
	old, young := ended(t, s, "old"), ended(t, s, "young")
	age(t, s, old.UUID)
	st, err := ipc.Call(t.Context(), s.Client, ipc.DaemonStatus, ipc.Empty{})
	if err != nil || st.Storage.Leaving != 1 || st.Storage.Mode != "archive" || st.Storage.Archived != 0 {
		t.Errorf("%+v %v", st.Storage, err)
	}
	before := tree(t, step.Dir(s.Data, old.UUID))
	dry := collect(t, s, ipc.GCRequest{DryRun: true})
	if len(dry.Candidates) != 1 || dry.Candidates[0].UUID != old.UUID || dry.Candidates[0].Bytes < 100 || dry.Kept+len(dry.Exempt) != 1 || len(dry.Archived) != 0 {
		t.Errorf("%+v", dry)
	}
	if after := tree(t, step.Dir(s.Data, old.UUID)); after != before {
		t.Error("a dry run has changed something")
	}
	r := collect(t, s, ipc.GCRequest{})
	if len(r.Archived) != 1 || r.Archived[0].Bytes != dry.Candidates[0].Bytes || len(r.Skipped)+len(r.Warnings) != 0 {
		t.Fatalf("%+v", r)
	}
	if _, err := os.Stat(r.Archived[0].Archive); err != nil || filepath.Dir(r.Archived[0].Archive) != r.ArchiveDir {
		t.Errorf("%v, %s", err, r.ArchiveDir)
	}
	if shownAs(t, s, old.UUID) != "archived" || shownAs(t, s, young.UUID) != "dead" {
		t.Errorf("old is %q, young is %q", shownAs(t, s, old.UUID), shownAs(t, s, young.UUID))
	}
	for _, name := range []string{old.UUID.String(), old.PID.String(), "old", old.UUID.String()[:30]} {
		refused(t, s, name, "archived on "+time.Now().Format(time.DateOnly), "rnix unarchive "+old.UUID.String())
	}
	if _, err := os.Stat(step.Dir(s.Data, old.UUID)); err == nil {
		t.Error("a refused resume has made a directory")
	}
	if again := collect(t, s, ipc.GCRequest{}); len(again.Candidates) != 0 {
		t.Errorf("again: %+v", again)
	}
	s.Stop()
	s.Start()
	s.Settle()
	back, err := ipc.Call(t.Context(), s.Client, ipc.Unarchive, ipc.UnarchiveRequest{Target: "old"})
	if err != nil || back.UUID != old.UUID || back.Dir != step.Dir(s.Data, old.UUID) || !back.KeptUntil.After(time.Now()) {
		t.Fatalf("%+v %v", back, err)
	}
	if shownAs(t, s, old.UUID) != "dead" {
		t.Errorf("it is %q", shownAs(t, s, old.UUID))
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Unarchive, ipc.UnarchiveRequest{Target: "old"}); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("put back twice: %v", err)
	}
	if again := collect(t, s, ipc.GCRequest{}); len(again.Candidates) != 0 || len(again.Exempt) == 0 || !strings.Contains(again.Exempt[0].Reason, "put back") {
		t.Errorf("what was put back goes again at once: %+v", again)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: "old"})
	if err != nil || len(l.Steps) == 0 || l.Damage != "" {
		t.Errorf("%+v %v", l, err)
	}
	on, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: "old", Env: s.Env})
	if err != nil || on.UUID != old.UUID {
		t.Fatalf("%+v %v", on, err)
	}
	s.Wait(on.PID)
}

func TestDeletedHistoryIsRemembered(t *testing.T) {
	s := testenv.New(t, "RNIX_GC_MODE=delete")
	one, two := ended(t, s, "one"), ended(t, s, "two")
	age(t, s, one.UUID, two.UUID)
	r := collect(t, s, ipc.GCRequest{})
	if len(r.Deleted) != 2 || len(r.Archived) != 0 || r.Mode != "delete" {
		t.Fatalf("%+v", r)
	}
	refused(t, s, one.UUID.String(), "was deleted on "+time.Now().Format(time.DateOnly), "gc.retention_days")
	refused(t, s, one.PID.String(), "was deleted on ")
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Unarchive, ipc.UnarchiveRequest{Target: "one"}); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "was deleted on") {
		t.Errorf("%v", err)
	}
	if shownAs(t, s, one.UUID) != "" {
		t.Errorf("it is still shown as %s", shownAs(t, s, one.UUID))
	}
	if p := ended(t, s, "three"); p.PID <= two.PID {
		t.Errorf("PID %d is used again", p.PID)
	}
}

func TestSeveralGoneOnesOfANameAreAmbiguous(t *testing.T) {
	s := testenv.New(t)
	one, two := ended(t, s, "same"), ended(t, s, "same")
	age(t, s, one.UUID, two.UUID)
	collect(t, s, ipc.GCRequest{})
	_, err := ipc.Call(t.Context(), s.Client, ipc.Unarchive, ipc.UnarchiveRequest{Target: "same"})
	if types.CodeOf(err) != types.ErrAmbiguous || !strings.Contains(err.Error(), one.UUID.String()) || !strings.Contains(err.Error(), two.UUID.String()) {
		t.Errorf("%v", err)
	}
}

func TestKeptHistoryStays(t *testing.T) {
	s := testenv.New(t)
	p := ended(t, s, "night")
	age(t, s, p.UUID)
	keep := func(req ipc.KeepRequest) ipc.KeepResponse {
		t.Helper()
		req.Target = "night"
		r, err := ipc.Call(t.Context(), s.Client, ipc.Keep, req)
		if err != nil || r.UUID != p.UUID || r.Name != "night" {
			t.Fatalf("%+v %v", r, err)
		}
		return r
	}
	if r := keep(ipc.KeepRequest{Note: "for the audit"}); !r.Kept || r.Was || r.Note != "for the audit" {
		t.Errorf("%+v", r)
	}
	until := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second)
	if r := keep(ipc.KeepRequest{Note: "for a day", Until: until}); !r.Kept || !r.Was || !r.Until.Equal(until) {
		t.Errorf("%+v", r)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Keep, ipc.KeepRequest{Target: "night", Until: time.Now().Add(-time.Hour)}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("until yesterday: %v", err)
	}
	s.Stop()
	s.Start()
	s.Settle()
	if r := collect(t, s, ipc.GCRequest{}); len(r.Candidates) != 0 || len(r.Exempt) != 1 || !strings.Contains(r.Exempt[0].Reason, "for a day") {
		t.Errorf("%+v", r)
	}
	if r := keep(ipc.KeepRequest{Off: true}); r.Kept || !r.Was {
		t.Errorf("%+v", r)
	}
	if r := keep(ipc.KeepRequest{Off: true}); r.Kept || r.Was {
		t.Errorf("%+v", r)
	}
	if r := collect(t, s, ipc.GCRequest{}); len(r.Archived) != 1 {
		t.Errorf("%+v", r)
	}
}

// The workspace of a fork goes with its history, and nothing that was in it is lost.
func TestWorkspaceOfAForkIsRescuedBeforeItGoes(t *testing.T) {
	for _, kind := range []string{"copy", "git"} {
		t.Run(kind, func(t *testing.T) {
			w := &worker{steps: 2, call: func(n int) llmtest.Reply {
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
			s.Wait(p.PID)
			f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true})
			if err != nil {
				t.Fatal(err)
			}
			s.Wait(f.PID)
			if err := os.WriteFile(filepath.Join(f.WorkDir, "by hand"), []byte("a person's work"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.hang.Store(1) // of another process, which a person has started in the fork's directory
			other := s.Spawn(ipc.SpawnRequest{Intent: "look", ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: f.WorkDir})
			signal(t, s, other.PID, types.SIGPAUSE)
			age(t, s, f.UUID)
			r := collect(t, s, ipc.GCRequest{Delete: true})
			if len(r.Deleted) != 0 || len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].Reason, "works there") {
				t.Fatalf("while another process works there: %+v", r)
			}
			on, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: other.UUID.String(), Env: s.Env})
			if err != nil {
				t.Fatal(err)
			}
			signal(t, s, on.PID, types.SIGKILL)
			s.Wait(on.PID)
			if r = collect(t, s, ipc.GCRequest{Delete: true}); len(r.Deleted) != 1 || r.Deleted[0].Rescued == "" {
				t.Fatalf("%+v", r)
			}
			if _, err := os.Stat(f.WorkDir); !os.IsNotExist(err) {
				t.Errorf("the workspace is still there: %v", err)
			}
			if got := s.Read("file-2"); got != "2" {
				t.Errorf("the directory of the origin has %q", got)
			}
			if kind != "git" {
				return
			}
			command := strings.Replace(r.Deleted[0].Rescued, " DIR ", " "+filepath.Join(s.Dir, "back")+" ", 1)
			if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", command, err, out)
			}
			if b, err := os.ReadFile(filepath.Join(s.Dir, "back", "by hand")); err != nil || string(b) != "a person's work" {
				t.Errorf("%q %v", b, err)
			}
		})
	}
}

// What comes back from an archive can do all that it could before: go on, be forked at any step, show and
// restore its files, and a fork works where it did.
func TestArchiveTakesNothingAway(t *testing.T) { // C-6
	for _, kind := range []string{"copy", "git"} {
		w := &worker{steps: 3, call: func(n int) llmtest.Reply {
			return tool("write_file", fmt.Sprintf(`{"path":"file-%d","content":"%d"}`, n, n))
		}}
		_, url := llmtest.NewAPI(t, w.reply)
		s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
		git := func(args ...string) {
			t.Helper()
			if out, err := exec.Command("git", append([]string{"-C", s.Work}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		if kind == "git" {
			git("init", "-q")
		}
		p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
		s.Wait(p.PID)
		at := 2
		f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true, FromStep: &at})
		if err != nil {
			t.Fatal(err)
		}
		s.Wait(f.PID)
		age(t, s, p.UUID, f.UUID)
		if r := collect(t, s, ipc.GCRequest{}); len(r.Archived) != 2 {
			t.Fatalf("%+v", r)
		}
		if kind == "git" {
			git("gc", "-q", "--prune=now")
		}
		for _, id := range []types.UUID{p.UUID, f.UUID} {
			if _, err := ipc.Call(t.Context(), s.Client, ipc.Unarchive, ipc.UnarchiveRequest{Target: id.String()}); err != nil {
				t.Fatal(err)
			}
		}
		for n := 1; n <= 3; n++ {
			d, err := ipc.Call(t.Context(), s.Client, ipc.DiffFiles, ipc.DiffRequest{Target: p.UUID.String(), From: n - 1, To: &n})
			if err != nil || len(d.Files) != 1 || d.Files[0].Path != fmt.Sprintf("file-%d", n) {
				t.Errorf("%s: step %d: %+v %v", kind, n, d.Files, err)
			}
		}
		for _, req := range []ipc.ResumeRequest{{Target: p.UUID.String(), Fork: true, FromStep: &at}, {Target: f.UUID.String(), NewInput: "again"}, {Target: p.UUID.String(), NewInput: "again"}} {
			req.Env = s.Env
			r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, req)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if e := s.Wait(r.PID); e.Exit.Code != 0 {
				t.Errorf("%s: %+v", kind, e)
			}
		}
	}
}

// Whoever is quicker, a history is resumed or archived, and never lost or there twice.
func TestResumeAndCollectionDoNotMeet(t *testing.T) {
	s := testenv.New(t, testenv.Checked)
	const n = 12
	var ps []ipc.SpawnResponse
	var ids []types.UUID
	for i := range n {
		p := ended(t, s, fmt.Sprintf("p%d", i))
		ps, ids = append(ps, p), append(ids, p.UUID)
	}
	age(t, s, ids...)
	var wg sync.WaitGroup
	resumed := make([]error, n)
	var r ipc.GCResponse
	wg.Go(func() { r = collect(t, s, ipc.GCRequest{}) })
	for i := range ps {
		wg.Go(func() {
			_, resumed[i] = ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: ids[n-1-i].String(), Env: s.Env})
		})
	}
	wg.Wait()
	archived := map[types.UUID]bool{}
	for _, d := range r.Archived {
		archived[d.UUID] = true
	}
	for i, err := range resumed {
		id := ids[n-1-i]
		switch code := types.CodeOf(err); {
		case err == nil && archived[id]:
			t.Errorf("%s was resumed and archived", id)
		case err != nil && code != types.ErrConflict && code != types.ErrNotFound:
			t.Errorf("%s: %v", id, err)
		}
		if got := shownAs(t, s, id); got != "archived" && archived[id] || got == "" || strings.Contains(got, "archived") && got != "archived" {
			t.Errorf("%s is %q", id, got)
		}
	}
}

func TestKilledCollectionLosesNothing(t *testing.T) {
	s := testenv.New(t)
	first := ended(t, s, "p0")
	origin := t.TempDir()
	if err := os.CopyFS(origin, os.DirFS(step.Dir(s.Data, first.UUID))); err != nil {
		t.Fatal(err)
	}
	ids := []types.UUID{first.UUID}
	counts := killedCollection(t, s, origin, &ids)
	for try := 1; counts["dead"] == 0 && try < 5; try++ {
		t.Log("the kill came when all were archived")
		counts = killedCollection(t, s, origin, &ids)
	}
	if counts["archived"] < 5 || counts["dead"] == 0 || counts["archived"]+counts["dead"] != len(ids) {
		t.Errorf("%v of %d", counts, len(ids))
	}
	collect(t, s, ipc.GCRequest{})
	if left, err := os.ReadDir(filepath.Join(s.Data, "steps")); err != nil || len(left) != 0 {
		t.Errorf("%d are left after another run: %v", len(left), err)
	}
}

// killedCollection adds sixty histories, kills the daemon while it archives them, starts another one and returns how many of all are shown as what.
func killedCollection(t *testing.T, s *testenv.System, origin string, ids *[]types.UUID) map[string]int {
	t.Helper()
	archives := func() int {
		files, _ := filepath.Glob(filepath.Join(step.ArchiveDir(s.Data), "*.tar.gz"))
		return len(files)
	}
	s.Stop()
	for range 60 { // copies of it, each a history of its own
		id := types.NewUUID()
		if err := os.CopyFS(step.Dir(s.Data, id), os.DirFS(origin)); err != nil {
			t.Fatal(err)
		}
		rewrite(t, s, id, func(p *step.ProcInfo) { p.UUID = id })
		*ids = append(*ids, id)
	}
	s.Start()
	before := archives()
	age(t, s, (*ids)[len(*ids)-60:]...)
	if before == 0 {
		age(t, s, (*ids)[0])
	}
	over := make(chan struct{})
	go func() { // ends with the daemon
		defer close(over)
		_, _ = ipc.Call(t.Context(), s.Client, ipc.GC, ipc.GCRequest{})
	}()
	until(t, "some are archived", func() bool { return archives() > before+5 })
	s.Kill()
	<-over
	s.Start()
	s.Settle()
	counts := map[string]int{}
	for _, id := range *ids {
		counts[shownAs(t, s, id)]++
	}
	return counts
}

func TestSeveralMayCopyAHistoryAtOnce(t *testing.T) {
	s := testenv.New(t)
	p := ended(t, s, "origin")
	var wg sync.WaitGroup
	const n = 8
	forks, errs := make([]ipc.ResumeResponse, n), make([]error, n)
	for i := range n {
		wg.Go(func() {
			forks[i], errs[i] = ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: "origin", Fork: true, Cwd: s.Work, Env: s.Env})
		})
	}
	wg.Wait()
	for i := range n {
		if errs[i] != nil || forks[i].OriginUUID != p.UUID {
			t.Fatalf("%+v %v", forks[i], errs[i])
		}
		s.Wait(forks[i].PID)
	}
}

func TestZombieOfACrashIsBuried(t *testing.T) {
	s := testenv.New(t)
	p := ended(t, s, "zombie")
	s.Stop()
	var died time.Time
	rewrite(t, s, p.UUID, func(i *step.ProcInfo) { died, i.DeadAt, i.State = i.DeadAt, time.Time{}, types.StateZombie })
	s.Start()
	s.Settle()
	info, err := step.ReadInfo(durable.OS, step.Dir(s.Data, p.UUID))
	if err != nil || info.State != types.StateDead || info.DeadAt.Sub(died).Abs() > time.Minute || info.Exit == nil {
		t.Errorf("%+v %v", info, err)
	}
	if shownAs(t, s, p.UUID) != "dead" {
		t.Errorf("it is %q", shownAs(t, s, p.UUID))
	}
}

func TestRoomIsAddedUp(t *testing.T) {
	s := testenv.New(t)
	small, large := ended(t, s, "small"), ended(t, s, "large")
	big := filepath.Join(step.Dir(s.Data, large.UUID), "scratch", "long")
	if err := os.MkdirAll(filepath.Dir(big), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(big, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := ipc.Call(t.Context(), s.Client, ipc.DU, ipc.DURequest{})
	if err != nil || len(all.Histories) != 2 || all.Histories[0].UUID != large.UUID || all.Histories[0].Scratch != 1<<20 || all.DataDir != s.Data {
		t.Fatalf("%+v %v", all, err)
	}
	one, err := ipc.Call(t.Context(), s.Client, ipc.DU, ipc.DURequest{Targets: []string{"small"}})
	if err != nil || len(one.Histories) != 1 || one.Histories[0].UUID != small.UUID || one.Total != one.Histories[0].BytesUsed {
		t.Errorf("%+v %v", one, err)
	}
	if sum := all.Histories[0].Total + all.Histories[1].Total + all.Shared.Total; all.Total.Total != sum {
		t.Errorf("%d in all, %d together", all.Total.Total, sum)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.DU, ipc.DURequest{Targets: []string{"nobody"}}); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("%v", err)
	}
	age(t, s, large.UUID)
	collect(t, s, ipc.GCRequest{})
	gone, err := ipc.Call(t.Context(), s.Client, ipc.DU, ipc.DURequest{Targets: []string{"large"}})
	if err != nil || len(gone.Histories) != 1 || gone.Histories[0].State != "archived" || gone.Total.Archive == 0 || gone.Total.Scratch != 0 {
		t.Errorf("%+v %v", gone, err)
	}
}

func TestRoomIsThatOfTheDataDirectory(t *testing.T) {
	kinds(t, func(t *testing.T, s *testenv.System, p ipc.SpawnResponse) {
		big := make([]byte, 3<<20)
		for i, seed := 0, uint32(1); i < len(big); i++ { // compression does not make it shorter
			seed = seed*1664525 + 1013904223
			big[i] = byte(seed >> 24)
		}
		s.Write("big", string(big))
		g, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), NewInput: "again", Env: s.Env})
		if err != nil {
			t.Fatal(err)
		}
		s.Wait(g.PID)
		f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Fork: true, Env: s.Env})
		if err != nil {
			t.Fatal(err)
		}
		s.Wait(f.PID)
		r, err := ipc.Call(t.Context(), s.Client, ipc.DU, ipc.DURequest{})
		if err != nil || len(r.Histories) != 2 || len(r.Warnings) > 0 {
			t.Fatalf("%+v %v", r, err)
		}
		var there int64
		err = filepath.WalkDir(s.Data, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				var info fs.FileInfo
				switch info, err = d.Info(); {
				case err == nil:
					there += info.Size()
				case errors.Is(err, fs.ErrNotExist): // what is told of a process at its end was just written, under its last name
					err = nil
				}
			}
			return err
		})
		if err != nil || max(r.Total.Total-there, there-r.Total.Total) > there/50 {
			t.Errorf("%d in all, and %d are there: %+v %v", r.Total.Total, there, r.Total, err)
		}
		sum := r.Shared.Total
		for _, h := range r.Histories {
			if sum += h.Total; h.UUID == f.UUID && h.Workspace < 3<<20 {
				t.Errorf("the workspace of the fork is not counted: %+v", h)
			}
		}
		if sum != r.Total.Total {
			t.Errorf("%d in all, %d together", r.Total.Total, sum)
		}
	})
}

func TestDamageIsFoundByItsLineAndMended(t *testing.T) {
	s := testenv.New(t)
	p, whole := ended(t, s, "damaged"), ended(t, s, "whole")
	check := func(req ipc.FsckRequest) ipc.FsckResponse {
		t.Helper()
		r, err := ipc.Call(t.Context(), s.Client, ipc.Fsck, req)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := check(ipc.FsckRequest{}); r.Errors != 0 || r.Histories != 2 || r.Records == 0 {
		t.Errorf("%+v", r)
	}
	s.Stop()
	file := filepath.Join(step.Dir(s.Data, p.UUID), step.StepsFile)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ls := bytes.SplitAfter(b, []byte("\n"))
	ls[2] = bytes.Replace(ls[2], []byte(`"seq"`), []byte(`"SEQ"`), 1)
	if err := os.WriteFile(file, bytes.Join(ls, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Start()
	s.Settle()
	r := check(ipc.FsckRequest{})
	if r.Errors != 1 {
		t.Fatalf("%+v", r)
	}
	for _, f := range r.Findings {
		if f.Severity == "error" && (f.File != file || f.Line != 3 || f.PID != p.PID || f.Repair == "" || f.Done != "") {
			t.Errorf("%+v", f)
		}
	}
	if r := check(ipc.FsckRequest{Targets: []string{"whole"}}); r.Errors != 0 || r.Histories != 1 {
		t.Errorf("%+v", r)
	}
	if r := check(ipc.FsckRequest{Targets: []string{"damaged"}, Repair: true}); r.Errors != 0 || !r.Repaired || len(r.Findings) == 0 {
		t.Errorf("%+v", r)
	}
	if r := check(ipc.FsckRequest{}); r.Errors != 0 {
		t.Errorf("after the repair: %+v", r)
	}
	if shownAs(t, s, whole.UUID) != "dead" {
		t.Error("the other one was touched")
	}
}

func TestAgentsDoNotDecideAboutHistories(t *testing.T) {
	s := testenv.New(t)
	p := ended(t, s, "old")
	age(t, s, p.UUID)
	for _, m := range []struct {
		name string
		req  any
	}{
		{ipc.GC.Name, ipc.GCRequest{}}, {ipc.Keep.Name, ipc.KeepRequest{Target: "old"}}, {ipc.Unarchive.Name, ipc.UnarchiveRequest{Target: "old"}},
		{ipc.DU.Name, ipc.DURequest{}}, {ipc.Fsck.Name, ipc.FsckRequest{Repair: true}},
	} {
		body, err := json.Marshal(m.req)
		if err != nil {
			t.Fatal(err)
		}
		w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: fmt.Sprintf("run `curl -s --unix-socket %s http://d/v1/%s -d '%s'`", s.Socket(), m.name, body)}).PID)
		if !strings.Contains(w.Result, "PERMISSION") {
			t.Errorf("%s: %s", m.name, w.Result)
		}
	}
	if shownAs(t, s, p.UUID) != "dead" {
		t.Errorf("it is %q", shownAs(t, s, p.UUID))
	}
}
