package watch

import (
	"context"

	"rnix/internal/event"
	"rnix/internal/procview"
	"rnix/ipc"
	"rnix/types"
)

// kindProcs is the event name of the frames of watch_procs. Part of the wire format.
const kindProcs = "procs"

// watch sends the table of processes, and then what changes of it. Whoever reads slowly is passed over, is told so, and gets
// all of it again.
func (w *Service) watch(ctx context.Context, _ *ipc.Peer, req ipc.WatchRequest, out *ipc.Stream) error {
	if err := fillWatch(&req); err != nil {
		return err
	}
	w.Callers.Settled(ctx)
	if err := out.Start(); err != nil {
		return err
	}
	s, leave := w.hub.join(w, req)
	defer leave()
	for {
		f, missed, ok := s.take()
		if !ok {
			select {
			case <-s.ready:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if missed != nil {
			if err := out.Missed(missed.From, missed.To); err != nil {
				return err
			}
		}
		if len(f.data) > maxTable {
			return types.Errorf(types.ErrInvalid, "watch_procs", "", "the table has %d MiB and %d are allowed; give a limit", len(f.data)>>20, maxTable>>20)
		}
		if err := out.SendRaw(f.seq, kindProcs, f.data); err != nil {
			return err
		}
	}
}

// maxTable is the longest frame in bytes.
const maxTable = 48 << 20

// fillWatch checks a request and fills in what it does not say.
func fillWatch(req *ipc.WatchRequest) error {
	if req.Limit < 0 {
		return types.Errorf(types.ErrInvalid, "watch_procs", "", "limit %d is negative; 0 means all", req.Limit)
	}
	if req.EveryMs == 0 {
		req.EveryMs = ipc.WatchEvery
	}
	if req.EveryMs < ipc.MinWatchEvery || req.EveryMs > ipc.MaxWatchEvery {
		return types.Errorf(types.ErrInvalid, "watch_procs", "", "every_ms is %d, and may be %d to %d; 0 means %d", req.EveryMs, ipc.MinWatchEvery, ipc.MaxWatchEvery, ipc.WatchEvery)
	}
	return nil
}

// row returns the process of a history as ps shows it, and whether it is only on disk; false if there is none. Of those that
// have ended it returns none unless all is set.
func (w *Service) row(id types.UUID, all bool) (p ipc.Proc, stored, ok bool) {
	if i, lives := w.Kernel.InfoOf(id); lives {
		return w.Looks.Living(&i), false, true
	}
	if i, is := w.Index.Get(id); is {
		p = w.Looks.Stored(&i)
		return p, true, all || p.State == procview.Suspended
	}
	if a, is := w.Archive.Find(id); is && all {
		return procview.InArchive(&a), true, true
	}
	return p, false, false
}

// settled reports whether nothing of a process but its record can change: its row is read when somebody is to see it.
func settled(state string) bool { return state == "dead" || state == procview.Archived }

// ticks reports whether the time of a process goes on.
func ticks(p *ipc.Proc) bool { return !p.ClockPaused && (p.State == "created" || p.State == "running") }

// reachesTable reports whether an event of a kind may change a row of the table. What a process has in hand, what it
// waits for and what it has used is told by kernel.Lifecycle.Touched, what becomes of those on disk by store.Index.
func reachesTable(kind event.Kind) bool {
	switch kind {
	case event.LogLine, event.ServerLine, event.Syscall, event.SyscallBegun, event.Signalled, event.Compacted, event.Mounted, event.Unmounted, event.StorageError, event.Snapshot,
		event.Messaged, event.Delivered, event.Refused, event.Asked, event.Answered, event.Lag:
		return false
	}
	return true
}
