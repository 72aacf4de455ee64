// Package fsck finds what is wrong with the files of histories, says where it is and what can be done,
// and does it if it is told to. The journal is the truth: what is derived from it is made anew, and of
// the journal itself nothing that could be read is ever thrown away. It may run beside a daemon that
// writes. It knows no process and no kernel.
package fsck

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/types"
)

// Severity says how bad a finding is. Part of the wire format.
type Severity string

// The severities.
const (
	Note    Severity = "note"    // harmless, or mended by the next start
	Warning Severity = "warning" // something derived is wrong or lost
	Error   Severity = "error"   // part of a history cannot be read or relied on
)

// Finding is one thing that is wrong. Its tags are part of the wire format.
type Finding struct {
	UUID     *types.UUID `json:"uuid,omitempty"` // nil: it is of no single history
	File     string      `json:"file"`
	Line     int         `json:"line,omitempty"`   // from 1; 0 = it is about the file
	Offset   int64       `json:"offset,omitempty"` // of the line, in bytes
	Severity Severity    `json:"severity"`
	What     string      `json:"what"`
	Repair   string      `json:"repair,omitempty"` // what Repair would do; empty = it cannot help
	Done     string      `json:"done,omitempty"`   // what Repair has done, or why it has not

	fix fix
}

// fix is how a finding is mended.
type fix int

const (
	none     fix = iota
	cut          // the last commit of the journal is torn
	divide       // what is behind a damage goes into a file of its own
	snapshot     // the checkpoint is made anew
	forget       // a file that nothing can be made from is put aside
	info         // proc-info.json and the line of the index are made anew
	events       // lines of events.jsonl that cannot be read are put aside
	temps        // what an interrupted write has left is removed
	unlist       // the index forgets a history that is gone
	counter      // the PID counter goes on behind the highest PID
	ghost        // a history without a record is removed
)

// Store is the journal as the daemon has it. Each store.Store is one.
type Store interface {
	step.Journal
	Index() store.Index
}

// Options say what is looked at. FS and DataDir are required.
type Options struct {
	FS      durable.FS
	DataDir string
	Only    []types.UUID // nil: all histories, and the files that belong to none
	// Store is the open journal of the data directory; nil: nobody has it open. Repair needs it.
	Store Store
	// Live reports whether a history is being written, so that a line which is just being appended is not
	// taken for a torn one; nil: none is.
	Live func(types.UUID) bool
	// Hold keeps a history from being archived, deleted or resumed while it is mended; nil: nobody does that meanwhile.
	Hold func(id types.UUID) (release func(), err error)
	// Snapshots returns an error if a snapshot of a history is not there; nil: it is not asked.
	Snapshots func(id types.UUID, s step.Snapshot) error
	// RaisePID makes the next PID at least min; nil: the counter is not in use, and its file is written.
	RaisePID func(min uint64) error
	// Progress is called before each history; nil: nobody looks.
	Progress func(done, total int, id types.UUID)
}

// Report is what was found.
type Report struct {
	Histories int       `json:"histories"` // looked at
	Records   int       `json:"records"`   // that could be read
	Findings  []Finding `json:"findings"`
}

// Check looks at histories and changes nothing. The error is CANCELLED, or says that the data directory
// cannot be listed; whatever is wrong with a history is a finding.
func Check(ctx context.Context, o Options) (Report, error) {
	r, _, err := check(ctx, &o)
	return r, err
}

// check is Check; it also returns what it knows of each history.
func check(ctx context.Context, o *Options) (Report, []*history, error) {
	ids, err := o.histories()
	if err != nil {
		return Report{}, nil, err
	}
	var r Report
	var all []*history
	for i, id := range ids {
		if ctx.Err() != nil {
			return r, nil, types.Errorf(types.ErrCancelled, "Fsck", o.DataDir, "%w", context.Cause(ctx))
		}
		if o.Progress != nil {
			o.Progress(i, len(ids), id)
		}
		h := o.history(id)
		if len(h.findings) > 0 && o.Only == nil && !o.there(h) {
			continue // it was archived or deleted while it was looked at
		}
		r.Findings = append(r.Findings, h.findings...)
		r.Histories, r.Records = r.Histories+1, r.Records+len(h.records)
		h.records, h.places = nil, nil // a thousand histories must not be in memory at once
		all = append(all, h)
	}
	r.Findings = append(r.Findings, o.index(all)...)
	if o.Only == nil {
		r.Findings = append(r.Findings, o.counter(all)...)
		for _, dir := range []string{o.DataDir, filepath.Dir(step.Dir(o.DataDir, types.UUID{}))} {
			r.Findings = append(r.Findings, o.temps(nil, dir)...)
		}
	}
	return r, all, nil
}

// there reports whether a history has its directory still.
func (o *Options) there(h *history) bool {
	_, err := o.FS.Stat(h.dir)
	return !errors.Is(err, fs.ErrNotExist)
}

// histories returns which histories there are, oldest first.
func (o *Options) histories() ([]types.UUID, error) {
	if o.Only != nil {
		return o.Only, nil
	}
	dir := filepath.Dir(step.Dir(o.DataDir, types.UUID{}))
	entries, err := o.FS.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, types.Errorf(types.ErrStorage, "Fsck", dir, "%w", err)
	}
	var ids []types.UUID
	for _, e := range entries {
		var id types.UUID
		if e.IsDir() && len(e.Name()) == 36 && id.UnmarshalText([]byte(e.Name())) == nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b types.UUID) int { return bytes.Compare(a[:], b[:]) })
	return ids, nil
}

// live reports whether a history is being written.
func (o *Options) live(id types.UUID) bool { return o.Live != nil && o.Live(id) }
