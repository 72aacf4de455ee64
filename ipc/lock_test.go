package ipc

import (
	"errors"
	"testing"

	"rnix/types"
)

// TestLockThatCannotBeNotedIsNotTaken says that a daemon whose lock file cannot hold its note does not
// run: others could not tell who it is.
func TestLockThatCannotBeNotedIsNotTaken(t *testing.T) {
	l, err := TakeLock("/dev/full", "")
	if err == nil {
		_ = l.Close()
	}
	if !errors.Is(err, types.ErrStorage) {
		t.Errorf("got %v, want an error of code %s", err, types.ErrStorage)
	}
}
