package proc

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/durable"
	"rnix/types"
)

// births makes the cgroups in which children are born, where the unified hierarchy is ours to make some: below the cgroup of the daemon one of
// the manager, in that one for each agent, and in that one for each child. What a child starts is in its cgroup whatever it does, and an
// agent's are frozen, killed and found by them. Safe for concurrent use.
type births struct {
	registry registry
	log      *slog.Logger
	places   func() []place // where cgroups can be made

	mu sync.Mutex
	// +checklocks:mu
	tried bool
	at    place             // +checklocks:mu
	own   *nursery          // +checklocks:mu
	of    map[types.PID]int // +checklocks:mu
	leaf  leaf              // +checklocks:mu
	gives []string          // +checklocks:mu
	// +checklocks:mu
	why string // that agents' cgroups do not have all controllers; see delegate

	bounding bounding
}

// nursery is the cgroup of a manager. Its exported fields are a file beside the registrations, written before the cgroup is made and removed
// after it. Part of the on-disk format.
type nursery struct {
	Version int      `json:"v"`
	Boot    string   `json:"boot"`
	Daemon  identity `json:"daemon"`
	Dir     string   `json:"dir"`

	file string
}

// nurserySuffix is that of the files of nurseries.
const nurserySuffix = ".cgroup"

// emptying is how long what was killed in a cgroup may take to end.
const emptying = 2 * time.Second

// home returns the cgroup that all of m's children are born in; "" = there is none. The first call makes it, and proves that a child can be
// born there.
func (b *births) home() (cgroup, place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.tried {
		b.tried = true
		b.why = "the daemon can make no cgroups in a hierarchy of version 2"
		for _, p := range b.places() {
			if p.freezer != FreezerCgroup2 {
				continue
			}
			unlock := lockDir(homeIn(p))
			l := delegate(p)
			n, err := b.found(l.home)
			unlock()
			if err != nil {
				b.log.Info("children are not born in cgroups", "below", l.home, "error", err)
				continue
			}
			b.own, b.at, b.leaf, b.gives, b.why = n, place{p.freezer, p.mount, l.inner}, l, l.gives, l.why
			if err := give(n.Dir, l.gives); err != nil {
				b.gives, b.why = nil, "the cgroup "+n.Dir+" does not give its controllers: "+err.Error()
			}
			if b.why != "" {
				b.log.Debug("not all bounds of what agents use can be enforced", "because", b.why)
			}
			break
		}
	}
	if b.own == nil {
		return "", place{}
	}
	return cgroup(b.own.Dir), b.at
}

// CgroupOf returns the directory of the cgroup of a manager, below which each agent has one that its children are born in; "" = there is none, since the
// unified hierarchy is not ours to make cgroups in, or is too old (before Linux 5.14).
func CgroupOf(m *Manager) string {
	home, _ := m.births.home()
	return string(home)
}

// found makes the cgroup of a manager below another one, and proves that it does what is needed.
func (b *births) found(below string) (*nursery, error) {
	token := rand.Text()
	n := &nursery{
		Version: entryVersion, Boot: b.registry.boot, Daemon: b.registry.daemon,
		Dir:  filepath.Join(below, fmt.Sprintf("rnix.%d.%s", os.Getpid(), token)),
		file: filepath.Join(b.registry.dir, token+nurserySuffix),
	}
	text, err := json.Marshal(n)
	if err == nil {
		err = durable.WriteFile(durable.OS, n.file, append(text, '\n'), durable.Cached)
	}
	if err != nil {
		return nil, err
	}
	pruneEmpty(below)
	if err = os.Mkdir(n.Dir, 0o755); err == nil {
		err = proveBirth(cgroup(n.Dir))
	}
	if err != nil {
		return nil, errors.Join(err, n.remove())
	}
	return n, nil
}

// pruneEmpty removes what dead managers have left below a cgroup and in which nobody is: their data directories may be gone.
func pruneEmpty(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if m := nurseryName().FindStringSubmatch(e.Name()); m != nil {
			if pid, err := strconv.Atoi(m[1]); err == nil {
				if _, there := statOf(pid); !there {
					_ = cgroup(filepath.Join(dir, e.Name())).prune() // somebody is in it
				}
			}
		}
	}
}

// noProgram is the path of none: it is longer than paths can be. So says the last call of a start, and no step before it fails with that error.
var noProgram = strings.Repeat("/", 4096)

