package workspace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/internal/durable"
	"rnix/internal/moved"
	"rnix/types"
)

// recordVersion is the format of the records that this program writes.
const recordVersion = 2

// Stored is a snapshot that is kept. Part of the on-disk format.
type Stored struct {
	Version int `json:"v"`
	Ref
	Rescue  bool      `json:"rescue,omitempty"` // what was there before Restore, RestorePaths or Remove; Step is 0
	Away    bool      `json:"away,omitempty"`   // a rescue of a directory that was put away: it goes when that comes back
	Pin     string    `json:"pin,omitempty"`    // git: the reference that holds it, in the store of the repository
	Base    string    `json:"base,omitempty"`   // git: the commit that was checked out; "" = there was none
	Commit  string    `json:"commit,omitempty"` // git: what the reference of a rescue points to, and in format 1 that of a step: a commit over Base
	Common  string    `json:"common,omitempty"` // git: the directory of the repository
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"` // that were new in it
	Limited string    `json:"limited,omitempty"`
	Time    time.Time `json:"time"`

	name string // of its file, without the suffix; from list
}

// archive is the records of all histories.
type archive struct {
	dir string
	log *slog.Logger
}

// same reports whether a directory still holds what is stored.
func (s *Stored) same(st *state) bool {
	return s.Kind == st.Kind && s.ID == st.ID && s.Root == st.Root
}

// stepName returns the name of a step in files and references; the names sort as the numbers do.
func stepName(step int) string {
	s := strconv.Itoa(step)
	return strings.Repeat("0", max(0, 6-len(s))) + s
}

// freeName returns the name for one more snapshot of a step. A step can have several: before calls that can be taken back, one after it, and
// again after a crash in it. Whatever a record names stays. Part of the on-disk format.
func (k *archive) freeName(id types.UUID, step int) string {
	name := stepName(step)
	for n := 2; ; n++ {
		if _, err := os.Lstat(filepath.Join(k.recordDir(id), name+".json")); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d", stepName(step), n)
	}
}

const rescuePrefix = "rescue-"

func (k *archive) recordDir(id types.UUID) string {
	return filepath.Join(k.dir, id.String())
}

// record writes the record of a snapshot.
func (k *archive) record(id types.UUID, name string, s *Stored) error {
	dir := k.recordDir(id)
	if err := mkdir(dir); err != nil {
		return err
	}
	b, err := json.Marshal(s)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Take", dir, "%w", err)
	}
	return durable.WriteFile(durable.OS, filepath.Join(dir, name+".json"), append(b, '\n'), durable.Cached)
}

// list is Keeper.List.
func (k *archive) list(id types.UUID) ([]Stored, error) {
	dir := k.recordDir(id)
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "List", dir, "%w", err)
	}
	var out []Stored
	var bad []error
	for _, n := range names {
		if strings.HasPrefix(n.Name(), ".") || !strings.HasSuffix(n.Name(), ".json") {
			continue // a crash in the middle of a write
		}
		s, err := readRecord(filepath.Join(dir, n.Name()))
		if err != nil {
			bad = append(bad, err)
			continue
		}
		s.name, s.Root = strings.TrimSuffix(n.Name(), ".json"), moved.Here(filepath.Dir(filepath.Dir(k.dir)), s.Root)
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b Stored) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Step, b.Step)) })
	return out, errors.Join(bad...)
}

// readRecord reads one record. The error names the file and what to do.
func readRecord(path string) (s Stored, err error) {
	b, err := durable.ReadFile(durable.OS, path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil || s.Version < 1 || s.ID == "" {
		return s, types.Errorf(types.ErrStorage, "List", path, "not the record of a snapshot (%d bytes): move it away", len(b))
	}
	if s.Version > recordVersion {
		return s, types.Errorf(types.ErrVersion, "List", path, "written in format %d by a newer program, this one reads up to %d", s.Version, recordVersion)
	}
	return s, nil
}

// load reads what the newest snapshot of a history is. The caller has the turn.
func (k *archive) load(h *history, id types.UUID) error {
	if h.loaded {
		return nil
	}
	all, err := k.list(id)
	if err != nil {
		k.log.Warn("records of snapshots cannot be read; the next one counts as changed", "uuid", id, "error", err)
	}
	for i := range all {
		if !all[i].Rescue {
			h.last = &all[i]
		}
	}
	h.loaded = true
	return nil
}

// find returns the record of a snapshot, for what a Ref does not say. ok is false if there is none.
func (k *archive) find(ref Ref) (s Stored, ok bool) {
	all, _ := k.list(ref.UUID) // what cannot be read is as good as absent here
	for _, s := range slices.Backward(all) {
		if s.ID == ref.ID && s.Kind == ref.Kind {
			return s, true
		}
	}
	return Stored{}, false
}
