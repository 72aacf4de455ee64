package kernel

import (
	"context"
	"errors"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/types"
)

// DebugChan returns a view on the event log: the system calls of a process from now on. It is closed
// when the process was reaped, ctx ends or the log is closed. A reader that is too slow is told what
// it missed, by an event with the syscall name "missed". Nothing is kept for a process that nobody
// watches.
func (k *KernelImpl) DebugChan(ctx context.Context, pid types.PID) (<-chan types.SyscallEvent, error) {
	return view(ctx, k, pid, func(e *event.Event) (types.SyscallEvent, bool) { return debug.SyscallEvent(e) },
		func(m *event.Missed) types.SyscallEvent {
			return types.SyscallEvent{Seq: m.To, PID: pid, Syscall: "missed", Result: m.Error()}
		})
}

// LogChan is DebugChan for the log lines of a process; what was missed is a line of category warning.
func (k *KernelImpl) LogChan(ctx context.Context, pid types.PID) (<-chan types.LogEntry, error) {
	return view(ctx, k, pid, func(e *event.Event) (types.LogEntry, bool) { return debug.LogEntry(e) },
		func(m *event.Missed) types.LogEntry {
			return types.LogEntry{Seq: m.To, PID: pid, Category: "warning", Text: m.Error()}
		})
}

// view starts the goroutine of a view. It ends with the process, ctx or the log.
func view[T any](ctx context.Context, k *KernelImpl, pid types.PID, pick func(*event.Event) (T, bool), missed func(*event.Missed) T) (<-chan T, error) {
	cur := k.events.Cursor(0) // before the lookup: the end of a process that is found comes behind it
	p, err := k.table.lookup("Attach", pid)
	if err != nil {
		return nil, err
	}
	out := make(chan T)
	if closed(p.left) { // it is about to be reaped, or was already
		close(out)
		return out, nil
	}
	go func() { // ends as the comment of DebugChan says
		defer close(out)
		for last := false; !last; {
			e, err := cur.Next(ctx)
			var m *event.Missed
			var v T
			switch {
			case errors.As(err, &m):
				v = missed(m)
				last = closed(p.left) // its end may be among what was missed
			case err != nil:
				return
			case e.PID != pid:
				continue
			case e.Kind == event.Reaped:
				return
			default:
				var ok bool
				if v, ok = pick(&e); !ok {
					continue
				}
			}
			select {
			case out <- v:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
