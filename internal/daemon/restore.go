package daemon

import (
	"fmt"
	"slices"
	"sync"
)

// restore mends what an earlier daemon left outside its histories when it was killed: OS children that
// live on are ended. What it did is kept for `rnix daemon status` and the log; nothing is ever deleted.
func (d *Daemon) restore() {
	survivors, err := d.procs.ReapSurvivors()
	for _, s := range survivors {
		switch {
		case s.Kind == "":
			d.note("ended what had left the commands of agents that started it, at the end of an earlier daemon: %s (processes: %d)", s.Command, len(s.Killed))
		case s.Err != nil:
			d.note("the %s of process %d, left by an earlier daemon, cannot be ended: %s: %v", s.Kind, s.Owner, s.Command, s.Err)
		case len(s.Killed) > 0:
			d.note("ended the %s of process %d, left by an earlier daemon: %s (pids %v)", s.Kind, s.Owner, s.Command, s.Killed)
		}
	}
	if err != nil {
		d.note("children of an earlier daemon: %v", err)
	}
	for _, p := range slices.Concat(d.journal.Mended(), d.journal.Index().Problems()) {
		d.note("%s", p)
	}
}

// note keeps a line about what the start found and mended.
func (d *Daemon) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	d.log.Warn("recovered", "what", line)
	d.notes.mu.Lock()
	defer d.notes.mu.Unlock()
	d.notes.lines = append(d.notes.lines, line)
}

// notes are the lines of what the start found and mended.
type notes struct {
	mu    sync.Mutex
	lines []string // +checklocks:mu
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}
