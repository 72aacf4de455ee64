package supervise

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/internal/soak"
)

var (
	seedFlag = flag.Uint64("supervise.seed", 1, "first seed of the random histories")
	runsFlag = flag.Int("supervise.runs", 0, "how many random histories; 0 = 5000, and 20000 in a soak")
)

// world is what happens to the children of a supervisor and to itself, decided by a seed: two
// supervisors that do the same see the same.
type world struct {
	seed  uint64
	now   int64 // nanoseconds
	alive map[ID]*life
	runs  map[ID]int
	ops   []op
	trace []string
}

// life is one run of a child.
type life struct {
	end    int64 // when it ends; never = math.MaxInt64
	failed bool
	obeys  int64 // how long it takes to end when it is asked to; never = math.MaxInt64
}

// op is something that is done to the supervisor.
type op struct {
	at   int64
	what string // hold, release, add, stop
}

const never = math.MaxInt64

func newWorld(seed uint64, spec Spec) *world {
	w := &world{seed: seed, alive: map[ID]*life{}, runs: map[ID]int{}}
	r := rand.New(rand.NewPCG(seed, 77))
	kinds := []string{"hold", "release", "release"}
	if spec.Strategy == SimpleOneForOne {
		kinds = append(kinds, "add", "add", "add", "add")
	}
	for range r.IntN(12) {
		w.ops = append(w.ops, op{r.Int64N(4000), kinds[r.IntN(len(kinds))]})
	}
	if r.IntN(3) > 0 {
		w.ops = append(w.ops, op{r.Int64N(6000), "stop"})
	}
	slices.SortStableFunc(w.ops, func(a, b op) int { return cmp.Compare(a.at, b.at) })
	return w
}

func (w *world) time() time.Time { return time.Unix(0, w.now).UTC() }

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%d ", w.now)+fmt.Sprintf(format, args...))
}

// start starts a child and reports whether that succeeded.
func (w *world) start(id ID) bool {
	w.runs[id]++
	r := rand.New(rand.NewPCG(w.seed, uint64(id)<<20|uint64(w.runs[id])))
	ok := r.IntN(8) > 0 || w.runs[id] == 1 && r.IntN(4) > 0
	w.note("start %d %t", id, ok)
	if !ok {
		return false
	}
	l := &life{end: never, obeys: never, failed: r.IntN(2) == 0}
	if r.IntN(4) > 0 {
		l.end = w.now + 1 + r.Int64N(600)
	}
	if r.IntN(4) > 0 {
		l.obeys = 1 + r.Int64N(150)
	}
	w.alive[id] = l
	return true
}

func (w *world) term(id ID) {
	w.note("term %d", id)
	if l := w.alive[id]; l.obeys != never {
		l.end = min(l.end, w.now+l.obeys)
	}
}

func (w *world) kill(id ID) {
	w.note("kill %d", id)
	w.alive[id].end = min(w.alive[id].end, w.now+1)
}

// step lets time pass until the next thing happens, or until a time. It returns the child that ended,
// or what is done to the supervisor; nothing at all ever happens again if it returns false.
func (w *world) step(until int64) (ended ID, failed bool, what string, ok bool) {
	if w.now > 50_000 { // long enough
		return -1, false, "", false
	}
	first, at := ID(-1), int64(never)
	for id, l := range w.alive {
		if l.end < at || l.end == at && id < first {
			first, at = id, l.end
		}
	}
	switch {
	case len(w.ops) > 0 && w.ops[0].at <= min(at, until):
		o := w.ops[0]
		w.ops = w.ops[1:]
		w.now = max(w.now, o.at)
		return -1, false, o.what, true
	case at <= until && at != never:
		w.now = max(w.now, at)
		failed = w.alive[first].failed
		delete(w.alive, first)
		return first, failed, "", true
	case until != never:
		w.now = max(w.now, until)
		return -1, false, "", true
	}
	return -1, false, "", false
}

