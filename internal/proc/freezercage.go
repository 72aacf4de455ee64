package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// cage is a cgroup in which the processes of one child stand still. Its exported fields are a file
// beside the child's registration, written before the cgroup is made and removed after it. Part of
// the on-disk format. Not safe for concurrent use.
type cage struct {
	Version int      `json:"v"`
	Token   string   `json:"token"` // of the child
	Boot    string   `json:"boot"`
	Daemon  identity `json:"daemon"`
	Leader  identity `json:"leader"`
	Freezer Freezer  `json:"freezer"`
	Dir     string   `json:"dir"`

	cages cages
	file  string
	homes map[int]string // by pid: cgroups that processes came from, where it is not the one above
	open  bool           // who is inside goes on
	born  bool           // the child was born in it, and it stays; see births
	shut  bool           // nobody can leave it
}

// cageSuffix is that of the files of cages.
const cageSuffix = ".cage"

// cageName is what a cage's cgroup is called: the pids of daemon and child.
var cageName = regexp.MustCompile(`^rnix-[0-9]+-[0-9]+$`)

// encage moves all processes of the child into a new cage at p, in which they stand still, and returns
// how many they are. On an error all are where they were, and go on; a cage that is returned with it
// could not be removed.
func (c *Child) encage(p place) (*cage, int, error) {
	m := c.manager
	g := &cage{
		Version: entryVersion, Token: c.entry.Token, Boot: m.registry.boot, Daemon: m.registry.daemon, Leader: c.entry.Leader,
		Freezer: p.freezer, Dir: filepath.Join(p.dir, fmt.Sprintf("rnix-%d-%d", os.Getpid(), c.process.Pid)),
		cages: m.cages, file: m.registry.cagePath(c.entry.Token), homes: make(map[int]string),
	}
	b, err := json.Marshal(g)
	if err == nil {
		err = durable.WriteFile(durable.OS, g.file, append(b, '\n'), durable.Cached)
	}
	if err == nil {
		if err = g.cages.mkdir(g.Dir); err != nil {
			_ = os.Remove(g.file) // names what is not there, or is not ours
		}
	}
	if err != nil {
		return nil, 0, err
	}
	n, err := g.fill(c.tree, p)
	if err == nil {
		c.tree.claim(g.own(), 0) // who was born inside may have left all that it could be known by
		return g, n, nil
	}
	if stuck := g.remove(); stuck != nil {
		return g, 0, errors.Join(err, stuck)
	}
	return nil, 0, err
}

// fill freezes the cage and moves a tree into it, until it finds nobody who is outside. Who is inside
// cannot fork, and what was forked on the way in is inside too. It returns how many are inside.
func (g *cage) fill(t *tree, p place) (int, error) {
	const unsure = 30 // looks that find nobody: on a busy machine somebody always ends
	until := time.Now().Add(g.cages.patience)
	if err := g.freeze(); err != nil {
		return 0, err
	}
	if g.shut { // who is inside is all that there is
		err := g.still(until)
		inside, _ := g.members()
		return len(inside), err
	}
	for time.Now().Before(until) {
		h := newHunt(t)
		inside, err := g.members()
		if err != nil {
			return 0, err
		}
		fresh := 0
		take := func(id identity) error { fresh++; return g.take(id, p) }
		for _, id := range t.find() {
			if !slices.Contains(inside, id.PID) {
				if err := take(id); err != nil {
					return 0, err
				}
			}
		}
		for range unsure {
			if inside, err = g.members(); err != nil {
				return 0, err
			}
			if sure, err := h.look(inside, take); err != nil {
				return 0, err
			} else if sure {
				break
			}
		}
		if err := g.still(until); err != nil {
			return 0, err
		}
		if fresh == 0 {
			return len(inside), nil
		}
	}
	return 0, types.Errorf(types.ErrTimeout, "Freeze", g.Dir, "new processes come faster than they can be moved, or do not stand still, for %v", g.cages.patience)
}

// take moves one process into the cage. One that has ended is no error.
func (g *cage) take(id identity, p place) error {
	if text, err := os.ReadFile("/proc/" + strconv.Itoa(id.PID) + "/cgroup"); err == nil {
		home, ok := p.mount.dir(cgroupsOf(string(text))[g.Freezer])
		delete(g.homes, id.PID)
		if ok && home != p.dir && home != g.Dir {
			g.homes[id.PID] = home
		}
	}
	if !alive(id) {
		return nil
	}
	if err := enter(g.Dir, id.PID); err != nil {
		return err
	}
	if now, ok := statOf(id.PID); ok && now.identity != id { // its pid was taken by another in the meantime
		delete(g.homes, id.PID)
		return enter(p.dir, id.PID)
	}
	return nil
}

func (g *cage) freeze() error {
	g.open = false
	return poke(filepath.Join(g.Dir, controls[g.Freezer].file), controls[g.Freezer].freeze)
}

// thaw lets all who are inside go on, and die of what they were sent.
func (g *cage) thaw() error {
	err := poke(filepath.Join(g.Dir, controls[g.Freezer].file), controls[g.Freezer].thaw)
	g.open = g.open || err == nil
	return err
}

// still waits until the cgroup says that all in it stand still. It fails with TIMEOUT.
func (g *cage) still(until time.Time) error {
	how := controls[g.Freezer]
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		b, err := os.ReadFile(filepath.Join(g.Dir, how.says))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			if strings.TrimSpace(line) == how.frozen {
				return nil
			}
		}
		if time.Now().After(until) {
			return types.Errorf(types.ErrTimeout, "Freeze", g.Dir, "not all processes stand still after %v", g.cages.patience)
		}
		time.Sleep(pause)                  // version 1 has nothing that one could wait for
		if err := g.freeze(); err != nil { // and who began a vfork at the wrong moment is only frozen by being told again
			return err
		}
	}
}

