package daemon

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/kernel"
	"rnix/types"
)

// room sees to it that agents leave some of the disk free on which their histories are: with less, all of them wait, with their
// commands and their clocks, and nothing new starts. No record says so: a daemon that starts again finds out by itself.
type room struct {
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
	text   string
	reason string // what processes wait for
	over   chan struct{}
}

// roomEvery is how often it is looked how much of the disk is free.
const roomEvery = 2 * time.Second

func newRoom(dir string, disk config.Disk) *room {
	return &room{dir: dir, disk: disk, measure: statfs, readOnly: durable.OnReadOnly}
}

func statfs(dir string) (size, free int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	block := uint64(max(st.Bsize, 1))
	return int64(min(st.Blocks*block, math.MaxInt64)), int64(min(st.Bavail*block, math.MaxInt64)), nil
}

// look compares what is free with what should be, and reports whether agents have to wait now, and whether that is new. now
// returns what the user has configured at this moment, which may be less than when the daemon started; it may be nil.
func (r *room) look(now func() config.Disk) (short, changed bool) {
	if r.readOnly(r.dir) {
		return true, r.begin(kernel.WaitsForWrite, fmt.Sprintf("the file system of %s is read-only", r.dir))
	}
	size, free, err := r.measure(r.dir)
	if err != nil {
		return r.why() != "", false // as it was
	}
	was := r.reason() == kernel.WaitsForRoom
	keep := r.disk.Keep(size)
	if now != nil && (was || free < keep) {
		keep = min(keep, now().Keep(size))
	}
	if was {
		keep += keep / 16 // not to and fro
	}
	if free < keep {
		return true, r.begin(kernel.WaitsForRoom, fmt.Sprintf("%s has %s free, and %s must stay free (disk.min_free)", r.dir, config.Bytes(free).Short(), config.Bytes(keep).Short()))
	}
	return false, r.begin("", "")
}

// begin notes what processes wait for from now on, "" = nothing, and reports whether that is new.
func (r *room) begin(reason, text string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.short == nil && reason == "":
		return false
	case r.short != nil && r.short.reason == reason:
		r.short.text = text
		return false
	}
	if r.short != nil {
		close(r.short.over)
		r.short = nil
	}
	if reason != "" {
		r.short = &shortage{text, reason, make(chan struct{})}
	}
	return true
}

// reason is what processes wait for; "" = nothing.
func (r *room) reason() string {
	reason, _ := r.waits()
	return reason
}

// why says why agents wait for the disk; empty = they do not.
func (r *room) why() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.short == nil {
		return ""
	}
	return r.short.text
}

// waits is what each process waits for, and what is closed when there is room again; nil = there is.
func (r *room) waits() (reason string, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.short == nil {
		return "", nil
	}
	return r.short.reason, r.short.over
}

// refusal is why nothing new starts; nil = it may.
func (r *room) refusal(op string) error {
	why := r.why()
	if why == "" {
		return nil
	}
	if r.reason() == kernel.WaitsForWrite {
		return types.Errorf(types.ErrStorage, op, "", "cannot start: %s; %s", why, writeAgain)
	}
	return types.Errorf(types.ErrExhausted, op, "", "cannot start: %s; running agents wait until there is room: see rnix du and rnix gc, or lower the limit", why)
}

// What helps where the data directory is read-only.
const (
	writable   = "make it writable (mount -o remount,rw), or set RNIX_DATA_DIR to another directory"
	writeAgain = writable + "; histories can be read meanwhile, and agents resume when it is"
)

// onReadOnly says of a call that the data directory did not take what it had to write; any other error goes through as it is.
func onReadOnly(d *Daemon, err error) error {
	if !durable.ReadOnly(err) || strings.Contains(err.Error(), writeAgain) || !durable.OnReadOnly(d.places.DataDir) {
		return err
	}
	return types.Errorf(types.ErrStorage, "Write", d.places.DataDir, "nothing can be changed: the file system of the data directory is read-only; %s", writeAgain)
}

// waitsOf answers the kernel's question what a process has to wait for.
func waitsOf(d *Daemon) func(*kernel.Process) (string, <-chan struct{}) {
	return func(p *kernel.Process) (string, <-chan struct{}) {
		if reason, changed := d.room.waits(); changed != nil {
			return reason, changed
		}
		return platformer{d}.unconfirmed(p)
	}
}

// watchRoom looks at the disk until ctx ends, and makes the commands of all processes stand still while there is too little room.
func watchRoom(ctx context.Context, d *Daemon) {
	tick := time.NewTicker(roomEvery)
	defer tick.Stop()
	told := ""
	for {
		short, _ := d.room.look(func() config.Disk { return diskNow(d) })
		if !short {
			wakeCut(ctx, d)
		}
		reason := d.room.reason()
		changed := reason != told
		if told = reason; changed && short {
			d.log.Warn("agents wait for "+reason, "why", d.room.why())
		} else if changed {
			d.log.Info("the disk can be written again; agents resume")
		}
		if changed || short { // somebody may have gone on from disk meanwhile
			for _, i := range d.kernel.List() {
				if i.State < types.StateZombie && d.kernel.Hold(i.PID, short) != nil {
					continue // it has ended meanwhile
				}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// diskNow is what the user has configured now; what it was at the start, as long as that has a mistake.
func diskNow(d *Daemon) config.Disk {
	if cfg := ownConfig(d); len(cfg.MistakesAtStart()) == 0 {
		return cfg.Disk
	}
	return d.room.disk
}
