package step

import (
	"context"
	"encoding/json"

	"rnix/types"
)

// copyBatch is how many bytes of a fork are committed at once.
const copyBatch = 1 << 20

// Fork begins the history to with the records of another up to a sequence number, behind a fork marker.
// The caller has the lease of to, which must be new. The original is only read. A crash in the middle
// leaves a history with fewer records than its ForkDetail says, which a start discards.
func Fork(ctx context.Context, j Journal, to types.UUID, lease Lease, origin types.UUID, last uint64, atStep int) (Lease, error) {
	return fork(ctx, j, to, lease, origin, last, atStep, copyBatch)
}

// fork is Fork with commits of so many bytes.
func fork(ctx context.Context, j Journal, to types.UUID, lease Lease, origin types.UUID, last uint64, atStep, batch int) (Lease, error) {
	detail, err := json.Marshal(ForkDetail{Origin: origin, Step: atStep, Records: last})
	if err != nil {
		return lease, types.Errorf(types.ErrInternal, "Fork", origin.String(), "encode: %w", err)
	}
	w := NewWriter(j, to, lease)
	if err := w.Marker(&Marker{Name: MarkerFork, Text: origin.String(), Detail: detail}); err != nil {
		return lease, err
	}
	copied := uint64(0)
	for r, err := range j.Replay(ctx, origin, 1) {
		if err != nil {
			return lease, err
		}
		if r.Seq > last {
			break
		}
		copied++
		if err := w.copy(r); err != nil {
			return lease, err
		}
		if w.Collected() > batch {
			if err := w.Commit(ctx); err != nil {
				return lease, err
			}
		}
	}
	if copied != last {
		return lease, types.Errorf(types.ErrStorage, "Fork", origin.String(), "%d records can be read, %d were asked for", copied, last)
	}
	if err := w.Commit(ctx); err != nil {
		return lease, err
	}
	lease.Next = w.Next()
	return lease, nil
}

// copy collects a record of another history under the next number, with its own time.
func (w *Writer) copy(r Record) error {
	if w.err != nil {
		return w.err
	}
	r.V, r.Seq, r.Joined = FormatVersion, w.next, w.next > w.due // the commits are those of the copy
	err := w.lines.add(&r)
	if err == nil {
		w.next++
	}
	return err
}
