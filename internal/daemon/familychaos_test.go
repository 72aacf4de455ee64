package daemon_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/internal/durable"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/ipc"
	"rnix/types"
)

// feud is a person who does with the members of a family what comes to mind, and knows what must be so after it.
type feud struct {
	*kindred
	rng    *rand.Rand
	head   *relative           // of all; its name is that of the root
	agents []*relative         // all that are agents
	pids   map[string][]string // by name, each PID that a relative has had
	paused map[string]bool     // what the person has paused, and not resumed
	killed map[string]bool     // what the person has ended
	did    []string            // for the log of a failure
}

// randomFamily makes a relative with members below it.
func randomFamily(rng *rand.Rand, name string, depth int, left *int) *relative {
	m := &relative{name: name, turns: 1 + rng.IntN(2)}
	for i := range 1 + rng.IntN(2) {
		if depth == 0 || *left == 0 {
			break
		}
		*left--
		kid := randomFamily(rng, fmt.Sprintf("%sx%d", name, i+1), depth-1, left)
		if kid.up = m; rng.IntN(2) == 0 {
			m.front = append(m.front, kid)
		} else {
			m.back = append(m.back, kid)
		}
	}
	return m
}

// newFeud starts a family, below a supervisor if supervised.
func newFeud(t *testing.T, rng *rand.Rand, supervised bool) *feud {
	f := &feud{kindred: newKindred(t), rng: rng, pids: map[string][]string{}, paused: map[string]bool{}, killed: map[string]bool{}}
	pace := rand.New(rand.NewPCG(rng.Uint64(), 0))
	f.mu.Lock()
	f.delay = func(string) time.Duration { return time.Duration(pace.IntN(20)) * time.Millisecond }
	f.mu.Unlock()
	left := 6
	if !supervised {
		f.head = f.grow(randomFamily(rng, "f1", 3, &left))
		f.agents = f.head.all()
		f.start(f.head)
		return f
	}
	f.head = &relative{name: "top"}
	for i := range 2 {
		below := left / (2 - i)
		kid := f.grow(randomFamily(rng, fmt.Sprintf("f%d", i+1), 2, &below))
		kid.up, f.head.back = f.head, append(f.head.back, kid)
		f.agents = append(f.agents, kid.all()...)
	}
	supervise(t, f.s, "supervisors: [{name: top, children: [{name: f1, intent: f1, model: m, restart: temporary}, {name: f2, intent: f2, model: m, restart: temporary}]}]")
	return f
}

// over reports whether a process has ended.
func over(p ipc.Proc) bool { return p.State == "dead" || p.State == "zombie" }

// look lists the family, and checks that what the person has paused is paused.
func (f *feud) look(after string) map[string]ipc.Proc {
	f.t.Helper()
	now := f.family()
	for name, p := range now {
		if pid := p.PID.String(); p.PID != 0 && !slices.Contains(f.pids[name], pid) {
			f.pids[name] = append(f.pids[name], pid)
		}
		if f.paused[name] && !f.killed[name] && p.State != "suspended" { // it may be suspended for another reason, too
			if f.paused[name] = false; !over(p) || p.Exit == nil || p.Exit.Code != types.ExitOK { // else its last answer was there
				f.t.Errorf("after %s: a person has paused %s, and it is %s (%s)", after, name, p.State, p.Wait)
			}
		}
	}
	return now
}

// named names a relative in one of the ways that a person has.
func (f *feud) named(p ipc.Proc) string {
	id := p.UUID.String()
	ways := slices.Concat([]string{id, id[len(id)-12:], p.Name}, f.pids[p.Name])
	return ways[f.rng.IntN(len(ways))]
}

// settles says of members that a command may have woken too, or not, whether they are paused.
func (f *feud) settles(now map[string]ipc.Proc, ms ...*relative) {
	for _, m := range ms {
		f.paused[m.name] = f.paused[m.name] && standsPaused(now[m.name])
	}
}

func (m *relative) ancestors() (out []*relative) {
	for up := m.up; up != nil; up = up.up {
		out = append(out, up)
	}
	return out
}

