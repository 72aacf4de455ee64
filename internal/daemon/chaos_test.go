package daemon_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/durable"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// chaos is a daemon that is killed again and again, and what it had told before.
type chaos struct {
	t    *testing.T
	s    *testenv.System
	herd *herd
	rng  *rand.Rand

	born     int                              // agents that were asked for
	acked    map[types.UUID]types.PID         // agents of which a spawn has told us
	ended    map[ackedStep]int                // tokens of the steps of whose end an event has told
	spawned  map[types.PID]types.UUID         // by the events
	exits    map[types.UUID]*types.ExitStatus // of those who had ended before the daemon was killed last
	progress atomic.Int64                     // steps that have ended since the daemon was started
	byHand   int                              // processes that had to be resumed by a person, by the rule of three crashes
}

type ackedStep struct {
	id types.UUID
	n  int
}

// follow reads the events of one life of the daemon until it ends.
func (c *chaos) follow() (wait func()) {
	c.progress.Store(0)
	done := make(chan struct{})
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
	feed, err := ipc.Open(ctx, c.s.Client, ipc.Events, ipc.EventsRequest{From: 1, Follow: true, Kinds: []event.Kind{event.StepEnded, event.Spawned, event.Exited}})
	if err != nil {
		c.t.Fatal(err)
	}
	var exited []ipc.Event
	go func() { // ends with the daemon; wait waits for it
		defer close(done)
		defer cancel()
		defer feed.Close()
		for f, err := range feed.All() {
			if err != nil {
				return
			}
			if f.Missed != nil {
				c.t.Errorf("the events %+v were missed", f.Missed)
				continue
			}
			if e := &f.Data; e.Kind == event.Exited && e.Exit != nil && e.Result != "suspended" {
				exited = append(exited, *e)
			}
			c.saw(&f.Data)
		}
	}()
	return func() {
		cancel()
		<-done
		for i := range exited {
			e := &exited[i]
			if was := c.exits[e.UUID]; was != nil {
				c.t.Errorf("%s has ended twice: %v, %v", e.UUID, was, e.Exit)
			}
			c.exits[e.UUID] = e.Exit
		}
	}
}

func (c *chaos) saw(e *ipc.Event) {
	switch e.Kind {
	case event.Spawned:
		if id, ok := c.spawned[e.PID]; ok && id != e.UUID {
			c.t.Errorf("PID %d was %s and is %s", e.PID, id, e.UUID)
		}
		c.spawned[e.PID] = e.UUID
	case event.StepEnded:
		k := ackedStep{e.UUID, e.Step}
		if _, again := c.ended[k]; again {
			c.t.Errorf("step %d of %s has ended twice", e.Step, e.UUID)
		}
		c.ended[k] = e.Tokens
		c.progress.Add(1)
	}
}

// list returns all processes, living and dead.
func (c *chaos) list() []ipc.Proc {
	c.t.Helper()
	l, err := ipc.Call(c.t.Context(), c.s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		c.t.Fatal(err)
	}
	return l.Procs
}

// alive checks that everybody is there who was, lets go on what the rule of three crashes holds, and returns
// how many agents have not ended.
func (c *chaos) alive() (n int) {
	c.t.Helper()
	there := map[types.UUID]bool{}
	for _, p := range c.list() {
		if there[p.UUID] {
			c.t.Errorf("%s is listed twice", p.UUID)
		}
		there[p.UUID] = true
		if p.State == "dead" || p.State == "zombie" {
			continue
		}
		if exit := c.exits[p.UUID]; exit != nil {
			c.t.Errorf("PID %d is %s, and it had ended with %v", p.PID, p.State, exit)
		}
		if strings.HasPrefix(p.Intent, "a") {
			n++
		}
		if p.State == "suspended" && strings.Contains(p.Wait, "the daemon has broken off") && !strings.HasPrefix(p.Wait, "child") {
			_, err := ipc.Call(c.t.Context(), c.s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: c.s.Env})
			if code := types.CodeOf(err); err != nil && code != types.ErrConflict {
				c.t.Errorf("PID %d cannot be resumed: %v", p.PID, err)
			}
			c.byHand++
		}
	}
	for id, pid := range c.acked {
		if !there[id] {
			c.t.Errorf("PID %d (%s) was started and is not there any more", pid, id)
		}
	}
	return n
}

