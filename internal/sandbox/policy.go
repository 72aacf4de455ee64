// Package sandbox confines commands. A Policy says what a command may read, write and reach; Probe proves which of two
// mechanisms (rungs) this host can enforce it with, bubblewrap or Landlock; MakePlan turns policy and host into a Plan, which is
// data; Plan.Open makes a Box, which says what to start. The package starts nothing itself.
//
// In both rungs the last step is a program that is made for this command (package prelude): it gives up what the command must not have,
// and becomes the command. Every decision is made by pure functions; that program does as the plan says.
package sandbox

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/hosts"
	"rnix/types"
)

// Version is the version of a Policy's form.
const Version = 1

// Level says how a command must be confined. The levels are ordered: a later one is stricter. Landlock is below auto, which is bubblewrap where that works:
// it does not protect names in the work directory, so it must not be what tightens auto.
type Level string

// The levels.
const (
	LevelOff      Level = "off"      // not at all
	LevelLandlock Level = "landlock" // by Landlock and seccomp
	LevelAuto     Level = "auto"     // by the best rung that is proved on this host
	LevelBwrap    Level = "bwrap"    // by bubblewrap and seccomp
)

var levels = []Level{LevelOff, LevelLandlock, LevelAuto, LevelBwrap}

// Net says which network a command has. The values are ordered: a later one has more.
type Net string

// The networks.
const (
	NetNone  Net = "none"  // none but, under bubblewrap, a loopback of its own
	NetHosts Net = "hosts" // the hosts that the policy names, by a proxy at Proxy; under bubblewrap only
	NetOpen  Net = "open"  // the network of the host
)

// Proxy is the port of 127.0.0.1, as the command finds it, at which its proxy is where Net is hosts.
const Proxy = 3128

// Road is the port of 127.0.0.1 at which a box with a network of its own reaches the daemon, where it is given that.
const Road = 3127

var nets = []Net{NetNone, NetHosts, NetOpen}

// Policy says what a command may do. The longest of the paths that contain a file decides about the file: Write lets it be read
// and written, Read lets it be read and executed, Hide refuses both, and what no path contains is refused. Of one path in several
// lists Hide counts first, then Write. Protect grants nothing: it takes the right to write from a path, from which its name is
// also held if nothing has it yet, so that the command cannot create it. The zero Policy is invalid; see Everything and Standard.
type Policy struct {
	Version int      `json:"version" yaml:"version"`
	Level   Level    `json:"level" yaml:"level"`
	Read    []string `json:"read,omitempty" yaml:"read,omitempty"`       // absolute, clean paths of files or trees
	Write   []string `json:"write,omitempty" yaml:"write,omitempty"`     // likewise
	Hide    []string `json:"hide,omitempty" yaml:"hide,omitempty"`       // likewise
	Protect []string `json:"protect,omitempty" yaml:"protect,omitempty"` // likewise; may not exist
	Net     Net      `json:"net" yaml:"net"`
	Hosts   []string `json:"hosts,omitempty" yaml:"hosts,omitempty"`     // for NetHosts: rules and presets of package hosts
	Sockets []string `json:"sockets,omitempty" yaml:"sockets,omitempty"` // Unix sockets or trees of them; "/" is all
	Limits  Limits   `json:"limits,omitzero" yaml:"limits,omitempty"`
	// Run are the files and trees that alone may be executed, if Read or Write contain them too; nil = all that can be read. Only Landlock
	// can limit it.
	Run []string `json:"run,omitzero" yaml:"run,omitempty"`
	// Single lets the command start no other process; threads it may have.
	Single bool `json:"single,omitempty" yaml:"single,omitempty"`
}

// Limits bound what a command uses. 0 is no limit.
type Limits struct {
	Processes int64 `json:"processes,omitempty" yaml:"processes,omitempty"`   // processes and threads at once; bubblewrap only
	Memory    int64 `json:"memory,omitempty" yaml:"memory,omitempty"`         // bytes of data of each process (RLIMIT_DATA)
	OpenFiles int64 `json:"open_files,omitempty" yaml:"open_files,omitempty"` // open files of each process
	FileSize  int64 `json:"file_size,omitempty" yaml:"file_size,omitempty"`   // bytes of each file that it writes
	CPU       int64 `json:"cpu,omitempty" yaml:"cpu,omitempty"`               // seconds of processor time of each process
}

// Everything returns the policy that allows everything and confines nothing. Meet with it changes nothing.
func Everything() Policy {
	return Policy{Version: Version, Level: LevelOff, Write: []string{"/"}, Net: NetOpen, Sockets: []string{"/"}}
}

// Check returns an INVALID error that names the field, its value and what is wanted, or nil.
func (p Policy) Check() error {
	bad := func(field, format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, "sandbox", field, format, args...)
	}
	switch {
	case p.Version != Version:
		return bad("version", "invalid version %d: want %d", p.Version, Version)
	case !slices.Contains(levels, p.Level):
		return bad("level", "invalid level %q: want off, auto, landlock or bwrap", p.Level)
	case !slices.Contains(nets, p.Net):
		return bad("net", "invalid network %q: want none, hosts or open", p.Net)
	case p.Net != NetHosts && len(p.Hosts) > 0:
		return bad("hosts", "hosts are named, but net is %s; set net to hosts, or remove them", p.Net)
	}
	for _, list := range []struct {
		field string
		paths []string
	}{{"read", p.Read}, {"write", p.Write}, {"hide", p.Hide}, {"protect", p.Protect}, {"sockets", p.Sockets}, {"run", p.Run}} {
		for _, path := range list.paths {
			if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
				return bad(list.field, "invalid path %q: want an absolute path without \"..\", such as /srv/project", path)
			}
		}
	}
	if _, err := hosts.ParseAll(p.Hosts); err != nil {
		return err
	}
	for _, l := range p.Limits.named() {
		if *l.value < 0 {
			return bad("limits", "invalid limit %s: %d; want a positive number, or 0 for no limit", l.name, *l.value)
		}
	}
	return nil
}

type namedLimit struct {
	name  string
	value *int64
}

// named returns all limits in a fixed order.
func (l *Limits) named() []namedLimit {
	return []namedLimit{{"processes", &l.Processes}, {"memory", &l.Memory}, {"open_files", &l.OpenFiles}, {"file_size", &l.FileSize}, {"cpu", &l.CPU}}
}

// Canonical returns the one form of all policies that allow the same: sorted, without what changes nothing. Paths that are
// read-only below a writable one are in Protect.
func (p Policy) Canonical() Policy { return Meet(p, p) }

// sortPaths sorts so that a directory comes before what is in it, and right before it, and removes doubles.
func sortPaths(paths []string) []string {
	paths = slices.Clone(paths)
	slices.SortFunc(paths, comparePaths)
	return slices.Compact(paths)
}

// comparePaths orders paths by their parts: what is below a directory comes right behind it. No path has a NUL.
func comparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch x, y := a[i], b[i]; {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		default:
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

// within says whether path is root or below it.
func within(path, root string) bool {
	return path == root || root == "/" || strings.HasPrefix(path, root) && path[len(root)] == '/'
}