// members returns the pids of who is in the cage.
func (g *cage) members() ([]int, error) {
	if g.born {
		return cgroup(g.Dir).pids(), nil
	}
	b, err := os.ReadFile(filepath.Join(g.Dir, memberFile))
	var out []int
	for f := range strings.FieldsSeq(string(b)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 0 { // 0 = in a pid namespace that we do not see
			out = append(out, pid)
		}
	}
	return out, err
}

// remove moves all who are inside back to where they came from, one that was born inside to the cgroup
// above, and removes the cage. They are moved while they are frozen, and go on one by one: so none of
// them can fork faster than it is moved. After an error they go on inside, unless they cannot be
// thawed.
func (g *cage) remove() error {
	if g.born {
		return g.release()
	}
	const rounds = 50 // more only if somebody outside puts processes in
	above := filepath.Dir(g.Dir)
	for range rounds {
		inside, _ := g.members() // whatever keeps them from being read keeps it from being removed
		moved := false
		for _, pid := range inside {
			if home := g.homes[pid]; home != "" && enter(home, pid) == nil {
				moved = true
			} else if enter(above, pid) == nil {
				moved = true
			}
		}
		if !moved {
			break
		}
	}
	thawed := g.thaw()
	var err error
	until := time.Now().Add(g.cages.patience)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		err = g.cages.rmdir(g.Dir)
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(until) { // who is dying is still inside
			break
		}
		time.Sleep(pause)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		g.open = true
		return os.Remove(g.file)
	}
	return errors.Join(err, thawed)
}

// release lets all who were born inside go on, and those who had left go back to where they were.
func (g *cage) release() error {
	inside, _ := g.members()
	for _, pid := range inside {
		if home := g.homes[pid]; home != "" {
			_ = enter(home, pid) // it may be gone: then they stay
		}
	}
	return g.thaw()
}

// enter moves a process into a cgroup. One that has ended is no error.
func enter(dir string, pid int) error {
	err := poke(filepath.Join(dir, memberFile), strconv.Itoa(pid))
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// poke writes to a file that is there.
func poke(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (r registry) cagePath(token string) string { return filepath.Join(r.dir, token+cageSuffix) }

// leftCages returns the cages that dead daemons have left, by the tokens of their children, and what
// could not be read, or is not to be touched.
func (r registry) leftCages(how cages) (map[string]*cage, []error) {
	files, err := durable.OS.ReadDir(r.dir)
	if err != nil {
		return nil, nil // the registrations say so
	}
	out := make(map[string]*cage)
	var bad []error
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") || !strings.HasSuffix(f.Name(), cageSuffix) {
			continue
		}
		g, err := r.leftCage(filepath.Join(r.dir, f.Name()), how)
		if err != nil {
			bad = append(bad, err)
		} else if g != nil {
			out[g.Token] = g
		}
	}
	return out, bad
}

// leftCage returns the cage that a file describes; nil if it is gone, or is that of a daemon that lives.
func (r registry) leftCage(path string, how cages) (*cage, error) {
	g := &cage{cages: how, file: path}
	b, err := durable.ReadFile(durable.OS, path)
	if types.CodeOf(err) == types.ErrNotFound {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, g); err != nil {
		return nil, types.Errorf(types.ErrInvalid, "ReapSurvivors", path, "not the registration of a cgroup: %w", err)
	}
	switch {
	case g.Version > entryVersion:
		return nil, types.Errorf(types.ErrVersion, "ReapSurvivors", path, "written by a newer program (version %d, this one reads up to %d)", g.Version, entryVersion)
	case g.Boot == r.boot && (g.Daemon == r.daemon || stays(g.Daemon)):
		return nil, nil
	case g.Boot != r.boot:
		return nil, os.Remove(path)
	case controls[g.Freezer].file == "" || !filepath.IsAbs(g.Dir) || !cageName.MatchString(filepath.Base(g.Dir)):
		return nil, types.Errorf(types.ErrInvalid, "ReapSurvivors", path, "%q is not a cgroup that this program makes; remove the file", g.Dir)
	}
	if _, err := os.Lstat(filepath.Join(g.Dir, controls[g.Freezer].file)); errors.Is(err, fs.ErrNotExist) {
		return nil, os.Remove(path) // the daemon died before it made the cgroup, or after it had removed it
	} else if err != nil {
		return nil, types.Errorf(types.ErrStorage, "ReapSurvivors", path, "cannot look at its cgroup: %w", err)
	}
	return g, nil
}

// own returns who is in the cage and belongs to its child: all but those who are older than it, whom
// somebody else must have put there.
func (g *cage) own() map[identity]bool {
	out := make(map[identity]bool)
	inside, _ := g.members() // who cannot be seen is thawed all the same
	for _, pid := range inside {
		if s, ok := statOf(pid); ok && !s.dead() && g.Leader.Start > 0 && notBefore(s.identity, g.Leader) {
			out[s.identity] = true
		}
	}
	return out
}

// notBefore reports whether a process was not started before another one. The system counts the times in
// hundredths of a second; of the same one, the PIDs decide, which only grow until they begin anew.
func notBefore(a, b identity) bool { return a.Start > b.Start || a.Start == b.Start && a.PID >= b.PID }

// claim makes processes members of a tree, below its root of that index.
func (t *tree) claim(ids map[identity]bool, root int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range ids {
		t.known[id] = root
	}
}
