package step

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// TombFile is deleted.jsonl, in the data directory. Part of the on-disk format.
const TombFile = "deleted.jsonl"

// Tomb is a line of deleted.jsonl: what is left of a history that was deleted.
type Tomb struct {
	V      int        `json:"v"`
	UUID   types.UUID `json:"uuid"`
	PID    types.PID  `json:"pid"` // of its last run
	Name   string     `json:"name,omitempty"`
	Intent string     `json:"intent,omitempty"` // its first line
	DeadAt time.Time  `json:"dead_at,omitzero"`
	At     time.Time  `json:"at"` // when it was deleted
	Why    string     `json:"why"`

	// What it has used counts for the budget of its parent, and for what everything has cost.
	Parent   types.UUID `json:"parent_uuid,omitzero"`
	Agent    string     `json:"agent,omitempty"`
	Spending []Spending `json:"spending,omitempty"`
	// Origin is that of a fork. Failed are its own failed calls; FailedCounted says that all of them are known, which earlier versions did not write.
	Origin        types.UUID `json:"origin_uuid,omitzero"`
	Failed        int        `json:"failed_calls,omitempty"`
	FailedCounted bool       `json:"failed_calls_counted,omitempty"`
}

// NewTomb returns what is left of a history that is deleted now.
func NewTomb(p *ProcInfo, why string) Tomb {
	failed, counted := p.OwnFailed()
	return Tomb{UUID: p.UUID, PID: p.PID, Name: p.Name, Intent: FirstLine(p.Intent), DeadAt: p.DeadAt, At: time.Now().UTC(), Why: why,
		Parent: p.ParentUUID, Agent: p.Agent, Spending: p.Spending, Origin: p.OriginUUID, Failed: failed, FailedCounted: counted}
}

// Tombs is deleted.jsonl: which histories were deleted, when and why. A line is written before the
// files go, so a history that is still there may have one, which then means nothing. Safe for
// concurrent use.
type Tombs struct {
	fs   durable.FS
	path string

	mu sync.Mutex // leaf; held while a line is written
	// +checklocks:mu
	tombs map[types.UUID]Tomb // the latest of each
	// +checklocks:mu
	broken error // the file cannot be gone on with
}

// OpenTombs reads deleted.jsonl; a missing file is an empty one. A file that is damaged is read up to
// there: Problem says so, and Add refuses.
func OpenTombs(fsys durable.FS, dataDir string) *Tombs {
	t := &Tombs{fs: fsys, path: filepath.Join(dataDir, TombFile), tombs: map[types.UUID]Tomb{}}
	t.mu.Lock()
	defer t.mu.Unlock()
	f, err := fsys.OpenFile(t.path, os.O_RDONLY, 0)
	if err != nil {
		if !missing(err) {
			t.broken = types.Errorf(types.ErrStorage, "OpenTombs", t.path, "%w", err)
		}
		return t
	}
	defer f.Close()
	tombs := t.tombs
	_, damage, err := durable.Scan(f, t.path, func(l durable.Line) error {
		tomb, err := t.decode(l)
		if err == nil {
			tombs[tomb.UUID] = tomb
		}
		return err
	})
	switch {
	case err != nil:
		t.broken = err
	case damage != nil && !damage.Tail:
		t.broken = types.Errorf(types.ErrStorage, "OpenTombs", t.path, "%w; move the file away to go on without it", damage)
	}
	return t
}

func (t *Tombs) decode(l durable.Line) (tomb Tomb, err error) {
	if err := json.Unmarshal(l.Data, &tomb); err != nil || tomb.V < 1 || tomb.UUID == (types.UUID{}) {
		return tomb, types.Errorf(types.ErrStorage, "OpenTombs", t.path, "line %d is not about a deleted history", l.Number)
	}
	if tomb.V > FormatVersion {
		return tomb, types.Errorf(types.ErrVersion, "OpenTombs", t.path, "line %d was written in format %d by a newer program, this one reads up to %d", l.Number, tomb.V, FormatVersion)
	}
	return tomb, nil
}

// Add says durably that a history is deleted.
func (t *Tombs) Add(tomb Tomb) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken != nil {
		return t.broken
	}
	tomb.V = FormatVersion
	b, err := encodeJSON(t.path, &tomb)
	if err != nil {
		return err
	}
	log, _, err := durable.OpenLog(t.fs, t.path, nil) // cuts off what a crash has torn
	if err != nil {
		return err
	}
	if err := errors.Join(log.Append(b), log.Sync(), log.Close()); err != nil {
		return err
	}
	t.tombs[tomb.UUID] = tomb
	return nil
}

// Find returns what is left of a history.
func (t *Tombs) Find(id types.UUID) (Tomb, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tomb, ok := t.tombs[id]
	return tomb, ok
}

// List returns all that was deleted, the latest last.
func (t *Tombs) List() []Tomb {
	t.mu.Lock()
	out := make([]Tomb, 0, len(t.tombs))
	for _, tomb := range t.tombs {
		out = append(out, tomb)
	}
	t.mu.Unlock()
	slices.SortFunc(out, func(a, b Tomb) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return slices.Compare(a.UUID[:], b.UUID[:])
	})
	return out
}

// Problem says why the file cannot be read to its end, nil if it can.
func (t *Tombs) Problem() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

// FirstLine returns the first line of a text, cut where it is long.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return clip(strings.TrimSpace(line))
}

// gonePID returns the highest PID of the histories that are archived or deleted. It is asked when the
// counter is lost: what cannot be read then is an error, since a PID might be used twice.
func (l *Local) gonePID() (types.PID, error) {
	highest := types.PID(0)
	raise := func(p types.PID) {
		if p < durable.MaxCounter { // else the file is damaged
			highest = max(highest, p)
		}
	}
	tombs := OpenTombs(l.fs, l.dir)
	for _, t := range tombs.List() {
		raise(t.PID)
	}
	archives, err := OpenArchives(l.fs, l.dir)
	if err != nil {
		return 0, err
	}
	defer archives.Close()
	for _, a := range archives.List() {
		raise(a.Info.PID)
	}
	err = tombs.Problem()
	if problems := archives.Problems(); err == nil && len(problems) > 0 {
		err = types.Errorf(types.ErrStorage, "PIDs", ArchiveDir(l.dir), "the counter of PIDs is lost, and an archive that may hold the highest cannot be read; move it away: %s", problems[0])
	}
	return highest, err
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// encodeJSON returns v as a line.
func encodeJSON(path string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Write", path, "%w", err)
	}
	return append(b, '\n'), nil
}
