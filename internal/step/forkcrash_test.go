package step_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/internal/step/crashtest"
	"rnix/types"
)

// forkOp copies a history in several commits and goes on with the copy: it is whole and has gone on, or a
// start discards it, and the original stays as it is.
func forkOp() *faultfs.Op {
	originCopy := filepath.Join(faultfs.DataDir, "origin")
	return &faultfs.Op{Name: "fork", Changing: []string{step.EpochFile},
		Prepare: func(fsys durable.FS) error {
			if err := errors.Join(prepared(3, histA)(fsys), restart(fsys)); err != nil { // which marks it
				return err
			}
			b, err := durable.ReadFile(fsys, filepath.Join(step.Dir(faultfs.DataDir, histA), step.StepsFile))
			if err != nil {
				return err
			}
			return durable.WriteFile(fsys, originCopy, b, durable.Durable)
		},
		Run: func(fsys durable.FS, ack func(string)) error {
			return crashtest.Session(fsys, func(j *step.Local) error {
				id, ctx := histC, context.Background()
				id[8] += byte(len(j.Index().List())) // one that is not there yet
				lease, err := j.Acquire(ctx, id, "test")
				if err != nil {
					return err
				}
				last := lease.Next + 9
				lease, err = step.ForkBy(ctx, j, id, lease, histA, last, 2, 1600)
				w := step.NewWriter(j, id, lease)
				if err == nil {
					err = w.Marker(&step.Marker{Name: step.MarkerResumed, PID: 9, Text: "goes on"})
				}
				if err == nil {
					err = w.Close(ctx)
				}
				if err != nil {
					_, _ = j.Release(ctx, id, lease.Epoch), j.Discard(id) // err matters more
					return err
				}
				ack(crashtest.Recorded(id, 1, histA.String()))
				ack(crashtest.Holds(id, "goes on"))
				return nil
			})
		},
		Recover: func(fsys durable.FS) error {
			return crashtest.Session(fsys, func(j *step.Local) error {
				err := restarted(j)
				for _, info := range j.Index().List() {
					h, herr := step.ReadHistory(context.Background(), j, info.UUID)
					switch d, fork := forkDetail(h); {
					case herr != nil || !fork:
						err = errors.Join(err, herr)
					case uint64(len(h.Records)) <= d.Records+1:
						err = errors.Join(err, j.Discard(info.UUID))
					case h.Markers[len(h.Markers)-1].Name == step.MarkerResumed:
						err = errors.Join(err, interrupted(j, info, func(string) {}))
					}
				}
				return err
			})
		},
		Check: func(fsys durable.FS, acked []string) error {
			was, err := durable.ReadFile(fsys, originCopy)
			now, nerr := durable.ReadFile(fsys, filepath.Join(step.Dir(faultfs.DataDir, histA), step.StepsFile))
			if err = errors.Join(err, nerr); err != nil || !bytes.Equal(now, was) {
				return fmt.Errorf("the original was changed: %d bytes, now %d, %w", len(was), len(now), err)
			}
			return errors.Join(crashtest.Sound(fsys, acked), crashtest.Session(fsys, func(j *step.Local) (err error) {
				for _, info := range j.Index().List() {
					if info.UUID != histA {
						err = errors.Join(err, copied(j, info.UUID))
					}
				}
				return err
			}))
		}}
}

// forkDetail returns what the first record of a fork promises.
func forkDetail(h *step.History) (d step.ForkDetail, ok bool) {
	if h == nil || len(h.Records) == 0 || h.Records[0].Marker == nil || h.Records[0].Marker.Name != step.MarkerFork {
		return d, false
	}
	return d, json.Unmarshal(h.Records[0].Marker.Detail, &d) == nil
}

// copied checks that a listed fork has what its first record promises, as its origin has it.
func copied(j *step.Local, id types.UUID) error {
	h, err := step.ReadHistory(context.Background(), j, id)
	if err != nil {
		return err
	}
	origin, err := step.ReadHistory(context.Background(), j, histA)
	if err != nil {
		return err
	}
	d, ok := forkDetail(h)
	if !ok || uint64(len(h.Records)) <= d.Records+1 || d.Origin != histA {
		return fmt.Errorf("the fork %s is listed with %d records, and %d are promised", id, len(h.Records), d.Records)
	}
	for i := range d.Records {
		if mine, was := crashtest.Label(&h.Records[i+1]), crashtest.Label(&origin.Records[i]); mine != was {
			return fmt.Errorf("record %d of the fork %s is %q, and %q in the original", i+2, id, mine, was)
		}
	}
	return nil
}
