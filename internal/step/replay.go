package step

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/types"
)

// Replay implements Journal. Of a history that is being written it reads what is committed. What lies far
// before record from is not looked at, damaged or not: who wants to know reads from the first record.
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
	if limit < 0 {
		info, err := f.Stat()
		if err != nil {
			yield(Record{}, types.Errorf(types.ErrStorage, "Replay", path, "%w", err))
			return
		}
		limit = info.Size()
	}
	p := &player{ctx: ctx, file: f, path: path, limit: limit, due: from, yield: yield}
	if start := p.find(); start.offset > 0 {
		if damage, err := p.play(start); damage == nil && err == nil {
			return
		}
		// Reading it all says where the damage is, and whether there is other before it.
	}
	switch damage, err := p.play(place{seq: 1}); {
	case p.stopped:
	case err != nil:
		yield(Record{}, err)
	case damage != nil:
		yield(Record{}, &types.SyscallError{Syscall: "Replay", Code: types.ErrStorage, Err: damage})
	}
}

// player reads one file.
type player struct {
	ctx   context.Context
	file  durable.File
	path  string
	limit int64  // bytes of the file that may be read
	due   uint64 // sequence number of the next record to be yielded
	yield func(Record, error) bool

	stopped bool // yield wants no more
	scanner scanner
	rec     Record // the last one
}

// place is where a line begins.
type place struct {
	offset int64
	seq    uint64 // of the line
}

// play yields the records that are due, of the lines from start on.
func (p *player) play(start place) (*durable.Damage, error) {
	var r io.Reader = io.NewSectionReader(p.file, start.offset, p.limit-start.offset)
	if p.due > 1 { // of which a few records may be wanted
		r = &growing{r: r, size: near}
	}
	_, damage, err := durable.Scan(r, p.path, inOrderFrom(start.seq, func(line durable.Line, h header) error {
		if h.Seq < p.due {
			return nil
		}
		if p.ctx.Err() != nil {
			return types.Errorf(types.ErrCancelled, "Replay", p.path, "%w", context.Cause(p.ctx))
		}
		if err := p.scanner.whole(line.Data, &p.rec); err != nil {
			return at(line, err)
		}
		p.due++
		if p.stopped = !p.yield(p.rec, nil); p.stopped {
			return durable.ErrStop
		}
		return nil
	}))
	return damage, err
}

// near is how far before a line a scan may begin, in bytes.
const near = 8 << 10

// growing reads little at first, and more each time.
type growing struct {
	r    io.Reader
	size int
}

func (g *growing) Read(b []byte) (int, error) {
	n, err := g.r.Read(b[:min(len(b), g.size)])
	g.size = min(2*g.size, 64<<10)
	return n, err
}

// find returns a place at or shortly before the record that is due, by halving: sequence numbers are
// dense and grow. Only the beginnings of lines are looked at, so the cost is that of some reads, however
// long the history is; whether the lines that are passed over are whole is not asked. The zero offset
// stands for the beginning of the file, also when a line is not as this program writes it.
func (p *player) find() place {
	begin := place{seq: 1}
	low, high := begin, p.limit
	for p.due > 1 && high-low.offset > near {
		middle, ok := p.lineFrom(low.offset+(high-low.offset)/2, high)
		switch {
		case !ok:
			return begin
		case middle.seq == 0 || middle.seq > p.due: // none begins there, or a later one
			high = low.offset + (high-low.offset)/2
		case middle.seq < low.seq:
			return begin
		default:
			low = middle
		}
	}
	return low
}

// lineFrom returns the first line that begins behind from and before to; seq is 0 if there is none. It
// reports false if what stands there is not a line.
func (p *player) lineFrom(from, to int64) (l place, ok bool) {
	var buf [4 << 10]byte
	for some := int64(512); from < to; some = min(4*some, int64(len(buf))) { // most lines are short
		n, err := p.file.ReadAt(buf[:min(some, to-from)], from)
		if n == 0 || err != nil && err != io.EOF {
			return place{}, false
		}
		i := bytes.IndexByte(buf[:n], '\n')
		if i < 0 {
			from += int64(n)
			continue
		}
		if l.offset = from + int64(i) + 1; l.offset >= to {
			return place{}, true
		}
		n, err = p.file.ReadAt(buf[:min(128, p.limit-l.offset)], l.offset)
		if err != nil && err != io.EOF {
			return place{}, false
		}
		h, ok := opening(buf[:n])
		l.seq = h.Seq
		return l, ok && h.Seq > 0
	}
	return place{}, true
}
