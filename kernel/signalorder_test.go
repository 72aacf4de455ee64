package kernel

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"rnix/agent"
	"rnix/types"
)

var everySignal = []types.Signal{types.SIGTERM, types.SIGKILL, types.SIGINT, types.SIGPAUSE, types.SIGRESUME}

// signalOp is something that is done to a process with a signal.
type signalOp struct {
	do  string
	sig types.Signal
}

func (o signalOp) String() string { return o.do + " " + o.sig.String() }

// drawSignalOps draws what is done to a process, one after the other. Most of it leaves it alive.
func drawSignalOps(r *rapid.T) []signalOp {
	op := rapid.Custom(func(r *rapid.T) signalOp {
		do := rapid.SampledFrom([]string{"send", "send", "send", "block", "unblock", "handle", "reset", "terminate"}).Draw(r, "do")
		among := []types.Signal{types.SIGPAUSE, types.SIGRESUME, types.SIGINT, types.SIGPAUSE, types.SIGRESUME, types.SIGPAUSE, types.SIGRESUME, types.SIGTERM}
		if do == "send" && rapid.IntRange(0, 19).Draw(r, "kill") == 0 {
			return signalOp{do, types.SIGKILL}
		}
		if do == "terminate" {
			return signalOp{do, types.SIGTERM}
		}
		return signalOp{do, rapid.SampledFrom(among).Draw(r, "signal")}
	})
	return rapid.SliceOfN(op, 1, 24).Draw(r, "operations")
}

// deaf draws an agent that says something of signals.
func deaf(r *rapid.T) *agent.Agent {
	m := agent.Manifest{}
	for _, sig := range []types.Signal{types.SIGTERM, types.SIGINT, types.SIGPAUSE, types.SIGRESUME} {
		if rapid.IntRange(0, 2).Draw(r, "agent blocks "+sig.String()) == 0 {
			m.BlockedSignals = append(m.BlockedSignals, sig)
		}
	}
	if rapid.Bool().Draw(r, "agent handles SIGINT") {
		m.OnInterrupt = "sum up"
	}
	return &agent.Agent{Manifest: m}
}

// signalModel is what POSIX and decision 064 say of one process that never ends by itself.
type signalModel struct {
	agents           []types.Signal // blocked by its agent
	blocked, pending map[types.Signal]bool
	handler          map[types.Signal]string // what handles it: "test" or "agent"
	calls            map[types.Signal]int    // of the handler of the test
	told             bool                    // of an interrupt that it has not taken up
	paused           bool
	exit             string // the reason for which it has ended
}

func newSignalModel(ag *agent.Agent) *signalModel {
	m := &signalModel{agents: ag.BlockedSignals, blocked: map[types.Signal]bool{}, pending: map[types.Signal]bool{}, handler: map[types.Signal]string{}, calls: map[types.Signal]int{}}
	for _, sig := range ag.BlockedSignals {
		m.blocked[sig] = true
	}
	if ag.OnInterrupt != "" {
		m.handler[types.SIGINT] = "agent"
	}
	return m
}

func (m *signalModel) do(o signalOp) {
	switch {
	case m.exit != "":
	case o.do == "send":
		m.deliver(o.sig)
	case o.do == "terminate" && slices.Contains(m.agents, o.sig):
		m.act(o.sig)
	case o.do == "terminate":
		m.deliver(o.sig)
	case o.sig == types.SIGKILL: // nothing can be said of it
	case o.do == "block":
		m.blocked[o.sig] = true
	case o.do == "unblock":
		m.blocked[o.sig] = false
		if m.pending[o.sig] {
			m.pending[o.sig] = false
			m.deliver(o.sig)
		}
	case o.do == "handle":
		m.handler[o.sig] = "test"
	case o.do == "reset":
		m.handler[o.sig] = ""
	}
}

func (m *signalModel) deliver(sig types.Signal) {
	switch {
	case m.blocked[sig]:
		switch m.pending[sig] = true; sig {
		case types.SIGPAUSE:
			m.pending[types.SIGRESUME] = false
		case types.SIGRESUME:
			m.pending[types.SIGPAUSE] = false
		}
	case m.handler[sig] == "test":
		m.calls[sig]++
	case m.handler[sig] == "agent" && !m.told:
		m.told = true
	default:
		m.act(sig)
	}
}

// act does what a signal does that nothing holds up.
func (m *signalModel) act(sig types.Signal) {
	switch sig {
	case types.SIGPAUSE:
		m.paused = true
	case types.SIGRESUME:
		if m.paused {
			m.told = false // it asks its model anew, with what has come
		}
		m.paused = false
	default:
		m.exit = map[types.Signal]string{types.SIGTERM: "terminated", types.SIGKILL: "killed", types.SIGINT: "interrupted"}[sig]
		if m.paused {
			m.exit = types.ReasonCancelledPaused
		}
	}
}

// differs says what of a process is not as the model has it; "" = nothing.
func (m *signalModel) differs(i *Info, calls map[types.Signal]int) string {
	list := func(set map[types.Signal]bool) (out []types.Signal) {
		for _, sig := range everySignal {
			if set[sig] {
				out = append(out, sig)
			}
		}
		return out
	}
	exit := ""
	if i.Exit != nil {
		exit = i.Exit.Reason
	}
	switch {
	case exit != m.exit:
		return fmt.Sprintf("it has ended with %q, want %q", exit, m.exit)
	case !maps.Equal(calls, m.calls):
		return fmt.Sprintf("handlers were called %v, want %v", calls, m.calls)
	case exit != "":
		return ""
	case !slices.Equal(i.Pending, list(m.pending)):
		return fmt.Sprintf("pending are %v, want %v", i.Pending, list(m.pending))
	case (i.StateName() == "suspended") != m.paused:
		return fmt.Sprintf("it is %s, want paused: %v", i.StateName(), m.paused)
	}
	return ""
}

