// Package room sees to it that agents leave some of the disk free on which their histories are.
package room

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/types"
)

// Room sees to it that agents leave some of the disk free on which their histories are: with less, all of them wait, with their
// commands and their clocks, and nothing new starts. No record says so: a daemon that starts again finds out by itself.
type Room struct {
	dir  string
	disk config.Disk // as it was when the daemon started
	// measure returns the size of the disk on which dir is, and how much of it is free, in bytes.
	measure func(dir string) (size, free int64, err error)
	// readOnly reports whether nothing can be written where dir is.
	readOnly func(dir string) bool

	mu    sync.Mutex
	short *shortage // +checklocks:mu
	// +checklocks:mu
	cut []types.UUID // whose records could not be written
}

// shortage is a time in which there is too little room, or in which nothing can be written.
type shortage struct {
	text string
	kind types.SuspendKind // what processes wait for: SuspendNoRoom or SuspendReadOnly
	over chan struct{}
}

// every is how often it is looked how much of the disk is free.
const every = 2 * time.Second

// New returns the room on the disk of a directory. disk is what the user has configured.
func New(dir string, disk config.Disk) *Room {
	return &Room{dir: dir, disk: disk, measure: statfs, readOnly: durable.OnReadOnly}
}

func statfs(dir string) (size, free int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	block := uint64(max(st.Bsize, 1))
	return int64(min(st.Blocks*block, math.MaxInt64)), int64(min(st.Bavail*block, math.MaxInt64)), nil
}

// Look compares what is free with what should be, and reports whether agents have to wait now, and whether that is new. now
// returns what the user has configured at this moment, which may be less than when the daemon started; it may be nil.
func (r *Room) Look(now func() config.Disk) (short, changed bool) {
	if r.readOnly(r.dir) {
		return true, r.begin(types.SuspendReadOnly, fmt.Sprintf("the file system of %s is read-only", r.dir))
	}
	size, free, err := r.measure(r.dir)
	if err != nil {
		return r.Why() != "", false // as it was
	}
	was := r.Kind() == types.SuspendNoRoom
	keep := r.disk.Keep(size)
	if now != nil && (was || free < keep) {
		keep = min(keep, now().Keep(size))
	}
	if was {
		keep += keep / 16 // not to and fro
	}
	if free < keep {
		return true, r.begin(types.SuspendNoRoom, fmt.Sprintf("%s has %s free, and %s must stay free (disk.min_free)", r.dir, config.Bytes(free).Short(), config.Bytes(keep).Short()))
	}
	return false, r.begin("", "")
}

// begin notes what processes wait for from now on, "" = nothing, and reports whether that is new.
func (r *Room) begin(kind types.SuspendKind, text string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.short == nil && kind == "":
		return false
	case r.short != nil && r.short.kind == kind:
		r.short.text = text
		return false
	}
	if r.short != nil {
		close(r.short.over)
		r.short = nil
	}
	if kind != "" {
		r.short = &shortage{text, kind, make(chan struct{})}
	}
	return true
}

// Kind is what processes wait for: types.SuspendNoRoom, types.SuspendReadOnly, or "" = nothing.
func (r *Room) Kind() types.SuspendKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.short == nil {
		return ""
	}
	return r.short.kind
}

// Reason is that in words.
func (r *Room) Reason() string { return types.Suspend(r.Kind()).SuspendReason }

// Why says why agents wait for the disk; empty = they do not.
func (r *Room) Why() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.short == nil {
		return ""
	}
	return r.short.text
}

// Waits is what each process waits for, and what is closed when there is room again; nil = there is.
func (r *Room) Waits() (reason string, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.short == nil {
		return "", nil
	}
	return types.Suspend(r.short.kind).SuspendReason, r.short.over
}

// Refusal is why nothing new starts; nil = it may.
func (r *Room) Refusal(op string) error {
	why := r.Why()
	if why == "" {
		return nil
	}
	if r.Kind() == types.SuspendReadOnly {
		return types.Errorf(types.ErrStorage, op, "", "cannot start: %s; %s", why, WriteAgain)
	}
	return types.Errorf(types.ErrExhausted, op, "", "cannot start: %s; running agents wait until there is room: see rnix du and rnix gc, or lower the limit", why)
}

// What helps where the data directory is read-only.
const (
	Writable   = "make it writable (mount -o remount,rw), or set RNIX_DATA_DIR to another directory"
	WriteAgain = Writable + "; histories can be read meanwhile, and agents resume when it is"
)

// Disk is what the user had configured when the daemon started.
func (r *Room) Disk() config.Disk { return r.disk }
