package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The controllers that bounds need, and the files of a cgroup that say which it has and which those in it have.
const (
	controllerMemory = "memory"
	controllerPids   = "pids"

	hasFile   = "cgroup.controllers"
	givesFile = "cgroup.subtree_control"
)

// leafName is the cgroup that daemons move into with their wardens: one that gives controllers to those in it can have no process itself. All
// daemons below one cgroup share it, and the last one to end moves out again.
const leafName = "rnix.leaf"

// leaf is what delegate has found.
type leaf struct {
	home  string   // the cgroup below which that of a manager is made
	inner string   // the one that the daemon is in now
	gives []string // controllers that cgroups in home have
	why   string   // that it does not give both
}

// delegate has the cgroup of a place give its controllers to those in it, where that is the daemon's to do, and says what it gives. It moves this
// program, its parent and whatever else runs this very program, and never anything else. The caller holds lockDir of homeIn.
func delegate(p place) leaf {
	at := leaf{home: homeIn(p), inner: p.dir}
	wanted := intersect(listed(at.home, hasFile), []string{controllerMemory, controllerPids})
	at.gives = intersect(listed(at.home, givesFile), wanted)
	if len(wanted) < 2 {
		at.why = "the cgroup " + at.home + " has " + haveNot(wanted) + " (a hierarchy of cgroup version 1 has it, or the cgroup above does not give it)"
	}
	if len(at.gives) == len(wanted) {
		return at
	}
	if err := at.give(wanted); err != nil {
		at.why = err.Error()
	}
	at.gives = intersect(listed(at.home, givesFile), wanted)
	return at
}

// homeIn returns the cgroup below which that of a manager is to be made.
func homeIn(p place) string {
	if above := filepath.Dir(p.dir); filepath.Base(p.dir) == leafName && unix.Access(filepath.Join(above, memberFile), unix.W_OK) == nil {
		return above
	}
	return p.dir
}

// give has home give controllers.
func (l *leaf) give(wanted []string) error {
	top := false
	if _, err := os.Lstat(filepath.Join(l.home, "cgroup.type")); errors.Is(err, fs.ErrNotExist) {
		top = true // the root of all cgroups may have processes and give controllers
	}
	if !top && l.inner == l.home {
		if err := l.enterLeaf(); err != nil {
			return err
		}
	}
	var err error
	for range 20 { // one that was just being born in it, or that ends, is still in it
		if err = give(l.home, wanted); !errors.Is(err, unix.EBUSY) {
			break
		}
		if !top {
			if err := l.move(); err != nil {
				return errors.Join(err, l.leave())
			}
		}
		time.Sleep(5 * time.Millisecond) // it ends at once, and there is nothing to wait for
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the cgroup %s does not give its controllers: %w", l.home, err), l.leave())
	}
	return nil
}

// give has a cgroup give controllers to those in it.
func give(dir string, controllers []string) error {
	if len(controllers) == 0 {
		return nil
	}
	return poke(filepath.Join(dir, givesFile), "+"+strings.Join(controllers, " +"))
}