// fill starts agents until so many are there or the daemon is gone.
func (c *chaos) fill(n int) {
	for ; n > 0; n-- {
		c.born++
		name := fmt.Sprintf("a%d", c.born)
		dir := filepath.Join(c.s.Work, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			c.t.Error(err)
			return
		}
		if err := os.WriteFile(filepath.Join(dir, "log"), []byte("END\n"), 0o600); err != nil {
			c.t.Error(err)
			return
		}
		p, err := c.s.TrySpawn(ipc.SpawnRequest{Intent: name, ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: dir})
		if err != nil {
			return // killed meanwhile: it is there or not
		}
		c.acked[p.UUID] = p.PID
	}
}

// TestNothingIsLostOrDoneTwiceHoweverOftenTheDaemonIsKilled kills a daemon at random moments while many
// agents work, and lets them all go on by themselves. RNIX_CHAOS_CYCLES, RNIX_CHAOS_AGENTS and
// RNIX_CHAOS_SEED make it longer, or the same again.
func TestNothingIsLostOrDoneTwiceHoweverOftenTheDaemonIsKilled(t *testing.T) { // C-2, C-3, C-4
	cycles := soak.Number(t, "RNIX_CHAOS_CYCLES", "kills of the daemon", 3, 100)
	agents := soak.Number(t, "RNIX_CHAOS_AGENTS", "agents", 14, 50)
	seed := uint64(soak.Number(t, "RNIX_CHAOS_SEED", "the seed", 1+int(rand.Int32()), 1+int(rand.Int32())))
	t.Logf("%d cycles, %d agents, RNIX_CHAOS_SEED=%d", cycles, agents, seed)
	h := newHerd(6)
	_, url := llmtest.NewAPI(t, h.reply)
	began := time.Now()
	c := &chaos{t: t, herd: h, rng: rand.New(rand.NewPCG(seed, 0)), acked: map[types.UUID]types.PID{}, ended: map[ackedStep]int{},
		spawned: map[types.PID]types.UUID{}, exits: map[types.UUID]*types.ExitStatus{}}
	c.s = testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME_MAX=1000")
	early := 0
	for n := range cycles {
		if n > 0 {
			c.s.Start()
		}
		wait := c.follow()
		after := time.Duration(c.rng.IntN(20)) * time.Millisecond
		filled := make(chan struct{})
		if c.rng.IntN(5) == 0 && n > 0 { // while it is still looking at what was left
			early++
			after *= 10
			close(filled)
		} else {
			c.s.Settle()
			missing := agents - c.alive()
			go func() { defer close(filled); c.fill(missing) }() // ends with the daemon
			c.worked(c.rng.Int64N(int64(2 * agents)))
		}
		<-time.After(after)
		kill(c.t, c.s)
		wait()
		<-filled
	}
	c.s.Start()
	wait := c.follow()
	c.s.Settle()
	c.done()
	f, err := ipc.Call(t.Context(), c.s.Client, ipc.Fsck, ipc.FsckRequest{})
	if err != nil || f.Errors != 0 {
		t.Errorf("fsck: %d errors, %v", f.Errors, err)
	}
	for _, x := range f.Findings {
		if x.Severity != "note" {
			t.Errorf("fsck: %+v", x)
		}
	}
	procs := c.list()
	c.s.Stop()
	wait()
	kids := map[string]int{}
	for _, p := range procs {
		if id := mark.FindString(p.Intent); id != "" {
			kids[id]++
		}
		if p.Exit == nil || p.Exit.Code != types.ExitOK {
			t.Errorf("PID %d (%s) is %s %v", p.PID, p.Intent, p.State, p.Exit)
		}
	}
	steps, runs := c.records(procs)
	fate, wrong := h.judge(c.s, kids)
	for i, w := range wrong {
		if i == 20 {
			t.Errorf("and %d more", len(wrong)-i)
			break
		}
		t.Error(w)
	}
	if left := c.left(); len(left) > 0 {
		t.Errorf("OS children are left: %v", left)
	}
	t.Logf("%d kills (%d of them while the start was mending), %d processes in %d runs, %d steps, %d effects: %d repeated, %d lost, %d in doubt, %d refused and not done; %d resumed by hand; %v",
		cycles, early, len(procs), runs, steps, fate.effects, fate.repeated, fate.lost, fate.doubt, fate.refused, c.byHand, time.Since(began).Round(time.Second))
}

// worked waits until so many steps have ended, but not for ever.
func (c *chaos) worked(steps int64) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(5 * time.Second)
	for c.progress.Load() < steps {
		select {
		case <-tick.C:
		case <-late:
			return
		}
	}
}

