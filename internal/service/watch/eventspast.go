package watch

import (
	"bufio"
	priority "container/heap"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"rnix/internal/durable"
	"rnix/internal/event"
	"rnix/types"
)

// storedFrom is a history of which events may be stored.
type storedFrom struct {
	at  time.Time // none of its events is older; zero = not known
	pid types.PID // of its last run
}

// sendPast sends the events in the files of the histories of a request, those of all together in the order of
// their time.
func (w *Service) sendPast(ctx context.Context, f *filter, s *sink) error {
	var waiting []*pastFile
	for id := range f.ids {
		p := &pastFile{id: id, from: f.stored[id].at, pid: f.stored[id].pid, at: &blockFile{path: w.Files.Path(id)}}
		waiting = append(waiting, p)
	}
	slices.SortFunc(waiting, func(a, b *pastFile) int { return a.from.Compare(b.from) })
	var open pastHeap
	for len(open) > 0 || len(waiting) > 0 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		for len(waiting) > 0 && (len(open) == 0 || !waiting[0].from.After(open[0].head.Time)) {
			p := waiting[0]
			waiting = waiting[1:]
			p.r = bufio.NewReaderSize(p.at, 16<<10)
			switch ok, err := p.next(); {
			case err != nil:
				return err
			case ok:
				priority.Push(&open, p)
			}
		}
		if len(open) == 0 {
			continue
		}
		p := open[0]
		if err := w.sendOld(f, s, p); err != nil {
			return err
		}
		switch ok, err := p.next(); {
		case err != nil:
			return err
		case ok:
			priority.Fix(&open, 0)
		default:
			priority.Pop(&open)
		}
	}
	return nil
}

// sendOld sends an event of a file.
func (w *Service) sendOld(f *filter, s *sink, p *pastFile) error {
	e := &p.head
	mine := !e.Time.Before(w.Started) // this daemon has written it, so its number counts
	if mine {
		f.sent[p.id] = max(f.sent[p.id], e.Seq)
		if e.Kind == event.Exited {
			delete(f.running, p.id) // it may have ended since we looked
		}
	}
	if e.Kind == event.Spawned && mine && f.named[p.id] && !w.ended(p.id) {
		f.running[p.id] = true // that was an earlier run
	}
	f.heard.line(e)
	if !f.picks(e) {
		return nil
	}
	seq := e.Seq
	if !mine {
		seq = 0
	}
	return s.send(seq, e.Kind, p.line)
}

// pastFile is the events of one history, in order.
type pastFile struct {
	id   types.UUID
	pid  types.PID
	from time.Time
	at   *blockFile
	r    *bufio.Reader
	head event.Event // the next one
	line []byte      // as it is written

	ahead     []byte // the line behind that, if it is read already; nil = it is not
	aheadHead event.Event
	bad       int // lines that cannot be read, since the last one that can
}

// next reads the next event; false = there is none. For lines that cannot be read there is one that says so.
// The last line may be half written: the log has it.
func (p *pastFile) next() (bool, error) {
	if p.ahead != nil {
		p.head, p.line, p.ahead = p.aheadHead, p.ahead, nil
		return true, nil
	}
	for {
		line, err := p.r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return false, types.Errorf(types.ErrStorage, "Read", p.at.path, "%w", err)
		}
		if err != nil {
			if p.bad > 0 {
				p.tellBad(p.head.Time)
				return true, nil
			}
			return false, nil
		}
		var e event.Event
		if json.Unmarshal(line, &e) != nil {
			p.bad++
			continue
		}
		if line = line[:len(line)-1]; p.bad > 0 {
			p.aheadHead, p.ahead = e, line
			p.tellBad(e.Time)
			return true, nil
		}
		p.head, p.line = e, line
		return true, nil
	}
}

// tellBad makes the next event one that says how many lines could not be read.
func (p *pastFile) tellBad(at time.Time) {
	if at.IsZero() {
		at = p.from
	}
	p.head = event.Event{Time: at, PID: p.pid, UUID: p.id, Kind: event.Lag, Text: types.Counted(p.bad, "line", "lines") + " of its events cannot be read: not shown"}
	p.line, p.bad = event.AppendJSON(nil, &p.head), 0
}

// pastHeap has the file with the oldest next event at its top.
type pastHeap []*pastFile

func (h pastHeap) Len() int      { return len(h) }
func (h pastHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h pastHeap) Less(i, j int) bool {
	if c := h[i].head.Time.Compare(h[j].head.Time); c != 0 {
		return c < 0
	}
	return h[i].head.Seq < h[j].head.Seq
}
func (h *pastHeap) Push(x any) { *h = append(*h, x.(*pastFile)) }
func (h *pastHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// blockFile reads a file that is open only while it is read, since there may be thousands. One that is not there
// is empty.
type blockFile struct {
	path string
	at   int64
}

func (b *blockFile) Read(p []byte) (int, error) {
	file, err := durable.OS.OpenFile(b.path, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return 0, io.EOF
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	n, err := file.ReadAt(p, b.at)
	b.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
