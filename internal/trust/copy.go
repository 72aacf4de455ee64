package trust

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rnix/types"
	"rnix/vfs"
)

// Copy makes of an empty directory a copy of a project as far as its pinned files need it to be found beside what they name: these are written
// there, of the very bytes that were compared with their sums, so that what is started there is what a person has looked at, whatever becomes of the
// project meanwhile. All else of the directories that they lie in are symbolic links into the project. A file that is another one now is PERMISSION, and
// named. The caller keeps everybody else from writing to the directory.
func Copy(to string, p *vfs.Pinned) error {
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return types.Errorf(types.ErrNotFound, "Trust", p.Root, "%w", err)
	}
	defer root.Close()
	l := &looker{dir: p.Root, root: root, all: true}
	c := copying{root: p.Root, to: to, has: map[string]bool{}}
	for _, f := range p.Files {
		l.bytes = 0
		now, err := l.read(f.Path, "")
		switch {
		case err != nil:
			return err
		case now.Sum == "" || now.Sum != f.Sum || now.Kind != f.Kind:
			return types.Errorf(types.ErrPermission, "Trust", filepath.Join(p.Root, filepath.FromSlash(f.Path)), "it has changed since you trusted it; look at it with: rnix trust %s", p.Root)
		}
		if err := c.add(f.Path, now); err != nil {
			return types.Errorf(types.ErrStorage, "Trust", to, "a copy of what is started cannot be made: %w", err)
		}
	}
	if err := c.rest(); err != nil {
		return types.Errorf(types.ErrStorage, "Trust", to, "a copy of what is started cannot be made: %w", err)
	}
	return nil
}

// Instead returns the command line of a server that starts the copies of pinned files in a directory.
func Instead(to string, p *vfs.Pinned, command string, args []string) (string, []string) {
	args = slices.Clone(args)
	for _, f := range p.Files {
		if at := filepath.Join(to, filepath.FromSlash(f.Path)); f.Arg < 0 {
			command = at
		} else {
			args[f.Arg] = f.Flag + at
		}
	}
	return command, args
}

// copying is a copy that is being made.
type copying struct {
	root, to string
	has      map[string]bool // paths below the root, with slashes; true = a directory
}

// add writes a file. One that is a symbolic link is written where it leads, and leads there: programs look beside that for what they need.
func (c *copying) add(name string, f File) error {
	at, mode := name, os.FileMode(0o400)
	if strings.HasPrefix(f.Kind, linkTo) {
		if real, ok := within(c.root, filepath.Join(c.root, filepath.FromSlash(name))); ok {
			at = real
		}
	}
	if strings.HasSuffix(f.Kind, executable) {
		mode = 0o500
	}
	if err := c.parents(at); err != nil {
		return err
	}
	if _, there := c.has[at]; !there {
		c.has[at] = false
		if err := os.WriteFile(c.path(at), f.Text, mode); err != nil {
			return err
		}
	}
	if _, there := c.has[name]; there {
		return nil
	}
	if err := c.parents(name); err != nil {
		return err
	}
	c.has[name] = false
	return os.Symlink(c.path(at), c.path(name))
}

func (c *copying) path(name string) string { return filepath.Join(c.to, filepath.FromSlash(name)) }

// parents makes the directories above a path.
func (c *copying) parents(name string) error {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		c.has[dir] = true
		if dir == "." {
			return os.MkdirAll(c.path(path.Dir(name)), 0o700)
		}
	}
}

// rest links what else lies in the directories.
func (c *copying) rest() error {
	for dir, is := range c.has {
		if !is {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(c.root, filepath.FromSlash(dir)))
		if err != nil {
			continue // it has gone, with what lay in it
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if _, ours := c.has[name]; ours {
				continue
			}
			if err := os.Symlink(filepath.Join(c.root, filepath.FromSlash(name)), c.path(name)); err != nil {
				return err
			}
		}
	}
	return nil
}