// play lets a policy act in a world. crash says whether it is saved and restored now; nil = never.
func play(w *world, spec Spec, crash func() bool) []string {
	p := New(spec)
	held := false
	for {
		if crash != nil && whole(p) && crash() {
			p = reborn(w, spec, p)
			p.Hold(held)
		}
		switch a := p.Next(w.time()); a.Do {
		case Start:
			if w.start(a.Child) {
				p.Started(a.Child, w.time())
			} else {
				p.Failed(a.Child)
			}
		case Term:
			w.term(a.Child)
		case Kill:
			w.kill(a.Child)
		case Decide:
			w.note("decide %d %d", a.Child, a.Count)
		case End:
			w.note("end %v", p.Outcome())
			return w.trace
		case Wait:
			until := int64(never)
			if !a.Until.IsZero() {
				until = a.Until.UnixNano()
			}
			id, failed, what, ok := w.step(until)
			switch {
			case !ok:
				w.note("for ever")
				return w.trace
			case id >= 0:
				p.Exited(id, failed)
			case what == "hold", what == "release":
				held = what == "hold"
				p.Hold(held)
			case what == "add" && p.Outcome().Cause == 0:
				p.Add()
			case what == "stop":
				p.Stop()
			}
		}
	}
}

// model is a supervisor as OTP has it: a process that does one thing at a time and finds in its mailbox
// what happened meanwhile.
type model struct {
	*world
	spec     Spec
	children []*mchild
	mailbox  []message
	restarts []int64
	next     ID
	held     bool
	stop     bool // asked to
	last     Outcome
}

type mchild struct {
	id         ID
	spec       Child
	pid        bool  // there is one, though its end may be in the mailbox
	restarting bool  // it could not be started again
	delayed    bool  // it will be, at that time
	at         int64 // -1 = it has come
	born       int64 // -1 = it was not
	row        int
}

type message struct {
	name   string // EXIT, try_again_restart, timeout, start_child
	id     ID
	failed bool
}

// stuck is thrown when nothing will ever happen again.
type stuck struct{}

// runModel runs a model in a world.
func runModel(w *world, spec Spec) (trace []string) {
	m := &model{world: w, spec: spec}
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(stuck); !ok {
				panic(r)
			}
			w.note("for ever")
			trace = w.trace
		}
	}()
	m.live()
	// terminate/2 of OTP
	if spec.Strategy == SimpleOneForOne {
		m.terminateDynamic()
	} else {
		m.terminate(m.children)
	}
	w.note("end %v", m.last)
	return w.trace
}

func (m *model) live() {
	if m.spec.Strategy != SimpleOneForOne {
		for _, c := range m.spec.Children {
			m.children = append(m.children, &mchild{id: m.next, spec: c, at: -1, born: -1})
			m.next++
		}
		if failed := m.startAll(m.children); failed != nil {
			m.last = Outcome{NotBegun, failed.id}
			return
		}
	}
	for !m.stop {
		if !m.held {
			m.timers()
			if len(m.mailbox) > 0 {
				msg := m.mailbox[0]
				m.mailbox = m.mailbox[1:]
				if m.handle(msg); m.last.Cause != 0 {
					return
				}
				continue
			}
		}
		m.sleep(m.firstTimer())
	}
	m.last = Outcome{Cause: Asked}
}

// sleep waits for one thing to happen, or for a time.
func (m *model) sleep(until int64) {
	id, failed, what, ok := m.step(until)
	switch {
	case !ok:
		panic(stuck{})
	case id >= 0:
		m.mailbox = append(m.mailbox, message{"EXIT", id, failed})
	case what == "hold":
		m.held = true
	case what == "release":
		m.held = false
	case what == "add" && m.last.Cause == 0 && !m.stop:
		m.children = append(m.children, &mchild{id: m.next, spec: m.spec.Children[0], at: -1, born: -1})
		m.mailbox = append(m.mailbox, message{"start_child", m.next, false})
		m.next++
	case what == "stop":
		m.stop = true
	}
}

