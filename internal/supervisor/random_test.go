package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// TestRandomHistories has several goroutines do at random to one kernel whatever can be done to processes.
// Whatever that was: each process exits once and is reaped once, all who wait for it are told the same,
// its record has one end, no message that was acknowledged is lost, and nothing is left.
// RNIX_RANDOM_SEEDS says how many histories, RNIX_RANDOM_SEED where to begin.
func TestRandomHistories(t *testing.T) {
	seeds, first := fromEnv(t, "RNIX_RANDOM_SEEDS", 12), fromEnv(t, "RNIX_RANDOM_SEED", 1)
	if testing.Short() {
		seeds = 3
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newMob(t, uint64(seed)).riot(4, 80) })
		})
	}
}

func fromEnv(t *testing.T, name string, def int) int {
	text := os.Getenv(name)
	if text == "" {
		return def
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, not a number from 1", name, text)
	}
	return n
}

// mob is a kernel, and what was done to it.
type mob struct {
	*sys
	seed uint64

	mu sync.Mutex
	// Every process that an actor has started.
	pids []types.PID // +checklocks:mu
	// What waiters were told.
	told map[types.PID][]types.ExitStatus // +checklocks:mu
	// What was sent to mailboxes, in the order of each sender.
	acked map[types.PID][]string // +checklocks:mu
	got   map[types.PID][]string // +checklocks:mu

	boxes  []types.PID // processes that only receive
	others sync.WaitGroup
}

// postbox is a body that takes messages until it is ended.
type postbox struct {
	m *mob
	p *kernel.Process
}

func (b *postbox) Attach(self kernel.Self, _ *recovery.State) error {
	b.p = self.Process()
	return nil
}
func (b *postbox) Record() (step.BodyRecord, error) {
	return step.BodyRecord{Kind: "postbox", Spec: []byte("{}")}, nil
}
func (b *postbox) Joined(*kernel.Process) {}
func (b *postbox) Ended(*kernel.Process)  {}
func (b *postbox) Run(ctx context.Context) kernel.End {
	<-ctx.Done()
	return kernel.End{Cause: context.Cause(ctx)}
}