// verb is something that a person does to a relative.
func (f *feud) verb(m *relative, p ipc.Proc) {
	tree, target := m.all(), f.named(p)
	do := func(args ...string) (bool, string) {
		code, text := f.rnix(args...)
		f.did = append(f.did, fmt.Sprintf("%s (%s): %d", strings.Join(args, " "), m.name, code))
		return code == types.ExitOK, text
	}
	switch what := f.rng.IntN(20); {
	case what < 4:
		ok, text := do("pause", target)
		now := f.look("pause")
		if x := now[m.name]; ok && !over(x) {
			f.paused[m.name] = true
			f.look("pause " + m.name)
		} else if !ok && !over(x) && x.State != "suspended" {
			f.t.Errorf("pause %s, which is %s: %s", m.name, x.State, text)
		}
	case what < 7:
		ok, text := do("pause", "--subtree", target)
		now := f.look("pause --subtree")
		if x := now[m.name]; !ok && !over(x) && x.State != "suspended" {
			f.t.Errorf("pause --subtree %s, which is %s: %s", m.name, x.State, text)
		}
		for _, x := range tree {
			switch s := now[x.name]; {
			case !ok || s.UUID == types.UUID{} || f.killed[x.name]:
			case standsPaused(s):
				f.paused[x.name] = true
			case s.State == "running" || s.State == "created":
				if !f.orphan(now, x, m) {
					f.t.Errorf("after pause --subtree %s: %s is %s (%s)", m.name, x.name, s.State, s.Wait)
				}
			}
		}
	case what < 11:
		ok, text := do("resume", target)
		if ok {
			f.paused[m.name] = false
		}
		now := f.look0()
		f.settles(now, append(tree, m.ancestors()...)...)
		switch x := now[m.name]; {
		case ok && standsPaused(x):
			f.t.Errorf("after resume %s: it is %s (%s)", m.name, x.State, x.Wait)
		case ok || x.State != "suspended":
		default:
			f.t.Errorf("resume %s, which is %s (%s): %s", m.name, x.State, x.Wait, text)
		}
		f.look("resume " + m.name)
	case what < 14:
		ok, text := do("resume", "--subtree", target)
		if ok {
			for _, x := range tree {
				f.paused[x.name] = false
			}
		}
		now := f.look0()
		if f.settles(now, m.ancestors()...); !ok { // a part of it may go on
			f.settles(now, tree...)
		}
		if x := now[m.name]; !ok && x.State == "suspended" {
			f.t.Errorf("resume --subtree %s, which is %s (%s): %s", m.name, x.State, x.Wait, text)
		}
		for _, x := range tree {
			if s := now[x.name]; ok && standsPaused(s) && !f.killed[x.name] && !f.orphan(now, x, m) {
				f.t.Errorf("after resume --subtree %s: %s is %s (%s)", m.name, x.name, s.State, s.Wait)
			}
		}
		f.look("resume --subtree " + m.name)
	case what < 16 && m.up != nil:
		args, whom := []string{"kill", "-9", target}, []*relative{m}
		if what == 15 {
			args, whom = []string{"kill", "-9", "--subtree", target}, tree
		}
		ok, text := do(args...)
		for _, x := range whom { // those too that are born at this moment
			f.killed[x.name] = f.killed[x.name] || ok
		}
		now := f.look0()
		if x := now[m.name]; !ok && !over(x) && !strings.Contains(text, "waits for it") {
			f.t.Errorf("kill %s, which is %s (%s): %s", m.name, x.State, x.Wait, text)
		}
		f.settles(now, whom...)
	case what < 18:
		if ok, text := do("steer", "--no-wait", target, "Go on as before."); !ok && !over(f.look("steer")[m.name]) && m.name != "top" {
			f.t.Errorf("steer %s: %s", m.name, text)
		}
	default:
		if ok, text := do("budget", "add", target, "--tokens", "1000"); !ok && !over(f.look("budget add")[m.name]) && !strings.Contains(text, "has resumed it") && m.up != nil && m.up.name != "top" {
			f.t.Errorf("budget add %s: %s", m.name, text)
		}
	}
}

// look0 is look without the check.
func (f *feud) look0() map[string]ipc.Proc {
	was := f.paused
	f.paused = map[string]bool{}
	now := f.look("")
	f.paused = was
	return now
}

// orphan reports whether a relative is in no tree of top's: an ancestor between them has ended, and PID 0 is its parent. One whose
// parent was suspended meanwhile should be in it.
func (f *feud) orphan(now map[string]ipc.Proc, m, top *relative) bool {
	for ; m.up != nil && m != top; m = m.up {
		up := now[m.up.name]
		if m.up != top && over(up) {
			return true
		}
	}
	return false
}

// crashes ends the daemon, and starts another one.
func (f *feud) crashes(hard bool) {
	f.did = append(f.did, fmt.Sprintf("the daemon ends, killed %t", hard))
	if hard {
		f.crash()
	} else {
		f.s.Stop()
		f.s.Start()
		f.s.Settle()
	}
	f.look("a restart")
}

