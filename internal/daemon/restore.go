package daemon

import (
	"context"
	"fmt"
	"time"

	"rnix/internal/step"
	"rnix/types"
)

// restore mends what an earlier daemon left when it was killed: OS children that live on are ended,
// and histories that were running are marked as interrupted. What it did is kept for `rnix daemon
// status` and the log; nothing is ever deleted.
func (d *Daemon) restore() {
	note := func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		d.recovered = append(d.recovered, line)
		d.log.Warn("recovered", "what", line)
	}
	survivors, err := d.procs.ReapSurvivors()
	for _, s := range survivors {
		switch {
		case s.Err != nil:
			note("the %s of process %d, left by an earlier daemon, cannot be ended: %s: %v", s.Kind, s.Owner, s.Command, s.Err)
		case len(s.Killed) > 0:
			note("ended the %s of process %d, left by an earlier daemon: %s (pids %v)", s.Kind, s.Owner, s.Command, s.Killed)
		}
	}
	if err != nil {
		note("children of an earlier daemon: %v", err)
	}
	for _, p := range d.journal.Index().Problems() {
		note("%s", p)
	}
	for _, info := range d.journal.Index().List() {
		if info.State == types.StateDead || info.Exit != nil || info.Suspended {
			continue
		}
		if err := d.interrupted(info, note); err != nil {
			note("history %s: %v", info.UUID, err)
		}
	}
}

// interrupted marks a history whose daemon ended without warning. Its proc-info is rebuilt from the
// record, which is newer.
func (d *Daemon) interrupted(info step.ProcInfo, note func(string, ...any)) error {
	ctx := context.Background()
	h, err := step.ReadHistory(ctx, d.journal, info.UUID)
	switch {
	case types.CodeOf(err) == types.ErrNotFound: // the record is lost
		h = &step.History{Damage: err.Error()}
	case err != nil:
		return err
	}
	folded := h.Info()
	if len(h.Records) == 0 { // nothing can be read: what is known stands in the small file
		folded = *processes{d}.whole(&info)
	}
	folded.UpdatedAt = time.Now()
	if folded.Exit == nil {
		folded.Suspended, folded.SuspendReason = true, "the daemon ended without warning"
	}
	if len(h.Records) > 0 {
		if err := d.mark(ctx, info, note); err != nil {
			note("PID %d (%s): %v", info.PID, info.UUID, err) // it can be read all the same
		}
	}
	for _, call := range h.Interrupted {
		note("PID %d (%s): the call %s of %s was interrupted in step %d; its outcome is unknown", info.PID, info.UUID, call.CallID, call.Tool, call.Step)
	}
	if h.Damage != "" {
		note("PID %d (%s): %s", info.PID, info.UUID, h.Damage)
	}
	return d.journal.PutInfo(&folded)
}

// mark appends the fact of the interruption to the record.
func (d *Daemon) mark(ctx context.Context, info step.ProcInfo, note func(string, ...any)) error {
	lease, err := d.journal.Acquire(ctx, info.UUID, "rnix daemon, recovery")
	if err != nil {
		return err
	}
	if lease.Damage != "" {
		note("PID %d (%s): %s", info.PID, info.UUID, lease.Damage)
	}
	w := step.NewWriter(d.journal, info.UUID, lease)
	if err := w.Marker(&step.Marker{Name: step.MarkerInterrupted, PID: info.PID, Text: "the daemon ended without warning"}); err != nil {
		return err
	}
	return w.Close(ctx)
}