// done waits until everybody has ended.
func (c *chaos) done() {
	c.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(4 * time.Minute)
	for {
		left := 0
		for _, p := range c.list() {
			if p.State != "dead" {
				left++
			}
		}
		if left == 0 {
			return
		}
		c.alive()
		select {
		case <-tick.C:
		case <-late:
			for _, p := range c.list() {
				if p.State != "dead" {
					c.t.Errorf("PID %d (%s) is stuck: %s, step %d, %q, %v", p.PID, p.Intent, p.State, p.Step, p.Wait, p.Exit)
				}
			}
			return
		}
	}
}

// records checks the files of all histories, and returns how many steps and runs they have.
func (c *chaos) records(procs []ipc.Proc) (steps, runs int) {
	j, err := store.Open(durable.OS, c.s.Data, step.Synced)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			c.t.Error(err)
		}
	}()
	pids := map[types.PID]types.UUID{}
	names := map[string]types.UUID{}
	had := map[ackedStep]int{}
	for i := range procs {
		p := &procs[i]
		if other, twice := names[p.Intent]; twice {
			c.t.Errorf("%s and %s are both %q", other, p.UUID, p.Intent)
		}
		names[p.Intent] = p.UUID
		h, err := step.ReadHistory(c.t.Context(), j, p.UUID)
		if err != nil || h.Damage != "" {
			c.t.Errorf("%s: %q %v", p.UUID, h.Damage, err)
			continue
		}
		sum := 0
		for n, st := range h.Steps {
			if st.StepNumber != n+1 {
				c.t.Errorf("%s: step %d is numbered %d", p.UUID, n+1, st.StepNumber)
			}
			sum += st.TokensUsed
			had[ackedStep{p.UUID, st.StepNumber}] = st.TokensUsed
		}
		steps += len(h.Steps)
		if p.Step != len(h.Steps) || p.TokensUsed < sum {
			c.t.Errorf("%s: ps says %d steps and %d tokens, its record %d and %d", p.UUID, p.Step, p.TokensUsed, len(h.Steps), sum)
		}
		for r := range h.Records {
			if m := h.Records[r].Marker; m != nil && (m.Name == step.MarkerSpawn || m.Name == step.MarkerResumed) {
				if other, used := pids[m.PID]; used {
					c.t.Errorf("PID %d is of %s and %s", m.PID, other, p.UUID)
				}
				pids[m.PID] = p.UUID
				runs++
			}
		}
		c.folds(j, p.UUID)
	}
	for k, tokens := range c.ended {
		if had[k] != tokens {
			c.t.Errorf("step %d of %s was told to have ended with %d tokens, and its record has %d", k.n, k.id, tokens, had[k])
		}
	}
	for pid, id := range c.spawned {
		if pids[pid] != id {
			c.t.Errorf("PID %d was told to be %s, and the records say %s", pid, id, pids[pid])
		}
	}
	return steps, runs
}

// folds checks that a checkpoint leads to the same as the whole history.
func (c *chaos) folds(j *store.Files, id types.UUID) {
	src := func(from uint64) iter.Seq2[step.Record, error] { return j.Replay(c.t.Context(), id, from) }
	whole, _, damage, err := recovery.Read(src, nil)
	if err != nil || damage != "" {
		c.t.Errorf("%s: %q %v", id, damage, err)
		return
	}
	cp, err := step.ReadCheckpoint(durable.OS, j.Dir(id))
	if err != nil {
		return // not made yet
	}
	short, used, _, err := recovery.Read(src, cp)
	if err != nil || !used {
		c.t.Errorf("%s: its checkpoint is not used: %v", id, err)
		return
	}
	if asJSON(c.t, short.Messages) != asJSON(c.t, whole.Messages) || short.Step != whole.Step || short.Tokens != whole.Tokens || short.Seq != whole.Seq {
		c.t.Errorf("%s: from its checkpoint it is another: step %d and %d, tokens %d and %d", id, short.Step, whole.Step, short.Tokens, whole.Tokens)
	}
}

// left returns the OS processes that work in the directories of the system.
func (c *chaos) left() (out []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		if cwd, err := os.Readlink(filepath.Join(d, "cwd")); err == nil && strings.HasPrefix(cwd, c.s.Dir) {
			cmd, _ := os.ReadFile(filepath.Join(d, "cmdline"))
			out = append(out, filepath.Base(d)+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
		}
	}
	return out
}
