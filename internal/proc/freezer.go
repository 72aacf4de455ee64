package proc

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/durable"
	"rnix/internal/sandbox"
)

// Freezer names what makes the OS children of a paused process stand still. Part of the wire format.
type Freezer string

// The freezers, best first.
const (
	FreezerCgroup2 Freezer = "cgroup2" // cgroup.freeze of the unified hierarchy
	FreezerCgroup1 Freezer = "cgroup1" // the freezer hierarchy; who is frozen there cannot even be killed
	FreezerSignals Freezer = "signals" // SIGSTOP to each process
)

// controls are the files of a cgroup by which it is frozen, and how it says that it is.
var controls = map[Freezer]struct{ file, freeze, thaw, says, frozen string }{
	FreezerCgroup2: {"cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"},
	FreezerCgroup1: {"freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"},
}

// memberFile is the file of a cgroup that lists its processes, and takes new ones.
const memberFile = "cgroup.procs"

// place is a cgroup in which cages can be made: the one that we are in ourselves.
type place struct {
	freezer Freezer
	mount   mount
	dir     string
}

// mount is where a hierarchy is mounted, and which part of it.
type mount struct{ root, point string }

// dir returns the directory of a cgroup, as /proc/<pid>/cgroup names it. ok is false if it is not in
// the part that is mounted.
func (m mount) dir(cgroup string) (string, bool) {
	rest, below := strings.CutPrefix(cgroup, strings.TrimSuffix(m.root, "/"))
	if !below || rest != "" && rest[0] != '/' || strings.Contains(cgroup, "/..") || strings.HasSuffix(cgroup, " (deleted)") {
		return "", false
	}
	return filepath.Join(m.point, rest), true
}

// hierarchy is what freezes in a line of /proc/<pid>/cgroup or /proc/<pid>/mountinfo: "" = nothing.
func hierarchy(v2 bool, controllers string) Freezer {
	if v2 {
		return FreezerCgroup2
	}
	for name := range strings.SplitSeq(controllers, ",") {
		if name == "freezer" {
			return FreezerCgroup1
		}
	}
	return ""
}

// cgroupsOf returns the cgroups of a process that can freeze, from its /proc/<pid>/cgroup.
func cgroupsOf(text string) map[Freezer]string {
	out := make(map[Freezer]string)
	for line := range strings.Lines(text) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(part) != 3 {
			continue
		}
		if f := hierarchy(part[0] == "0" && part[1] == "", part[1]); f != "" {
			out[f] = part[2]
		}
	}
	return out
}

// placesIn returns the places of a process, best first, from its /proc/<pid>/cgroup and mountinfo.
func placesIn(cgroups, mountinfo string) []place {
	var out []place
	own := cgroupsOf(cgroups)
	for _, f := range []Freezer{FreezerCgroup2, FreezerCgroup1} {
		cgroup, ok := own[f]
		if !ok {
			continue
		}
		for line := range strings.Lines(mountinfo) {
			head, tail, _ := strings.Cut(line, " - ")
			at, of := strings.Fields(head), strings.Fields(tail)
			if len(at) < 5 || len(of) < 3 || !strings.HasPrefix(of[0], "cgroup") || hierarchy(of[0] == "cgroup2", of[2]) != f {
				continue
			}
			m := mount{durable.MountPath(at[3]), durable.MountPath(at[4])}
			if dir, ok := m.dir(cgroup); ok {
				out = append(out, place{f, m, dir})
			}
		}
	}
	return out
}

// cages is how a manager makes cages. It does not change once a child was frozen.
type cages struct {
	places   func() []place
	mkdir    func(string) error
	rmdir    func(string) error
	patience time.Duration // how long it may take until all in a cage stand still, or until it is empty
}

func newCages() cages {
	return cages{
		places:   ownPlaces,
		mkdir:    func(dir string) error { return os.Mkdir(dir, 0o755) },
		rmdir:    unix.Rmdir,
		patience: 2 * time.Second,
	}
}

