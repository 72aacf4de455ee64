package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"rnix/internal/durable"
	"rnix/types"
)

// stores are the object stores of our own, one for each repository of the user: what snapshots and rescues hold is there, and the
// references to it. Nothing of it is in the repository, so nothing of it is pushed, and nothing goes when the repository goes, or is
// collected by its own git. Safe for concurrent use.
type stores struct {
	*git
	most int64 // bytes that a repository may have in what is checked out; of a larger one the objects are borrowed, not copied

	mu sync.Mutex // leaf
	// +checklocks:mu
	open map[string]*store // by directory
}

// store is one of them.
type store struct {
	dir    string
	common string // the git directory of the user's repository
	format string // of its object ids

	ready sync.Mutex // held over git until old references were moved here
	// +checklocks:ready
	moved bool

	filling sync.Mutex // held over git while objects are copied: who comes next finds them
}

// objects is the directory with the objects of a store and with no others. All that a snapshot holds is there.
func (s *store) objects() string { return filepath.Join(s.dir, "objects") }

// gitDir is a git directory for those who read: it has the references, the objects of the store, and those of the user's repository
// while that is there.
func (s *store) gitDir() string { return filepath.Join(s.dir, "repo.git") }

// alone is the environment of a git that sees the objects of a store and no others, and writes into it.
func (s *store) alone() []string { return []string{"GIT_OBJECT_DIRECTORY=" + s.objects()} }

// args returns the arguments of a git that reads.
func (s *store) args(args ...string) []string {
	return append([]string{"--git-dir=" + s.gitDir()}, args...)
}

// formatOf returns the format of an object id.
func formatOf(id string) string {
	if len(id) == 64 {
		return "sha256"
	}
	return "sha1"
}

// storeDir is where the store of a repository is.
func (k *git) storeDir(common, format string) string {
	sum := sha256.Sum256([]byte(common + "\x00" + format))
	return filepath.Join(k.base, "stores", hex.EncodeToString(sum[:8]))
}

// storeGit returns the git directory that has what is stored: for people, and for their git.
func (k *git) storeGit(s *Stored) string {
	return (&store{dir: k.storeDir(s.Common, formatOf(s.ID))}).gitDir()
}

// keptOf returns the same for the git directory of a repository.
func (k *git) keptOf(common string) string {
	s := &store{dir: k.storeDir(common, "sha256")}
	if _, err := os.Stat(s.dir); err != nil {
		s.dir = k.storeDir(common, "sha1")
	}
	return s.gitDir()
}

// storeOf returns the store of a repository, and makes it if need be. References that earlier versions have put into the repository
// are moved here first.
func (k *stores) storeOf(ctx context.Context, id types.UUID, common, format string) (*store, error) {
	dir := k.storeDir(common, format)
	k.mu.Lock()
	s := k.open[dir]
	if s == nil {
		s = &store{dir: dir, common: common, format: format}
		k.open[dir] = s
	}
	k.mu.Unlock()
	s.ready.Lock()
	defer s.ready.Unlock()
	if s.moved {
		return s, nil
	}
	if err := s.furnish(); err != nil {
		return nil, err
	}
	if err := k.move(ctx, id, s); err != nil {
		return nil, err
	}
	s.moved = true
	return s, nil
}

// furnish writes everything of a store but objects and references.
func (s *store) furnish() error {
	for _, dir := range []string{filepath.Join(s.objects(), "pack"), filepath.Join(s.objects(), "info"), filepath.Join(s.gitDir(), "objects", "info"), filepath.Join(s.gitDir(), "refs")} {
		if err := mkdir(dir); err != nil {
			return err
		}
	}
	for _, dir := range []string{s.objects(), filepath.Join(s.gitDir(), "objects")} {
		left, err := filepath.Glob(filepath.Join(escapeGlob(dir), "pack", "tmp_*")) // of gits of ours that were killed
		if err != nil {
			return storage(dir, err)
		}
		for _, path := range left {
			_ = os.Remove(path) // it is in nobody's way
		}
	}
	version, extensions := 0, ""
	if s.format != "sha1" {
		version, extensions = 1, "[extensions]\n\tobjectFormat = "+s.format+"\n"
	}
	for name, text := range map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"config":                  fmt.Sprintf("[core]\n\trepositoryFormatVersion = %d\n\tbare = true\n\tlogAllRefUpdates = false\n%s[gc]\n\tauto = 0\n", version, extensions),
		"objects/info/alternates": alternate(s.objects()) + alternate(filepath.Join(s.common, "objects")),
		"description":             "what rnix keeps of " + strings.ReplaceAll(s.common, "\n", " ") + "\n",
	} {
		path := filepath.Join(s.gitDir(), name)
		if b, err := os.ReadFile(path); err == nil && string(b) == text {
			continue
		}
		if err := durable.WriteFile(durable.OS, path, []byte(text), durable.Cached); err != nil {
			return err
		}
	}
	return nil
}

