package ipc

import (
	"time"

	"rnix/internal/durable"
)

// startFailure is the file in the data directory that says why a daemon did not start. It is there until one does.
const startFailure = noteFile[StartFailure]("start-failure.json")

// StartFailure is why the last daemon did not start.
type StartFailure struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// WriteStartFailure notes why a daemon does not start.
func WriteStartFailure(dataDir, text string) error {
	return startFailure.write("Start", dataDir, StartFailure{time.Now(), text}, durable.Durable)
}

// ReadStartFailure returns why the last daemon did not start; false if it did, or if nobody has noted anything.
func ReadStartFailure(dataDir string) (f StartFailure, ok bool) {
	f, ok = startFailure.read(dataDir)
	return f, ok && f.Text != ""
}

// ClearStartFailure notes that a daemon has started.
func ClearStartFailure(dataDir string) error { return startFailure.clear(dataDir) }