// provesStart reports whether the error of a start of noProgram shows that all before the last call was done.
func provesStart(err error) bool { return errors.Is(err, syscall.ENAMETOOLONG) }

// proveBirth reports why no process can be born in a cgroup, or be frozen and killed by it.
func proveBirth(g cgroup) error {
	for _, name := range []string{killFile, controls[FreezerCgroup2].file} {
		if _, err := os.Lstat(filepath.Join(string(g), name)); err != nil {
			return err
		}
	}
	sys := &syscall.SysProcAttr{}
	shut, err := bornIn(sys, g)
	if err != nil {
		return err
	}
	defer shut()
	// The child says that this is no program, so it was born.
	if _, _, err = startProcess(noProgram, []string{"/"}, &os.ProcAttr{Env: []string{}, Files: []*os.File{nil, nil, nil}, Sys: sys}); provesStart(err) {
		return g.kill()
	}
	if of, ok := errors.AsType[*fs.PathError](err); ok { // the path says nothing
		err = of.Err
	}
	return errors.Join(err, errors.ErrUnsupported)
}

// cradle makes the cgroup of a child of an agent, whose token names it; "" = it has none, and is frozen and found in other ways.
func (b *births) cradle(owner types.PID, token string) cgroup {
	home, _ := b.home()
	if home == "" {
		return ""
	}
	agent := home.agent(owner)
	dir := filepath.Join(string(agent), token)
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) { // its first child; or somebody has cleared the hierarchy
		if err = os.MkdirAll(string(agent), 0o755); err == nil {
			err = os.Mkdir(dir, 0o755)
		}
	}
	if err != nil {
		b.log.Warn("no cgroup can be made for a child; it is found and frozen without one", "process", owner, "cgroup", dir, "error", err)
		return ""
	}
	b.mu.Lock()
	b.of[owner]++
	b.mu.Unlock()
	return cgroup(dir)
}

// agent returns the cgroup of an agent in that of the manager.
func (g cgroup) agent(owner types.PID) cgroup {
	return cgroup(filepath.Join(string(g), strconv.FormatUint(uint64(owner), 10)))
}

// above returns the cgroup of the agent that that of a child is in.
func (g cgroup) above() cgroup {
	if g == "" {
		return ""
	}
	return cgroup(filepath.Dir(string(g)))
}

// over ends all that is in an agent's cgroup, and removes it.
func (b *births) over(owner types.PID) {
	b.mu.Lock()
	made := b.of[owner] > 0
	delete(b.of, owner)
	own := b.own
	b.mu.Unlock()
	if made && own != nil {
		b.clear(cgroup(own.Dir).agent(owner))
	}
	b.bounding.unbound(owner)
}

// clear ends all that is in a cgroup, and removes it.
func (b *births) clear(g cgroup) {
	if unix.Rmdir(string(g)) == nil { // nobody is in it, as when most children end
		return
	}
	if err := errors.Join(g.kill(), g.remove(time.Now().Add(emptying))); err != nil {
		b.log.Warn("the cgroup of children that have ended cannot be removed; the end of the daemon tries again", "cgroup", string(g), "error", err)
	}
}

// close ends all that is in the cgroup of the manager, and removes it. There are no children any more.
func (b *births) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tried = true
	if b.own == nil {
		return
	}
	defer lockDir(b.leaf.home)()
	if err := b.own.remove(); err != nil {
		b.log.Warn("the cgroup of the daemon's children cannot be removed; the next daemon tries again", "cgroup", b.own.Dir, "error", err)
	}
	b.own = nil
	if err := b.leaf.leave(); err != nil {
		b.log.Info("the daemon stays in a cgroup below the one that it was started in", "cgroup", b.leaf.inner, "error", err)
	}
}

// remove ends all that is in a nursery and removes it, with its file.
func (n *nursery) remove() error {
	g := cgroup(n.Dir)
	if err := errors.Join(g.kill(), g.remove(time.Now().Add(emptying))); err != nil {
		return err
	}
	if err := os.Remove(n.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// unborn reports whether a child may not have been started because of its cgroup, and could be without. A bound is no reason.
func unborn(err error) bool {
	for _, no := range []error{syscall.EACCES, syscall.EPERM, syscall.EBUSY, syscall.EBADF, syscall.ENODEV, syscall.ENOENT, syscall.EOPNOTSUPP, syscall.EINVAL, syscall.ENOSYS} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}
