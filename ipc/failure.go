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

// startFailure is the file in the data directory that says why a daemon did not start. It is there until one does.
const startFailure = "start-failure.json"

// StartFailure is why the last daemon did not start.
type StartFailure struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// WriteStartFailure notes why a daemon does not start.
func WriteStartFailure(dataDir, text string) error {
	b, err := json.Marshal(StartFailure{time.Now(), text})
	if err != nil {
		return types.Errorf(types.ErrInternal, "Start", "", "encode: %w", err)
	}
	return durable.WriteFile(durable.OS, filepath.Join(dataDir, startFailure), b, durable.Durable)
}

// ReadStartFailure returns why the last daemon did not start; false if it did, or if nobody has noted anything.
func ReadStartFailure(dataDir string) (f StartFailure, ok bool) {
	b, err := durable.ReadFile(durable.OS, filepath.Join(dataDir, startFailure))
	return f, err == nil && json.Unmarshal(b, &f) == nil && f.Text != ""
}

// ClearStartFailure notes that a daemon has started.
func ClearStartFailure(dataDir string) error {
	if err := durable.OS.Remove(filepath.Join(dataDir, startFailure)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return types.Errorf(types.ErrStorage, "Start", startFailure, "%w", err)
	}
	return nil
}
