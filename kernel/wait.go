package kernel

import (
	"context"
	"time"

	"rnix/types"
)

// Wait waits for a process to end, reaps it and returns how it ended. See ProcessManager.
func (k *KernelImpl) Wait(pid types.PID) (types.ExitStatus, error) {
	i, err := k.WaitInfo(context.Background(), pid)
	if err != nil {
		return types.ExitStatus{}, err
	}
	if i.Exit == nil {
		return types.ExitStatus{}, &types.SyscallError{Syscall: "Wait", PID: pid, Code: types.ErrUnavailable, Err: errStopping}
	}
	return *i.Exit, nil
}

// WaitInfo is Wait with a context and with everything that is known of the process at its end. Exit is
// nil if the process did not end but was suspended because the kernel stopped. The end of ctx is an
// error of code TIMEOUT or CANCELLED and leaves the process alone.
func (k *KernelImpl) WaitInfo(ctx context.Context, pid types.PID) (Info, error) {
	return k.By(0).WaitInfo(ctx, pid)
}

func waitFor(ctx context.Context, k *KernelImpl, pid types.PID) (Info, error) {
	p, ok := k.table.get(pid)
	if !ok {
		if i, ok := k.table.tomb(pid); ok {
			return i, nil
		}
		return Info{}, &types.SyscallError{Syscall: "Wait", PID: pid, Code: types.ErrNotFound, Err: ErrNoProcess}
	}
	if k.table.ppid(p) != 0 { // else nobody but the kernel reaps it
		select {
		case <-p.left:
			k.reaper.reap(p)
		case <-ctx.Done():
			return Info{}, waitEnded(ctx, pid)
		}
	}
	select {
	case <-p.gone: // reaped by whoever came first
		return *p.tomb.info(), nil
	case <-ctx.Done():
		return Info{}, waitEnded(ctx, pid)
	}
}

// waitEnded is the error of a wait that its context has ended.
func waitEnded(ctx context.Context, pid types.PID) error {
	code := types.ErrCancelled
	if ctx.Err() == context.DeadlineExceeded {
		code = types.ErrTimeout
	}
	return &types.SyscallError{Syscall: "Wait", PID: pid, Code: code, Err: context.Cause(ctx)}
}

// Process returns a living process.
func (k *KernelImpl) Process(pid types.PID) (*Process, bool) { return k.table.get(pid) }

// ByUUID returns the living process of a history.
func (k *KernelImpl) ByUUID(id types.UUID) (*Process, bool) { return k.table.byID(id) }

// Info describes a process that is alive or ended not long ago.
func (k *KernelImpl) Info(pid types.PID) (Info, error) {
	if i, ok := k.table.known(pid); ok {
		return i, nil
	}
	return Info{}, &types.SyscallError{Syscall: "Info", PID: pid, Code: types.ErrNotFound, Err: ErrNoProcess}
}

// InfoOf describes the process of a history, if one lives.
func (k *KernelImpl) InfoOf(id types.UUID) (Info, bool) {
	p, ok := k.table.byID(id)
	if !ok {
		return Info{}, false
	}
	return *k.table.current(p), true
}

// List describes the processes that are not dead, in order of PID.
func (k *KernelImpl) List() []Info {
	now := time.Now()
	procs := k.table.all()
	out := make([]Info, len(procs))
	for i, p := range procs {
		out[i] = *k.table.info(p, now)
	}
	return out
}

// Subtree returns the PIDs of a living process and its living descendants.
func (k *KernelImpl) Subtree(pid types.PID) ([]types.PID, error) {
	p, err := k.table.lookup("Subtree", pid)
	if err != nil {
		return nil, err
	}
	var out []types.PID
	for _, d := range k.table.subtree(p) {
		out = append(out, d.PID)
	}
	return out, nil
}
