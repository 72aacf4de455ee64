package workspace

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rnix/internal/plumbing"
)

// inPlace returns a repository with its real paths, and whether it is that of the work tree by what both say, and all that git reads of it lies in it:
// agents can write most of a git directory, and a link in it, or an alternate, can lead to another repository, which they may not read and would be told of.
func inPlace(ctx context.Context, r *repo, conf plumbing.Config) (*repo, bool) {
	is := &repo{root: r.root, gitDir: plumbing.Resolved(r.gitDir), common: plumbing.Resolved(r.common), format: r.format}
	if !together(is, conf) {
		return nil, false
	}
	for _, dir := range []string{is.gitDir, is.common} {
		if !linkless(filepath.Join(dir, "reftable")) || !headInPlace(is.gitDir, dir) {
			return nil, false
		}
	}
	return is, objectsInPlace(ctx, filepath.Join(is.common, "objects"))
}

// together reports whether a work tree, its git directory and that of the repository lead to each other, and the files right in the latter two are there.
// Their paths are real.
func together(r *repo, conf plumbing.Config) bool {
	at := filepath.Join(r.root, ".git")
	info, err := os.Lstat(at)
	if err != nil {
		return false
	}
	_, named := conf.Local().Get("core.worktree") // as of a submodule: git has found this work tree by it
	switch {
	case plumbing.Dir(r.root) != r.gitDir: // git has found the work tree by a .git elsewhere, as in a directory of it
		return false
	case !shares(r.gitDir, r.common): // it was another when git was asked
		return false
	case info.IsDir():
		if r.gitDir != at || r.common != at {
			return false
		}
	case !info.Mode().IsRegular(), r.gitDir != r.common && plumbing.Registration(r.common, r.root) != r.gitDir, r.gitDir == r.common && !named:
		return false
	}
	for _, dir := range []string{r.gitDir, r.common} {
		if !linkless(dir) || !linkless(filepath.Join(dir, "info")) {
			return false
		}
	}
	return true
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
		if section := e.Section(); e.Scope != "system" && e.Scope != "global" || section != "core" && section != "safe" || e.RunsProgram() {
			continue
		}
		if _, set := conf.Local().Get(e.Key); set && e.Section() == "core" {
			continue // the repository's goes before
		}
		value := e.Value
		if e.Text == e.Key {
			value = "true"
		}
		own = append(own, plumbing.Set(e.Key, value))
		if name := e.Name(); name == "excludesfile" || name == "attributesfile" {
			if below, ok := strings.CutPrefix(value, "~/"); ok {
				value = filepath.Join(k.home, below)
			}
			if filepath.IsAbs(value) {
				reads = append(reads, plumbing.Resolved(value))
			}
		}
	}
	return append(inert(conf, false, own...), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"), reads
}
