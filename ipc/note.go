package ipc

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/types"
)

// noteFile is a small file in a data directory by which a daemon tells commands something when it is not there any more. It is named as it is
// there.
type noteFile[T any] string

func (n noteFile[T]) write(op, dataDir string, note T, d durable.Class) error {
	b, err := json.Marshal(note)
	if err != nil {
		return types.Errorf(types.ErrInternal, op, "", "encode: %w", err)
	}
	return durable.WriteFile(durable.OS, filepath.Join(dataDir, string(n)), b, d)
}

// read returns the note; false if there is none that can be read.
func (n noteFile[T]) read(dataDir string) (note T, ok bool) {
	b, err := durable.ReadFile(durable.OS, filepath.Join(dataDir, string(n)))
	return note, err == nil && json.Unmarshal(b, &note) == nil
}

func (n noteFile[T]) clear(dataDir string) error {
	if err := durable.OS.Remove(filepath.Join(dataDir, string(n))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return types.Errorf(types.ErrStorage, "Start", string(n), "%w", err)
	}
	return nil
}
