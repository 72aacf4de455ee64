package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// maxLost is how many commits that nobody else has are looked at. More are a reason to keep a checkout.
const maxLost = 256

// maxDepth is how deep submodules are in each other that are looked into.
const maxDepth = 8

// Place says which checkout is looked at.
type Place struct {
	Dir      string           // its top, absolute
	GitDir   string           // its git directory; not used with StrategyEmpty
	Common   string           // that of the repository; not used but with StrategyWorktreeAdd
	Strategy CloneStrategy    // StrategyWorktreeAdd = the repository stays when the checkout goes; StrategyClone = it goes too
	Runner   EnvCommandRunner // runs git; nil = as Options say

	noted heard    // clone: what Provision has noted of its remote
	home  string   // where it is when nobody removes it; "" = Dir
	gone  []string // submodule: what is removed with it
}

// Look says what a checkout holds that may be nowhere else: of its files, its index, its commits and what
// git keeps for it. It changes nothing, fetches nothing, and runs no program that the repository names.
// The disk is believed rather than git: a file that git does not list is listed all the same, in places
// of submodules too. Links are not followed.
//
// Of a clone the repository goes as well, so Look asks what its remotes have, without the network. A
// commit counts as published if it can be reached from a tip of which one of these is true:
//   - Provision has noted that the remote had it, in a record outside of the checkout;
//   - it is what a remote-tracking branch is at, of a remote that the configuration gives a URL, and
//     the last entry of that branch's log says that a push, or a fetch from that remote, brought it there;
//   - the remote is a directory of this machine, outside of the checkout and with no objects from it,
//     and that repository itself has it now. For such a remote nothing else is believed.
//
// All else is a commit that may be lost, and so is a tag that was neither noted nor is in such a
// directory with the same object. Who writes the log of a branch by hand, or changes a remote for one
// command, can deceive it.
//
// The error is of a git that could not be run, or of ctx: then nobody knows. What git could not answer
// is in Holdings.Unknown, and a reason.
func Look(ctx context.Context, at Place) (Holdings, error) {
	git := runner{run: at.Runner, env: true}
	if at.Runner == nil {
		git.run = execute
	}
	for _, path := range []*string{&at.Dir, &at.GitDir, &at.Common} {
		if *path != "" {
			*path = plumbing.Resolved(*path)
		}
	}
	return git.look(ctx, at, 0)
}

// look is one look at a checkout.
type look struct {
	runner
	ctx   context.Context
	at    Place
	depth int      // of submodules
	where []string // how git is told where it is
	conf  foreign
	h     *Holdings
	err   error // of the first git that could not be run

	tracked map[string]bool   // the files of the index
	links   map[string]string // the places of submodules, and the commits that belong there
	told    bool              // git has said what is in the index, and what is not
}

func (r runner) look(ctx context.Context, at Place, depth int) (Holdings, error) {
	l := &look{runner: r, ctx: ctx, at: at, depth: depth, h: &Holdings{Strategy: at.Strategy}, tracked: map[string]bool{}, links: map[string]string{}}
	if depth == 0 {
		l.h.Worker, _ = Worker(at.Dir)
	}
	if at.Strategy == StrategyEmpty {
		names, err := besides(at.Dir)
		if err != nil {
			return Holdings{}, types.Errorf(types.ErrStorage, "Look", at.Dir, "%w", err)
		}
		l.h.Untracked = names
		return *l.h, nil
	}
	if !l.place() {
		return *l.h, nil
	}
	var err error
	if l.conf, err = r.configOf(ctx, l.where...); err != nil {
		return Holdings{}, err
	}
	l.h.Branch = plumbing.Branch(at.GitDir)
	l.told = l.index() && l.status()
	l.walk()
	l.h.Halfway = plumbing.Halfway(at.GitDir)
	if at.Strategy == StrategyWorktreeAdd {
		l.lock()
		l.ownRefs()
		l.commits()
	} else {
		l.published()
	}
	return *l.h, l.err
}

// unknown notes what could not be told.
func (l *look) unknown(format string, args ...any) {
	l.h.Unknown = append(l.h.Unknown, fmt.Sprintf(format, args...))
}

// run asks git. ok is false if it could not say.
func (l *look) run(args ...string) (out string, ok bool) {
	if l.err != nil {
		return "", false
	}
	b, err := l.git(l.ctx, l.conf.quiet, append(slices.Clone(l.where), args...)...)
	if err == nil {
		return string(b), true
	}
	if failed(err) {
		l.unknown("git cannot say what is in it: %v", err)
		return "", false
	}
	l.err = types.Errorf(types.CodeOf(err), "Look", l.at.Dir, "%w", err)
	return "", false
}