func (m *model) child(id ID) *mchild {
	for _, c := range m.children {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (m *model) firstTimer() int64 {
	first := int64(never)
	for _, c := range m.children {
		if !m.held && c.at >= 0 {
			first = min(first, c.at)
		}
	}
	return first
}

func (m *model) timers() {
	for {
		var first *mchild
		for _, c := range m.children {
			if c.at >= 0 && c.at <= m.now && (first == nil || c.at < first.at) {
				first = c
			}
		}
		if first == nil {
			return
		}
		m.mailbox = append(m.mailbox, message{"timeout", first.id, false})
		first.at = -1
	}
}

func (m *model) handle(msg message) {
	c := m.child(msg.id)
	if c == nil {
		return
	}
	switch msg.name {
	case "start_child":
		if !m.startOne(c) {
			m.del(c)
		}
	case "EXIT":
		c.pid = false
		switch {
		case c.spec.Restart == Permanent || c.spec.Restart == Transient && msg.failed:
			m.restart(c)
		case c.spec.Restart == Temporary || m.spec.Strategy == SimpleOneForOne:
			m.del(c)
		}
	case "try_again_restart":
		if c.restarting {
			m.restart(c)
		}
	case "timeout":
		if c.delayed {
			m.begin(c)
		}
	}
}

func (m *model) del(c *mchild) {
	i := slices.Index(m.children, c)
	m.children = append(slices.Clone(m.children[:i]), m.children[i+1:]...)
}

func (m *model) restart(c *mchild) {
	if c.born >= 0 && m.now-c.born > int64(m.spec.Period) {
		c.row = 0
	}
	c.row++
	c.born = -1
	c.restarting = false
	wait := int64(c.spec.Backoff.Initial)
	for range c.row - 1 {
		wait = min(wait*int64(c.spec.Backoff.Factor), int64(c.spec.Backoff.Max))
	}
	if planned := wait > 0 && wait >= int64(m.spec.Period); planned {
		m.note("decide %d 0", c.id)
	} else {
		// add_restart/3 of OTP
		fresh := []int64{m.now}
		for _, t := range m.restarts {
			if t >= m.now-int64(m.spec.Period) {
				fresh = append(fresh, t)
			}
		}
		m.restarts = fresh
		if len(fresh) > m.spec.MaxRestarts {
			m.last = Outcome{GaveUp, c.id}
			return
		}
		m.note("decide %d %d", c.id, len(fresh))
	}
	since := m.now
	switch m.spec.Strategy {
	case OneForAll:
		m.terminate(m.children)
	case RestForOne:
		m.terminate(m.children[slices.Index(m.children, c)+1:])
	}
	if m.stop {
		return
	}
	if wait > 0 {
		c.delayed, c.at = true, since+wait
		return
	}
	m.begin(c)
}

// cancel takes back that c will be started again.
func (m *model) cancel(c *mchild) {
	c.restarting, c.delayed, c.at = false, false, -1
	m.mailbox = slices.DeleteFunc(m.mailbox, func(msg message) bool { return msg.name == "timeout" && msg.id == c.id })
}

// begin starts what a restart of c starts.
func (m *model) begin(c *mchild) {
	start := []*mchild{c}
	switch m.spec.Strategy {
	case OneForAll:
		start = m.children
	case RestForOne:
		start = m.children[slices.Index(m.children, c):]
	}
	if failed := m.startAll(start); failed != nil {
		failed.restarting = true
		m.mailbox = append(m.mailbox, message{"try_again_restart", failed.id, false})
	}
}

// startAll starts children in order, as far as that succeeds.
func (m *model) startAll(children []*mchild) (failed *mchild) {
	for _, c := range slices.Clone(children) {
		if !m.startOne(c) {
			return c
		}
		if m.stop {
			return nil
		}
	}
	return nil
}

func (m *model) startOne(c *mchild) bool {
	for m.held && !m.stop {
		m.sleep(never)
	}
	if m.stop {
		return true // nobody will ask
	}
	m.cancel(c)
	if !m.start(c.id) {
		return false
	}
	c.pid, c.born = true, m.now
	return true
}

// terminate stops children, the last one first. Temporary ones are forgotten.
func (m *model) terminate(children []*mchild) {
	for _, c := range slices.Backward(slices.Clone(children)) {
		if m.stop && m.last.Cause == 0 {
			return
		}
		m.cancel(c)
		if c.pid {
			m.shutdown(c)
		}
		if c.spec.Restart == Temporary {
			m.del(c)
		}
	}
}

// shutdown stops one child and takes its end out of the mailbox.
func (m *model) shutdown(c *mchild) {
	c.pid = false
	deadline := int64(never)
	switch {
	case m.took(c):
		return
	case c.spec.Shutdown == BrutalKill:
		m.kill(c.id)
	default:
		m.term(c.id)
		if c.spec.Shutdown != Infinity {
			deadline = m.now + int64(c.spec.Shutdown)
		}
	}
	for !m.took(c) {
		if m.now >= deadline {
			m.kill(c.id)
			deadline = never
			continue
		}
		m.sleep(deadline)
	}
}

// took takes the end of a child out of the mailbox if it is there.
func (m *model) took(c *mchild) bool {
	for i, msg := range m.mailbox {
		if msg.name == "EXIT" && msg.id == c.id {
			m.mailbox = slices.Delete(m.mailbox, i, i+1)
			return true
		}
	}
	return false
}

// terminateDynamic stops the children of a template all at once.
func (m *model) terminateDynamic() {
	deadlines := map[ID]int64{}
	var left []ID
	for _, c := range slices.Backward(m.children) {
		if !c.pid || m.took(c) {
			continue
		}
		left = append(left, c.id)
		if deadlines[c.id] = never; c.spec.Shutdown == BrutalKill {
			m.kill(c.id)
			continue
		}
		m.term(c.id)
		if c.spec.Shutdown != Infinity {
			deadlines[c.id] = m.now + int64(c.spec.Shutdown)
		}
	}
	for {
		first := int64(never)
		left = slices.DeleteFunc(left, func(id ID) bool { return m.took(m.child(id)) })
		for _, id := range left {
			if deadlines[id] <= m.now {
				m.kill(id)
				deadlines[id] = never
			}
			first = min(first, deadlines[id])
		}
		if len(left) == 0 {
			return
		}
		m.sleep(first)
	}
}

// randomSpec makes a supervisor.
func randomSpec(seed uint64) Spec {
	r := rand.New(rand.NewPCG(seed, 5))
	s := Spec{
		Strategy:    []Strategy{OneForOne, OneForAll, RestForOne, SimpleOneForOne}[r.IntN(4)],
		MaxRestarts: r.IntN(9), Period: time.Duration(1 + r.IntN([]int{1500, 1500, 80}[r.IntN(3)])),
	}
	n := r.IntN(5)
	if s.Strategy == SimpleOneForOne {
		n = 1
	}
	for range n {
		c := Child{Restart: []Restart{Permanent, Permanent, Transient, Transient, Temporary}[r.IntN(5)]}
		if c.Shutdown = time.Duration(1 + r.IntN(200)); r.IntN(4) == 0 {
			c.Shutdown = []time.Duration{BrutalKill, Infinity}[r.IntN(2)]
		}
		if r.IntN(2) == 0 {
			c.Backoff = Backoff{Initial: time.Duration(r.IntN(100)), Factor: float64(1 + r.IntN(3)), Max: time.Duration(100 + r.IntN(300))}
		}
		s.Children = append(s.Children, c)
	}
	return s
}

// agree compares a policy with the model over one random history.
func agree(t *testing.T, seed uint64) []string {
	t.Helper()
	spec := randomSpec(seed)
	got, want := play(newWorld(seed, spec), spec, nil), runModel(newWorld(seed, spec), spec)
	if !slices.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Fatalf("seed %d, %+v, ops %v\nboth\n  %s\nthen the policy\n  %s\nand the model\n  %s", seed, spec, newWorld(seed, spec).ops,
			strings.Join(got[:i], "\n  "), strings.Join(got[i:], "\n  "), strings.Join(want[i:], "\n  "))
	}
	return got
}

// histories returns how many random histories are tried.
func histories(t *testing.T) int {
	t.Helper()
	if *runsFlag > 0 {
		return *runsFlag
	}
	return soak.Pick(t, "random histories", 5000, 20_000)
}

func TestPolicyDecidesAsTheModelOfOTP(t *testing.T) {
	t.Logf("seeds from %d", *seedFlag)
	seen := map[string]int{} // the histories must reach what they are for
	all := histories(t)
	for i := range uint64(all) {
		for _, line := range agree(t, *seedFlag+i) {
			_, what, _ := strings.Cut(line, " ")
			verb, _, _ := strings.Cut(what, " ")
			if verb == "end" {
				verb = what
				if strings.HasPrefix(what, "end {2") || strings.HasPrefix(what, "end {3") {
					verb = what[:len("end {2")]
				}
			}
			seen[verb]++
		}
	}
	t.Log(seen)
	for _, verb := range []string{"start", "decide", "term", "kill", "end {1 0}", "end {2", "end {3", "for"} {
		if seen[verb] < all/100 {
			t.Errorf("%q happened %d times in %d histories", verb, seen[verb], all)
		}
	}
}

func FuzzPolicyDecidesAsTheModelOfOTP(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { agree(t, seed) })
}
