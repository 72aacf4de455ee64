package faultfs

import (
	"fmt"
	"syscall"
)

// faults are the errors that a disk can give.
var faults = []struct {
	name  string
	err   error
	short bool
}{
	{"EIO", syscall.EIO, false},
	{"short write", syscall.ENOSPC, true},
	{"ENOSPC", syscall.ENOSPC, false},
	{"EDQUOT", syscall.EDQUOT, false},
	{"EROFS", syscall.EROFS, false},
	{"EMFILE", syscall.EMFILE, false},
	{"EACCES", syscall.EACCES, false},
	{"EINTR", syscall.EINTR, false},
}

// Errors lets each single call fail, and each call from there on, with each error: first of the operation, then of
// the recovery from its end. The operation says that it failed or has done all of it. Once the error is
// gone, a recovery finds what was acknowledged, also after power loss, and the operation can be run again.
// Only an error that has lasted is taken to end with a reboot: nothing goes on with what the system
// had in its memory, since not even a truncation can take from it what a failed sync has lost.
//
// Each call has every error, or, with share over 1, one of so many, in turn: the code under test hardly looks
// at which it is.
func (op *Op) Errors(share int) Report {
	x := op.explorer()
	end := x.record()
	last := len(end.changes) - 1
	lost := end.past.PowerLoss(last, 0)
	for i, f := range faults {
		for _, persistent := range []bool{false, true} {
			what := f.name
			if persistent {
				what += " for good"
			}
			for n, reached := 1, true; reached; n++ {
				if n%share != i%share {
					continue
				}
				reached = x.fail(Fault{At: n, Err: f.err, Short: f.short, Persistent: persistent}, fmt.Sprintf("%s at call %d", what, n))
			}
			for n, reached := 1, true; reached; n++ {
				if n%share != i%share {
					continue
				}
				reached = x.failRecovery(lost.Clone(), Fault{At: n, Err: f.err, Short: f.short, Persistent: persistent},
					end.acked(last), fmt.Sprintf("power loss at the end; then %s at call %d of the recovery", what, n))
			}
		}
	}
	return x.Report
}

// fail runs the operation with a fault, and reports whether the fault was reached.
func (x *explorer) fail(fault Fault, what string) bool {
	fsys := x.ready.Clone()
	fsys.Fail(fault)
	var acked []string
	err := x.guard(func() error { return x.op.Run(x.disk(fsys), func(what string) { acked = append(acked, what) }) })
	reached := fsys.Calls() >= fault.At
	what = fmt.Sprintf("%s (%s)", what, callAt(fsys, fault.At))
	if _, ok := err.(*panicked); ok {
		x.problem(what, "%v", err)
	}
	if err == nil && len(acked) != len(x.all) {
		x.problem(what, "no error, but only %d of %d are acknowledged", len(acked), len(x.all))
	}
	if !reached {
		return false
	}
	for seed := range uint64(2) {
		state := fsys.Clone()
		state.Crash(seed * uint64(fault.At))
		x.verify(state, acked, fmt.Sprintf("%s; then power loss, seed %d", what, seed*uint64(fault.At)), seed == 1 && fault.At%4 == 0)
	}
	x.verify(fsys.Clone(), acked, what, !fault.Persistent)
	return !x.full()
}

// failRecovery recovers with a fault and then without.
func (x *explorer) failRecovery(state *FS, fault Fault, acked []string, what string) bool {
	state.Fail(fault)
	err := x.recover(state)
	reached := state.Calls() >= fault.At
	what = fmt.Sprintf("%s (%s)", what, callAt(state, fault.At))
	if _, ok := err.(*panicked); ok {
		x.problem(what, "%v", err)
	}
	if reached {
		lost := state.Clone()
		lost.Crash(0)
		x.verify(lost, acked, what+"; then power loss, seed 0", false)
		x.verify(state.Clone(), acked, what, !fault.Persistent && fault.At%4 == 0)
	}
	return reached && !x.full()
}

// callAt names the n-th call.
func callAt(f *FS, n int) string {
	if trace := f.Trace(); n <= len(trace) {
		return trace[n-1]
	}
	return "not reached"
}
