package fsck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

// previousCheckpoint is the checkpoint before the last one. Part of the on-disk format.
const previousCheckpoint = "checkpoint.prev.json"

// missing is why a small file that should be there cannot be read.
const missing = "it is missing"

// small is what stands in the small files of a history.
type small struct {
	checkpoints map[string]*step.Checkpoint // by file; nil = it cannot be read
	why         map[string]string           // why not
}

// small reads the small files.
func (o *Options) small(h *history) small {
	s := small{map[string]*step.Checkpoint{}, map[string]string{}}
	for _, name := range []string{step.CheckpointFile, previousCheckpoint} {
		b, err := durable.ReadFile(o.FS, filepath.Join(h.dir, name))
		if types.CodeOf(err) == types.ErrNotFound {
			continue
		}
		cp := new(step.Checkpoint)
		if err == nil {
			err = json.Unmarshal(b, cp)
		}
		switch {
		case err != nil:
			cp, s.why[name] = nil, fmt.Sprintf("cannot be read (%d bytes): %v", len(b), err)
		case cp.V > step.FormatVersion: // a newer program's
			continue
		}
		s.checkpoints[name] = cp
	}
	info, err := step.ReadInfo(o.FS, h.dir)
	if h.info = info; err != nil {
		h.info, s.why[step.InfoFile] = nil, reason(err)
		if types.CodeOf(err) == types.ErrNotFound {
			s.why[step.InfoFile] = missing
		}
		if types.CodeOf(err) == types.ErrVersion {
			s.why[step.InfoFile] = ""
		}
	}
	if _, err := step.ReadMeta(o.FS, h.dir); err != nil && types.CodeOf(err) != types.ErrNotFound && types.CodeOf(err) != types.ErrVersion {
		s.why[step.MetaFile] = reason(err)
	}
	return s
}

// derived compares the small files with the journal. Of a history that is being written, what is newer
// than what was read of the journal is no fault.
func (o *Options) derived(h *history, s small) {
	if len(h.records) == 0 { // there is nothing to compare them with
		if h.info != nil && h.info.Step > 0 && len(h.findings) == 0 {
			h.find(Finding{File: step.StepsFile, Severity: Error, What: fmt.Sprintf("it has no records, and %s says %s: what was in it was cut off or removed; a file %s.cut-0 beside it has what was cut off",
				step.InfoFile, count(h.info.Step), step.StepsFile)})
		}
		if why := s.why[step.InfoFile]; h.info == nil && why != "" && why != missing && !h.live && len(h.findings) == 0 {
			h.find(Finding{File: step.InfoFile, Severity: Error, What: why + "; there are no records to make it anew from, so nothing is left of this history: remove its directory"})
		}
		return
	}
	for _, name := range []string{step.CheckpointFile, previousCheckpoint} {
		cp, ok := s.checkpoints[name]
		what := s.why[name]
		if ok && cp != nil {
			what = h.checkpoint(cp)
		}
		if ok && what != "" {
			f := Finding{File: name, Severity: Warning, What: what, Repair: "make it anew from the journal, and keep a copy", fix: snapshot}
			if name == previousCheckpoint {
				f.Repair, f.fix = "put it aside: the journal has all of it", forget
			}
			h.find(f)
		}
	}
	what := s.why[step.InfoFile]
	if h.info != nil {
		what = h.compare()
	}
	if what != "" && !h.live {
		h.find(Finding{File: step.InfoFile, Severity: Warning, What: what, Repair: "make it anew from the journal, and keep a copy", fix: info})
	}
	if why := s.why[step.MetaFile]; why != "" {
		h.find(Finding{File: step.MetaFile, Severity: Warning, What: why, Repair: "put it aside: it is for people only", fix: forget})
	}
	o.events(h)
}

