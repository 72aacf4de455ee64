package fsck

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

// pidFile holds the PID counter. Part of the on-disk format.
const pidFile = "pid"

// old reports whether nobody can be writing a file any more: in a data directory that is open, one is
// believed to be written for a minute.
func (o *Options) old(e fs.DirEntry) bool {
	if o.Store == nil {
		return true
	}
	st, err := e.Info()
	return err == nil && time.Since(st.ModTime()) > time.Minute
}

// index compares the index with the directories: what the open journal has in memory, and its file. A file
// that nobody has open and that was not closed is made anew by the next start, and is not looked at.
func (o *Options) index(all []*history) (out []Finding) {
	var lists []map[types.UUID]step.ProcInfo
	if o.Store != nil {
		memory := map[types.UUID]step.ProcInfo{}
		for _, p := range o.Store.Index().List() {
			memory[p.UUID] = p
		}
		lists = append(lists, memory)
	}
	if listed, ok := o.listed(); ok {
		lists = append(lists, listed)
	}
	there := map[types.UUID]bool{}
	for _, h := range all {
		there[h.id] = true
		for _, listed := range lists {
			if what := h.listed(listed); what != "" {
				out = append(out, Finding{UUID: &h.id, File: step.IndexFile, Severity: Warning, What: what, Repair: "enter what the journal says", fix: info})
				break
			}
		}
	}
	for _, listed := range lists {
		for id := range listed {
			if o.Only == nil && !there[id] && o.gone(id) {
				there[id] = true // once is enough
				out = append(out, Finding{UUID: &id, File: step.IndexFile, Severity: Warning, What: "it has a history that has no directory", Repair: "take it out", fix: unlist})
			}
		}
	}
	return out
}

// listed says how a list contradicts the files of a history; empty = it does not.
func (h *history) listed(list map[types.UUID]step.ProcInfo) string {
	got, ok := list[h.id]
	switch {
	case h.info == nil || h.live || h.state.Seq == 0:
	case !ok:
		return "it does not have this history"
	case got.PID != h.info.PID || got.Step != h.info.Step || got.State != h.info.State || got.Suspended != h.info.Suspended:
		return fmt.Sprintf("it says PID %d, step %d, %s, and %s says PID %d, step %d, %s", got.PID, got.Step, got.State, step.InfoFile, h.info.PID, h.info.Step, h.info.State)
	}
	return ""
}

// gone reports whether a history has no directory.
func (o *Options) gone(id types.UUID) bool {
	_, err := o.FS.Stat(step.Dir(o.DataDir, id))
	return errors.Is(err, fs.ErrNotExist)
}

// unlist takes a history out of the index that has no directory. One that only the file has, since the
// start has left it out, is entered first, so that the file says that it is gone.
func (m *mender) unlist(id types.UUID) error {
	if !m.gone(id) {
		return types.Errorf(types.ErrConflict, "Fsck", id.String(), "it has a directory now")
	}
	if err := m.Store.Index().Put(step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id}}); err != nil {
		return err
	}
	return m.Store.Index().Delete(id)
}

// listed returns what index.jsonl says, or false if it cannot be relied on anyhow.
func (o *Options) listed() (map[types.UUID]step.ProcInfo, bool) {
	path := filepath.Join(o.DataDir, step.IndexFile)
	f, err := o.FS.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	out, closed := map[types.UUID]step.ProcInfo{}, false
	_, damage, err := durable.Scan(f, path, func(l durable.Line) error {
		var line struct {
			Info   *step.ProcInfo `json:"info"`
			Gone   *types.UUID    `json:"gone"`
			Closed bool           `json:"closed"`
		}
		if json.Unmarshal(l.Data, &line) != nil {
			return types.Errorf(types.ErrStorage, "Fsck", path, "not a line of an index")
		}
		if closed = line.Closed; line.Info != nil {
			out[line.Info.UUID] = *line.Info
		}
		if line.Gone != nil {
			delete(out, *line.Gone)
		}
		return nil
	})
	return out, err == nil && damage == nil && (closed || o.Store != nil)
}

// counter compares the PID counter with the highest PID that a history has.
func (o *Options) counter(all []*history) []Finding {
	highest := types.PID(0)
	for _, h := range all {
		highest = max(highest, h.pid)
	}
	if highest == 0 {
		return nil
	}
	what := ""
	next, err := durable.ReadCounter(o.FS, filepath.Join(o.DataDir, pidFile))
	switch code := types.CodeOf(err); {
	case code == types.ErrNotFound, code == types.ErrVersion, err == nil && next > uint64(highest): // a missing one is made anew above every PID
		return nil
	case errors.Is(err, durable.ErrNotCounter):
		what = durable.ErrNotCounter.Error()
	case err != nil:
		what = err.Error()
	default:
		what = fmt.Sprintf("it would go on at %d, and a history has PID %d: PIDs could be used twice", next, highest)
	}
	return []Finding{{File: filepath.Join(o.DataDir, pidFile), Severity: Error, What: what, Repair: fmt.Sprintf("go on at %d", uint64(highest)+1), fix: counter}}
}

// raise makes the PID counter go on behind the highest PID.
func (m *mender) raise(all []*history) error {
	highest := types.PID(0)
	for _, h := range all {
		highest = max(highest, h.pid)
	}
	if m.RaisePID != nil {
		return m.RaisePID(uint64(highest) + 1)
	}
	path := filepath.Join(m.DataDir, pidFile)
	if _, err := m.keep(path); err != nil {
		return err
	}
	c, _, err := durable.MendCounter(m.FS, path, 1, uint64(highest)+1)
	if err != nil {
		return err
	}
	_, err = c.Next() // what is written is that it was handed out
	return err
}

// keep copies a file before it is changed, and returns the name of the copy. A missing one needs none.
func (m *mender) keep(path string) (name string, err error) {
	b, err := durable.ReadFile(m.FS, path)
	if types.CodeOf(err) == types.ErrNotFound {
		return "", nil
	}
	if err == nil {
		name = m.free(path + ".before-repair-" + time.Now().UTC().Format("20060102T150405"))
		err = durable.WriteFile(m.FS, name, b, durable.Durable)
	}
	return name, err
}

// remove removes a file, which may be gone already.
func (m *mender) remove(path string) error {
	if err := m.FS.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return types.Errorf(types.ErrStorage, "Fsck", path, "%w", err)
	}
	return nil
}

// free returns a name that no file has: name, or name with a number.
func (m *mender) free(name string) string {
	for n, try := 1, name; ; n++ {
		if _, err := m.FS.Stat(try); errors.Is(err, fs.ErrNotExist) || n > 1000 {
			return try
		}
		try = fmt.Sprintf("%s-%d", name, n)
	}
}
