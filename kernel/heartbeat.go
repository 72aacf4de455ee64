package kernel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"rnix/agent"
	"rnix/debug"
	"rnix/internal/event"
	"rnix/kernel/internal/heartbeat"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// HeartbeatPolicy says what becomes of a process that makes no progress.
type HeartbeatPolicy = heartbeat.Policy

// The policies of the heartbeat.
const (
	StallWarn    = heartbeat.Warn    // it is shown, and an event tells of it, once
	StallRestart = heartbeat.Restart // it is suspended and goes on from its record
	StallKill    = heartbeat.Kill    // it is ended, with its descendants
)

// Heartbeat says how it is looked for processes that make no progress: no step, no action and no piece of output for the
// time limit of a step that their agent has, or for Stall. What is paused, waits for others, or has no model, is exempt.
type Heartbeat struct {
	Interval    time.Duration // between two looks; 0 = nobody looks
	Stall       time.Duration // 0 = those whose agent has no limit may be silent for ever
	Policy      HeartbeatPolicy
	MaxRestarts int // of one process in one step; after them it is only shown
	// Restart suspends a process and lets it go on from its record. nil: the policy StallRestart only shows.
	Restart func(ctx context.Context, p *Process) error
}

// stalled is the cause when the heartbeat ended the process.
type stalled struct{ after time.Duration }

func (s stalled) Error() string { return "no progress for " + debug.Age(s.after) }

// Beat is what the heartbeat knows of a process.
type Beat struct {
	PID     types.PID
	UUID    types.UUID
	Name    string
	Step    int
	Age     time.Duration // since its last progress, or since it was last exempt
	Limit   time.Duration // 0 = none
	Exempt  string        // why it need not make any
	Suspect time.Time     // since when it is suspect; zero = it is not
}

// pulse looks for processes that make no progress.
type pulse struct {
	k    *KernelImpl
	cfg  Heartbeat
	base time.Time // since which time is counted, by the clock that stands still while the host sleeps
	ctx  context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu  sync.Mutex
	mon *heartbeat.Monitor[types.UUID] // +checklocks:mu
	// The result of the last look.
	verdicts   map[types.UUID]heartbeat.Verdict // +checklocks:mu
	restarting map[types.UUID]bool              // +checklocks:mu
}

func newPulse(k *KernelImpl, cfg Heartbeat) *pulse {
	u := &pulse{k: k, cfg: cfg, base: time.Now(), restarting: map[types.UUID]bool{}}
	u.ctx, u.end = context.WithCancel(context.Background())
	u.mon = heartbeat.New[types.UUID](heartbeat.Config{Policy: cfg.Policy, Interval: cfg.Interval, MaxRestarts: cfg.MaxRestarts}, u.clock())
	if cfg.Interval > 0 {
		u.wg.Go(u.run) // one per kernel; ends with close
	}
	return u
}

func (u *pulse) clock() heartbeat.Clock {
	now := time.Now()
	return heartbeat.Clock{Mono: now.Sub(u.base), Wall: now.Round(0)}
}

// close ends the looking, and the restarts that are under way.
func (u *pulse) close() {
	u.end()
	u.wg.Wait()
}

func (u *pulse) run() {
	tick := time.NewTicker(u.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			u.look()
		case <-u.ctx.Done():
			return
		}
	}
}

// lives notes that a process makes progress.
func (u *pulse) lives(p *Process) { u.livesAt(p, time.Now()) }

// livesAt is lives for who has looked at the clock.
func (u *pulse) livesAt(p *Process, now time.Time) { p.life.Store(int64(now.Sub(u.base))) }

// limit returns for how long a process may make no progress; 0 = for ever. What its agent says bounds a step, which ends
// by itself then: only one that does not is suspect, a look later.
func (u *pulse) limit(p *Process) time.Duration {
	switch {
	case p.endless:
		return 0
	case p.stepTimeout > 0:
		return p.stepTimeout + u.cfg.Interval
	}
	return u.cfg.Stall
}

