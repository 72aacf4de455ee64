package proc

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/pattern"
	"rnix/types"
)

// The names of the cgroups that children are born in: of that of their manager, and of all of them below.
var (
	nurseryName = pattern.New(`^rnix\.([0-9]+)\.[A-Z2-7]+$`)
	cradlePath  = pattern.New(`^/.*/rnix\.[0-9]+\.[A-Z2-7]+/[0-9]+/[A-Z2-7]+$`)
)

// cradle returns the cgroup that a child was born in; "" = none, or what cannot be one of ours.
func (e entry) cradle() cgroup {
	if filepath.Clean(e.Cgroup) != e.Cgroup || !cradlePath().MatchString(e.Cgroup) {
		return ""
	}
	return cgroup(e.Cgroup)
}

// leftNurseries returns the cgroups that dead daemons have had their children born in, and what could not be read, or is not to be touched.
func (r registry) leftNurseries() (out []*nursery, bad []error) {
	files, err := durable.OS.ReadDir(r.dir)
	if err != nil {
		return nil, nil // the registrations say so
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") || !strings.HasSuffix(f.Name(), nurserySuffix) {
			continue
		}
		n, err := r.leftNursery(filepath.Join(r.dir, f.Name()))
		if err != nil {
			bad = append(bad, err)
		} else if n != nil {
			out = append(out, n)
		}
	}
	return out, bad
}

// leftNursery returns the nursery that a file describes; nil if it is gone, or is that of a daemon that lives.
func (r registry) leftNursery(path string) (*nursery, error) {
	n := &nursery{file: path}
	b, err := durable.ReadFile(durable.OS, path)
	if types.CodeOf(err) == types.ErrNotFound {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, n); err != nil {
		return nil, types.Errorf(types.ErrInvalid, "ReapSurvivors", path, "not the registration of a cgroup: %w", err)
	}
	switch {
	case n.Version > entryVersion:
		return nil, types.Errorf(types.ErrVersion, "ReapSurvivors", path, "written by a newer program (version %d, this one reads up to %d)", n.Version, entryVersion)
	case n.Boot == r.boot && (n.Daemon == r.daemon || stays(n.Daemon)):
		return nil, nil
	case n.Boot != r.boot:
		return nil, os.Remove(path)
	case !filepath.IsAbs(n.Dir) || filepath.Clean(n.Dir) != n.Dir || !nurseryName().MatchString(filepath.Base(n.Dir)):
		return nil, types.Errorf(types.ErrInvalid, "ReapSurvivors", path, "%q is not a cgroup that this program makes; remove the file", n.Dir)
	}
	if _, err := os.Lstat(filepath.Join(n.Dir, memberFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, os.Remove(path) // the daemon died before it made the cgroup, or after it had removed it
	} else if err != nil {
		return nil, types.Errorf(types.ErrStorage, "ReapSurvivors", path, "cannot look at its cgroup: %w", err)
	}
	return n, nil
}

// still has all in the cgroups stand still: who is to be killed starts nobody else until then.
func still(ns []*nursery) {
	for _, n := range ns {
		_ = poke(filepath.Join(n.Dir, controls[FreezerCgroup2].file), controls[FreezerCgroup2].freeze) // without it they are killed all the same
	}
}

// endNurseries ends what is left in the cgroups of dead daemons, whose registrations say nothing of it, and removes them. killed holds who was
// killed before.
func endNurseries(ns []*nursery, killed map[identity]int) (out []Survivor, bad []error) {
	for _, n := range ns {
		var lost []identity
		for _, id := range cgroup(n.Dir).living() {
			if _, known := killed[id]; !known {
				lost = append(lost, id)
			}
		}
		names := commandsOf(lost)
		if err := n.remove(); err != nil {
			bad = append(bad, types.Errorf(types.ErrInternal, "ReapSurvivors", n.Dir, "cannot end what is in the cgroup of an earlier daemon: %w", err))
			continue
		}
		if len(lost) > 0 {
			out = append(out, Survivor{Command: nameAll(names, lost), Killed: pidsOf(lost)})
		}
	}
	return out, bad
}

// bornOf claims for each root of a tree what is in the cgroup that it was born in.
func bornOf(t *tree, cradles []cgroup) {
	for i, g := range cradles {
		ids := make(map[identity]bool)
		for _, id := range g.living() {
			ids[id] = true
		}
		t.claim(ids, i)
	}
}

// commandsOf returns what the system calls processes, by pid.
func commandsOf(ids []identity) map[int]string {
	of := make([]stat, len(ids))
	for i, id := range ids {
		of[i] = stat{identity: id}
	}
	return commands(of)
}

// nameAll lists the names of some processes, each name once and not too many.
func nameAll(names map[int]string, of []identity) string {
	const most = 8
	var out []string
	for _, id := range of {
		if name := names[id.PID]; name != "" && !slices.Contains(out, name) && len(out) < most {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// commands returns what the system calls processes, by pid.
func commands(of []stat) map[int]string {
	out := make(map[int]string)
	for _, p := range of {
		name, _ := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/comm") // it may be gone
		out[p.PID] = strings.ToValidUTF8(strings.TrimSpace(string(name)), "\uFFFD")
	}
	return out
}
