package workspace

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"rnix/drivers/fs"
	"rnix/types"
	"rnix/vfs"
)

// makeDir makes a directory and those above it.
func (c *call) makeDir(context.Context) (string, error) {
	var in struct {
		Op   string `json:"op"`
		Path string `json:"path"`
	}
	if err := vfs.DecodeRequest(c.data, &in); err != nil {
		return "", err
	}
	p, err := c.target(in.Path)
	if err != nil {
		return "", err
	}
	if info, err := p.Root.Lstat(p.Rel); err == nil {
		if info.IsDir() {
			return p.Name + " exists already\n", nil
		}
		return "", types.Errorf(types.ErrConflict, c.op, p.Name, "exists and is not a directory")
	}
	if err := p.Root.MkdirAll(p.Rel, 0o777); err != nil {
		return "", fs.Failure(c.op, p.Name, err)
	}
	return "made " + p.Name + "/\n", nil
}

// move gives a file or a directory another path.
func (c *call) move(ctx context.Context) (string, error) {
	var in struct {
		Op   string `json:"op"`
		From string `json:"from"`
		To   string `json:"to"`
	}
	if err := vfs.DecodeRequest(c.data, &in); err != nil {
		return "", err
	}
	from, err := c.entry(in.From)
	if err != nil {
		return "", err
	}
	to, err := c.entry(in.To)
	if err != nil {
		return "", err
	}
	if vfs.Below(to.Abs, from.Abs) {
		return "", types.Errorf(types.ErrInvalid, c.op, from.Name, "cannot be moved to itself or into itself: %s", to.Name)
	}
	defer c.lock(from.Abs, to.Abs)()
	if _, err := from.Root.Lstat(from.Rel); err != nil {
		return "", fs.Failure(c.op, from.Name, err)
	}
	if err := vfs.Ended(ctx, c.op, from.Name); err != nil {
		return "", err
	}
	switch err := rename(from, to); {
	case err == nil:
	case errors.Is(err, iofs.ErrExist):
		return "", types.Errorf(types.ErrConflict, c.op, to.Name, "exists already: choose another path, or delete it first")
	case errors.Is(err, syscall.EXDEV):
		return "", types.Errorf(types.ErrInvalid, c.op, to.Name, "is on another file system than %s: copy it with a command", from.Name)
	default:
		return "", fs.Failure(c.op, from.Name, err)
	}
	c.seen.Moved(c.pid, from.Abs, to.Abs)
	return fmt.Sprintf("moved %s to %s\n", from.Name, to.Name), nil
}

func rename(from, to fs.Place) error {
	if err := to.Root.MkdirAll(path.Dir(to.Rel), 0o777); err != nil {
		return err
	}
	source, fromBase, err := from.Parent()
	if err != nil {
		return err
	}
	defer source.Close()
	dest, toBase, err := to.Parent()
	if err != nil {
		return err
	}
	defer dest.Close()
	return renameNew(source, fromBase, dest, toBase)
}

// delete deletes a file, a symbolic link or a directory.
func (c *call) delete(ctx context.Context) (string, error) {
	var in struct {
		Op        string `json:"op"`
		Path      string `json:"path"`
		Recursive bool   `json:"recursive"`
	}
	if err := vfs.DecodeRequest(c.data, &in); err != nil {
		return "", err
	}
	p, err := c.entry(in.Path)
	if err != nil {
		return "", err
	}
	defer c.lock(p.Abs)()
	info, err := p.Root.Lstat(p.Rel)
	if err != nil {
		return "", fs.Failure(c.op, p.Name, err)
	}
	if info.IsDir() && in.Recursive {
		return c.deleteTree(ctx, p)
	}
	dir, base, err := p.Parent()
	if err != nil {
		return "", fs.Failure(c.op, p.Name, err)
	}
	defer dir.Close()
	if err := dir.Remove(base); err != nil {
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, iofs.ErrExist) {
			return "", types.Errorf(types.ErrConflict, c.op, p.Name, "the directory is not empty: set recursive to delete it with all that is in it")
		}
		return "", fs.Failure(c.op, p.Name, err)
	}
	c.seen.Deleted(c.pid, p.Abs)
	return "deleted " + p.Name + "\n", nil
}

// deleteTree deletes a directory with all that is in it, unless there is a repository in it.
func (c *call) deleteTree(ctx context.Context, p fs.Place) (string, error) {
	if err := noRepository(ctx, p.Root, p.Rel, c.op); err != nil {
		return "", fs.Failure(c.op, p.Name, err)
	}
	dir, base, err := p.Parent()
	if err != nil {
		return "", fs.Failure(c.op, p.Name, err)
	}
	defer dir.Close()
	n, err := remove(ctx, dir, base, c.op)
	if err != nil {
		err = fs.Failure(c.op, p.Name, err)
		return "", types.Errorf(types.CodeOf(err), c.op, p.Name, "%s deleted, then: %w", types.Counted(n, "entry is", "entries are"), err)
	}
	return fmt.Sprintf("deleted %s and %s in it\n", p.Name, types.Counted(n-1, "entry", "entries")), nil
}

// noRepository fails if there is a git repository or worktree below dir: its commits may be nowhere
// else.
func noRepository(ctx context.Context, root *os.Root, dir, op string) error {
	return each(ctx, root, dir, op, func(d iofs.DirEntry) error {
		name := path.Join(dir, d.Name())
		if strings.EqualFold(d.Name(), ".git") {
			return types.Errorf(types.ErrPermission, op, name, "there is a git repository in the directory, which may hold work that is nowhere else: remove it with a command if that is meant")
		}
		if d.IsDir() {
			return noRepository(ctx, root, name, op)
		}
		return nil
	})
}

// remove deletes name and all below it, and says how many entries that were. It does not follow
// symbolic links.
func remove(ctx context.Context, root *os.Root, name, op string) (n int, err error) {
	err = each(ctx, root, name, op, func(d iofs.DirEntry) error {
		below := path.Join(name, d.Name())
		if d.IsDir() {
			m, err := remove(ctx, root, below, op)
			n += m
			return err
		}
		if err := root.Remove(below); err != nil {
			return err
		}
		n++
		return nil
	})
	if err == nil {
		if err = root.Remove(name); err == nil {
			n++
		}
	}
	return n, err
}

// each calls f for what is in a directory, until ctx ends.
func each(ctx context.Context, root *os.Root, dir, op string, f func(iofs.DirEntry) error) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(-1)
	_ = d.Close() // opened for reading only
	for _, e := range entries {
		if err := vfs.Ended(ctx, op, dir); err != nil {
			return err
		}
		if err := f(e); err != nil {
			return err
		}
	}
	return err
}