// alternate writes a line of a file of alternates: a path that could be taken for something else stands in quotes.
func alternate(dir string) string {
	if q := quotePath(dir); q != dir || strings.HasPrefix(dir, "#") {
		return q + "\n"
	}
	return dir + "\n"
}

// borrows reports whether a store has objects of the user's repository in place of copies.
func (s *store) borrows() bool {
	_, err := os.Lstat(filepath.Join(s.objects(), "info", "alternates"))
	return err == nil
}

// borrow makes a store find objects in the user's repository.
func (s *store) borrow() error {
	return durable.WriteFile(durable.OS, filepath.Join(s.objects(), "info", "alternates"), []byte(alternate(filepath.Join(s.common, "objects"))), durable.Cached)
}

// fill copies objects of the user's repository, of which gitDir is a git directory, into a store, as far as they are not there. Objects that
// are in neither are DRIVER. Of a repository whose objects are with a server, or that is larger than what one may be, the objects are borrowed.
func (k *stores) fill(ctx context.Context, id types.UUID, s *store, gitDir string, ids []string) error {
	s.filling.Lock()
	defer s.filling.Unlock()
	ids, err := k.lacking(ctx, id, s, ids)
	if err != nil || len(ids) == 0 {
		return err
	}
	promisors, err := filepath.Glob(filepath.Join(escapeGlob(s.common), "objects", "pack", "*.promisor"))
	if err == nil && len(promisors) > 0 {
		return s.borrow()
	}
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + gitDir, "cat-file", "--batch-check=%(objectsize:disk)"}, input: []byte(strings.Join(ids, "\n") + "\n")})
	if err != nil {
		return err
	}
	var total int64
	for i, l := range strings.Split(line(out), "\n") {
		n, err := strconv.ParseInt(l, 10, 64)
		if err != nil {
			return types.Errorf(types.ErrDriver, "Snapshot", s.common, "an object is not in the repository: %s", ids[min(i, len(ids)-1)])
		}
		total += n
	}
	if total > k.most {
		return s.borrow()
	}
	return k.pack(ctx, id, s.args(), nil, s.objects(), ids)
}

// pack copies objects from where a git finds them into a directory of objects. Its temporary file is in the git's own directory of objects, and is
// renamed.
func (k *git) pack(ctx context.Context, id types.UUID, where, env []string, objects string, ids []string) error {
	args := append(slices.Clone(where), "pack-objects", "-q", "--window=0", "--delta-base-offset", filepath.Join(objects, "pack", "pack"))
	_, err := k.run(ctx, id, call{env: env, args: args, input: []byte(strings.Join(ids, "\n") + "\n")})
	return err
}

