package daemon

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/recovery"
	"rnix/internal/service/billing"
	"rnix/internal/step"
	"rnix/internal/step/crashtest"
	"rnix/kernel"
	"rnix/types"
)

// restOp does something to a history whose last run has ended with a marker; "" = the daemon broke it off.
func restOp(name, marker string, phase recovery.Phase, run func(d *Daemon, ack func(string)) error) *faultfs.Op {
	op := crashOp(name, func(fsys durable.FS) error {
		err := leftBehind(false)(fsys)
		if marker != "" {
			err = errors.Join(err, house(fsys, func(d *Daemon) error {
				return resumed(d, histA, false, func(string) {}, func(y *diary, n int) { y.end(marker, phase, n-1) })
			}))
		}
		return errors.Join(err, started(fsys))
	}, run)
	op.Recover = taken
	op.Check = func(fsys durable.FS, acked []string) error {
		return errors.Join(house(fsys, func(d *Daemon) error { return errors.Join(told(fsys, d, acked), listsAreRecorded(d)) }), crashtest.Sound(fsys, acked))
	}
	return op
}

// renameOp renames a history that does not run.
func renameOp(name, marker string, phase recovery.Phase) *faultfs.Op {
	return restOp(name, marker, phase, func(d *Daemon, ack func(string)) error {
		d.stored.Ground = noHolds{}
		return withKernel(d, func() error {
			s, _, _, err := d.store.Read(context.Background(), histA)
			if err != nil {
				return err
			}
			called := fmt.Sprintf("name%d", s.Seq+1)
			if _, err = d.stored.Rename(context.Background(), histA, 7, called); err == nil {
				ack(crashtest.Holds(histA, called))
			}
			return err
		})
	})
}

// setOp sets something of a history that is suspended with an exit status.
func setOp(name string, set func(d *Daemon) error) *faultfs.Op {
	return restOp(name, step.MarkerSuspended, recovery.Suspended, func(d *Daemon, ack func(string)) error {
		d.stored.Ground = noHolds{}
		return withKernel(d, func() error { return set(d) })
	})
}

// wokenOp resumes a history that is over. Its small file says first that it is not, as launch.Launcher does it.
func wokenOp() *faultfs.Op {
	return restOp("resume of an end", step.MarkerExit, recovery.Ended, func(d *Daemon, ack func(string)) error {
		_, err := d.stored.Cards.Reopen(histA, func(info *step.ProcInfo) { info.State, info.Exit, info.DeadAt = types.StateCreated, nil, time.Time{} })
		if err != nil {
			return err
		}
		return resumed(d, histA, true, ack, func(*diary, int) {})
	})
}

// noHolds are those of a daemon that archives nothing.
type noHolds struct{}

func (noHolds) Hold(types.UUID) (release func(), err error) { return func() {}, nil }

// listsAreRecorded checks that lists show what the records of a history have: name, state, pause and budget. What is at rest for good is no more read by
// each start.
func listsAreRecorded(d *Daemon) error {
	for _, info := range d.journal.Index().List() {
		h, err := step.ReadHistory(context.Background(), d.journal, info.UUID)
		if err != nil {
			return err
		}
		card, err := d.journal.Index().Card(info.UUID)
		if err != nil { // power loss has torn it, and the index stands for it
			card = &info
		}
		is := h.Info()
		if info.Name != is.Name || card.Name != is.Name {
			return fmt.Errorf("it is called %q in the index and %q in its small file, and its records say %q", info.Name, card.Name, is.Name)
		}
		if info.PausedAt.IsZero() != is.PausedAt.IsZero() || card.PausedAt.IsZero() != is.PausedAt.IsZero() {
			return fmt.Errorf("it is shown as paused at %v and %v, and its records say %v", info.PausedAt, card.PausedAt, is.PausedAt)
		}
		if info.ContextBudget != is.ContextBudget || card.ContextBudget != is.ContextBudget {
			return fmt.Errorf("it is shown with %d and %d tokens, and its records say %d", info.ContextBudget, card.ContextBudget, is.ContextBudget)
		}
		life := h.Life()
		if over := life.Phase == step.PhaseEnded || life.Phase == step.PhaseSuspended && life.Exit != nil && !life.Paused; info.Over() != over || card.Over() != over {
			return fmt.Errorf("its records say that it is over %v, and it is shown as %s, its small file says %s", over, info.State, card.State)
		}
	}
	return nil
}

func TestEveryCrashInAChangeOfWhatIsAtRestIsSeenByTheNextStart(t *testing.T) {
	faultfs.Test(t,
		renameOp("rename of an end", step.MarkerExit, recovery.Ended),
		renameOp("rename of a budget used up", step.MarkerSuspended, recovery.Suspended),
		renameOp("rename of a run broken off", "", recovery.Broken),
		setOp("pause of a budget used up", func(d *Daemon) error { return d.stored.Pause(context.Background(), histA) }),
		setOp("raise of a budget used up", func(d *Daemon) error {
			if h, err := step.ReadHistory(context.Background(), d.journal, histA); err != nil || h.Info().ContextBudget > 1000 { // no text of a record is there twice
				return err
			}
			return billing.Purses{Kernel: d.kernel, Stored: d.stored}.Raise(context.Background(), histA, kernel.Amount{Tokens: 50})
		}),
		wokenOp())
}
