package daemon

import (
	"sync/atomic"

	"rnix/internal/durable"
	"rnix/ipc"
)

// stopper is what stops the daemon, in words; the first one counts.
type stopper struct{ by atomic.Pointer[string] }

// is notes what stops the daemon.
func (s *stopper) is(by string) { s.by.CompareAndSwap(nil, &by) }

// noteStop notes for clients that the daemon is being stopped, and by what: they wait for the next one then, and start none. One that
// cannot start, or has lost its data, is not stopped by anybody.
func noteStop(d *Daemon, failed error) {
	if failed != nil || d.bootstrap.Failed() != nil {
		return
	}
	d.stopper.is("a signal")
	if err := ipc.WriteStopNote(d.places.DataDir, *d.stopper.by.Load()); err != nil && !durable.Unwritable(err) {
		d.log.Warn("stop", "err", err)
	}
}

// clearStop takes back the note of the daemon before this one.
func clearStop(d *Daemon) error {
	if err := ipc.ClearStopNote(d.places.DataDir); err != nil && !durable.Unwritable(err) {
		return err
	}
	return nil
}