// enterLeaf moves the daemon, and what runs the same program, out of home into a leaf below it.
func (l *leaf) enterLeaf() error {
	if unit := filepath.Base(l.home); slices.Contains([]string{".service", ".scope", ".slice"}, filepath.Ext(unit)) && !delegated(l.home) {
		return fmt.Errorf("the cgroup %s belongs to systemd, which has not given it away: its unit needs Delegate=yes", l.home)
	}
	if err := l.strangers(); err != nil { // before anything is made
		return err
	}
	inner := filepath.Join(l.home, leafName)
	if err := os.Mkdir(inner, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	l.inner = inner
	if err := l.move(); err != nil {
		return errors.Join(err, l.leave())
	}
	return nil
}

// delegated reports whether systemd says of a cgroup that what is in it is not its own.
func delegated(dir string) bool {
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// strangers refuses to go on where another program is in home.
func (l *leaf) strangers() error {
	for _, pid := range membersOf(l.home) {
		if !sameProgram(pid) {
			return fmt.Errorf("other programs are in the cgroup of the daemon, %s, such as %s, and are not moved: it must be alone there", l.home, nameOf(pid))
		}
	}
	return nil
}

// move moves what is in home into the leaf.
func (l *leaf) move() error {
	const rounds = 100 // each finds who was born meanwhile
	for range rounds {
		if err := l.strangers(); err != nil {
			return err
		}
		members := membersOf(l.home)
		if len(members) == 0 {
			return nil
		}
		for _, pid := range members {
			if err := enter(l.inner, pid); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("new processes come into the cgroup %s faster than they are moved", l.home)
}

// leave moves what is in the leaf back, and removes it. It does nothing while there is another cgroup, which may need what home gives.
func (l *leaf) leave() error {
	if l.inner == l.home || filepath.Base(l.inner) != leafName {
		return nil
	}
	entries, _ := os.ReadDir(l.home)
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() && e.Name() != leafName }) {
		return nil
	}
	if gives := intersect(listed(l.home, givesFile), []string{controllerMemory, controllerPids}); len(gives) > 0 {
		if err := poke(filepath.Join(l.home, givesFile), "-"+strings.Join(gives, " -")); err != nil {
			return err
		}
	}
	for range 100 {
		members := membersOf(l.inner)
		for _, pid := range members {
			if err := enter(l.home, pid); err != nil {
				return err
			}
		}
		if len(members) == 0 {
			break
		}
	}
	inner := l.inner
	l.inner = l.home
	return cgroup(inner).remove(time.Now().Add(emptying))
}

// lockDir keeps other daemons from doing the same with a cgroup, until what it returns is called.
func lockDir(dir string) (unlock func()) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	for err = unix.Flock(fd, unix.LOCK_EX); errors.Is(err, unix.EINTR); err = unix.Flock(fd, unix.LOCK_EX) {
	}
	return func() { _ = unix.Close(fd) }
}

// sameProgram reports whether a process runs the very program that this one is: the daemon, its warden, a client. All of them hide from other programs of an
// ordinary user, and so from each other; one that hides counts if it has our user and is called as we are. One that lies about its name is only moved.
func sameProgram(pid int) bool {
	if pid == os.Getpid() {
		return true
	}
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false
	}
	proc := "/proc/" + strconv.Itoa(pid)
	other, err := os.Stat(proc + "/exe")
	if !errors.Is(err, fs.ErrPermission) {
		return err == nil && os.SameFile(self, other)
	}
	name, _ := os.ReadFile(proc + "/comm") // it may be gone
	return ownerOf(pid) == os.Geteuid() && slices.Contains(ownNames(), strings.TrimSpace(string(name)))
}

// ownNames are what the kernel calls processes of this program.
func ownNames() []string {
	const most = 15 // bytes that it keeps of a name
	names := []string{wardenName}
	if self, err := os.Executable(); err == nil {
		name := filepath.Base(self)
		names = append(names, name[:min(len(name), most)])
	}
	return names
}

// ownerOf returns the effective user of a process; -1 = it is gone.
func ownerOf(pid int) int {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(text)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			if f := strings.Fields(ids); len(f) > 1 {
				if uid, err := strconv.Atoi(f[1]); err == nil {
					return uid
				}
			}
		}
	}
	return -1
}

// nameOf names a process for people.
func nameOf(pid int) string {
	if pid == 0 {
		return "one outside of this container"
	}
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm") // it may be gone
	return strings.TrimSpace(string(name)) + " (PID " + strconv.Itoa(pid) + ")"
}

// membersOf returns who is in a cgroup itself; 0 is one that is not seen here. Those that have ended are left out.
func membersOf(dir string) (out []int) {
	for _, f := range listed(dir, memberFile) {
		pid, err := strconv.Atoi(f)
		if s, ok := statOf(pid); err == nil && (pid == 0 || ok && !s.dead()) {
			out = append(out, pid)
		}
	}
	return out
}

// listed returns what a file of a cgroup lists.
func listed(dir, file string) []string {
	text, _ := os.ReadFile(filepath.Join(dir, file)) // what cannot be read lists nothing
	return strings.Fields(string(text))
}

// intersect returns what of a is in b.
func intersect(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// haveNot says which controllers are missing.
func haveNot(has []string) string {
	switch {
	case slices.Contains(has, controllerPids):
		return "no controller memory"
	case slices.Contains(has, controllerMemory):
		return "no controller pids"
	}
	return "no controllers memory and pids"
}