// checkpoint says what is wrong with a checkpoint; empty = nothing. A stale one is right.
func (h *history) checkpoint(cp *step.Checkpoint) string {
	got, ok := recovery.FromCheckpoint(cp)
	switch {
	case cp.UUID != h.id:
		return fmt.Sprintf("it is of another history, %s", cp.UUID)
	case !ok && recovery.Outdated(cp):
		return "" // a resume reads the records instead
	case !ok:
		return "it holds no state"
	case cp.Seq > uint64(len(h.records)) && h.live:
		return ""
	case cp.Seq > uint64(len(h.records)):
		return fmt.Sprintf("it was made behind record %d, and the journal has %d", cp.Seq, len(h.records))
	}
	want := new(recovery.State)
	for i := range h.records[:cp.Seq] {
		want.Apply(&h.records[i])
	}
	var texts [2][]byte
	for i, s := range []*recovery.State{got, want} {
		c, err := s.Checkpoint(h.id)
		if err == nil {
			texts[i], err = json.Marshal(c)
		}
		if err != nil {
			return err.Error()
		}
	}
	if !bytes.Equal(texts[0], texts[1]) || cp.Tokens != want.Tokens || cp.Step != want.Step || cp.CostUSD != want.CostUSD {
		return fmt.Sprintf("it is not what the first %d records amount to", cp.Seq)
	}
	return ""
}

// compare says how proc-info.json contradicts the journal; empty = it does not. A file that is older than
// the last record is wrong only if the history has ended since.
func (h *history) compare() string {
	got, want := h.info, &h.should
	ended := h.state.Phase == recovery.Ended
	says := got.Exit != nil && !got.Suspended // one that waits has an exit status for whoever waited for it
	switch {
	case got.UUID != h.id:
		return fmt.Sprintf("it is of another history, %s", got.UUID)
	case ended != says && (ended || !got.UpdatedAt.Before(h.state.Time)):
		return map[bool]string{true: "it does not say that the history has ended", false: "it says that the history has ended, and the journal does not"}[ended]
	case ended && (got.Exit.Code != want.Exit.Code || got.Exit.Reason != want.Exit.Reason):
		return fmt.Sprintf("it says that the history has ended with code %d (%s), and the journal says %d (%s)", got.Exit.Code, got.Exit.Reason, want.Exit.Code, want.Exit.Reason)
	case got.PID != want.PID && (ended || got.PID > want.PID || !got.UpdatedAt.Before(h.state.Time)):
		return fmt.Sprintf("it says PID %d, and the journal says %d", got.PID, want.PID)
	case got.Kind == "" && got.Step > h.state.Step+1: // one may have been begun and not ended; a program counts what it likes
		return fmt.Sprintf("it says %s, and the journal has %d", count(got.Step), h.state.Step)
	}
	return ""
}

// count says how many steps there are.
func count(steps int) string {
	if steps == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", steps)
}

// events reads events.jsonl.
func (o *Options) events(h *history) {
	f, err := o.FS.OpenFile(filepath.Join(h.dir, step.EventsFile), os.O_RDONLY, 0)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			h.find(Finding{File: step.EventsFile, Severity: Warning, What: err.Error()})
		}
		return
	}
	defer f.Close()
	all, err := io.ReadAll(f)
	if err != nil {
		h.find(Finding{File: step.EventsFile, Severity: Warning, What: err.Error()})
		return
	}
	_, bad := sound(all)
	if h.live && len(bad) == 1 && bad[0].last {
		return // it is just being written
	}
	for i, b := range bad {
		if i == maxFaults {
			break
		}
		h.find(Finding{File: step.EventsFile, Line: b.line, Offset: b.offset, Severity: Warning, What: "the line cannot be read",
			Repair: "put the line aside: it is for looking only", fix: events})
	}
}

// badLine is a line that cannot be read.
type badLine struct {
	place
	data []byte
	last bool // nothing follows
}

// sound divides lines of JSON into those that can be read and the others.
func sound(all []byte) (good []byte, bad []badLine) {
	at := int64(0)
	for n := 1; len(all) > 0; n++ {
		line, rest, whole := bytes.Cut(all, []byte{'\n'})
		if whole && json.Valid(line) {
			good = append(append(good, line...), '\n')
		} else {
			bad = append(bad, badLine{place{n, at}, line, len(rest) == 0})
		}
		at += int64(len(all) - len(rest))
		all = rest
	}
	return good, bad
}

// temps finds what interrupted writes have left in a directory.
func (o *Options) temps(id *types.UUID, dir string) (out []Finding) {
	entries, err := o.FS.ReadDir(dir)
	if err != nil {
		return nil // whoever needs the directory says so
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp~") && o.old(e) {
			file := name
			if id == nil {
				file = filepath.Join(dir, name)
			}
			out = append(out, Finding{UUID: id, File: file, Severity: Note, What: "left by a write that was interrupted", Repair: "remove it", fix: temps})
		}
	}
	return out
}
