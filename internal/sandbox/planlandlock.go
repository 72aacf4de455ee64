package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// Rule lets a command do something with a file, or with a directory and everything in it. Rules add up.
type Rule struct {
	Path   string `json:"path"`
	Access Access `json:"access"`
	Run    bool   `json:"run,omitempty"` // also execute it
}

// mostRules bounds the rules of one command. Each costs a system call for the command, and memory of the kernel.
const mostRules = 4096

// planLandlock writes the rules of Landlock, which only add rights: what must not be readable within a readable directory is left
// out by naming everything beside it. Within a writable directory that is impossible, since new files there need a rule of the
// directory: a protected path is watched instead, and a hidden one is refused.
func planLandlock(plan *Plan, files Files) error {
	l := landlockRules{plan: plan, files: files}
	for _, p := range plan.Policy.points() {
		if p.path != "/" {
			l.holes = append(l.holes, p.path)
		}
	}
	for _, p := range plan.Policy.points() {
		switch {
		case p.access == AccessNone && p.above == AccessWrite:
			return refuse("cannot hide %s with Landlock: it is in a directory where the command may write; choose another work directory, or install bubblewrap", p.path)
		case p.access == AccessRead && p.above == AccessWrite:
			plan.Watched = append(plan.Watched, p.path)
		case p.access == AccessWrite:
			l.rule(p.path, AccessWrite)
		case p.access == AccessRead:
			l.read(p.path)
		}
	}
	for _, path := range plan.Policy.Run { // what it must not read it cannot execute either: both rights are asked for
		if kind := files.Kind(path); kind == Directory || kind == Other {
			plan.Rules = append(plan.Rules, Rule{path, AccessNone, true})
		}
	}
	if len(plan.Rules) > mostRules {
		return refuse("cannot confine with Landlock: %d rules are needed, and %d are possible; hide fewer paths, or install bubblewrap", len(plan.Rules), mostRules)
	}
	plan.Gaps = append(plan.Gaps,
		"mode and times of files outside can be changed where this user owns them, but not their content",
		"names, sizes and modes of files outside can be seen by a command that knows their paths",
		"command lines of other programs can be seen in /proc",
		"there is no loopback: servers and their clients cannot be tested without an open network",
		"temporary files must be made in TMPDIR: /tmp, /var/tmp and /dev/shm are refused",
		"the number of processes is not bounded, and a process that is left behind is not ended (it stays confined)")
	if len(plan.Watched) > 0 {
		plan.Gaps = append(plan.Gaps, "changes of protected files in the work directory are detected after the command, not prevented: "+strings.Join(plan.Watched, " "))
	}
	if plan.Network {
		plan.Gaps = slices.DeleteFunc(plan.Gaps, func(s string) bool { return strings.HasPrefix(s, "there is no loopback") })
	}
	plan.commonGaps()
	return nil
}

type landlockRules struct {
	plan  *Plan
	files Files
	holes []string // all points: a directory above one of them cannot be given as a whole, unless it is writable
}

func (l *landlockRules) rule(path string, access Access) {
	if kind := l.files.Kind(path); kind == Directory || kind == Other {
		l.plan.Rules = append(l.plan.Rules, Rule{path, access, l.plan.Policy.Run == nil})
	}
}

// read lets a directory be read, except what a point below it says.
func (l *landlockRules) read(dir string) {
	if !slices.ContainsFunc(l.holes, func(h string) bool { return h != dir && within(h, dir) && l.plan.Policy.Access(h) == AccessNone }) {
		l.rule(dir, AccessRead)
		return
	}
	for _, name := range l.files.List(dir) {
		path := filepath.Join(dir, name)
		if !slices.Contains(l.holes, path) && l.files.Kind(path) != Link {
			l.read(path)
		}
	}
}
