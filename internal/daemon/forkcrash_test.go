package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/internal/step/crashtest"
)

// wasDir keeps the origin of a fork as it was.
var wasDir = filepath.Join(faultfs.DataDir, "was")

// forkOp makes a copy of a history, of all of it or up to a step, and lets that go on. The original is the same
// in every state.
func forkOp(name string, upTo *int) *faultfs.Op {
	op := crashOp(name, nil, func(d *Daemon, ack func(string)) error {
		ctx := context.Background()
		cut, _, _, err := d.store.Read(ctx, histA)
		if upTo != nil {
			cut, err = recovery.Until(histA, d.store.Source(ctx, histA), 1)
		}
		if err != nil {
			return err
		}
		a, err := d.stored.Copy(ctx, histA, cut, cut.Step)
		if err != nil {
			return err
		}
		begun := false
		err = goneOn(d, a.Rec, a.State, true, func(s string) { begun = true; ack(s) }, func(*diary, int) {})
		if err != nil && !begun {
			_ = directories{d}.Abandon(ctx, a.Rec.ID) // nobody has been told of it
		}
		return err
	})
	op.Prepare = func(fsys durable.FS) error {
		if err := errors.Join(leftBehind(true)(fsys), started(fsys), fsys.Mkdir(wasDir, durable.DirPerm)); err != nil {
			return err
		}
		return originFiles(fsys, func(name string, now []byte) error {
			return durable.WriteFile(fsys, filepath.Join(wasDir, name), now, durable.Durable)
		})
	}
	op.Check = func(fsys durable.FS, acked []string) error {
		err := originFiles(fsys, func(name string, now []byte) error {
			if was, err := durable.ReadFile(fsys, filepath.Join(wasDir, name)); err != nil || !bytes.Equal(was, now) {
				return fmt.Errorf("%s of the original was changed: %w", name, err)
			}
			return nil
		})
		return errors.Join(err, crashtest.Sound(fsys, acked), house(fsys, forksAreWhole))
	}
	return op
}

// originFiles visits the files of the original.
func originFiles(fsys durable.FS, visit func(name string, now []byte) error) error {
	dir := step.Dir(faultfs.DataDir, histA)
	entries, err := fsys.ReadDir(dir)
	for _, e := range entries {
		b, rerr := durable.ReadFile(fsys, filepath.Join(dir, e.Name()))
		if err = errors.Join(err, rerr); err == nil {
			err = visit(e.Name(), b)
		}
	}
	return err
}

// forksAreWhole checks that every fork that a start shows has what its origin had, and has gone on.
func forksAreWhole(d *Daemon) error {
	ctx := context.Background()
	origin, err := step.ReadHistory(ctx, d.journal, histA)
	if err != nil {
		return err
	}
	for _, info := range d.journal.Index().List() {
		if info.UUID == histA {
			continue
		}
		h, err := step.ReadHistory(ctx, d.journal, info.UUID)
		s, _, damage, serr := recovery.Read(d.store.Source(ctx, info.UUID), nil)
		if err = errors.Join(err, serr); err != nil {
			return err
		}
		if damage != "" || s.Origin == nil || s.Seq <= s.Origin.Records+1 || info.OriginUUID != histA || s.Phase != recovery.Broken {
			return fmt.Errorf("the fork %s is shown with %d records, of %s, %s: %q", info.UUID, len(h.Records), info.OriginUUID, s.Phase, damage)
		}
		for i := range s.Origin.Records {
			if mine, was := crashtest.Label(&h.Records[i+1]), crashtest.Label(&origin.Records[i]); mine != was {
				return fmt.Errorf("record %d of the fork is %q, and was %q", i+2, mine, was)
			}
		}
	}
	return nil
}
