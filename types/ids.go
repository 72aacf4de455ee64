// Package types holds the words that every other package uses: identifiers, states, signals,
// exit statuses, errors and the two records that people watch (syscall events and log entries).
// It knows nothing of processes, devices or the wire.
package types

import (
	"fmt"
	"strconv"

	"github.com/google/uuid"
)

// PID names one run of a process. PIDs start at 1, only grow, and are never reused, not even
// over daemon restarts. 0 is the kernel itself: the parent of what a person starts.
type PID uint64

// String returns the PID in decimal.
func (p PID) String() string { return strconv.FormatUint(uint64(p), 10) }

// ParsePID reads a decimal PID of at least 1.
func ParsePID(s string) (PID, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a PID", s)
	}
	return PID(n), nil
}

// UUID names one history: the files of a process, over all its runs. It is a version 7 UUID, so
// UUIDs sort by creation time.
type UUID = uuid.UUID

// NewUUID returns a fresh version 7 UUID. It panics only if the system has no randomness.
func NewUUID() UUID { return uuid.Must(uuid.NewV7()) }

// FD is a file descriptor of one process. Tables start at 3; 0, 1 and 2 stay reserved for
// standard input, output and error.
type FD int

// FirstFD is the lowest descriptor that Open hands out.
const FirstFD FD = 3

// CtxID names a conversation in the context manager.
type CtxID uint64

// PGID names a process group.
type PGID uint64

// TID names a thread inside its process.
type TID uint64

// CoID names a coroutine inside its process.
type CoID uint64
