package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// reading collects what one read is for.
type reading struct {
	from, to uint64
	max      int
	bytes    int
	want     func(string) bool
	out      []Event
	size     int
}

// take adds an event and reports whether there is room for it.
func (r *reading) take(e Event) bool {
	if len(r.out) == r.max || len(r.out) > 0 && r.size+len(e.Data) > r.bytes {
		return false
	}
	r.size += len(e.Data)
	r.out = append(r.out, e)
	return true
}

func (f *files) read(at *place, from, to uint64, max, bytes int, want func(string) bool) ([]Event, error) {
	r := &reading{from: from, to: to, max: max, bytes: bytes, want: want}
	for {
		seg, end, off, ok := f.find(at, from)
		if !ok {
			return r.out, nil
		}
		full, err := f.readSegment(r, at, seg, end, off)
		if err != nil || full || end == 0 || end >= to {
			return r.out, err
		}
		from, r.from = end+1, end+1
	}
}

// find returns the segment in which event from lies, the number of its last event (0 for the last
// segment) and the offset at which reading begins.
func (f *files) find(at *place, from uint64) (seg segment, end uint64, off int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, s := range f.segments {
		if i+1 < len(f.segments) {
			end = f.segments[i+1].start - 1
		} else {
			end = 0
		}
		if end != 0 && end < from {
			continue
		}
		if at.start == s.start && at.seq <= from && at.seq > 0 {
			return s, end, at.off, true
		}
		*at = place{start: s.start, seq: s.start}
		return s, end, 0, true
	}
	return seg, 0, 0, false
}

// readSegment reads on in one file and reports whether there is no room for more.
func (f *files) readSegment(r *reading, at *place, seg segment, end uint64, off int64) (full bool, err error) {
	path := f.path(segmentName(seg.start))
	file, err := f.fs.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) { // released since it was looked up: nobody needs it
		return false, nil
	}
	if err != nil {
		return false, types.Errorf(types.ErrStorage, "Read", path, "%w", err)
	}
	defer file.Close()
	next := at.seq
	_, damage, err := durable.Scan(io.NewSectionReader(file, off, seg.size-off), path, func(l durable.Line) error {
		e, _, err := decode(l.Data)
		switch {
		case err != nil:
			return err
		case e.Seq != next:
			return types.Errorf(types.ErrStorage, "", "", "event %d stands where %d is due", e.Seq, next)
		case e.Seq > r.to:
			full = true
			return durable.ErrStop
		}
		if e.Seq >= r.from && r.want(e.Kind) && !r.take(e) {
			full = true
			return durable.ErrStop
		}
		next = e.Seq + 1
		*at = place{start: seg.start, seq: next, off: off + l.Offset + int64(len(l.Data)) + 1}
		return nil
	})
	switch {
	case err != nil || full:
		return full, err
	case damage != nil && end == 0:
		return false, types.Errorf(types.ErrStorage, "Read", path, "%w", damage)
	case damage != nil || end != 0 && next <= end: // what follows in other files is still good
		reason := fmt.Sprintf("the file ends after event %d", next-1)
		if damage != nil {
			reason = damage.Error()
		}
		g := Gap{From: max(next, r.from), To: end, Reason: reason}
		g.Count = int(g.To - g.From + 1)
		return !r.take(g.event(f.session, f.source, time.Now().UTC())), nil
	}
	return false, nil
}
