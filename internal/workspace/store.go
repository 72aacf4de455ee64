package workspace

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/types"
)

// stores are the object stores of our own, one for each repository of the user: what snapshots and rescues hold is there, and the
// references to it. Nothing of it is in the repository, so nothing of it is pushed, and nothing goes when the repository goes, or is
// collected by its own git. Safe for concurrent use.
type stores struct {
	*git

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
	switch err := k.move(ctx, id, s); {
	case types.CodeOf(err) == types.ErrDriver: // a repository that git cannot read any more; what is in the store can be read
		k.log.Warn("references of an earlier version stay in a repository", "path", common, "error", err)
	case err != nil:
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
		left, err := filepath.Glob(filepath.Join(plumbing.EscapeGlob(dir), "pack", "tmp_*")) // of gits of ours that were killed
		if err != nil {
			return storage(dir, err)
		}
		for _, path := range left {
			_ = os.Remove(path) // it is in nobody's way
		}
	}
	s.unlock()
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
	return s.putEmptyBlob()
}

// putEmptyBlob writes the object of a file without content, as git writes a loose one.
func (s *store) putEmptyBlob() error {
	name := emptyBlob(s.format)
	path := filepath.Join(s.objects(), name[:2], name[2:])
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write([]byte("blob 0\x00")); err != nil {
		return storage(path, err)
	}
	if err := w.Close(); err != nil {
		return storage(path, err)
	}
	if err := mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	return durable.WriteFile(durable.OS, path, b.Bytes(), durable.Cached)
}

// unlock removes the locks that gits of ours have left that were killed. Nobody else writes references of a store.
func (s *store) unlock() {
	_ = os.Remove(filepath.Join(s.gitDir(), "packed-refs.lock")) // what cannot be removed shows when a reference is written
	walkFiles(filepath.Join(s.gitDir(), "refs", "rnix"), func(path string, _ fs.DirEntry) {
		if strings.HasSuffix(path, ".lock") {
			_ = os.Remove(path) // the same
		}
	})
}

// alternate writes a line of a file of alternates: a path that could be taken for something else stands in quotes.
func alternate(dir string) string {
	if q := quotePath(dir); q != dir || strings.HasPrefix(dir, "#") {
		return q + "\n"
	}
	return dir + "\n"
}

// partial reports whether objects of a repository may be with a server only.
func partial(common string) bool {
	promisors, err := filepath.Glob(filepath.Join(plumbing.EscapeGlob(common), "objects", "pack", "*.promisor"))
	return err == nil && len(promisors) > 0
}

// fill copies objects of the user's repository into a store, as far as they are not there. Objects that are in neither are DRIVER, unless a
// server may have them: nothing is asked of one.
func (k *stores) fill(ctx context.Context, id types.UUID, s *store, ids []string) error {
	s.filling.Lock()
	defer s.filling.Unlock()
	ids, err := k.lacking(ctx, id, s, s.alone(), ids)
	if err != nil || len(ids) == 0 {
		return err
	}
	nowhere, err := k.lacking(ctx, id, s, nil, ids) // by a git directory that knows of no server
	if err != nil {
		return err
	}
	if len(nowhere) > 0 && !partial(s.common) {
		return types.Errorf(types.ErrDriver, "Snapshot", s.common, "%d objects are not in the repository, such as %s", len(nowhere), nowhere[0])
	}
	ids = slices.DeleteFunc(ids, func(o string) bool { _, gone := slices.BinarySearch(nowhere, o); return gone })
	if len(ids) == 0 {
		return nil
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

// lacking returns which of some objects a git that reads a store does not see, sorted; env says whether that is the store alone.
func (k *stores) lacking(ctx context.Context, id types.UUID, s *store, env, ids []string) (missing []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := k.run(ctx, id, call{env: env, args: s.args("cat-file", "--batch-check=%(objectname)"), input: []byte(strings.Join(ids, "\n") + "\n")})
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

// emptyBlob is the object of a file without content. It is in each store: a file that was only announced to git has it, and then the user's
// repository need not have it.
func emptyBlob(format string) string {
	if format == "sha256" {
		return "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
	}
	return "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
}

// blobsOf returns the objects of files in the output of ls-files -s -z.
func blobsOf(listed []string) (ids []string) {
	for _, e := range listed {
		meta, _, _ := strings.Cut(e, "\t")
		if f := strings.Fields(meta); len(f) == 3 && f[0] != plumbing.Gitlink {
			ids = append(ids, f[1])
		}
	}
	return ids
}

// below returns all objects of trees, of those of some commits, and of the commits that led to these but what the references of the user's
// repository hold, of which gitDir is a git directory.
func (k *stores) below(ctx context.Context, id types.UUID, s *store, gitDir string, trees, commits []string) (ids []string, err error) {
	trees = slices.Clone(trees)
	if len(commits) > 0 {
		out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + gitDir, "rev-list", "--stdin", "--not", "--branches", "--remotes", "--tags"}, input: plumbing.Lines(commits)})
		if err != nil {
			return nil, err
		}
		own := append(strings.Fields(string(out)), commits...)
		ids = append(ids, own...)
		for _, c := range own {
			trees = append(trees, c+"^{tree}")
		}
	}
	if len(trees) > 0 {
		args := []string{"rev-list", "--objects", "--no-object-names", "--stdin"}
		if partial(s.common) {
			args = append(args, "--missing=allow-any")
		}
		out, err := k.run(ctx, id, call{args: s.args(args...), input: plumbing.Lines(trees)})
		if err != nil {
			return nil, err
		}
		ids = append(ids, strings.Fields(string(out))...)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// hold makes a reference of a store to an object that is there.
func (k *stores) hold(ctx context.Context, id types.UUID, s *store, ref, object string) error {
	_, err := k.run(ctx, id, call{args: s.args("update-ref", "--no-deref", ref, object)})
	return err
}

// move brings the references that earlier versions have put into the user's repository into the store, with what they hold: those of
// histories that are ours. A repository that is gone has none.
func (k *stores) move(ctx context.Context, id types.UUID, s *store) error {
	if _, err := os.Stat(s.common); errors.Is(err, fs.ErrNotExist) || !plumbing.MayHaveRefs(s.common, "refs/rnix/") {
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
	ids, err := k.below(ctx, id, s, s.common, trees, objects)
	if err != nil {
		return err
	}
	if err := k.fill(ctx, id, s, ids); err != nil {
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
