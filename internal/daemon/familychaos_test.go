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
	"rnix/ipc"
	"rnix/types"
)

// feud is a person who does with the members of a family what comes to mind, and knows what must be so after it.
type feud struct {
	*kindred
	rng    *rand.Rand
	head   *relative           // of all; its name is that of the root
	agents []*relative         // all that are agents
	pids   map[string][]string // by name, each PID that a relative has had in earlier lives of the daemon
	young  map[string][]string // and in this one
	paused map[string]bool     // what the person has paused, and not resumed
	killed map[string]bool     // what the person has ended
	disk   map[string]bool     // what is suspended on disk
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
	f := &feud{kindred: newKindred(t), rng: rng, pids: map[string][]string{}, young: map[string][]string{}, paused: map[string]bool{}, killed: map[string]bool{}, disk: map[string]bool{}}
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
		if pid := p.PID.String(); p.PID != 0 && !slices.Contains(slices.Concat(f.pids[name], f.young[name]), pid) {
			f.young[name] = append(f.young[name], pid)
		}
		if p.State != "suspended" {
			f.disk[name] = false
		} else if !standsPaused(p) {
			f.disk[name] = true
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
	ways := append([]string{id, id[len(id)-12:], p.Name}, f.pids[p.Name]...)
	if young := f.young[p.Name]; !waiting("A1") || len(young) == 1 && !f.disk[p.Name] {
		ways = append(ways, young...)
	}
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

// verb is something that a person does to a relative; of those that are known to be faulty it does nothing.
func (f *feud) verb(m *relative, p ipc.Proc) {
	tree, target := m.all(), f.named(p)
	torn := slices.ContainsFunc(tree, func(x *relative) bool { return f.disk[x.name] })
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
		} else if !ok && !over(x) && x.State != "suspended" && !goesOnNow(text) {
			f.t.Errorf("pause %s, which is %s: %s", m.name, x.State, text)
		}
	case what < 7:
		if torn && waiting("B7") {
			return
		}
		ok, text := do("pause", "--subtree", target)
		now := f.look("pause --subtree")
		if x := now[m.name]; !ok && !over(x) && x.State != "suspended" && !goesOnNow(text) {
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
		case parentEnds(text):
		default:
			f.t.Errorf("resume %s, which is %s (%s): %s", m.name, x.State, x.Wait, text)
		}
		f.look("resume " + m.name)
	case what < 14:
		if torn && waiting("B2") {
			return
		}
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
		if x := now[m.name]; !ok && x.State == "suspended" && !parentEnds(text) {
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
		if what == 15 && !(torn && waiting("B7")) {
			args, whom = []string{"kill", "-9", "--subtree", target}, tree
		}
		ok, text := do(args...)
		for _, x := range whom { // those too that are born at this moment
			f.killed[x.name] = f.killed[x.name] || ok
		}
		now := f.look0()
		if x := now[m.name]; !ok && !over(x) && !strings.Contains(text, "waits for it") && !goesOnNow(text) {
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

// goesOnNow reports whether a refusal is that of a process which goes on or is suspended at this moment, and is taken for what it was.
func goesOnNow(text string) bool {
	return waiting("A1") && (strings.Contains(text, "the process has ended") || strings.Contains(text, "the process is suspended on disk"))
}

// orphan reports whether a relative is in no tree of top's: an ancestor between them has ended, and PID 0 is its parent. One whose
// parent was suspended meanwhile should be in it.
func (f *feud) orphan(now map[string]ipc.Proc, m, top *relative) bool {
	for ; m.up != nil && m != top; m = m.up {
		up := now[m.up.name]
		if m.up != top && over(up) || waiting("B20") && now[m.name].PPID != up.PID {
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
	for name, pids := range f.young {
		f.pids[name] = append(f.pids[name], pids...)
	}
	clear(f.young)
	for name, p := range f.look("a restart") {
		f.disk[name] = p.State == "suspended"
	}
}

// resumeAll resumes all that is suspended, by one command where that is known to work.
func (f *feud) resumeAll() {
	f.did = append(f.did, "all are resumed")
	clear(f.paused)
	if !waiting("B2") {
		until(f.t, "the tree is resumed", func() bool { // a person who hears that one of it goes on already says it again
			code, text := f.rnix("resume", "--subtree", f.head.name)
			again := strings.Contains(text, "has resumed it") || strings.Contains(text, "at this moment") || parentEnds(text)
			if code != types.ExitOK && !again && !over(f.family()[f.head.name]) {
				f.t.Errorf("resume --subtree %s: %s", f.head.name, text)
			}
			return !again
		})
	}
	deepest := f.head.all()
	slices.Reverse(deepest)
	for _, m := range deepest {
		p := f.family()[m.name]
		if p.State != "suspended" || !waiting("B2") && !waiting("B20") && !f.orphan(f.family(), m, f.head) {
			continue
		}
		until(f.t, m.name+" is resumed", func() bool {
			code, text := f.rnix("resume", p.UUID.String())
			p = f.family()[m.name]
			return code == types.ExitOK || p.State != "suspended" || !parentEnds(text)
		})
	}
}

// endsOnce checks that the record of each relative has one end, or one for each time that the person has let it go on after one.
func (f *feud) endsOnce(now map[string]ipc.Proc) {
	j, err := step.OpenLocal(durable.OS, f.s.Data, step.Synced)
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
