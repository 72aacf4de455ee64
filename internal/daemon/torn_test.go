package daemon_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// procsOf lists all processes, living and dead, by UUID.
func procsOf(t *testing.T, s *testenv.System) map[types.UUID]ipc.Proc {
	t.Helper()
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		t.Fatal(err)
	}
	out := map[types.UUID]ipc.Proc{}
	for _, p := range l.Procs {
		out[p.UUID] = p
	}
	return out
}

// kill kills a daemon and waits until nobody holds its socket and its locks any more: a child that it was
// just starting has them for a moment longer.
func kill(t *testing.T, s *testenv.System) {
	t.Helper()
	holder, _, err := ipc.LockHolder(ipc.DataLock(s.Data))
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	until(t, "nobody listens", func() bool {
		c, err := net.Dial("unix", holder.Socket)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
}

// sound checks that nothing is wrong with the files of all histories.
func sound(t *testing.T, s *testenv.System) {
	t.Helper()
	f, err := ipc.Call(t.Context(), s.Client, ipc.Fsck, ipc.FsckRequest{})
	if err != nil || f.Errors != 0 {
		t.Errorf("fsck: %+v %v", f.Findings, err)
	}
}

// workspaces returns the directories that were made for forks.
func workspaces(t *testing.T, s *testenv.System) map[types.UUID]bool {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.Data, "workspaces"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out := map[types.UUID]bool{}
	for _, e := range entries {
		var id types.UUID
		if err := id.UnmarshalText([]byte(e.Name())); err != nil {
			t.Errorf("what is %s?", e.Name())
		}
		out[id] = true
	}
	return out
}

// A fork of which only a part is on disk was told to nobody: the next start takes it away, with its files.
func TestForkThatAKillHasCutOffIsGoneAtTheNextStart(t *testing.T) {
	w := &worker{steps: 3, call: func(n int) llmtest.Reply {
		return tool("write_file", fmt.Sprintf(`{"path":"file-%d","content":"%d"}`, n, n))
	}}
	_, url := llmtest.NewAPI(t, w.reply)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(p.PID)
	origin := filepath.Join(s.Data, "steps", p.UUID.String())
	for _, left := range []struct {
		name string
		last func(*step.Record) bool
	}{
		{"one record", func(r *step.Record) bool { return r.Seq == 1 }},
		{"some records", func(r *step.Record) bool { return r.Seq == 4 }},
		{"all of the origin's, and no run of its own", func(r *step.Record) bool { return r.Marker != nil && r.Marker.Name == step.MarkerResumed }},
	} {
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Wait(r.PID)
		if !workspaces(t, s)[r.UUID] {
			t.Fatal("the fork has no workspace")
		}
		s.Stop()
		before := tree(t, origin)
		cut(t, s, r.UUID, strings.HasPrefix(left.name, "all"), left.last)
		s.Start()
		s.Settle()
		if q, there := procsOf(t, s)[r.UUID]; there {
			t.Errorf("%s: it is listed: %+v", left.name, q)
		}
		if _, err := os.Stat(filepath.Join(s.Data, "steps", r.UUID.String())); !os.IsNotExist(err) {
			t.Errorf("%s: its history is still there: %v", left.name, err)
		}
		if workspaces(t, s)[r.UUID] {
			t.Errorf("%s: its workspace is still there", left.name)
		}
		if after := tree(t, origin); after != before {
			t.Errorf("%s: the origin has changed:\n%s\n%s", left.name, before, after)
		}
		sound(t, s)
	}
}

// TestKillInTheMiddleOfAForkOrAResumeLeavesAllOrNothing kills a daemon that forks and resumes, with a
// checkpoint and a snapshot at every step.
func TestKillInTheMiddleOfAForkOrAResumeLeavesAllOrNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &worker{steps: 3, call: func(n int) llmtest.Reply {
		return tool("shell", fmt.Sprintf(`{"command":"echo %d > file-%d"}`, n, n))
	}}
	var heard atomic.Value // what the one that is resumed has been asked with, last
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if r.Messages[0].Text == "again" {
			heard.Store(r.Messages)
		}
		return w.reply(r)
	})
	s := testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_CHECKPOINT_EVERY_STEPS=1")
	for i := range 60 { // a snapshot takes its time
		s.Write(fmt.Sprintf("src/%d", i), strings.Repeat(fmt.Sprint(i), 1000))
	}
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(p.PID)
	again := s.Spawn(ipc.SpawnRequest{Intent: "again", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(again.PID)
	told := map[types.UUID]int{} // forks of which we were told, with their step
	var inputs []string          // of resumes of which we were told
	for life := range soak.Number(t, "RNIX_TORN_LIVES", "kills of a daemon that forks and resumes", 3, 60) {
		done := make(chan struct{})
		go func() { // ends with the daemon
			defer close(done)
			for n := 0; ; n++ {
				at := n % 4
				f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true, FromStep: &at})
				if err != nil {
					return
				}
				told[f.UUID] = at
				input := fmt.Sprintf("<%d.%d>", life, n)
				_, err = ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: again.UUID.String(), Env: s.Env, NewInput: input})
				switch types.CodeOf(err) {
				case "":
					inputs = append(inputs, input)
				case types.ErrConflict: // it runs
				default:
					return
				}
			}
		}()
		<-time.After(time.Duration(rng.IntN(600)) * time.Millisecond)
		kill(t, s)
		<-done
		s.Start()
		s.Settle()
	}
	until(t, "all have ended", func() bool {
		all := true
		for _, q := range procsOf(t, s) {
			if q.State == "suspended" && strings.Contains(q.Wait, "has broken off") { // three kills in one step: a person decides
				_, _ = ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: q.UUID.String(), Env: s.Env})
			}
			all = all && q.State == "dead"
		}
		return all
	})
	procs := procsOf(t, s)
	for id, at := range told {
		q, there := procs[id]
		if !there || q.Exit == nil || q.Exit.Code != 0 || q.Step != 4 {
			t.Errorf("the fork %s at step %d: %+v", id, at, q)
		}
		for n := 1; n <= at; n++ { // what comes behind may be in doubt
			if b, err := os.ReadFile(filepath.Join(s.Data, "workspaces", id.String(), fmt.Sprintf("file-%d", n))); err != nil || strings.TrimSpace(string(b)) != fmt.Sprint(n) {
				t.Errorf("the fork %s at step %d: file-%d: %q %v", id, at, n, b, err)
			}
		}
	}
	for id := range workspaces(t, s) {
		if _, there := procs[id]; !there {
			t.Errorf("the workspace %s belongs to nobody", id)
		}
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: again.UUID.String()})
	if err != nil || l.Damage != "" {
		t.Errorf("%q, %v", l.Damage, err)
	}
	all := ""
	for _, m := range heard.Load().([]llmtest.Message) {
		all += m.Text
	}
	for _, in := range inputs {
		if n := strings.Count(all, in); n != 1 {
			t.Errorf("the input %s was heard %d times in %q", in, n, all)
		}
	}
	sound(t, s)
	t.Logf("%d forks, %d of them told; %d resumes told", len(procs)-2, len(told), len(inputs))
}