// place says whether the git directory is the one that belongs there.
func (l *look) place() bool {
	gitDir := plumbing.Dir(l.at.Dir)
	if l.at.Strategy == StrategyClone {
		if gitDir == "" || gitDir != l.at.GitDir {
			l.unknown("its .git is not the repository that was made there")
			return false
		}
	} else if gitDir == "" || gitDir != l.at.GitDir || plumbing.CommonOf(gitDir) != l.at.Common || filepath.Dir(gitDir) != filepath.Join(l.at.Common, "worktrees") {
		l.unknown("its .git does not lead to the repository of which it is a work tree")
		return false
	}
	// What git was told to take for something else is not what would be lost.
	l.where = []string{"-C", l.at.Dir, "--no-replace-objects", "--git-dir=" + gitDir, "--work-tree=" + l.at.Dir}
	return true
}

// index looks at what git has under version control, and at files that git was told to take for
// unchanged.
func (l *look) index() bool {
	out, ok := l.run("ls-files", "-v", "--stage", "-z")
	if !ok {
		return false
	}
	for _, t := range plumbing.ParseTracked([]byte(out)) {
		link := t.Mode == plumbing.Gitlink
		if link {
			l.links[t.Path] = t.OID
		} else {
			l.tracked[t.Path] = true
		}
		if 'a' <= t.Flag && t.Flag <= 'z' {
			l.h.Hidden = append(l.h.Hidden, t.Path)
		} else if t.Flag == 'S' {
			if _, err := os.Lstat(filepath.Join(l.at.Dir, t.Path)); err == nil && !link {
				l.h.Hidden = append(l.h.Hidden, t.Path)
			}
		}
	}
	return true
}

// status looks for files that are not in the commit, or not as they are there.
func (l *look) status() bool {
	out, ok := l.run("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=traditional", "--ignore-submodules=dirty", "--no-renames") // walk looks into submodules
	if !ok {
		return false
	}
	all, odd := plumbing.ParseStatus([]byte(out))
	if odd != "" {
		l.unknown("git says of its files what is not understood: %q", odd)
		return false
	}
	for _, s := range all {
		switch {
		case s.Kind == '?' && isState(l.at.Dir, s.Path):
			l.h.shown = append(l.h.shown, s.Path)
		case s.Kind == '?':
			l.h.Untracked = append(l.h.Untracked, s.Path)
		case s.Kind == '!' && isState(l.at.Dir, s.Path):
		case s.Kind == '!':
			l.h.Ignored = append(l.h.Ignored, s.Path)
		default:
			if s.XY[0] != '.' {
				l.h.Staged = append(l.h.Staged, s.Path)
			}
			if s.XY[1] != '.' {
				l.h.Changed = append(l.h.Changed, s.Path)
			}
			if s.Mode == plumbing.Gitlink && l.links[s.Path] == "" {
				l.links[s.Path] = s.Object
			}
		}
	}
	return true
}

// lock asks whether somebody has locked the work tree.
func (l *look) lock() {
	if why, err := plumbing.Locked(l.at.GitDir); err == nil {
		l.h.Locked = &why
	} else if !os.IsNotExist(err) {
		l.unknown("it is not known whether its work tree is locked: %v", err)
	}
	if plumbing.Registration(l.at.Common, plumbing.Resolved(l.at.Dir)) != l.at.GitDir {
		l.unknown("its repository does not know it")
	}
}

// ownRefs looks for references that belong to the work tree alone, and for what was stashed there. The
// stash is one for all work trees, and says on which branch an entry was made.
func (l *look) ownRefs() {
	own := func(prefix string) bool { return plumbing.MayHaveRefs(l.at.GitDir, prefix) }
	if !own("refs/worktree") && !own("refs/bisect") && !own("refs/rewritten") && !plumbing.MayHaveRefs(l.at.Common, "refs/stash") {
		return
	}
	out, ok := l.run("for-each-ref", "--format=%(refname)", "refs/worktree", "refs/bisect", "refs/rewritten", "refs/stash")
	if !ok {
		return
	}
	stash := false
	for _, ref := range strings.Fields(out) {
		if ref == "refs/stash" {
			stash = true
		} else {
			l.h.Refs = append(l.h.Refs, ref)
		}
	}
	if !stash {
		return
	}
	out, ok = l.run("reflog", "show", "--format=%gs", "refs/stash", "--")
	if !ok {
		return
	}
	branch := l.h.Branch
	if branch == "" {
		branch = "(no branch)"
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "WIP on "+branch+": ") || strings.HasPrefix(line, "On "+branch+": ") {
			l.h.Stashed = true
		}
	}
}
