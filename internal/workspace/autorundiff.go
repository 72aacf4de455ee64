package workspace

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/internal/sandbox"
	"rnix/types"
)

// Autoruns returns the files that other programs run or obey unasked and that are others, in a directory where a history works, than when it
// began. line is the history itself and those of which it is a fork, the oldest last: the beginning of the oldest that is known counts, since
// a fork goes on with what its origin has done. known is false if nothing was noted: a history of an earlier version of this program, or one that has
// called nothing yet that could change a file.
func Autoruns(ctx context.Context, k *Keeper, dir string, line []types.UUID) (list []Autorun, known bool, err error) {
	was, err := k.autorunsAtStart(line)
	if err != nil || was == nil {
		return nil, false, err
	}
	now, err := k.autorunsIn(ctx, line[0], dir, was)
	if err != nil {
		return nil, false, err
	}
	if now.Root != was.Root && (was.Common != now.Common || len(line) == 1 && was.Common == "") {
		return nil, false, nil // it works elsewhere now
	}
	list = differing(was, now)
	for i := range list {
		if e := &list[i]; filepath.Base(e.File) == "config" && filepath.IsAbs(e.File) && e.Settings == nil {
			submodule(ctx, k.git, line[0], e)
		}
	}
	return slices.DeleteFunc(list, func(e Autorun) bool { return e.File == "" }), true, ctx.Err()
}

// submodule says what the configuration of a submodule makes git run. One that is new and runs nothing is that of a submodule which was filled.
func submodule(ctx context.Context, k *git, id types.UUID, e *Autorun) {
	conf, err := k.config(ctx, id, filepath.Dir(e.File), false)
	for _, c := range conf.Local() {
		if c.RunsProgram() && !slices.Contains(e.Settings, c.Key) {
			e.Settings = append(e.Settings, c.Key)
		}
	}
	slices.Sort(e.Settings)
	e.Runs = e.Change != "removed" && (err != nil || len(e.Settings) > 0)
	if e.Change == "created" && !e.Runs {
		e.File = ""
	}
}

// quietSetting reports whether a setting says no more than what git itself notes there all the time: where a branch comes from, what the disk can do.
func quietSetting(key string) bool {
	section, name := plumbing.Entry{Key: key}.Section(), plumbing.Entry{Key: key}.Name()
	return strings.HasPrefix(section, "branch.") || section == "extensions" || strings.HasPrefix(section, "remote.") && name == "fetch" ||
		section == "core" && slices.Contains([]string{"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks"}, name)
}

// differing compares what was at the beginning with what is now, by name.
func differing(was, now *autoruns) (list []Autorun) {
	names := slices.Sorted(maps.Keys(now.Sums))
	for name := range was.Sums {
		if _, still := now.Sums[name]; !still {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	settings := map[string]*Autorun{}
	for _, name := range names {
		before, had := was.Sums[name]
		sum, has := now.Sums[name]
		change := "changed"
		switch {
		case had && before == sum || !has && now.Some:
			continue
		case !has:
			change = "removed"
		case !had && !was.Some:
			change = "created"
		}
		where, rest, _ := strings.Cut(name, "/")
		if elsewhere := was.Root != now.Root; elsewhere && (where == "own" || where == "tree" && !has) {
			continue // a fork has a directory of its own, without what git ignores in that of its origin
		}
		if where == "set" {
			scope, key, _ := strings.Cut(rest, "/")
			if quietSetting(key) {
				continue
			}
			e := settings[scope]
			if e == nil {
				e = &Autorun{File: now.settingsFile(was, scope), Change: "changed"}
				settings[scope] = e
			}
			e.Settings, e.Runs = append(e.Settings, key), e.Runs || now.runs[name]
			continue
		}
		list = append(list, Autorun{File: now.fileOf(was, where, rest), Change: change, Tree: where == "tree", Runs: has && now.runsFile(name, had)})
	}
	for _, scope := range []string{"worktree", "local"} {
		if e := settings[scope]; e != nil {
			list = slices.Insert(list, 0, *e)
		}
	}
	return list
}

// settingsFile is where the settings of a scope are.
func (a *autoruns) settingsFile(was *autoruns, scope string) string {
	dir := cmp.Or(a.Common, was.Common)
	if scope == "worktree" {
		return filepath.Join(cmp.Or(a.gitDir, dir), "config.worktree")
	}
	return filepath.Join(dir, "config")
}

// fileOf is what a file is called for people.
func (a *autoruns) fileOf(was *autoruns, where, rest string) string {
	switch where {
	case "git":
		return filepath.Join(cmp.Or(a.Common, was.Common), rest)
	case "own":
		return filepath.Join(a.gitDir, rest)
	case "hooks":
		return filepath.Join(a.hooks, rest)
	}
	return rest
}

// runsFile reports whether git runs a file, or looks elsewhere for what it runs because of one. had says that it was there before.
func (a *autoruns) runsFile(name string, had bool) bool {
	where, rest, _ := strings.Cut(name, "/")
	hook := a.runs[name] || had // one that a hook reads needs no right to be run
	switch {
	case where == "git" && strings.HasPrefix(rest, "hooks/"):
		return hook && a.hooks == filepath.Join(a.Common, "hooks")
	case where == "git" && strings.HasPrefix(rest, "modules/"):
		return hook && strings.Contains(rest, "/hooks/")
	case where == "git":
		return rest == "commondir"
	case where == "hooks":
		return hook
	case where == "own":
		return true
	}
	return hook && a.hooks != "" && under(filepath.Join(a.Root, rest), a.hooks)
}

// Incoming returns the files that a merge of a commit of a work tree would bring, as Merge finds what it goes into.
func (k *Grove) Incoming(ctx context.Context, id types.UUID, t Tree, commit string) (list []FileChange, err error) {
	at, err := k.canopy.target(ctx, id, t)
	if err != nil {
		return nil, err
	}
	base := cmp.Or(k.canopy.mergeBase(ctx, id, t.Common, at.head, commit), t.Base)
	out, err := k.git.run(ctx, id, call{args: []string{"--git-dir=" + t.Common, "diff-tree", "-r", "-z", "--name-status", "--no-renames", base, commit}})
	if err != nil {
		return nil, err
	}
	for f := plumbing.Records(out); len(f) > 1; f = f[2:] {
		list = append(list, FileChange{Status: f[0], Path: f[1]})
	}
	return list, nil
}

// StartsSomething reports whether a path is one that other programs act on when they start in its directory.
func StartsSomething(path string) bool {
	start := sandbox.StartFiles()
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return slices.Contains(start, part) })
}
