package sandbox

import (
	"slices"
	"strings"
)

// Starts says what a git may start. The values are ordered: a later one has more.
type Starts int

// What a git may start.
const (
	StartsNothing Starts = iota // no process at all
	StartsGit                   // itself, and the programs of GitCall.Programs
	StartsTools                 // programs of the system and of the user, for the filters of the user's own configuration
)

// GitCall is one run of git by Rnix itself. Its paths are absolute, clean and without symbolic links, as far as they exist.
type GitCall struct {
	Starts   Starts
	Read     []string // trees that it reads, besides those of the system; nil = all. A link that has come on the way to one since is not followed: see Files
	Write    []string // trees that it writes
	Programs []string // programs that it starts besides itself
	Tools    []string // with StartsTools: trees with programs, besides those of the system
	// Agents are trees in which agents may have written: with StartsTools no program there is executed, nor in a tree that contains one of them.
	Agents []string
}

// GitProgram is a git, as it is installed.
type GitProgram struct {
	Path   string   // without symbolic links
	Core   string   // the directory of its own programs: git --exec-path
	Loader string   // the dynamic linker that the kernel starts it with; empty = it needs none
	Libs   []string // the shared libraries that the linker loads for it, without symbolic links
}

// systemPrograms are trees of programs that only an administrator writes.
var systemPrograms = strings.Fields(`/bin /sbin /lib /lib32 /lib64 /usr/bin /usr/sbin /usr/lib /usr/lib32 /usr/lib64 /usr/libexec /usr/share
	/usr/local/bin /usr/local/sbin /usr/local/lib /usr/local/libexec /opt /nix/store /gnu/store /snap`)

// Policy returns what a git may do in a call: it reads everything, or what the call says, has no network, and writes and starts what the call says.
func (c GitCall) Policy(git GitProgram) Policy {
	p := Policy{
		Version: Version, Level: LevelLandlock, Net: NetNone, Read: []string{"/"}, Single: c.Starts == StartsNothing,
		Write: append([]string{"/dev/null"}, c.Write...), Run: []string{git.Path},
	}
	if git.Loader != "" {
		p.Run = append(p.Run, git.Loader)
	}
	if c.Read != nil {
		p.Read = slices.Concat([]string{"/etc"}, systemPrograms, p.Run, git.Libs, c.Read)
		if git.Core != "" {
			p.Read = append(p.Read, git.Core)
		}
	}
	if c.Starts == StartsNothing {
		return p
	}
	p.Run = append(append(p.Run, strings.TrimSuffix(git.Core, "/")+"/git"), c.Programs...)
	if c.Starts == StartsGit {
		return p
	}
	for _, tree := range slices.Concat(systemPrograms, []string{git.Core}, c.Tools) {
		if !slices.ContainsFunc(slices.Concat(private, c.Agents), func(a string) bool { return within(tree, a) || within(a, tree) }) {
			p.Run = append(p.Run, tree)
		}
	}
	return p
}

// Files returns the file system by which the plan of a call is made: in what it alone reads no link is followed. Agents can put one there at any time,
// and the system then refuses to open the box.
func (c GitCall) Files(f Files) Files { return sealed{f, c.Read} }

// sealed is a file system in which nothing on the way to some paths is a link.
type sealed struct {
	Files
	paths []string
}

// Kind returns what a path is.
func (s sealed) Kind(path string) Kind {
	kind := s.Files.Kind(path)
	if kind == Link && slices.ContainsFunc(s.paths, func(p string) bool { return within(p, path) }) {
		return Other
	}
	return kind
}

// HomeTools returns the places below a home where tools are installed.
func HomeTools(home string) []string { return below(home, homeTools) }