// TestStopAndPauseWhileChildrenAreStartedLoseNobody stops a daemon, or pauses a tree, at random moments around
// a spawn.
func TestStopAndPauseWhileChildrenAreStartedLoseNobody(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		res, told := r.LastResult()
		who := r.Messages[0].Text
		switch {
		case strings.HasPrefix(who, "kid") && told, told && turnOf(r) > 2:
			return llmtest.Reply{Text: who + " done"}
		case strings.HasPrefix(who, "kid"):
			return tool("write_file", fmt.Sprintf(`{"path":"%s","content":"x"}`, who))
		case told && res.IsError:
			return llmtest.Reply{Text: "a child failed: " + res.Text}
		}
		reply := tool("spawn", fmt.Sprintf(`{"intent":"kid-%s-%d-0"}`, who, turnOf(r)))
		reply.ToolCalls = append(reply.ToolCalls, tool("spawn", fmt.Sprintf(`{"intent":"kid-%s-%d-1"}`, who, turnOf(r))).ToolCalls...)
		return reply
	})
	s := testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	var all []types.UUID
	for n := range 8 {
		p := s.Spawn(ipc.SpawnRequest{Intent: fmt.Sprintf("p%d", n), ProcSpec: types.ProcSpec{Model: "fake"}})
		all = append(all, p.UUID)
		<-time.After(time.Duration(rng.IntN(60)) * time.Millisecond)
		if n%2 == 0 {
			s.Stop()
			s.Start()
			s.Settle()
			continue
		}
		tree := func(sig types.Signal) error {
			_, err := ipc.Call(t.Context(), s.Client, ipc.SignalTree, ipc.SignalRequest{Target: p.UUID.String(), Signal: sig})
			return err
		}
		if tree(types.SIGPAUSE) == nil { // else it has ended
			if q := procsOf(t, s)[p.UUID]; q.State != "suspended" && q.Exit == nil {
				t.Errorf("%s is %s after the pause", q.Intent, q.State)
			}
			if err := tree(types.SIGRESUME); err != nil && types.CodeOf(err) != types.ErrNotFound {
				t.Error(err)
			}
		}
	}
	until(t, "all have ended", func() bool {
		for _, q := range procsOf(t, s) {
			if q.State != "dead" {
				return false
			}
		}
		return true
	})
	names := map[string]int{}
	for _, q := range procsOf(t, s) {
		names[q.Intent]++
		if q.Exit == nil || q.Exit.Code != 0 || names[q.Intent] > 1 {
			t.Errorf("%s, %d times: %v", q.Intent, names[q.Intent], q.Exit)
		}
		if d := detail(t, s, q.UUID.String()); !strings.HasSuffix(d.Result, "done") {
			t.Errorf("%s: %q", q.Intent, d.Result)
		}
	}
	if len(names) != 5*len(all) {
		t.Errorf("%d processes, want %d", len(names), 5*len(all))
	}
	sound(t, s)
}

