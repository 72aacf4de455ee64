package step

import (
	"path/filepath"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// PinFile is keep.json, in the directory of a history. Part of the on-disk format.
const PinFile = "keep.json"

// Pin is keep.json: somebody wants this history to stay as it is. It moves with the directory, into an
// archive and out of it.
type Pin struct {
	V     int       `json:"v"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero"` // the last moment for which it holds; zero = for ever
	Note  string    `json:"note,omitempty"`
	// Reprieve says that no person has asked for it: the history was put back from its archive.
	Reprieve bool `json:"reprieve,omitempty"`
}

// Holds reports whether the pin is in force. A nil pin is not.
func (p *Pin) Holds(now time.Time) bool {
	return p != nil && (p.Until.IsZero() || !now.After(p.Until))
}

// WritePin makes keep.json durable. The directory of the history must exist.
func WritePin(fsys durable.FS, dir string, p *Pin) error {
	c := *p
	c.V = FormatVersion
	b, err := encodeJSON(filepath.Join(dir, PinFile), &c)
	if err != nil {
		return err
	}
	return durable.WriteFile(fsys, filepath.Join(dir, PinFile), b, durable.Durable)
}

// ReadPin reads keep.json; nil if the history has none. One that cannot be read is an error: whoever
// would remove the history must take it as pinned.
func ReadPin(fsys durable.FS, dir string) (*Pin, error) {
	p, err := readJSON[Pin](fsys, dir, PinFile)
	if types.CodeOf(err) == types.ErrNotFound {
		return nil, nil
	}
	return p, err
}

// RemovePin removes keep.json durably, and reports whether there was one.
func RemovePin(fsys durable.FS, dir string) (bool, error) {
	path := filepath.Join(dir, PinFile)
	err := fsys.Remove(path)
	if missing(err) {
		return false, nil
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		return false, types.Errorf(types.ErrStorage, "Unpin", path, "%w", err)
	}
	return true, nil
}
