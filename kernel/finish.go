package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// The causes with which a process's context ends.
var (
	errStopping = errors.New("the daemon is stopping")
	errReaped   = errors.New("the process was reaped")
)

// WaitsForDisk returns what a process waits for whose record could not be written for err; the zero value = err does not pass. No record says so.
func WaitsForDisk(err error) types.Suspension {
	switch {
	case durable.NoRoom(err):
		return types.Suspend(types.SuspendNoRoom)
	case durable.ReadOnly(err):
		return types.Suspend(types.SuspendReadOnly)
	}
	return types.Suspension{}
}

// signalled is the cause when a signal ended the process.
type signalled struct{ sig types.Signal }

func (s signalled) Error() string { return "ended by " + s.sig.String() }

// timedOut is the cause when the process's own time limit ended it.
type timedOut struct{ after time.Duration }

func (t timedOut) Error() string { return types.ReasonTimeout + t.after.String() }

// signalExits are the exit statuses of processes that a signal ended; they share the error.
var signalExits = map[types.Signal]types.ExitStatus{
	types.SIGTERM: exitBy(types.SIGTERM, "terminated"), types.SIGKILL: exitBy(types.SIGKILL, "killed"), types.SIGINT: exitBy(types.SIGINT, "interrupted"),
}

func exitBy(sig types.Signal, reason string) types.ExitStatus {
	return types.ExitStatus{Code: types.ExitCancelled, Reason: reason, Err: &types.SyscallError{Syscall: "Process", Code: types.ErrCancelled, Err: signalled{sig}}}
}

// ExitBySignal returns the exit status of a process that a signal ends by default, and whether it ends one.
func ExitBySignal(sig types.Signal, paused bool) (types.ExitStatus, bool) {
	exit, ends := signalExits[sig]
	if ends && paused {
		return types.ExitStatus{Code: types.ExitError, Reason: types.ReasonCancelledPaused}, true
	}
	return types.ExitStatus{Code: exit.Code, Reason: exit.Reason}, ends
}

// exitFor turns the end of a loop into an exit status. paused says that the gate was shut.
func exitFor(end *loop.End, paused bool) types.ExitStatus {
	if lost, ok := end.Cause.(revoked); ok { //nolint:errorlint // as below
		return types.ExitStatus{Code: types.ExitLostOwnership, Reason: lost.Error(), Err: types.Errorf(types.ErrConflict, "Process", "", "%w", end.Cause)}
	}
	if end.Cause != nil && paused { // wherever it stood: at the gate, at the model or inside a frozen command
		return types.ExitStatus{Code: types.ExitError, Reason: types.ReasonCancelledPaused, Err: end.Cause}
	}
	switch cause := end.Cause.(type) { //nolint:errorlint // a cause is given by the kernel, as it is
	case nil:
		return end.Exit
	case signalled:
		if exit, ok := signalExits[cause.sig]; ok {
			return exit
		}
		return exitBy(cause.sig, "")
	case stalled:
		return types.ExitStatus{Code: types.ExitNoProgress, Reason: cause.Error(), Err: types.Errorf(types.ErrTimeout, "Process", "", "%w", end.Cause)}
	case timedOut:
		return types.ExitStatus{Code: types.ExitError, Reason: cause.Error(), Err: types.Errorf(types.ErrTimeout, "Process", "", "%w", end.Cause)}
	}
	return types.ExitStatus{Code: types.ExitError, Reason: types.ReasonUnexpected, Err: end.Cause}
}

// finish ends a process whose loop has ended: it gives back the servers and OS children, writes the
// end into the record, and sets status, state and event in one hold of the lock. It runs in the
// process's goroutine, and in parts, of which none has the stack of another.
func (v *engine) finish(p *Process, end *loop.End) {
	v.mail.seal(p, true) // what was accepted is recorded before the end is
	v.servers.unmountFor(p, p)
	v.lifecycle.Release(p.PID)
	exit, err := v.recordEnd(p, end)
	v.publishEnd(p, end, exit)
	p.box.Close()
	v.mail.undelivered(p)
	v.saves.save(p)
	v.saves.release(p, err)
	v.children.tellParent(p)
	close(p.left)
}

// decideEnd decides how a run ends: a process that is being suspended and was sent a signal that ends it has ended. No signal counts
// after it.
func decideEnd(p *Process, end *loop.End) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decided = true
	if suspends := end.Wait.Waits() || errors.Is(end.Cause, errStopping) || end.Cause == nil && WaitsForDisk(end.Exit.Err).Waits(); suspends && p.fatal != 0 {
		*end = loop.End{Cause: signalled{p.fatal}}
	}
}

