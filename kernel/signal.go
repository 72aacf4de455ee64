package kernel

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"rnix/internal/event"
	"rnix/kernel/internal/sigset"
	"rnix/types"
)

// Kill sends a signal to a process. It is Signal under the name that people know.
func (k *KernelImpl) Kill(pid types.PID, sig types.Signal) error { return k.Signal(pid, sig) }

// Signal sends a signal to a process: blocked, it becomes pending; with a handler, the handler is
// called before Signal returns; otherwise it does what it does. A signal to a process that has ended
// but was not reaped does nothing; to one that does not exist it is NOT_FOUND.
func (k *KernelImpl) Signal(pid types.PID, sig types.Signal) error { return k.By(0).Signal(pid, sig) }

// signaller decides what signals do to processes, and does it.
type signaller struct {
	table     *table
	saves     *saver
	lifecycle Lifecycle
	mail      *mailer
	events    *event.Log
	log       *slog.Logger
	holding   sync.Mutex // held while bar decides
}

func (s *signaller) send(from authority, pid types.PID, sig types.Signal) error {
	if !sig.Valid() {
		return types.Errorf(types.ErrInvalid, "Signal", "", "%d is not a signal", int(sig))
	}
	p, err := s.table.lookup("Signal", pid)
	if err != nil {
		return err
	}
	_, err = s.deliver(sig, s.enforces(from, sig), p)
	return err
}

// deliver decides and acts, for one process after the other. It returns how many were alive, and the first error of those that obey, but whose obedience
// could not be written down. One look at the clock is enough for as long as nobody is waited for. enforced says of each whether it is made to obey.
func (s *signaller) deliver(sig types.Signal, enforced func(*Process) bool, procs ...*Process) (alive int, err error) {
	now := time.Now()
	for _, p := range procs {
		d, lives := p.resolveSignalDisposition(sig, enforced(p), s.events, now)
		if !lives {
			continue
		}
		alive++
		err = cmp.Or(err, s.act(p, d, now))
		if s.waits(d) {
			now = time.Now()
		}
	}
	return alive, err
}

// waits reports whether to act upon a decision can take long: in a handler, or where a pause is more than a gate.
func (s *signaller) waits(d sigset.Decision) bool {
	gate := d.Signal == types.SIGPAUSE || d.Signal == types.SIGRESUME
	return d.Action == sigset.Handle || gate && s.gatesAreFollowed()
}

// resolveSignalDisposition decides what becomes of a signal in one hold of the lock: blocked, handler
// or default. It reports whether the process is alive.
func (p *Process) resolveSignalDisposition(sig types.Signal, enforced bool, log *event.Log, now time.Time) (sigset.Decision, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state >= types.StateZombie || p.decided {
		return sigset.Decision{}, false
	}
	var d sigset.Decision
	if enforced && agentHolds(p, sig) {
		d = sigset.Decision{Signal: sig, Action: sigset.Default}
	} else {
		d = p.sigs.Deliver(sig)
	}
	endsByLocked(p, d)
	log.Put(&event.Event{Time: now, Kind: event.Signalled, PID: p.PID, UUID: p.UUID, Name: sig.String(), Result: outcome(d.Action)})
	return d, true
}

// endsByLocked notes that a signal ends a process, p.mu held.
//
// +checklocks:p.mu
func endsByLocked(p *Process, d sigset.Decision) {
	if d.Action == sigset.Default && ends(d.Signal) && p.fatal == 0 {
		p.fatal = d.Signal
	}
}

var outcomes = [...]string{sigset.Ignore: "ignored", sigset.Pend: "pending", sigset.Handle: "handled", sigset.Default: "delivered"}

func outcome(a sigset.Action) string { return outcomes[a] }

