package step

import (
	"context"
	"errors"
	"iter"

	"rnix/types"
)

// Errors of Commit that callers test for.
var (
	// ErrFenced says that the epoch is not, or no longer, that of the history's owner: somebody else
	// may have gone on with it. The caller must stop.
	ErrFenced = errors.New("the history belongs to another owner")
	// ErrSeq says that the lines do not follow the last one that is committed.
	ErrSeq = errors.New("the sequence number is not the next one")
)

// Lease is the right to write a history.
type Lease struct {
	Epoch  uint64 // the fencing token; never used twice
	Next   uint64 // sequence number of the next line; 1 = the history is new
	Damage string // what was cut off a torn tail, and where; empty = nothing
}

// Journal keeps histories. It is all that the kernel sees of the disk. Implementations are safe for
// concurrent use and pass package journaltest.
type Journal interface {
	// Acquire takes the right to write a history, which need not exist yet. owner is for people. A
	// history that has an owner is CONFLICT, naming it. A history that is damaged in its middle, or
	// was written by a newer program, cannot be continued and is left alone; it can be replayed up
	// to there.
	Acquire(ctx context.Context, id types.UUID, owner string) (Lease, error)
	// Open is Acquire for a history that is there. One that is not is NOT_FOUND, and nothing is made: somebody may have removed it since
	// it was seen.
	Open(ctx context.Context, id types.UUID, owner string) (Lease, error)
	// Renew says that the owner is alive. ErrFenced if it is no longer the owner.
	Renew(ctx context.Context, id types.UUID, epoch uint64) error
	// Release gives the right back. ErrFenced if it is not there.
	Release(ctx context.Context, id types.UUID, epoch uint64) error
	// Commit appends one or more lines, made by Encode and numbered from seq on, in one piece: when
	// it returns nil they are durable. Epoch and sequence are checked at the commit point: ErrFenced,
	// ErrSeq (both of code CONFLICT). CANCELLED and TIMEOUT say that the end of ctx came before
	// anything was written: the same lines may be given again. After an error of code STORAGE nothing is known of the lines,
	// and every later Commit of this lease fails; Acquire looks at what is there.
	Commit(ctx context.Context, id types.UUID, epoch, seq uint64, lines []byte) error
	// Replay yields the records of a history, from sequence number from on. If it cannot be read to
	// its end, the last pair has the reason: NOT_FOUND, VERSION, STORAGE with a *durable.Damage in
	// the chain, INVALID for a file that was changed by hand.
	Replay(ctx context.Context, id types.UUID, from uint64) iter.Seq2[Record, error]
	// List returns what histories there are, in the order of their UUIDs, which is that of their
	// creation. Long texts are cut.
	List(ctx context.Context) ([]ProcInfo, error)
}

// Follow checks lines that are given to Commit as those from seq on, where the one that is due is due, and returns how many they are: each is a
// whole record, and has the number behind the one before it.
func Follow(id types.UUID, lines []byte, seq, due uint64) (n uint64, err error) {
	if seq != due {
		return 0, types.Errorf(types.ErrConflict, "Commit", id.String(), "%w: %d was given, %d is due", ErrSeq, seq, due)
	}
	n, err = sequence(lines, seq)
	if errors.Is(err, ErrSeq) {
		return 0, types.Errorf(types.ErrConflict, "Commit", id.String(), "%w", err)
	}
	if err != nil {
		return 0, types.Errorf(types.ErrInvalid, "Commit", id.String(), "%w", err)
	}
	return n, nil
}

func ctxErr(ctx context.Context, op string, id types.UUID) error {
	err := context.Cause(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return types.Errorf(types.ErrTimeout, op, id.String(), "%w", err)
	}
	return types.Errorf(types.ErrCancelled, op, id.String(), "%w", err)
}
