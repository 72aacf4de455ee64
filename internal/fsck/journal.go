package fsck

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

// history is what is known of one history.
type history struct {
	id       types.UUID
	dir      string
	live     bool
	findings []Finding

	records []step.Record // up to the first fault
	places  []place       // of them
	good    int64         // bytes up to the first fault
	torn    bool          // the fault is in the last commit: opening the journal cuts it off
	behind  int           // records behind the fault that can be read
	state   *recovery.State
	info    *step.ProcInfo // as it stands in its file; nil = it cannot be read
	should  step.ProcInfo  // as the records have it
	pid     types.PID      // the highest
}

// place is where a record stands.
type place struct {
	line   int
	offset int64
}

func (h *history) find(f Finding) {
	f.UUID = &h.id
	h.findings = append(h.findings, f)
}

// history looks at one history. Derived files are read before the journal, so that of a history that is
// being written the journal is the newer one.
func (o *Options) history(id types.UUID) *history {
	h := &history{id: id, dir: step.Dir(o.DataDir, id), live: o.live(id)}
	small := o.small(h)
	o.journal(h)
	h.fold(o)
	h.references()
	o.snapshots(h)
	o.inputs(h)
	o.attachments(h)
	o.derived(h, small)
	if !h.live {
		h.findings = append(h.findings, o.temps(&h.id, h.dir)...)
	}
	return h
}

// journal reads steps.jsonl to its end, behind every fault.
func (o *Options) journal(h *history) {
	path := filepath.Join(h.dir, step.StepsFile)
	f, err := o.FS.OpenFile(path, os.O_RDONLY, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		h.find(Finding{File: step.StepsFile, Severity: Note, What: "there is no journal: the history was never begun"})
		return
	case err != nil:
		h.find(Finding{File: step.StepsFile, Severity: Error, What: err.Error()})
		return
	}
	defer f.Close()
	size := int64(1) << 62
	if st, err := f.Stat(); err == nil {
		size = st.Size() // what is appended from now on is not looked at
	}
	s := scan{h: h, tail: true}
	for s.base < size && !s.stop {
		base, line := s.base, s.line
		good, damage, err := durable.Scan(io.NewSectionReader(f, base, size-base), path, func(l durable.Line) error {
			l.Number, l.Offset = line+l.Number, base+l.Offset
			return s.see(l)
		})
		if err != nil {
			h.find(Finding{File: step.StepsFile, Line: s.line + 1, Offset: base + good, Severity: Error, What: err.Error()})
			break
		}
		if damage == nil {
			break
		}
		s.fault(line+damage.Line, base+good, damage.Reason, damage.Tail)
		s.line, s.base = line+damage.Line, base+good+max(damage.Bytes, 1)
	}
	if s.faults == 0 {
		o.empty(h, s.base)
		return
	}
	h.torn = s.tail
	first := &h.findings[s.first]
	switch {
	case s.newer:
	case h.torn && h.live:
		first.Severity, first.What = Note, "the last line is being written, or was torn: "+first.What
	case h.torn:
		first.Severity, first.fix, first.Repair = Warning, cut, "cut off the torn end, as the next resume would, and keep a copy"
	default:
		first.fix = divide
		first.Repair = fmt.Sprintf("keep the %s before it; move what follows, with %s that can be read, into a separate file",
			types.Counted(len(h.records), "record", "records"), types.Counted(h.behind, "record", "records"))
	}
}

// empty finds a history that has nothing but a journal without a record.
func (o *Options) empty(h *history, read int64) {
	entries, err := o.FS.ReadDir(h.dir)
	if err == nil && !h.live && read == 0 && len(h.records) == 0 && len(entries) == 1 {
		h.find(Finding{File: step.StepsFile, Severity: Note, What: "the history is empty: there is no record in it, and nothing else",
			Repair: "remove it, so that an archive of it can be put back", fix: ghost})
	}
}

// scan is the state of reading a journal.
type scan struct {
	h      *history
	base   int64 // where the next scan begins
	line   int   // lines before it
	faults int
	first  int  // index of the first fault's finding
	tail   bool // no commit begins behind the first fault
	newer  bool // a newer program wrote it
	stop   bool
}

// fault notes that something is wrong with a line. The first one ends what can be relied on.
func (s *scan) fault(line int, offset int64, reason string, tail bool) {
	if s.faults++; s.faults == 1 {
		s.first, s.h.good = len(s.h.findings), offset
	}
	if s.faults > maxFaults {
		s.stop, s.tail = true, false
		return
	}
	s.h.find(Finding{File: step.StepsFile, Line: line, Offset: offset, Severity: Error, What: reason})
}

// maxFaults is how many faults of one journal are named.
const maxFaults = 20

// see looks at a whole line. An error of code STORAGE says that its bytes are damaged.
func (s *scan) see(l durable.Line) error {
	h := s.h
	r, err := step.Decode(l.Data)
	switch {
	case types.CodeOf(err) == types.ErrStorage:
		return err
	case err != nil:
		s.newer = s.newer || types.CodeOf(err) == types.ErrVersion
		s.tail = false // a line that is whole is never cut off
		s.fault(l.Number, l.Offset, reason(err), false)
		if s.newer {
			s.stop = true
			return durable.ErrStop
		}
		return nil
	case s.faults > 0:
		h.behind++
		s.tail = s.tail && r.Joined
		return nil
	case r.Seq != uint64(len(h.records)+1):
		s.tail = false
		s.fault(l.Number, l.Offset, fmt.Sprintf("the sequence number is %d where %d is due: lines are missing or were added", r.Seq, len(h.records)+1), false)
		h.behind++
		return nil
	}
	h.records = append(h.records, *r)
	h.places = append(h.places, place{l.Number, l.Offset})
	h.good = l.Offset + int64(len(l.Data)) + 1
	return nil
}

// reason is the text of an error without the operation before it.
func reason(err error) string {
	var e *types.SyscallError
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// fold makes of the records what the derived files should say.
func (h *history) fold(o *Options) {
	h.state = new(recovery.State)
	for i := range h.records {
		h.state.Apply(&h.records[i])
		if m := h.records[i].Marker; m != nil {
			h.pid = max(h.pid, m.PID)
		}
	}
	folded, err := step.Fold(h.id, func(yield func(step.Record, error) bool) {
		for _, r := range h.records {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err == nil { // it has none: no record is an error here
		h.should = folded.Info()
	}
	if h.state.Unfinished() && !h.live {
		h.find(Finding{File: step.StepsFile, Severity: Warning, What: fmt.Sprintf("a fork of %s that was never finished: it has %d of %d records; fork again, and delete this one",
			h.state.Origin.Origin, h.state.Seq, h.state.Origin.Records+1)})
	}
}