// ownPlaces returns where we may make cages now. It asks each time: we may have been moved.
func ownPlaces() []place {
	cgroups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var out []place
	for _, p := range placesIn(string(cgroups), string(mountinfo)) {
		if unix.Access(p.dir, unix.W_OK|unix.X_OK) == nil && unix.Access(filepath.Join(p.dir, memberFile), unix.W_OK) == nil {
			out = append(out, p)
		}
	}
	return out
}

// FreezerHere returns what Manager.Freeze uses first, as things stand. Where that fails for a child,
// the next one is taken for it, down to signals.
func FreezerHere() Freezer { return best(ownPlaces()) }

func best(places []place) Freezer {
	for _, p := range places {
		return p.freezer
	}
	return FreezerSignals
}

// ice is what makes the processes of one child stand still.
type ice struct {
	mu sync.Mutex // taken before Child.mu, and held while files are written: who waits wants the opposite
	// +checklocks:mu
	cage *cage // nil = there is none, and signals were used if it is frozen
}

// freezeLocked makes all processes of the child stand still and returns how many.
//
// +checklocks:c.ice.mu
func (c *Child) freezeLocked() int {
	c.openLocked() // one that could not be removed
	if c.cradle != "" {
		return freezeBorn(c)
	}
	if c.ice.cage == nil {
		for _, p := range c.manager.cages.places() {
			g, n, err := c.encage(p)
			c.ice.cage = g
			if err == nil {
				return n
			}
			c.manager.log.Debug("a child cannot be frozen by a cgroup", "pid", c.process.Pid, "cgroup", p.dir, "error", err)
			if g != nil {
				break
			}
		}
	}
	n := len(c.tree.freeze())
	c.Signal(unix.SIGSTOP)
	return n
}

// freezeBorn is freezeLocked for a child that was born in a cgroup.
//
// +checklocks:c.ice.mu
func freezeBorn(c *Child) int {
	_, at := c.manager.births.home()
	c.ice.cage = &cage{Freezer: FreezerCgroup2, Dir: string(c.cradle), born: true, shut: keeps(c.plan, at), cages: c.manager.cages, homes: make(map[int]string)}
	n, err := c.ice.cage.fill(c.tree, at)
	if err != nil { // they stay frozen: what hangs in the kernel stands still as soon as it comes out of that
		c.manager.log.Warn("not all processes of a child stand still yet", "pid", c.process.Pid, "cgroup", string(c.cradle), "error", err)
		n = len(c.cradle.pids())
	}
	return n
}

// keeps reports whether what runs by a plan cannot write to a hierarchy of cgroups, and so stays where it was born.
func keeps(plan sandbox.Plan, at place) bool {
	return plan.Rung != sandbox.RungNone && !plan.Policy.Allows(at.mount.point, sandbox.AccessWrite)
}

// thawLocked lets the child's processes go on.
//
// +checklocks:c.ice.mu
func (c *Child) thawLocked() {
	if c.ice.cage != nil && !c.ice.cage.open {
		c.openLocked()
		return // nobody was sent a SIGSTOP, and who was stopped by others stays so
	}
	c.tree.thaw()
	c.Signal(unix.SIGCONT)
}

// openLocked lets everybody out of the child's cage, if it has one.
//
// +checklocks:c.ice.mu
func (c *Child) openLocked() {
	if c.ice.cage == nil {
		return
	}
	if err := c.ice.cage.remove(); err != nil {
		c.manager.log.Warn("cgroup of a frozen child cannot be removed", "path", c.ice.cage.Dir, "error", err)
		return
	}
	c.ice.cage = nil
}

// loosen lets who was killed in the child's cage die of it.
func (c *Child) loosen() {
	c.ice.mu.Lock()
	defer c.ice.mu.Unlock()
	if c.ice.cage != nil {
		c.ice.cage.thaw()
	}
}

// melt removes the child's cage and the cgroup that it was born in, if it has any.
func (c *Child) melt() {
	c.ice.mu.Lock()
	defer c.ice.mu.Unlock()
	c.openLocked()
	leaveCradle(c)
}
