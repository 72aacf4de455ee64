package ipc

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// stopNote is the file in the data directory that says that the last daemon was stopped, and did not crash. It is there until the next one begins.
const stopNote = "stopped.json"

// StopNote is how the last daemon was stopped. Part of the on-disk format.
type StopNote struct {
	Time time.Time `json:"time"`
	By   string    `json:"by"` // a command, or what else has stopped it, in words
}

// WriteStopNote notes that the daemon of a data directory is being stopped, and by what.
func WriteStopNote(dataDir, by string) error {
	b, err := json.Marshal(StopNote{time.Now(), by})
	if err != nil {
		return types.Errorf(types.ErrInternal, "Shutdown", "", "encode: %w", err)
	}
	return durable.WriteFile(durable.OS, filepath.Join(dataDir, stopNote), b, durable.Cached)
}

// ReadStopNote returns how the last daemon was stopped; false if it runs, has crashed, or could not note it.
func ReadStopNote(dataDir string) (n StopNote, ok bool) {
	b, err := durable.ReadFile(durable.OS, filepath.Join(dataDir, stopNote))
	return n, err == nil && json.Unmarshal(b, &n) == nil && n.By != ""
}

// ClearStopNote notes that a daemon begins.
func ClearStopNote(dataDir string) error {
	if err := durable.OS.Remove(filepath.Join(dataDir, stopNote)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return types.Errorf(types.ErrStorage, "Start", stopNote, "%w", err)
	}
	return nil
}