// resumeAll resumes all that is suspended, by one command where that is known to work.
func (f *feud) resumeAll() {
	f.did = append(f.did, "all are resumed")
	clear(f.paused)
	until(f.t, "the tree is resumed", func() bool { // a person who hears that one of it goes on already says it again
		code, text := f.rnix("resume", "--subtree", f.head.name)
		again := strings.Contains(text, "has resumed it") || strings.Contains(text, "at this moment")
		if code != types.ExitOK && !again && !over(f.family()[f.head.name]) {
			f.t.Errorf("resume --subtree %s: %s", f.head.name, text)
		}
		return !again
	})
	deepest := f.head.all()
	slices.Reverse(deepest)
	for _, m := range deepest {
		p := f.family()[m.name]
		if p.State != "suspended" || !f.orphan(f.family(), m, f.head) {
			continue
		}
		if code, text := f.rnix("resume", p.UUID.String()); code != types.ExitOK && f.family()[m.name].State == "suspended" {
			f.t.Errorf("resume %s: %s", m.name, text)
		}
	}
}

// endsOnce checks that the record of each relative has one end, or one for each time that the person has let it go on after one.
func (f *feud) endsOnce(now map[string]ipc.Proc) {
	j, err := store.Open(durable.OS, f.s.Data, step.Synced)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			f.t.Error(err)
		}
	}()
	for _, m := range f.agents {
		p, there := now[m.name]
		if !there {
			continue
		}
		h, err := step.ReadHistory(f.t.Context(), j, p.UUID)
		if err != nil || h.Damage != "" {
			f.t.Errorf("%s: %q %v", m.name, h.Damage, err)
			continue
		}
		last := ""
		for i := range h.Records {
			mark := h.Records[i].Marker
			switch {
			case mark == nil || mark.Name != step.MarkerSpawn && mark.Name != step.MarkerResumed && mark.Name != step.MarkerExit:
				continue
			case last == step.MarkerExit && mark.Text != step.ByPerson:
				f.t.Errorf("%s had ended, and nobody has resumed it: %q follows", m.name, mark.Name)
			}
			last = mark.Name
		}
		if last != step.MarkerExit {
			f.t.Errorf("%s: the last of its record is %q and no end", m.name, last)
		}
	}
}

// finish resumes all, waits for their ends, and judges them.
func (f *feud) finish() {
	f.resumeAll()
	for _, m := range f.agents {
		if left := f.ends(m); len(left) > 0 {
			f.t.Errorf("all were resumed, and stand still: %q", left)
			return
		}
	}
	now := f.family()
	for _, m := range f.agents {
		if p, there := now[m.name]; there && !f.killed[m.name] && (p.Exit == nil || p.Exit.Code != types.ExitOK) {
			f.t.Errorf("%s has ended with %v", m.name, p.Exit)
		}
	}
	for _, wrong := range f.judge(func(name string) bool { return f.killed[name] }) {
		f.t.Error(wrong)
	}
	sound(f.t, f.s)
	f.s.Stop()
	f.endsOnce(now)
}

// Whatever a person does to the members of a family, and however often the daemon ends meanwhile: what was paused stays paused, what was
// resumed goes on, and each that nobody has ended comes to its end, once, with all that it does done once.
func TestFamiliesDoAsAPersonSaysWhateverEndsTheDaemon(t *testing.T) {
	families := soak.Number(t, "RNIX_FEUD_FAMILIES", "families", 3, 150)
	verbs := soak.Number(t, "RNIX_FEUD_VERBS", "commands for each", 10, 40)
	seed := uint64(soak.Number(t, "RNIX_FEUD_SEED", "the seed", 1+int(rand.Int32()), 1+int(rand.Int32())))
	for n := range families {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			f := newFeud(t, rng, n%3 == 2)
			defer func() {
				if t.Failed() {
					t.Logf("RNIX_FEUD_SEED=%d, family %d: %s", seed, n, strings.Join(f.did, "\n\t"))
				}
			}()
			for v := range verbs {
				<-time.After(time.Duration(rng.IntN(60)) * time.Millisecond)
				if v%7 == 4 {
					f.crashes(rng.IntN(3) > 0)
				}
				now := f.look("nothing")
				alive := slices.DeleteFunc(f.head.all(), func(m *relative) bool { s := now[m.name].State; return s == "" || s == "dead" || f.killed[m.name] })
				if len(alive) == 0 {
					break
				}
				m := alive[rng.IntN(len(alive))]
				f.verb(m, now[m.name])
			}
			f.finish()
		})
	}
}
