package journal

import (
	"regexp"
	"sync"

	"rnix/types"
)

// compact lets go what every cursor has acknowledged. Where nobody ever had a cursor, all is kept.
func (j *Journal) compact() error {
	j.mu.Lock()
	floor, behind := j.floorLocked()
	j.mu.Unlock()
	if !j.store.releases(floor) {
		return nil
	}
	for name, acked := range behind { // the cursor has nothing to do with what stands between: said before it goes
		if err := j.save(name, acked); err != nil {
			return err
		}
	}
	return j.store.release(floor)
}

// floorLocked returns up to which number nobody needs events, and the cursors whose file says less.
//
// +checklocks:j.mu
func (j *Journal) floorLocked() (floor uint64, behind map[string]uint64) {
	floor, behind = j.committed, map[string]uint64{}
	if len(j.saved) == 0 {
		return 0, nil
	}
	for name, acked := range j.saved {
		if c := j.cursors[name]; c != nil {
			if f := j.floorOfLocked(c); f > acked {
				behind[name], acked = f, f
			}
		}
		floor = min(floor, acked)
	}
	return floor, behind
}

// save writes down what a cursor has acknowledged.
func (j *Journal) save(name string, acked uint64) error {
	j.saving.Lock()
	defer j.saving.Unlock()
	j.mu.Lock()
	old := acked <= j.saved[name]
	j.mu.Unlock()
	if old {
		return nil
	}
	if err := j.store.saveCursor(name, acked); err != nil {
		return err
	}
	j.mu.Lock()
	j.saved[name] = max(j.saved[name], acked)
	j.mu.Unlock()
	return nil
}

// cursorName is what a cursor may be called: it is the name of a file.
var cursorName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`) }) // not at the start of every program

func checkName(name string) error {
	if !cursorName().MatchString(name) {
		return types.Errorf(types.ErrInvalid, "Cursor", name, "is no name of a cursor; use up to 64 of a-z, 0-9, - and _")
	}
	return nil
}

// Forget removes a cursor that nobody will open again, so that what it has not acknowledged can go.
// An open one is CONFLICT.
func (j *Journal) Forget(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	j.mu.Lock()
	if j.cursors[name] != nil {
		j.mu.Unlock()
		return types.Errorf(types.ErrConflict, "Forget", name, "the cursor is open")
	}
	delete(j.saved, name)
	j.mu.Unlock()
	return j.store.forget(name)
}
