package workspace

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"rnix/internal/plumbing"
	"rnix/internal/proc"
	"rnix/types"
)

// gitSource is a snapshot of kind git. The bytes of its files are those of the blobs: nothing stands
// between.
type gitSource struct {
	git    *git
	id     types.UUID
	store  *store
	tree   string
	absent map[string]bool // blobs of a partial clone that are known to be with a server only
}

func (g gitSource) args(args ...string) []string { return g.store.args(args...) }

// gitMode returns the mode that a file of a tree has, before the umask.
func gitMode(octal string) fs.FileMode {
	switch octal {
	case "120000":
		return fs.ModeSymlink | 0o777
	case plumbing.Gitlink:
		return fs.ModeIrregular
	case "100755":
		return 0o755
	}
	return 0o644
}

func (g gitSource) entries(ctx context.Context) ([]entry, error) {
	out, err := g.git.run(ctx, g.id, call{args: g.args("ls-tree", "-r", "-l", "-z", "--full-tree", g.tree)})
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, r := range plumbing.Records(out) {
		meta, path, _ := strings.Cut(r, "\t")
		f := strings.Fields(meta)
		if len(f) != 4 {
			return nil, types.Errorf(types.ErrDriver, "Git", g.store.dir, "git ls-tree: a line %q that cannot be read", r)
		}
		size, _ := strconv.ParseInt(f[3], 10, 64) // a submodule has "-"
		all = append(all, entry{Path: path, Mode: gitMode(f[0]), Size: size, Hash: f[2]})
	}
	sortEntries(all)
	return all, nil
}

func (g gitSource) read(ctx context.Context, want []entry, fn func(entry, io.Reader) error) error {
	if len(want) == 0 {
		return nil
	}
	var in bytes.Buffer
	for _, e := range want {
		in.WriteString(e.Hash + "\n")
	}
	c := call{args: g.args("cat-file", "--batch"), input: in.Bytes()}
	errs := proc.NewRing(4 << 10)
	spec := g.git.spec(g.id, c, nil, errs)
	spec.StdoutPipe = true
	child, err := g.git.procs.Start(ctx, spec)
	if err != nil {
		return err
	}
	out := child.Stdout()
	defer out.Close()
	r := bufio.NewReaderSize(out, 64<<10)
	for _, e := range want {
		if err := g.one(r, e, fn); err != nil {
			exit := child.Kill()
			if exit.Cause == proc.Cancelled {
				return gitError(ctx, c, exit, errs)
			}
			return err
		}
	}
	return gitError(ctx, c, child.Wait(), errs)
}

// one reads the next object of a batch and gives it to fn.
func (g gitSource) one(r *bufio.Reader, e entry, fn func(entry, io.Reader) error) error {
	head, err := r.ReadString('\n')
	f := strings.Fields(head)
	if err != nil || len(f) != 3 || f[0] != e.Hash || f[1] != "blob" {
		return types.Errorf(types.ErrStorage, "Restore", e.Path, "object %s is neither in %s nor in the repository %s, or is no file", e.Hash, g.store.dir, g.store.common)
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return types.Errorf(types.ErrDriver, "Restore", e.Path, "git cat-file: size %q", f[2])
	}
	body := &io.LimitedReader{R: r, N: size}
	if err := fn(e, body); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, body); err != nil || body.N > 0 {
		return types.Errorf(types.ErrStorage, "Restore", e.Path, "object %s breaks off", e.Hash)
	}
	if _, err := r.Discard(1); err != nil {
		return types.Errorf(types.ErrStorage, "Restore", e.Path, "object %s has no end", e.Hash)
	}
	return nil
}

// open returns what a Ref names.
func (k *Keeper) open(ctx context.Context, ref Ref) (source, error) {
	switch {
	case ref.ID == "":
		return nil, types.Errorf(types.ErrInvalid, "Restore", ref.Root, "the snapshot of step %d holds nothing: see why in its Limited", ref.Step)
	case strings.Trim(ref.ID, "0123456789abcdef") != "" || len(ref.ID) < 40:
		return nil, types.Errorf(types.ErrInvalid, "Restore", ref.ID, "not the id of a snapshot")
	case ref.Kind == KindCopy:
		return copySource{k.store(), k.manifests(), ref.ID}, nil
	case ref.Kind != KindGit:
		return nil, types.Errorf(types.ErrInvalid, "Restore", ref.ID, "there is no kind of snapshot %q", ref.Kind)
	}
	common, err := k.commonOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	s, err := k.storeOf(ctx, ref.UUID, common, formatOf(ref.ID))
	return gitSource{git: k.git, id: ref.UUID, store: s, tree: ref.ID}, err
}

// commonOf returns the directory of the repository that holds a snapshot.
func (k *Keeper) commonOf(ctx context.Context, ref Ref) (string, error) {
	if s, ok := k.find(ref); ok && s.Common != "" {
		return s.Common, nil
	}
	p, err := k.locate(ctx, ref.UUID, ref.Root)
	if err != nil {
		return "", err
	}
	if p.repo == nil {
		return "", types.Errorf(types.ErrNotFound, "Restore", ref.Root, "is no git work tree any more, and no record says which repository held the snapshot")
	}
	return p.repo.common, nil
}
