package workspace

import (
	"errors"
	"io"
	iofs "io/fs"
	"path/filepath"
	"strings"

	"rnix/drivers/fs"
	"rnix/types"
)

// target finds the file or directory that is to be changed, through symbolic links inside the
// workspace.
func (c *call) target(name string) (fs.Place, error) { return c.check(name, c.roots.Locate) }

// entry is target for what is to be moved or deleted: a symbolic link is meant itself.
func (c *call) entry(name string) (fs.Place, error) { return c.check(name, c.roots.LocateEntry) }

func (c *call) check(name string, locate func(string) (fs.Place, error)) (fs.Place, error) {
	if name == "" {
		return fs.Place{}, types.Errorf(types.ErrInvalid, c.op, "", "no path given")
	}
	p, err := locate(name)
	if err != nil {
		return p, err
	}
	if p.Rel == "." {
		return p, types.Errorf(types.ErrPermission, c.op, name, "is the workspace itself, which stays")
	}
	for _, rel := range []string{filepath.Clean(name), p.Rel} {
		for part := range strings.SplitSeq(rel, "/") {
			switch {
			case strings.EqualFold(part, ".git"):
				return p, types.Errorf(types.ErrPermission, c.op, p.Name, "the insides of .git are not changed as files, because hooks and configuration there run as commands: use git")
			case strings.HasPrefix(part, fs.TempPrefix):
				return p, types.Errorf(types.ErrInvalid, c.op, p.Name, "names that begin with %s are for files that are being written", fs.TempPrefix)
			}
		}
	}
	return p, nil
}

// current is a file as it is now. The zero value is a file that does not exist.
type current struct {
	info    iofs.FileInfo
	content []byte
	sum     fs.Sum
}

func (cur current) exists() bool { return cur.info != nil }

// load reads the file at p, if there is one.
func (c *call) load(p fs.Place) (current, error) {
	info, err := p.Root.Lstat(p.Rel)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		return current{}, nil
	case err != nil:
		return current{}, fs.Failure(c.op, p.Name, err)
	case info.Mode()&iofs.ModeSymlink != 0:
		return current{}, types.Errorf(types.ErrInvalid, c.op, p.Name, "is a symbolic link that leads nowhere: delete it first")
	case info.IsDir():
		return current{}, types.Errorf(types.ErrIsDirectory, c.op, p.Name, "is a directory")
	}
	f, info, err := p.Open()
	if err != nil {
		return current{}, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, fs.MaxEdit+1))
	if err != nil {
		return current{}, fs.Failure(c.op, p.Name, err)
	}
	if len(content) > fs.MaxEdit {
		return current{}, types.Errorf(types.ErrInvalid, c.op, p.Name, "is larger than %d MiB, which is too much to be compared: change it with a command, or delete it first", fs.MaxEdit>>20)
	}
	return current{info, content, fs.SumOf(content)}, nil
}

// expect refuses to go on unless the process has seen the file as it is now. The user, who is no
// process, has the last word.
func (c *call) expect(p fs.Place, cur current) error {
	if c.pid == 0 {
		return nil
	}
	known, ok := c.seen.Known(c.pid, p.Abs)
	if ok && known == cur.sum {
		return nil
	}
	by := ""
	if pid, ours := c.seen.Writer(p.Abs, cur.sum); ours && pid != c.pid {
		by = " (process " + pid.String() + " wrote it)"
		if pid == 0 {
			by = " (the user wrote it)"
		}
	}
	if !ok {
		return types.Errorf(types.ErrConflict, c.op, p.Name, "the file exists and you have not read it%s: read it with read_file first", by)
	}
	return types.Errorf(types.ErrConflict, c.op, p.Name, "the file has changed since you read it%s: read it again with read_file, then repeat the change", by)
}