// signalledProcess is a process with handlers that count.
type signalledProcess struct {
	*sys
	pid types.PID

	mu    sync.Mutex
	calls map[types.Signal]int // +checklocks:mu
}

func (s *signalledProcess) do(o signalOp) {
	switch o.do { // an error is that it has ended, or that nothing can be said of SIGKILL
	case "send":
		_ = s.Signal(s.pid, o.sig)
	case "terminate":
		_ = s.Terminate(s.pid)
	case "block":
		_ = s.SigBlock(s.pid, o.sig)
	case "unblock":
		_ = s.SigUnblock(s.pid, o.sig)
	case "handle":
		_ = s.SetHandler(s.pid, o.sig, func(sig types.Signal) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.calls[sig]++
		})
	case "reset":
		_ = s.SetHandler(s.pid, o.sig, nil)
	}
}

func (s *signalledProcess) called() map[types.Signal]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// inSignalBubble runs a process of an agent in a bubble, ends it, and returns what do has found.
func inSignalBubble(t *testing.T, ag *agent.Agent, do func(s *signalledProcess) string) (found string) {
	synctest.Test(t, func(t *testing.T) {
		s := &signalledProcess{sys: newSys(t), calls: map[types.Signal]int{}}
		s.model = untilKilled
		var err error
		if s.pid, err = s.Spawn("do it", ag, opts()); err != nil {
			found = err.Error()
			return
		}
		synctest.Wait()
		found = do(s)
		_ = s.Signal(s.pid, types.SIGKILL)
		synctest.Wait()
		if i, err := s.Info(s.pid); err == nil && i.Exit == nil && found == "" {
			found = "SIGKILL has not ended it"
		}
	})
	return found
}

// Whatever is done with signals, and in whichever order, a process is as the model has it after each of them.
func TestSignalsInAnyOrderDoWhatTheModelSays(t *testing.T) { // 064
	rapid.Check(t, func(r *rapid.T) {
		ag, ops := deaf(r), drawSignalOps(r)
		m := newSignalModel(ag)
		found := inSignalBubble(t, ag, func(s *signalledProcess) string {
			for n, o := range ops {
				s.do(o)
				synctest.Wait()
				m.do(o)
				i, err := s.Info(s.pid)
				if err != nil {
					return err.Error()
				}
				if d := m.differs(&i, s.called()); d != "" {
					return fmt.Sprintf("after %v: %s", ops[:n+1], d)
				}
			}
			return ""
		})
		if found != "" {
			r.Fatal(found)
		}
	})
}

// When all is done at once nobody knows the order; but a process that was sent SIGKILL ends, one that lives is where the last word on each signal leaves
// it, and it can still be paused, resumed and ended.
func TestSignalsAtOnceLeaveAProcessThatCanBeEnded(t *testing.T) { // 064
	rapid.Check(t, func(r *rapid.T) {
		ag, ops := deaf(r), drawSignalOps(r)
		found := inSignalBubble(t, ag, func(s *signalledProcess) string {
			var wg sync.WaitGroup // each goroutine ends with its operation
			for _, o := range ops {
				wg.Go(func() { s.do(o) })
			}
			wg.Wait()
			synctest.Wait()
			i, err := s.Info(s.pid)
			if err != nil {
				return err.Error()
			}
			if killed := slices.ContainsFunc(ops, func(o signalOp) bool { return o == signalOp{"send", types.SIGKILL} }); killed && i.Exit == nil {
				return fmt.Sprintf("it has outlived %v", ops)
			}
			for _, sig := range i.Pending {
				if !slices.Contains(i.BlockedSignals, sig) && !slices.ContainsFunc(ops, func(o signalOp) bool { return o == signalOp{"block", sig} }) {
					return fmt.Sprintf("%v is pending, and nothing has blocked it", sig)
				}
			}
			if i.Exit != nil {
				return ""
			}
			for _, sig := range everySignal {
				s.do(signalOp{"reset", sig})
				s.do(signalOp{"unblock", sig})
			}
			synctest.Wait()
			if i, _ := s.Info(s.pid); i.Exit != nil { // what was pending has ended it
				return ""
			} else if len(i.Pending) > 0 {
				return fmt.Sprintf("pending, though unblocked: %v", i.Pending)
			}
			for _, want := range []signalOp{{"suspended", types.SIGPAUSE}, {"running", types.SIGRESUME}} {
				s.do(signalOp{"send", want.sig})
				synctest.Wait()
				if i, _ := s.Info(s.pid); i.StateName() != want.do {
					return fmt.Sprintf("after %v it is %s", want.sig, i.StateName())
				}
			}
			s.do(signalOp{"send", types.SIGTERM})
			synctest.Wait()
			if i, _ := s.Info(s.pid); i.Exit == nil || i.Exit.Reason != "terminated" {
				return fmt.Sprintf("SIGTERM has not ended it: %+v", i)
			}
			return ""
		})
		if found != "" {
			r.Fatal(found)
		}
	})
}