func TestBudgetOfAChildParksTheFamilyAndMoreForTheTopWakesAll(t *testing.T) { // C-8
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		usage := func(reply llmtest.Reply, n int) llmtest.Reply {
			reply.Usage = &llmtest.Usage{Input: n}
			return reply
		}
		res, told := r.LastResult()
		switch who := r.Messages[0].Text; {
		case who != "leaf" && told:
			return usage(llmtest.Reply{Text: who + " heard: " + res.Text}, 10)
		case who == "top":
			return usage(tool("spawn", `{"intent":"middle"}`), 10)
		case who == "middle":
			return usage(tool("spawn", `{"intent":"leaf"}`), 10)
		case told:
			return usage(llmtest.Reply{Text: "leaf done"}, 10)
		}
		return usage(appends(1), 100_000)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	budget := 100_000
	top := s.Spawn(ipc.SpawnRequest{Intent: "top", ProcSpec: types.ProcSpec{Model: "fake", ContextBudget: &budget}})
	w := s.Wait(top.PID)
	if !w.Suspended || w.Exit.Code != types.ExitBudget {
		t.Fatalf("%+v", w)
	}
	parked := func() {
		t.Helper()
		procs := procsOf(t, s)
		for _, q := range procs {
			want := "child PID"
			if q.Intent == "leaf" {
				want = "budget"
			}
			if q.State != "suspended" || !strings.Contains(q.Wait, want) {
				t.Errorf("%s is %s: %q", q.Intent, q.State, q.Wait)
			}
		}
		if len(procs) != 3 || len(lines(s, "effects")) != 0 {
			t.Errorf("%d processes, effects %v", len(procs), lines(s, "effects"))
		}
	}
	parked()
	s.Kill()
	s.Start()
	s.Settle()
	parked() // and a crash does not wake them
	more := 100_000
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: top.UUID.String(), Env: s.Env, Budget: &more})
	if err != nil || len(r.Woken) != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	if w := s.Wait(r.PID); w.Exit.Code != 0 || w.Result != "top heard: middle heard: leaf done" {
		t.Errorf("%+v", w)
	}
	if got := strings.Join(lines(s, "effects"), " "); got != effects(1) {
		t.Errorf("effects %s", got)
	}
}