func newMob(t *testing.T, seed uint64) *mob {
	m := &mob{seed: seed, told: map[types.PID][]types.ExitStatus{}, acked: map[types.PID][]string{}, got: map[types.PID][]string{}}
	m.sys = newSys(t, func(c *kernel.Config) {
		c.Events = event.New(1 << 20)
		c.Limits = kernel.Limits{Depth: 4, Children: 12, Family: 60, Total: 300, SpawnRate: 1 << 20}
	})
	m.sys.events = m.cfg.Events
	m.tool = func(ctx context.Context, c vfs.Caller) (string, error) {
		select {
		case <-time.After(time.Duration(c.PID%7) * time.Second):
			return "out", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	m.model = m.answer
	return m
}

// answer is a model whose answers depend on nothing but who asks how often.
func (m *mob) answer(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
	r := rand.New(rand.NewPCG(m.seed, uint64(c.PID)<<8|uint64(turn)))
	select {
	case <-time.After(time.Duration(r.IntN(3000)) * time.Millisecond):
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
	switch n := r.IntN(10); {
	case n < 3 && turn < 8:
		return reply{Calls: []string{"tool {}", "tool {}"}, Tokens: 5}, nil
	case n < 4 && turn < 4:
		return reply{Calls: []string{`spawn {"intent":"help"}`, `spawn {"intent":"help too"}`, "tool {}"}, Tokens: 5}, nil
	case n < 5 && turn < 4:
		return reply{Calls: []string{`spawn {"intent":"help","background":true}`, `spawn {"intent":"help too","background":true}`,
			[]string{`wait {}`, `wait {"any":true,"timeout_s":5}`, `ps {}`}[r.IntN(3)]}, Tokens: 5}, nil
	case n < 6 && turn < 9:
		other := c.PID + types.PID(r.IntN(5)) - 2
		return reply{Calls: []string{fmt.Sprintf(`send {"pid":%d,"text":"hello"}`, other), `recv {"timeout_s":3}`,
			fmt.Sprintf(`signal {"pid":%d,"signal":%q,"tree":true}`, other+1, []string{"TERM", "PAUSE", "RESUME"}[r.IntN(3)])}, Tokens: 5}, nil
	case n < 6:
		return reply{}, errors.New("boom")
	case n < 8:
		return untilKilled(ctx, c, turn)
	}
	return reply{Content: "done", Tokens: 5}, nil
}

// riot has so many actors do so many things each, ends what lives, and looks at what happened.
func (m *mob) riot(actors, deeds int) {
	for range 3 {
		m.postbox()
	}
	var wg sync.WaitGroup // ends with the deeds
	for a := range actors {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(m.seed, uint64(a)))
			for n := range deeds {
				m.deed(r, a, n)
				if r.IntN(3) == 0 {
					time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	m.quell()
	m.others.Wait()
	m.judge()
}

// postbox starts a process whose messages somebody takes as long as there are any.
func (m *mob) postbox() {
	pid := m.spawn(func(o *kernel.SpawnOpts) { o.Body = &postbox{m: m} })
	m.boxes = append(m.boxes, pid)
	m.others.Go(func() { // ends with the process
		for {
			msg, err := m.Recv(pid)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.got[pid] = append(m.got[pid], string(msg.Data))
			m.mu.Unlock()
		}
	})
}

// any returns a process, which may have ended or never been, and is no postbox.
func (m *mob) any(r *rand.Rand) types.PID {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pids) == 0 || r.IntN(30) == 0 {
		return slices.Max(m.boxes) + types.PID(1+r.IntN(400))
	}
	return m.pids[r.IntN(len(m.pids))]
}

func (m *mob) add(pid types.PID) {
	m.mu.Lock()
	m.pids = append(m.pids, pid)
	m.mu.Unlock()
	if pid%3 > 0 { // the others are reaped by themselves, or with their parent
		m.wait(pid)
	}
}

// wait notes what somebody who waits for a process is told.
func (m *mob) wait(pid types.PID) {
	m.others.Go(func() { // ends with the process
		exit, err := m.Wait(pid)
		if err != nil {
			if types.CodeOf(err) != types.ErrNotFound {
				m.t.Errorf("wait for %d: %v", pid, err)
			}
			return
		}
		m.mu.Lock()
		m.told[pid] = append(m.told[pid], exit)
		m.mu.Unlock()
	})
}

var anySignal = []types.Signal{types.SIGTERM, types.SIGKILL, types.SIGINT, types.SIGPAUSE, types.SIGRESUME, types.SIGRESUME}

// deed does one thing. Errors are answers too; what must not happen, judge finds.
func (m *mob) deed(r *rand.Rand, actor, n int) {
	sig, pid := anySignal[r.IntN(len(anySignal))], m.any(r)
	switch r.IntN(16) {
	case 0, 1, 2:
		parent := types.PID(0)
		if r.IntN(2) == 0 {
			parent = pid
		}
		if pid, err := m.Spawn("work", nil, opts(func(o *kernel.SpawnOpts) { o.ParentPID = parent })); err == nil {
			m.add(pid)
		}
	case 3:
		if pid, err := m.SpawnSupervisor(m.troupe(r)); err == nil {
			m.add(pid)
		}
	case 4:
		_, _ = StartChild(m, pid, "more work")
	case 5, 6:
		_ = m.Signal(pid, sig)
	case 7:
		_, _ = m.SignalTree(pid, sig)
	case 8:
		_ = m.SigBlock(pid, sig)
	case 9:
		_ = m.SigUnblock(pid, sig)
	case 10:
		_ = m.JoinGroup(pid, types.PGID(r.IntN(4)))
	case 11:
		_ = m.LeaveGroup(pid, types.PGID(r.IntN(4)))
	case 12:
		_ = m.SignalGroup(types.PGID(r.IntN(4)), sig)
	case 13:
		m.wait(pid)
	case 14:
		m.post(r, actor, n)
	case 15:
		if p, ok := m.Process(pid); ok {
			m.inside(p)
		}
	}
}

// troupe is a supervisor at random, of which some have one below.
func (m *mob) troupe(r *rand.Rand) Spec {
	kind := func() Restart { return []Restart{Permanent, Transient, Temporary}[r.IntN(3)] }
	spec := Spec{Name: "sup", Strategy: []Strategy{OneForOne, OneForAll, RestForOne, SimpleOneForOne}[r.IntN(4)],
		Intensity: Intensity{MaxRestarts: r.IntN(4), Period: time.Minute}}
	children := 1 + r.IntN(3)
	if spec.Strategy == SimpleOneForOne {
		children = 1
	}
	for i := range children {
		spec.Children = append(spec.Children, ChildSpec{Name: fmt.Sprint("c", i), Restart: kind(), Intent: "be good", Opts: opts(),
			Shutdown: time.Duration(1+r.IntN(5)) * time.Second, Backoff: Backoff{Initial: time.Duration(r.IntN(3)) * time.Second}})
	}
	if spec.Strategy != SimpleOneForOne && r.IntN(3) == 0 {
		spec.Children = append(spec.Children, ChildSpec{Name: "low", Restart: kind(), Supervisor: &Spec{
			Children: []ChildSpec{{Name: "c", Restart: kind(), Intent: "be good", Opts: opts()}}}})
	}
	return spec
}

// post sends a few messages to a postbox at once, and one to anybody. What does not fit is refused.
func (m *mob) post(r *rand.Rand, actor, n int) {
	to := m.boxes[r.IntN(len(m.boxes))]
	for i := range r.IntN(6) {
		text := fmt.Sprintf("%d/%d.%d", actor, n, i)
		m.mu.Lock() // so that what was acknowledged stands in the order in which it was
		if err := m.Send(0, to, []byte(text)); err == nil {
			m.acked[to] = append(m.acked[to], text)
		}
		m.mu.Unlock()
	}
	_ = m.Send(0, m.any(r), []byte("hello"))
}

// inside starts a thread and a coroutine that end with their process only.
func (m *mob) inside(p *kernel.Process) {
	_, _ = p.SpawnThread("wait", func(t *kernel.Thread) { <-t.Context().Done() })
	if id, err := p.SpawnCoroutine("count", func(c *kernel.Coroutine) {
		for i := 0; ; i++ {
			c.Yield(i)
		}
	}); err == nil {
		_, _ = p.ResumeCoroutine(id)
	}
}

// quell ends everything that lives.
func (m *mob) quell() {
	for _, i := range m.List() {
		for _, sig := range []types.Signal{types.SIGTERM, types.SIGINT} { // what was blocked is delivered
			_ = m.SigUnblock(i.PID, sig)
		}
		_ = m.Signal(i.PID, types.SIGRESUME)
	}
	for len(m.List()) > 0 {
		for _, i := range m.List() {
			if i.State < types.StateZombie {
				_, _ = m.SignalTree(i.PID, types.SIGKILL)
			} else if _, err := m.WaitInfo(m.t.Context(), i.PID); err != nil && types.CodeOf(err) != types.ErrNotFound {
				m.t.Errorf("%d cannot be waited for: %v", i.PID, err)
			}
		}
		time.Sleep(time.Second)
	}
}

// life is what the event log says of one process.
type life struct {
	kinds []event.Kind
	exit  *types.ExitStatus
}

// judge looks at what happened.
func (m *mob) judge() {
	lives := map[types.PID]*life{}
	cur := m.events.Cursor(m.events.Oldest())
	for last := m.events.Last(); last > 0; {
		e, err := cur.Next(m.t.Context())
		if err != nil {
			m.t.Fatal("the event log has a gap: ", err)
		}
		l := lives[e.PID]
		if l == nil {
			l = &life{}
			lives[e.PID] = l
		}
		switch e.Kind {
		case event.Spawned, event.Exited, event.Reaped:
			l.kinds = append(l.kinds, e.Kind)
		case event.StepStarted, event.StateChanged:
			if len(l.kinds) == 0 && e.To != types.StateRunning {
				m.t.Errorf("%d: %s before it was spawned", e.PID, e.Kind)
			}
		}
		if e.Exit != nil {
			l.exit = e.Exit
		}
		if e.Seq == last {
			break
		}
	}
	want := []event.Kind{event.Spawned, event.Exited, event.Reaped}
	for pid, l := range lives {
		if pid != 0 && !slices.Equal(l.kinds, want) {
			m.t.Errorf("process %d: %v", pid, l.kinds)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for pid, exits := range m.told {
		for _, e := range exits {
			if l := lives[pid]; l == nil || l.exit == nil || e.String() != l.exit.String() {
				m.t.Errorf("process %d: a waiter was told %s", pid, e)
			}
		}
	}
	m.judgeRecords(len(lives))
	for pid, texts := range m.acked {
		if got := m.got[pid]; !slices.Equal(texts, got) {
			m.t.Errorf("mailbox of %d: acknowledged %v, received %v", pid, texts, got)
		}
	}
	for g := range 4 {
		if members, err := m.GetProcGroup(types.PGID(g)); err == nil {
			m.t.Errorf("group %d still has %v", g, members)
		}
	}
	m.t.Logf("%d processes, %d events", len(lives), m.events.Last())
	if len(lives) < 20 {
		m.t.Errorf("%d processes lived: that is no riot", len(lives))
	}
}

// judgeRecords sees to it that each history was closed and has one end.
func (m *mob) judgeRecords(lives int) {
	m.stores.mu.Lock()
	defer m.stores.mu.Unlock()
	ended := 0
	for id, rec := range m.stores.recs {
		ends := 0
		for _, r := range rec.committed {
			if r.Marker != nil && (r.Marker.Name == step.MarkerExit || r.Marker.Name == step.MarkerSuspended || r.Marker.Name == step.MarkerDaemonStop) {
				ends++
			}
		}
		if ends != 1 || !rec.closed || len(rec.pending) > 0 {
			m.t.Errorf("history %s: %d ends, closed %v, %d records not committed", id, ends, rec.closed, len(rec.pending))
		}
		ended++
	}
	if ended < 20 || ended > lives {
		m.t.Errorf("%d histories of %d processes", ended, lives)
	}
}