// recordEnd writes the end of a run into the record and returns the exit status; nil = the process has not ended, but
// the kernel stops. The error has been told.
func (v *engine) recordEnd(p *Process, end *loop.End) (exit *types.ExitStatus, err error) {
	decideEnd(p, end)
	_, shut := p.gate.Since()
	marker := &step.Marker{Name: step.MarkerDaemonStop, PID: p.PID}
	switch {
	case errors.Is(end.Cause, errStopping):
	case end.Cause == nil && WaitsForDisk(end.Exit.Err).Waits(): // nothing is wrong with it: it resumes when the disk takes more, here or under another daemon
		end.Wait = WaitsForDisk(end.Exit.Err)
		fallthrough
	case end.Wait.Waits():
		exit = new(end.Exit)
		detail, _ := json.Marshal(step.SuspendDetail{Kind: end.Wait.Why(), Wake: end.Wake, Hint: end.Hint, Purse: end.Purse}) // strings, numbers and a time
		*exit = v.concealEnd(*exit, end)
		marker.Name, marker.Text, marker.Exit, marker.Detail = step.MarkerSuspended, end.Wait.SuspendReason, exit, detail
	default:
		exit = new(exitFor(end, shut))
		exit.Reason += unwritten(exit.Err, p.UUID)
		exit.Reason, end.Result = withChildren(exit, end.Result, v.children.running(p), p)
		*exit = v.concealEnd(*exit, end)
		marker.Name, marker.Text, marker.Exit = step.MarkerExit, end.Result, exit
	}
	if err = p.rec.Add(step.Record{Kind: step.KindMarker, Marker: marker}); err == nil {
		err = p.rec.Commit()
	}
	if err != nil {
		v.saves.storageError(p, err)
	}
	return exit, err
}

// publishEnd makes a process whose end is recorded a zombie.
func (v *engine) publishEnd(p *Process, end *loop.End, exit *types.ExitStatus) {
	now := time.Now()
	elapsed := p.Elapsed(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result, p.ended, p.stopping, p.parked, p.wake = end.Result, now, exit == nil, end.Wait, end.Wake
	p.broke, p.exit = end.Purse, exit
	p.waits = waiting{}
	if err := p.transitionLocked(types.StateZombie, v.events, now); err != nil {
		v.log.Error("finish", "err", err)
	}
	tellExit(p, v.events, now, elapsed)
}

// tellExit says in the event log how the process has ended, p.mu held.
//
// +checklocks:p.mu
func tellExit(p *Process, log *event.Log, now time.Time, elapsed time.Duration) {
	how := ""
	if p.stopping || p.parked.Waits() {
		how = "suspended"
	}
	log.Put(&event.Event{Time: now, Kind: event.Exited, PID: p.PID, UUID: p.UUID, Text: rnixctx.Elide(p.result, 64<<10), Tokens: p.progress.Tokens, Step: p.progress.Step, Dur: elapsed, Result: how, Exit: p.exit})
}

// unwritten says what to do when a process has ended because its record could not be written; "" if that is
// not why.
func unwritten(err error, id types.UUID) string {
	if types.CodeOf(err) != types.ErrStorage {
		return ""
	}
	return "; see to the disk, then: rnix resume " + id.String()
}

// withChildren makes the exit reason and the result say that children failed, so that a parent cannot
// report success over their heads, and the result which children go on without it. A result that fits a schema is left
// as it is, since programs read it; the reason says both then.
func withChildren(exit *types.ExitStatus, result string, left []string, p *Process) (string, string) {
	p.mu.Lock()
	failed := p.failedChildren
	p.mu.Unlock()
	reason, exact := exit.Reason, exit.Code == types.ExitOK && len(p.opts.OutputSchema) > 0
	tell := func(what string, who []string) {
		if len(who) > 0 && !exact {
			result = strings.TrimSpace(result + "\n\n[" + what + ": " + strings.Join(who, ", ") + "]")
		}
	}
	tell("child processes that still run", left)
	tell("child processes that failed", failed)
	if len(failed) > 0 {
		reason += fmt.Sprintf("; failed child processes: %d", len(failed))
	}
	if exact && len(left) > 0 {
		reason += fmt.Sprintf("; child processes that still run: %d", len(left))
	}
	return reason, result
}
