package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rnix/internal/plumbing"
	"rnix/types"
)

// place is what a work directory is.
type place struct {
	root    string // what a snapshot holds
	repo    *repo  // nil: a copy is made
	reason  string // why there is no repo although there seems to be one
	refused string // why nothing is kept
	stamp   string // how it was recognised; a change means looking again
}

// repo is a git work tree that can be used.
type repo struct {
	root   string // the top of the work tree
	gitDir string // of this work tree
	common string // of the repository
	format string // of its object ids: sha1 or sha256
}

// survey knows what directories are. Safe for concurrent use.
type survey struct {
	*stores

	mu sync.Mutex // leaf
	// +checklocks:mu
	places map[string]place // by work directory
}

// locate finds out what a work directory is. It asks git once and looks again when a .git between the
// directory and the top of its work tree has come, gone or changed.
func (k *survey) locate(ctx context.Context, id types.UUID, workDir string) (place, error) {
	if !filepath.IsAbs(workDir) {
		return place{}, types.Errorf(types.ErrInvalid, "Take", workDir, "the work directory is not absolute")
	}
	dir, err := filepath.EvalSymlinks(workDir)
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(dir); err == nil && !info.IsDir() {
			return place{}, types.Errorf(types.ErrInvalid, "Take", workDir, "the work directory is a file")
		}
	}
	if err != nil {
		code := types.ErrStorage
		if errors.Is(err, fs.ErrNotExist) {
			code = types.ErrNotFound
		}
		return place{}, types.Errorf(code, "Take", workDir, "no such work directory: %w", err)
	}
	stamp, seems := stampOf(dir)
	k.mu.Lock()
	p, known := k.places[dir]
	k.mu.Unlock()
	if known && p.stamp == stamp {
		return p, nil
	}
	p = place{root: dir, stamp: stamp}
	if seems {
		if p.repo, p.reason, err = k.ask(ctx, id, dir); err != nil {
			return place{}, err
		}
	}
	top := dir
	if p.repo != nil {
		top = p.repo.root
		if top != dir && k.tooWide(top) != "" {
			p.repo, p.reason, top = nil, "its git work tree is "+k.tooWide(top)+": only this directory is copied", dir
		}
	}
	if p.refused = k.tooWide(top); p.refused != "" {
		p.repo = nil
	}
	k.mu.Lock()
	if len(k.places) > 1024 {
		clear(k.places) // a cache
	}
	k.places[dir] = p
	k.mu.Unlock()
	return p, nil
}

// tooWide says why a directory is not a place of work: a snapshot of it would eat the disk. "" = it is.
func (k *survey) tooWide(dir string) string {
	home := k.home
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	switch {
	case dir == "/":
		return "the root of the file system"
	case dir == home || home != "" && strings.HasPrefix(home, dir+"/"):
		return "the home directory, or above it"
	}
	return ""
}

// stampOf describes every .git on the way from dir to the root. seems is true if there is one that git would look into: a
// directory without a HEAD is none, as what the sandbox of another program leaves behind.
func stampOf(dir string) (stamp string, seems bool) {
	var b strings.Builder
	for {
		if info, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			_, headless := os.Lstat(filepath.Join(dir, ".git", "HEAD"))
			seems = seems || !info.IsDir() || headless == nil
			b.WriteString(dir + "\x00" + identity(info) + "\x00")
			if head, err := os.Lstat(filepath.Join(dir, ".git", "config")); err == nil {
				b.WriteString(identity(head))
			}
		}
		if dir == "/" || dir == "." {
			return b.String(), seems
		}
		dir = filepath.Dir(dir)
	}
}

// notATree is why there are no files of git's to work with in a repository.
const notATree = "it is not inside a git work tree (a bare repository, or the insides of one)"

// ask asks git what a directory is. A reason instead of a repo says why git cannot be used there.
func (k *survey) ask(ctx context.Context, id types.UUID, dir string) (*repo, string, error) {
	if k.program == "" {
		return nil, "git is not there: " + k.missing.Error(), nil
	}
	refuse := func(err error) (*repo, string, error) {
		if types.CodeOf(err) == types.ErrDriver {
			return nil, "its git repository cannot be used: " + err.Error(), nil
		}
		return nil, "", err
	}
	ask := func(what ...string) ([]byte, error) {
		return k.run(ctx, id, call{dir: dir, user: true, args: append([]string{"rev-parse", "--path-format=absolute"}, what...)})
	}
	kind, places := []string{"--is-inside-work-tree", "--show-object-format"}, []string{"--show-toplevel", "--git-dir", "--git-common-dir"}
	out, err := ask(append(slices.Clone(kind), places...)...)
	if inside, _, _ := strings.Cut(string(out), "\n"); inside == "false" { // then it has no top either, which git takes for an error
		return nil, notATree, nil
	}
	if err != nil {
		return refuse(err)
	}
	a := plumbing.Answers(out, len(kind)+len(places))
	if a == nil { // one by one: a path holds a line end
		if a = strings.Split(string(out), "\n"); len(a) < len(kind)+len(places) {
			return nil, fmt.Sprintf("git does not say where its repository is: %q", out), nil
		}
		a = a[:len(kind)]
		for _, what := range places {
			if out, err = ask(what); err != nil {
				return refuse(err)
			}
			a = append(a, plumbing.Line(out))
		}
	}
	r := &repo{format: a[1], root: a[2], gitDir: a[3], common: a[4]}
	if info, err := os.Stat(filepath.Join(r.common, "objects")); err != nil || !info.IsDir() {
		return nil, "its git repository has no objects directory", nil
	}
	rel, err := filepath.Rel(r.root, dir)
	if err != nil {
		return nil, "it is not below the top of its git work tree", nil
	}
	if ignored, err := k.ignores(ctx, id, r, rel); err != nil {
		return nil, "", err
	} else if ignored {
		return nil, "git ignores it", nil
	}
	return r, "", nil
}

// ignores reports whether git ignores a directory of a work tree. What a repository says by files elsewhere does not count: an agent, which can see whether
// its directory is ignored, would learn what they say.
func (k *survey) ignores(ctx context.Context, id types.UUID, r *repo, rel string) (bool, error) {
	if rel == "." {
		return false, nil
	}
	conf, err := k.config(ctx, id, r.gitDir, true)
	is, ok := together(r, conf)
	if err == nil && ok {
		env, reads := alone(k.git, is, conf)
		_, err = k.run(ctx, id, call{dir: is.root, user: true, env: env, reads: reads, args: []string{"--git-dir=" + is.gitDir, "--work-tree=" + is.root, "check-ignore", "-q", "--", "./" + rel}})
	}
	if types.CodeOf(err) == types.ErrDriver {
		return false, nil
	}
	return ok && err == nil, err
}