// lacking returns which of some objects are not in a store.
func (k *stores) lacking(ctx context.Context, id types.UUID, s *store, ids []string) (missing []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := k.run(ctx, id, call{env: s.alone(), args: s.args("cat-file", "--batch-check=%(objectname)"), input: []byte(strings.Join(ids, "\n") + "\n")})
	if err != nil {
		return nil, err
	}
	for l := range strings.Lines(string(out)) {
		if name, ok := strings.CutSuffix(strings.TrimSuffix(l, "\n"), " missing"); ok {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing), nil
}

// blobsOf returns the objects of files in the output of ls-files -s -z, but the empty one: a file that was only announced has it, and
// then it need not be there.
func blobsOf(listed []string) (ids []string) {
	const none1, none256 = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
	for _, e := range listed {
		meta, _, _ := strings.Cut(e, "\t")
		f := strings.Fields(meta)
		if len(f) == 3 && f[0] != "160000" && f[1] != none1 && f[1] != none256 {
			ids = append(ids, f[1])
		}
	}
	return ids
}

// treesBelow returns all objects of trees and commits, and with commits all that led to them but what the references of the user's
// repository hold.
func (k *git) treesBelow(ctx context.Context, id types.UUID, gitDir string, trees, commits []string) (ids []string, err error) {
	in := strings.Join(trees, "\n") + "\n"
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + gitDir, "rev-list", "--objects", "--no-object-names", "--stdin"}, input: []byte(in)})
	if err != nil {
		return nil, err
	}
	ids = strings.Fields(string(out))
	if len(commits) > 0 {
		out, err = k.run(ctx, id, call{args: []string{"--git-dir=" + gitDir, "rev-list", "--stdin", "--not", "--branches", "--remotes", "--tags"}, input: []byte(strings.Join(commits, "\n") + "\n")})
		if err != nil {
			return nil, err
		}
		own := strings.Fields(string(out))
		ids = append(append(ids, own...), commits...)
		in := strings.Join(own, "^{tree}\n") + "^{tree}\n"
		if len(own) > 0 {
			out, err = k.run(ctx, id, call{args: []string{"--git-dir=" + gitDir, "rev-list", "--objects", "--no-object-names", "--stdin"}, input: []byte(in)})
			ids = append(ids, strings.Fields(string(out))...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// hold makes a reference of a store to an object that is there.
func (k *stores) hold(ctx context.Context, id types.UUID, s *store, ref, object string) error {
	update := call{args: s.args("update-ref", "--no-deref", ref, object)}
	_, err := k.run(ctx, id, update)
	if types.CodeOf(err) == types.ErrDriver {
		lock := filepath.Join(s.gitDir(), filepath.FromSlash(ref)+".lock")
		if os.Remove(lock) == nil { // of a git of ours that was killed: nobody else writes this reference
			_, err = k.run(ctx, id, update)
		}
	}
	return err
}

// move brings the references that earlier versions have put into the user's repository into the store, with what they hold: those of
// histories that are ours. A repository that is gone has none.
func (k *stores) move(ctx context.Context, id types.UUID, s *store) error {
	if _, err := os.Stat(s.common); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	theirs := []string{"--git-dir=" + s.common}
	out, err := k.run(ctx, id, call{args: append(theirs, "for-each-ref", "--format=%(objectname) %(refname)", "refs/rnix/")})
	if err != nil || len(out) == 0 {
		return err
	}
	var objects, trees, refs []string
	for l := range strings.Lines(string(out)) {
		object, ref, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
		of := strings.Split(strings.TrimPrefix(strings.TrimPrefix(ref, "refs/rnix/"), "rescue/"), "/")[0]
		if _, err := os.Stat(filepath.Join(k.base, "history", of)); err != nil {
			continue // of another data directory
		}
		objects, trees, refs = append(objects, object), append(trees, object+"^{tree}"), append(refs, ref)
	}
	if len(refs) == 0 {
		return nil
	}
	ids, err := k.treesBelow(ctx, id, s.common, trees, objects)
	if err != nil {
		return err
	}
	if err := k.fill(ctx, id, s, s.common, ids); err != nil {
		return err
	}
	var made, gone strings.Builder
	for i, ref := range refs {
		fmt.Fprintf(&made, "update %s %s\n", ref, objects[i])
		fmt.Fprintf(&gone, "delete %s %s\n", ref, objects[i])
	}
	if _, err := k.run(ctx, id, call{args: s.args("update-ref", "--no-deref", "--stdin"), input: []byte(made.String())}); err != nil {
		return err
	}
	_, err = k.run(ctx, id, call{args: append(theirs, "update-ref", "--no-deref", "--stdin"), input: []byte(gone.String())})
	return err
}