// act does what was decided, as of now. No lock is held. An error says that it is done, and would not hold over the end of the daemon.
func (s *signaller) act(p *Process, d sigset.Decision, now time.Time) error {
	switch d.Action {
	case sigset.Handle:
		defer func() {
			if r := recover(); r != nil {
				s.log.Error("signal handler", "pid", p.PID, "signal", d.Signal.String(), "panic", fmt.Sprint(r))
			}
		}()
		d.Handler(d.Signal)
	case sigset.Default:
		switch d.Signal {
		case types.SIGPAUSE:
			return s.pause(p, now)
		case types.SIGRESUME:
			return s.resume(p, now)
		default:
			p.cancel(signalled{d.Signal})
		}
	}
	return nil
}

// pause shuts the gate: the loop stops before its next model call or action. OS children are frozen
// at once. An error is that of followGate, also of a second pause, which does nothing else.
func (s *signaller) pause(p *Process, now time.Time) error {
	if !p.gate.Shut(now) {
		return s.awaitMark(p)
	}
	p.mu.Lock()
	cutOff := p.cutOff
	p.mu.Unlock()
	if cutOff != nil {
		cutOff()
	}
	err := s.followGate(p)
	s.events.Put(&event.Event{Time: now, Kind: event.Paused, PID: p.PID, UUID: p.UUID})
	gateMoved(p)
	return err
}

// resume opens the gate. An error is that of followGate, also of a resume of a process that is not paused, which does nothing else.
func (s *signaller) resume(p *Process, now time.Time) error {
	s.table.free(p)
	d, was := p.gate.Open(now)
	if !was {
		return s.awaitMark(p)
	}
	err := s.followGate(p)
	checkClock(p)
	s.events.Put(&event.Event{Time: now, Kind: event.Resumed, PID: p.PID, UUID: p.UUID, Dur: d})
	gateMoved(p)
	return err
}

// awaitMark is followGate for a process whose gate stands as it is wanted already. Who has moved it may be at writing that, and may fail: nobody is told that
// a pause holds before its record says so. Of a record that could not be written each is told, until the run ends: its writer writes no more.
func (s *signaller) awaitMark(p *Process) error {
	if !s.saves.keeps || s.saves.marked(p) {
		return nil
	}
	return s.followGate(p)
}

// followGate freezes or thaws the OS children of a process, as its gate stands, and makes the pause or
// its end durable. A pause and a resume may cross, and what came first may act last: so it looks again
// until what it did is what is wanted. What could not be written is an error: the gate is as it was wanted, until the daemon ends.
func (s *signaller) followGate(p *Process) error {
	if !s.gatesAreFollowed() {
		return nil
	}
	for {
		s.settleStill(p)
		shut, err := s.markGate(p)
		if _, now := p.gate.Since(); now == shut {
			return err
		}
	}
}

// gatesAreFollowed reports whether anything is to be done by followGate.
func (s *signaller) gatesAreFollowed() bool {
	return s.saves.keeps || s.lifecycle != Lifecycle(NoLifecycle{})
}

// markGate writes a pause or its end into the record, so that it holds over the end of the daemon, and returns which. It looks when its turn has come: else what was
// wanted before could be written behind what somebody was told is done.
func (s *signaller) markGate(p *Process) (shut bool, err error) {
	if _, shut = p.gate.Since(); !s.saves.keeps || p.State() >= types.StateZombie {
		return shut, nil
	}
	shut, err = s.saves.markPause(p)
	if err == nil || p.State() >= types.StateZombie { // it has ended meanwhile, and its record is closed
		return shut, nil
	}
	s.saves.storageError(p, err)
	is := map[bool]string{true: "it is paused", false: "it works on"}[shut]
	return shut, &types.SyscallError{Syscall: "Signal", PID: p.PID, Code: types.CodeOf(err), Err: fmt.Errorf("%s, but that could not be written down, and would not hold over the end of the daemon: %w", is, err)}
}

