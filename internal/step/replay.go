package step

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/types"
)

// Replay implements Journal. Of a history that is being written it reads what is committed.
func (l *Local) Replay(ctx context.Context, id types.UUID, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l.mu.Lock()
		h := l.owned[id]
		l.mu.Unlock()
		limit := int64(-1)
		if h != nil {
			h.mu.Lock() // wait for a log that is just being opened
			opened := h.log != nil
			h.mu.Unlock()
			if opened {
				limit = h.size.Load()
			}
		}
		replay(ctx, l.fs, l.Dir(id), limit, from, yield)
	}
}

// replay yields the records of the history in dir, of its first limit bytes; -1 = all.
func replay(ctx context.Context, fsys durable.FS, dir string, limit int64, from uint64, yield func(Record, error) bool) {
	path := filepath.Join(dir, StepsFile)
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		code := types.ErrStorage
		if errors.Is(err, os.ErrNotExist) {
			code = types.ErrNotFound
		}
		yield(Record{}, types.Errorf(code, "Replay", path, "%w", err))
		return
	}
	defer f.Close()
	var r io.Reader = f
	if limit >= 0 {
		r = io.LimitReader(f, limit)
	}
	_, damage, err := durable.Scan(r, path, inOrder(func(line durable.Line) error {
		if h, err := peek(line.Data); err != nil || h.Seq < from {
			return err
		}
		if ctx.Err() != nil {
			return types.Errorf(types.ErrCancelled, "Replay", path, "%w", context.Cause(ctx))
		}
		rec, err := Decode(line.Data)
		if err != nil {
			return at(line, err)
		}
		if !yield(*rec, nil) {
			return durable.ErrStop
		}
		return nil
	}))
	switch {
	case err != nil:
		yield(Record{}, err)
	case damage != nil:
		yield(Record{}, &types.SyscallError{Syscall: "Replay", Code: types.ErrStorage, Err: damage})
	}
}