// excuse says why a process need not make progress; "" = it must.
func excuse(p *Process) string {
	if p.kind != "" {
		return "takes no steps"
	}
	if _, shut := p.gate.Since(); shut {
		return "paused"
	}
	if bar, _ := p.gate.Barred(); bar != "" {
		return bar
	}
	if p.others.Load() > 0 {
		return "waits for other processes"
	}
	if p.asks.beside() != "" {
		return "a person is asked"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits.reason
}

// patient notes that a process is in an action that waits for others, until the returned function is called.
func patient(p *Process, kind loop.Kind) (done func()) {
	switch kind {
	case loop.Spawn, "wait", "recv":
		p.others.Add(1)
		return func() { p.others.Add(-1) }
	}
	return func() {}
}

func (u *pulse) beat(p *Process) heartbeat.Beat[types.UUID] {
	p.mu.Lock()
	step := p.progress.Step
	p.mu.Unlock()
	last := max(time.Duration(p.life.Load()), p.began.Sub(u.base))
	return heartbeat.Beat[types.UUID]{ID: p.UUID, Step: step, Last: last, Limit: u.limit(p), Exempt: excuse(p)}
}

// look judges all processes and does what is to be done.
func (u *pulse) look() {
	var procs []*Process
	var beats []heartbeat.Beat[types.UUID]
	for _, p := range u.k.table.all() {
		if p.State() == types.StateRunning {
			procs, beats = append(procs, p), append(beats, u.beat(p))
		}
	}
	now := u.clock()
	u.mu.Lock()
	naps := u.mon.Naps()
	restarting := u.restarting
	out := u.mon.Look(now, beats, func(id types.UUID) bool { return restarting[id] })
	slept := u.mon.Naps() > naps
	u.verdicts = make(map[types.UUID]heartbeat.Verdict, len(out))
	for i := range out {
		u.verdicts[beats[i].ID] = out[i]
	}
	u.mu.Unlock()
	if slept {
		u.k.log.Info("heartbeat", "what", "the host has slept, or this program stood still: all clocks begin anew")
	}
	for i, p := range procs {
		switch v := &out[i]; {
		case v.Fresh:
			u.stalled(p, v)
		case v.Over:
			u.mark(p, time.Time{})
			u.k.events.Append(event.Event{Kind: event.Stalled, PID: p.PID, UUID: p.UUID, Step: beats[i].Step, Result: "over"})
			Self{u.k, p}.Say("warning", "it makes progress again, or need not")
		}
	}
}

// mark shows since when a process makes no progress, or with the zero time that it does.
func (u *pulse) mark(p *Process, quiet time.Time) {
	p.mu.Lock()
	p.quiet = quiet
	p.mu.Unlock()
	u.k.doing.touch(p)
}

// stalled tells of a process that has become suspect, and does what the policy wants.
func (u *pulse) stalled(p *Process, v *heartbeat.Verdict) {
	u.mark(p, time.Now().Add(-v.Age))
	act := v.Act
	if act == StallRestart && u.cfg.Restart == nil {
		act = StallWarn
	}
	i := u.k.table.current(p)
	u.k.events.Append(event.Event{Kind: event.Stalled, PID: p.PID, UUID: p.UUID, Step: i.Step, Name: string(act), Result: "suspect", Dur: v.Age, Text: i.Doing})
	Self{u.k, p}.Say("warning", with(fmt.Sprintf("no progress for %s (heartbeat: %s)", debug.Age(v.Age), act), i.Doing))
	u.k.log.Warn("heartbeat", "pid", p.PID, "uuid", p.UUID, "silent", v.Age.Round(time.Second), "at", i.Doing, "policy", string(act))
	switch act {
	case StallKill:
		u.k.signals.endTree(p, stalled{v.Age})
	case StallRestart:
		u.mu.Lock()
		u.restarting[p.UUID] = true
		u.mu.Unlock()
		u.wg.Go(func() { u.restart(p) }) // ends within restartPatience, or with close
	}
}

// restartPatience bounds how long it is tried to let a process go on from its record.
const restartPatience = 2 * time.Minute

func (u *pulse) restart(p *Process) {
	ctx, cancel := context.WithTimeout(u.ctx, restartPatience)
	defer cancel()
	err := u.cfg.Restart(ctx, p)
	u.mu.Lock()
	delete(u.restarting, p.UUID)
	u.mu.Unlock()
	if err != nil && u.ctx.Err() == nil {
		Self{u.k, p}.Say("warning", fmt.Sprintf("it makes no progress, and could not be restarted: %v", err))
		u.k.log.Warn("heartbeat", "pid", p.PID, "uuid", p.UUID, "err", err)
	}
}

// Heartbeats describes the processes that are running, in order of PID, and how often the host has slept.
func (k *KernelImpl) Heartbeats() (beats []Beat, naps int) {
	u := k.pulse
	now := u.clock()
	u.mu.Lock()
	verdicts, naps := u.verdicts, u.mon.Naps()
	u.mu.Unlock()
	for _, p := range k.table.all() {
		if p.State() == types.StateRunning {
			beats = append(beats, u.described(p, now, verdicts))
		}
	}
	return beats, naps
}

// described is the beat of a process for people, with since when it is suspected of having stopped.
func (u *pulse) described(p *Process, now heartbeat.Clock, verdicts map[types.UUID]heartbeat.Verdict) Beat {
	b := u.beat(p)
	out := Beat{PID: p.PID, UUID: p.UUID, Name: p.Name(), Step: b.Step, Limit: b.Limit, Exempt: b.Exempt, Age: max(now.Mono-b.Last, 0)}
	if v, ok := verdicts[p.UUID]; ok && v.Suspect != 0 && b.Exempt == "" && out.Age >= v.Age {
		out.Suspect = u.base.Add(v.Suspect).Round(0)
	}
	return out
}

// settleStall takes over what an agent says about silence: a limit of a step, or that there is none.
func settleStall(p *Process, ag *agent.Agent) {
	p.stepTimeout, p.endless = ag.StepTimeout.Or(0), ag.StepTimeout == agent.Off
}

// with joins what is the case and why.
func with(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
