package launch

import (
	"context"
	"fmt"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/internal/moved"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/types"
)

// MaxCrashes is after how many ends of the daemon in the same step of a process it is not resumed by
// itself any more: it may be what brings the daemon down.
const MaxCrashes = 3

// Crashes returns how often the daemon has broken off in the step of a process, or 0 if all that it did was
// to wait for children, as a process without a model does: these count for themselves.
func (c *Cards) Crashes(s *recovery.State) int {
	if was, err := s.Was(); err == nil && was.Body != nil { // it does nothing itself
		return 0
	}
	waits := false
	for _, call := range s.Unknown() {
		if recovery.Waits(&call) {
			waits = true
			continue
		}
		if call.Intent.Child == nil {
			return s.Crashes
		}
		if _, begun := c.Journal.Index().Get(*call.Intent.Child); !begun {
			return s.Crashes
		}
		waits = true
	}
	if waits {
		return 0
	}
	return s.Crashes
}

// Bury makes a history dead that has ended, but that nobody had reaped when the daemon broke off, or that was just opened for a change; so it does with one
// that is suspended with an exit status, as by its budget, and shows what was set of it meanwhile.
func (c *Cards) Bury(ctx context.Context, info step.ProcInfo) {
	h, err := step.ReadHistory(ctx, c.Journal, info.UUID)
	if err != nil {
		c.Note("history %s: %v", info.UUID, err)
		return
	}
	life, was := h.Life(), info
	info = *c.Whole(&info) // which may be older than the line of the index
	if life.Phase == step.PhaseEnded || life.Paused && info.PausedAt.IsZero() {
		life.Put(&info)
	} else {
		if life.Phase == step.PhaseSuspended && life.Exit != nil { // as a budget does that is used up
			info.State = types.StateDead
		}
		if life.PutSet(&info); info.Over() == was.Over() && info.Name == was.Name && info.ContextBudget == was.ContextBudget && info.BudgetUSD == was.BudgetUSD {
			return
		}
	}
	if info.Over() { // no start looks at its records then, so power loss must leave them as they are shown
		if err := c.Journal.Sync(info.UUID); err != nil {
			if !durable.Unwritable(err) {
				c.Note("history %s: %v", info.UUID, err)
			}
			return
		}
	}
	c.Put(&info)
}

// Refreshed is the info of a history that is not running, made of its record, which is newer.
func (c *Cards) Refreshed(info step.ProcInfo, s *recovery.State) step.ProcInfo {
	if s.Seq == 0 { // nothing can be read: what is known stands in the small file
		info = *c.Whole(&info)
		if info.Exit == nil || info.Suspended {
			info.Suspended, info.Suspension = true, types.Suspend(types.SuspendBroken)
		}
		return info
	}
	info = s.Info(info.UUID)
	if info.Suspended && !s.Paused && c.Crashes(s) >= MaxCrashes {
		info.Suspension = types.SuspendFor(types.SuspendHeld, fmt.Sprintf("the daemon has broken off %d times in step %d; it stays suspended until a person resumes it", s.Crashes, s.Step+1))
	}
	return info
}

// Put writes the small file of a history. What cannot be written is noted: the record counts.
func (c *Cards) Put(info *step.ProcInfo) {
	if err := c.Journal.Index().Save(info); err != nil && !durable.Unwritable(err) { // the record counts; the room says what is wrong
		c.Note("proc-info.json of %s: %v", info.UUID, err)
	}
}

// Reopen says of a history that is over that it is not, durably, before its record says so: the next start does not look at the records of what is
// over, and would miss what is written there now. Until then as is what it looks like. undo puts back what stood there.
func (c *Cards) Reopen(id types.UUID, as func(info *step.ProcInfo)) (undo func(), err error) {
	info, ok := c.Index().Get(id)
	if !ok || !info.Over() {
		return func() {}, nil
	}
	was := c.Whole(&info)
	now := *was
	as(&now)
	if err := c.Journal.Index().Save(&now); err != nil {
		if card, rerr := c.Index().Card(id); rerr != nil || card.Over() { // else only the index could not be written, which is made anew
			c.Put(was)
			return nil, err
		}
	}
	return func() { c.Put(was) }, nil
}

// Whole returns what a history looks like with its texts in full, which the index cuts.
func (c *Cards) Whole(i *step.ProcInfo) *step.ProcInfo {
	if full, err := c.Index().Card(i.UUID); err == nil {
		full.WorkDir, full.ReadRoots = moved.Here(c.DataDir, full.WorkDir), moved.All(c.DataDir, full.ReadRoots)
		return full
	}
	return i
}

// Index lists the histories on disk.
func (c *Cards) Index() store.Index { return c.Journal.Index() }

// Written reports whether a history has a card: it is written when its process is started.
func (c *Cards) Written(id types.UUID) bool {
	return exists(filepath.Join(c.Journal.Dir(id), step.InfoFile))
}