// SigBlock blocks a signal: it stays pending until SigUnblock. SIGKILL cannot be blocked (INVALID).
func (k *KernelImpl) SigBlock(pid types.PID, sig types.Signal) error {
	p, err := k.table.lookup("SigBlock", pid)
	if err != nil {
		return err
	}
	p.mu.Lock()
	ok := p.sigs.Block(sig)
	p.mu.Unlock()
	if !ok {
		return &types.SyscallError{Syscall: "SigBlock", PID: pid, Code: types.ErrInvalid, Err: fmt.Errorf("%v cannot be blocked", sig)}
	}
	return nil
}

// SigUnblock unblocks a signal and delivers it if it is pending.
func (k *KernelImpl) SigUnblock(pid types.PID, sig types.Signal) error {
	p, err := k.table.lookup("SigUnblock", pid)
	if err != nil {
		return err
	}
	p.mu.Lock()
	d, pending := p.sigs.Unblock(sig)
	if pending = pending && p.state < types.StateZombie && !p.decided; pending {
		endsByLocked(p, d)
	}
	p.mu.Unlock()
	if pending {
		return k.signals.act(p, d, time.Now())
	}
	return nil
}

// SetHandler sets what a signal does to a process; nil restores the default. SIGKILL cannot be
// handled (INVALID). The handler runs in the sender's goroutine, without any lock.
func (k *KernelImpl) SetHandler(pid types.PID, sig types.Signal, h func(types.Signal)) error {
	p, err := k.table.lookup("SetHandler", pid)
	if err != nil {
		return err
	}
	p.mu.Lock()
	ok := p.sigs.SetHandler(sig, h)
	p.mu.Unlock()
	if !ok {
		return &types.SyscallError{Syscall: "SetHandler", PID: pid, Code: types.ErrInvalid, Err: fmt.Errorf("%v cannot be handled", sig)}
	}
	return nil
}

// SignalTree sends a signal to a process and all its living descendants and returns how many it
// reached. Nobody escapes by being born meanwhile: SIGKILL keeps each of them from starting another, and
// what is born into a tree that is paused is paused.
func (k *KernelImpl) SignalTree(pid types.PID, sig types.Signal) (int, error) {
	return k.By(0).SignalTree(pid, sig)
}

func (s *signaller) tree(from authority, pid types.PID, sig types.Signal) (int, error) {
	if !sig.Valid() {
		return 0, types.Errorf(types.ErrInvalid, "SignalTree", "", "%d is not a signal", int(sig))
	}
	root, err := s.table.lookup("SignalTree", pid)
	if err != nil {
		return 0, err
	}
	above := s.enforces(from, sig)
	return s.throughout(root, sig, func(p *Process) bool { return ends(sig) && (p != root || above(p)) }, nil) // what root blocks holds for root alone
}

// endTree ends a process with cause, and all its living descendants as SIGKILL does.
func (s *signaller) endTree(root *Process, cause error) {
	_, _ = s.throughout(root, types.SIGKILL, func(*Process) bool { return true }, cause)
}

// throughout sends a signal to root and all its living descendants and returns how many it reached. cause = with what root is cancelled
// before, when its descendants are known: one that has been reaped has none any more.
func (s *signaller) throughout(root *Process, sig types.Signal, enforced func(*Process) bool, cause error) (n int, err error) {
	procs, born := s.table.signalled(sig, nil, root)
	if cause != nil {
		root.cancel(cause) // the first cause counts
	}
	var reached map[*Process]bool // made when somebody was born meanwhile
	for all := procs; ; {
		alive, failed := s.deliver(sig, enforced, procs...)
		n, err = n+alive, cmp.Or(err, failed)
		if len(procs) == 0 || s.table.born() == born {
			return n, err
		}
		if reached == nil { // again for those who were born before their parent was reached; those above that may have been reaped since
			reached = make(map[*Process]bool, len(procs))
		}
		for _, p := range procs {
			reached[p] = true
		}
		known := len(all)
		all, born = s.table.signalled(sig, reached, all...)
		procs = all[known:]
	}
}
