package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"rnix/drivers/fs"
	"rnix/types"
	"rnix/vfs"
)

// writeFile creates or replaces a file.
func (c *call) writeFile(ctx context.Context) (string, error) {
	var in struct {
		Op      string  `json:"op"`
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	if err := vfs.DecodeRequest(c.data, &in); err != nil {
		return "", err
	}
	if in.Content == nil {
		return "", types.Errorf(types.ErrInvalid, c.op, in.Path, `no content given: use "" for an empty file`)
	}
	return c.replace(ctx, in.Path, func(current) ([]byte, error) { return []byte(*in.Content), nil })
}

// replace gives a file the content that change makes of the current one, and says what is different.
// The comparison with what the process has seen and the replacement are one step for all processes
// of ours.
func (c *call) replace(ctx context.Context, name string, change func(current) ([]byte, error)) (string, error) {
	p, err := c.target(name)
	if err != nil {
		return "", err
	}
	defer c.lock(p.Abs)()
	cur, err := c.load(p)
	if err != nil {
		return "", err
	}
	if cur.exists() {
		if err := c.expect(p, cur); err != nil {
			return "", err
		}
	}
	content, err := change(cur)
	if err != nil {
		return "", err
	}
	if len(content) > fs.MaxEdit {
		return "", types.Errorf(types.ErrInvalid, c.op, p.Name, "the content has %d bytes: at most %d MiB are written at once", len(content), fs.MaxEdit>>20)
	}
	sum := fs.SumOf(content)
	if !cur.exists() || sum != cur.sum {
		if err := vfs.Ended(ctx, c.op, p.Name); err != nil {
			return "", err
		}
		if err := c.put(p, content, cur.info); err != nil {
			return "", fs.Failure(c.op, p.Name, err)
		}
	}
	c.seen.Wrote(c.pid, p.Abs, sum)
	return summary(p.Name, cur, content), nil
}

// put replaces the file at p in one piece: a temporary file in the same directory is written, synced
// and renamed. old describes the file that is replaced, whose permissions and owner are kept; nil
// means that there must be none. Other names of a file with several (hard links) keep the old content.
func (c *call) put(p fs.Place, content []byte, old iofs.FileInfo) (err error) {
	if old == nil {
		if err := p.Root.MkdirAll(path.Dir(p.Rel), 0o777); err != nil {
			return err
		}
	}
	dir, base, err := p.Parent() // from here on the directory is this one, whatever is moved
	if err != nil {
		return err
	}
	defer dir.Close()
	c.sweep(dir, filepath.Dir(p.Abs))

	temp := fs.TempPrefix + c.run + "-" + rand.Text()
	mode := os.FileMode(0o666)
	if old != nil {
		mode = 0o600 // until it is like the old one
	}
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = dir.Remove(temp) // the error is what matters
		}
	}()
	_, err = f.Write(content)
	if err == nil && old != nil {
		err = likeOld(f, old)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if old != nil {
		return dir.Rename(temp, base)
	}
	return renameNew(dir, temp, dir, base)
}

// likeOld gives a new file the permissions and the owner of the one that it replaces.
func likeOld(f *os.File, old iofs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	was, ok1 := old.Sys().(*syscall.Stat_t)
	is, ok2 := info.Sys().(*syscall.Stat_t)
	if ok1 && ok2 && (was.Uid != is.Uid || was.Gid != is.Gid) {
		if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil {
			return types.Errorf(types.ErrPermission, "", "", "the file belongs to another user or group, and would not after the change: %w", err)
		}
	}
	return f.Chmod(old.Mode().Perm())
}

// leftover is the age at which the temporary file of another run is taken for abandoned.
const leftover = time.Minute

// sweep removes what a run that was killed has left in a directory: once per directory and run.
func (d *Device) sweep(dir *os.Root, abs string) {
	d.mu.Lock()
	_, done := d.swept[abs]
	d.swept[abs] = struct{}{}
	d.mu.Unlock()
	if done {
		return
	}
	f, err := dir.Open(".")
	if err != nil {
		return
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, n := range names {
		if !strings.HasPrefix(n, fs.TempPrefix) || strings.HasPrefix(n, fs.TempPrefix+d.run+"-") {
			continue
		}
		if info, err := dir.Lstat(n); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftover {
			_ = dir.Remove(n) // the next run tries again
		}
	}
}
