package workspace

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
)

// inPlace returns a repository with its real paths, and whether it is that of the work tree by what both say, and all that git reads of it lies in it:
// agents can write most of a git directory, and a link in it, or an alternate, can lead to another repository, which they may not read and would be told of.
func inPlace(ctx context.Context, r *repo, conf plumbing.Config) (*repo, bool) {
	is, ok := together(r, conf)
	if !ok {
		return nil, false
	}
	for _, dir := range []string{is.gitDir, is.common} {
		if !linkless(filepath.Join(dir, "reftable")) || !headInPlace(is.gitDir, dir) {
			return nil, false
		}
	}
	return is, objectsInPlace(ctx, filepath.Join(is.common, "objects"))
}

// together returns a repository with its real paths, and whether a work tree, its git directory and that of the repository lead to each other, and the
// files right in the latter two are there.
func together(r *repo, conf plumbing.Config) (*repo, bool) {
	is := &repo{root: r.root, gitDir: plumbing.Resolved(r.gitDir), common: plumbing.Resolved(r.common), format: r.format}
	at := filepath.Join(is.root, ".git")
	info, err := os.Lstat(at)
	if err != nil {
		return nil, false
	}
	_, named := conf.Local().Get("core.worktree") // as of a submodule: git has found this work tree by it
	one := is.gitDir == is.common
	switch {
	case plumbing.Dir(is.root) != is.gitDir: // git has found the work tree by a .git elsewhere, as in a directory of it
		return nil, false
	case !shares(is.gitDir, is.common): // it was another when git was asked
		return nil, false
	case info.IsDir():
		if is.gitDir != at || !one {
			return nil, false
		}
	case !info.Mode().IsRegular(), !one && plumbing.Registration(is.common, is.root) != is.gitDir, one && !named:
		return nil, false
	}
	for _, dir := range []string{is.gitDir, is.common} {
		if !linkless(dir) || !linkless(filepath.Join(dir, "info")) {
			return nil, false
		}
	}
	return is, true
}

// shares reports whether a git directory has a common directory by what it says now. One that cannot be read, as git could, may say anything.
func shares(gitDir, common string) bool {
	_, err := plumbing.ReadText(filepath.Join(gitDir, "commondir"))
	return (err == nil || os.IsNotExist(err)) && plumbing.CommonOf(gitDir) == common
}

// linkless reports whether there is no link in a directory, which may be missing. Hooks, which are often one, do not count: none is run.
func linkless(dir string) bool {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return os.IsNotExist(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.Type() == fs.ModeSymlink && e.Name() != "hooks" {
			return false
		}
	}
	return true
}

// headInPlace reports whether HEAD of a git directory is at a commit, or on a branch whose file, if dir has one, is reached without a link and is not the
// other name of another reference.
func headInPlace(gitDir, dir string) bool {
	head, err := plumbing.Beginning(filepath.Join(gitDir, "HEAD"), plumbing.MostText)
	if err != nil {
		return false
	}
	if !strings.HasPrefix(string(head), "ref:") {
		return true
	}
	branch := plumbing.Branch(gitDir)
	if branch == "" || !filepath.IsLocal(branch) {
		return false
	}
	path := filepath.Join(dir, "refs")
	for part := range strings.SplitSeq("heads/"+branch, "/") {
		path = filepath.Join(path, part)
		info, err := os.Lstat(path)
		if err != nil {
			return os.IsNotExist(err)
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return false
		}
	}
	text, err := plumbing.Beginning(path, 1<<8)
	return err != nil || !strings.HasPrefix(string(text), "ref:") // what is a directory cannot be read
}

// objectsInPlace reports whether the objects of a repository are all in their directory.
func objectsInPlace(ctx context.Context, objects string) bool {
	for _, name := range []string{"alternates", "http-alternates"} {
		if _, err := os.Lstat(filepath.Join(objects, "info", name)); !os.IsNotExist(err) {
			return false
		}
	}
	entries, err := os.ReadDir(objects)
	if err != nil || !linkless(objects) || !linkless(filepath.Join(objects, "info", "commit-graphs")) || !linkless(filepath.Join(objects, "pack", "multi-pack-index.d")) {
		return false
	}
	for _, e := range entries {
		if ctx.Err() != nil || e.IsDir() && !linkless(filepath.Join(objects, e.Name())) {
			return false
		}
	}
	return true
}

// alone returns the environment of a git that looks at a repository, and what it reads: the repository, its work tree, and the files that the user's own
// configuration names. That itself can lie anywhere, so what of it counts is handed in. The paths of the repository are real: see sandbox.GitCall.
func alone(k *git, r *repo, conf plumbing.Config) (env, reads []string) {
	config := filepath.Join(k.home, ".config")
	for _, kv := range k.source {
		if dir, ok := strings.CutPrefix(kv, "XDG_CONFIG_HOME="); ok && filepath.IsAbs(dir) {
			config = dir
		}
	}
	reads = []string{r.root, r.gitDir, r.common, plumbing.Resolved(k.emptyHome())}
	if k.home != "" {
		reads = append(reads, plumbing.Resolved(filepath.Join(config, "git", "ignore")), plumbing.Resolved(filepath.Join(config, "git", "attributes")))
	}
	var own []plumbing.Setting
	for _, e := range conf {
		section, name := e.Section(), e.Name()
		if section == "core" && (name == "excludesfile" || name == "attributesfile") {
			path, real := rulesOf(k, r, e)
			own = append(own, plumbing.Set(e.Key, path))
			if path != "" && !e.Local() {
				reads = append(reads, real)
			}
			continue
		}
		if e.Scope != "system" && e.Scope != "global" || section != "core" && section != "safe" || e.RunsProgram() {
			continue
		}
		if _, set := conf.Local().Get(e.Key); set && section == "core" {
			continue // the repository's goes before
		}
		value := e.Value
		if e.Text == e.Key {
			value = "true"
		}
		own = append(own, plumbing.Set(e.Key, value))
	}
	return append(inert(conf, false, own...), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"), reads
}

// rulesOf returns a file of rules that a configuration names, and where that lies; "" if it does not count. The repository may name one in it or in its
// work tree: of others, which an agent might not be allowed to read, it could be seen what they say. So could be of those to which a link in these leads.
func rulesOf(k *git, r *repo, e plumbing.Entry) (path, real string) {
	path = e.Value
	if below, ok := strings.CutPrefix(path, "~/"); ok && k.home != "" {
		path = filepath.Join(k.home, below)
	}
	if path == "" || strings.ContainsAny(path[:1], "~%:") { // what only git can fill in
		return "", ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.root, path)
	}
	in := func(path string) bool {
		return slices.ContainsFunc([]string{r.root, r.gitDir, r.common}, func(dir string) bool { return under(path, dir) })
	}
	if real = plumbing.Resolved(path); (e.Local() || in(filepath.Clean(path))) && !in(real) {
		return "", ""
	}
	return path, real
}
