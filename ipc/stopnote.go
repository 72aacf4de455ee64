package ipc

import (
	"time"

	"rnix/internal/durable"
)

// stopNote is the file in the data directory that says that the last daemon was stopped, and did not crash. It is there until the next one begins.
const stopNote = noteFile[StopNote]("stopped.json")

// StopNote is how the last daemon was stopped. Part of the on-disk format.
type StopNote struct {
	Time time.Time `json:"time"`
	By   string    `json:"by"` // a command, or what else has stopped it, in words
}

// WriteStopNote notes that the daemon of a data directory is being stopped, and by what.
func WriteStopNote(dataDir, by string) error {
	return stopNote.write("Shutdown", dataDir, StopNote{time.Now(), by}, durable.Cached)
}

// ReadStopNote returns how the last daemon was stopped; false if it runs, has crashed, or could not note it.
func ReadStopNote(dataDir string) (n StopNote, ok bool) {
	n, ok = stopNote.read(dataDir)
	return n, ok && n.By != ""
}

// ClearStopNote notes that a daemon begins.
func ClearStopNote(dataDir string) error { return stopNote.clear(dataDir) }
