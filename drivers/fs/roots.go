package fs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"rnix/types"
	"rnix/vfs"
)

// Roots are directories that paths must not leave. A path is checked by its text, then by where its
// symbolic links lead, and is then opened below the root's own descriptor, so that what changes
// between check and use is refused and not followed.
type Roots struct {
	workDir string
	dirs    []rootDir
	aliases []alias
	guard   guard // what is refused, though it is below a root
	// writes refuses changes; nil = none
	writes func(abs string, whole bool) error
}

// alias is a name under which a caller knows one of its directories.
type alias struct{ name, dir string }

type rootDir struct {
	name string   // as it was given
	real string   // without symbolic links
	dir  *os.Root // what is opened is opened below this
}

// maxPath bounds a path in bytes, as Linux does.
const maxPath = 4096

// callerRoots opens what a caller may read: its workspace, its further directories, and the private
// ones in which long outputs and its inputs are kept for it. The inputs have the name that they have in
// /proc.
func (o *Own) callerRoots(c vfs.Caller) (*Roots, error) {
	more := slices.Clone(c.ReadRoots)
	if c.Scratch != "" {
		more = append(more, c.Scratch)
	}
	if c.Inputs != "" {
		more = append(more, c.Inputs)
	}
	r, err := OpenRoots(c.WorkDir, more...)
	if err != nil {
		return nil, err
	}
	r.guard = o.guard(c)
	if c.Inputs != "" {
		r.aliases = []alias{{"/proc/self/inputs", c.Inputs}, {"/proc/" + c.PID.String() + "/inputs", c.Inputs}}
	}
	return r, nil
}

// Workspace opens the workspace of a caller, in which it may change what is none of o. The caller closes the Roots.
func (o *Own) Workspace(c vfs.Caller) (*Roots, error) {
	r, err := OpenRoots(c.WorkDir)
	if err != nil {
		return nil, err
	}
	if o != nil && o.Writes != nil {
		r.writes = o.Writes(c)
	}
	c.Scratch, c.Inputs = "", "" // they are to be read
	r.guard = o.guard(c)
	return r, nil
}

// OpenRoots opens a workspace and further directories. The workspace must exist; others that do not
// are left out. The caller closes the Roots.
func OpenRoots(workDir string, more ...string) (*Roots, error) {
	if workDir == "" && len(more) == 0 {
		return nil, types.Errorf(types.ErrPermission, "Open", "", "the caller has no workspace and no directory that it may read")
	}
	r := &Roots{workDir: workDir}
	for i, name := range append([]string{workDir}, more...) {
		if name == "" {
			continue
		}
		real, err := filepath.EvalSymlinks(name)
		if err == nil && !filepath.IsAbs(name) {
			err = errors.New("not an absolute path")
		}
		var dir *os.Root
		if err == nil {
			dir, err = os.OpenRoot(real)
		}
		if err == nil {
			r.dirs = append(r.dirs, rootDir{filepath.Clean(name), real, dir})
		} else if i == 0 {
			r.Close()
			return nil, Failure("Open", "workspace "+name, err)
		}
	}
	return r, nil
}

// Close closes the directories. Files that were opened below them stay open.
func (r *Roots) Close() {
	for _, d := range r.dirs {
		_ = d.dir.Close() // only descriptors of directories
	}
}

// Place is where a path leads.
type Place struct {
	Root *os.Root
	Rel  string // below Root; "." for the root itself
	Abs  string // absolute, without symbolic links
	Name string // as people see it: relative to the workspace where possible

	guard *guard // of its Roots
}

// Locate finds where path leads, last symbolic link included. A relative path starts at the
// workspace, and "" is the workspace. Nothing needs to exist there. It fails with PERMISSION if the
// path leads out of the roots.
func (r *Roots) Locate(path string) (Place, error) { return r.locate(path, true) }

// LocateEntry is Locate for what is to be moved or deleted: if the last element is a symbolic link,
// the place is that of the link itself.
// A directory that holds one of Rnix itself is refused, because that would go with it.
func (r *Roots) LocateEntry(path string) (Place, error) {
	p, err := r.locate(path, false)
	if err == nil {
		if d := r.guard.below(p.Abs); d != nil {
			return Place{}, types.Errorf(types.ErrPermission, "Open", path, "the %s of Rnix (%s) lies in it and would be taken along; agents may not reach that", d.What, d.Path)
		}
		if r.writes != nil {
			err = r.writes(p.Abs, true)
		}
	}
	return p, err
}

func (r *Roots) locate(path string, follow bool) (Place, error) {
	switch {
	case strings.IndexByte(path, 0) >= 0:
		return Place{}, types.Errorf(types.ErrInvalid, "Open", "", "path contains a NUL byte: %.100q", path)
	case len(path) > maxPath:
		return Place{}, types.Errorf(types.ErrInvalid, "Open", "", "path is longer than %d bytes: %.100q...", maxPath, path)
	}
	abs := path
	if !filepath.IsAbs(abs) {
		if r.workDir == "" {
			return Place{}, types.Errorf(types.ErrInvalid, "Open", path, "the caller has no workspace: use an absolute path")
		}
		abs = filepath.Join(r.workDir, path)
	}
	abs = filepath.Clean(abs)
	for _, a := range r.aliases {
		if vfs.Below(abs, a.name) {
			abs = filepath.Join(a.dir, strings.TrimPrefix(abs, a.name))
		}
	}
	if !r.holds(abs) {
		return Place{}, r.outside(path, "is outside of")
	}
	real, err := resolve(abs, follow)
	if err != nil {
		return Place{}, Failure("Open", path, err)
	}
	if err := refuse(path, r.guard.holding(real)); err != nil {
		return Place{}, err
	}
	if r.writes != nil {
		if err := r.writes(real, false); err != nil {
			return Place{}, err
		}
	}
	var best *rootDir
	for i, d := range r.dirs {
		if vfs.Below(real, d.real) && (best == nil || len(d.real) > len(best.real)) {
			best = &r.dirs[i]
		}
	}
	if best == nil {
		return Place{}, r.outside(path, "leads through a symbolic link out of")
	}
	rel, err := filepath.Rel(best.real, real)
	if err != nil {
		return Place{}, Failure("Open", path, err)
	}
	return Place{Root: best.dir, Rel: rel, Abs: real, Name: r.Name(real), guard: &r.guard}, nil
}

// holds reports whether abs is, by its text, below a root.
func (r *Roots) holds(abs string) bool {
	for _, d := range r.dirs {
		if vfs.Below(abs, d.name) || vfs.Below(abs, d.real) {
			return true
		}
	}
	return false
}

func (r *Roots) outside(path, how string) error {
	var names []string
	for _, d := range r.dirs {
		names = append(names, d.name)
	}
	return types.Errorf(types.ErrPermission, "Open", path, "the path %s what may be used: %s", how, strings.Join(names, ", "))
}

// Name returns how people see an absolute path without symbolic links.
func (r *Roots) Name(abs string) string {
	if len(r.dirs) > 0 && r.workDir != "" && vfs.Below(abs, r.dirs[0].real) {
		if rel, err := filepath.Rel(r.dirs[0].real, abs); err == nil {
			return rel
		}
	}
	return abs
}

// resolve returns abs without symbolic links. What does not exist yet is taken as it stands.
func resolve(abs string, follow bool) (string, error) {
	if follow {
		real, err := filepath.EvalSymlinks(abs)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return real, err
		}
	}
	dir := filepath.Dir(abs)
	if dir == abs {
		return abs, nil
	}
	real, err := resolve(dir, true)
	return filepath.Join(real, filepath.Base(abs)), err
}

// Open opens the file or directory at path for reading. It refuses what is neither: reading a pipe
// or a device can block for ever or change it.
func (r *Roots) Open(path string) (*os.File, fs.FileInfo, Place, error) {
	p, err := r.Locate(path)
	if err != nil {
		return nil, nil, p, err
	}
	f, info, err := p.Open()
	return f, info, p, err
}

// Open opens what is at the place for reading, with the refusals of Roots.Open.
func (p Place) Open() (*os.File, fs.FileInfo, error) {
	info, err := p.Root.Stat(p.Rel)
	if err == nil {
		err = readable(info)
	}
	if err != nil {
		return nil, nil, Failure("Open", p.Name, err)
	}
	f, err := p.Root.OpenFile(p.Rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, Failure("Open", p.Name, err)
	}
	if info, err = f.Stat(); err == nil { // again: it may be another one by now
		err = readable(info)
	}
	if err == nil && ofKernel(f) {
		err = refused("files of the kernel are not served")
	}
	if err == nil && p.guard != nil {
		err = p.guard.opened(f)
	}
	if err != nil {
		_ = f.Close() // opened for reading only
		return nil, nil, Failure("Open", p.Name, err)
	}
	return f, info, nil
}

// Parent opens the directory in which the place is, and returns the place's name there. From then on that directory is
// meant, whatever is moved. The caller closes it.
func (p Place) Parent() (*os.Root, string, error) {
	dir, err := p.Root.OpenRoot(path.Dir(p.Rel))
	if err != nil {
		return nil, "", err
	}
	f, err := dir.Open(".")
	if err == nil {
		if p.guard != nil {
			err = p.guard.opened(f)
		}
		_ = f.Close() // opened for reading only
	}
	if err != nil {
		_ = dir.Close() // only a descriptor of a directory
		return nil, "", err
	}
	return dir, path.Base(p.Rel), nil
}

// refused is the reason of a refusal of ours.
type refused string

func (r refused) Error() string { return string(r) }

// readable refuses special files, and hard links to the files of others: a link inside the workspace
// may lead to a file outside of it that its owner never meant to show.
func readable(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return nil
	case !info.Mode().IsRegular():
		return refused("is a " + kindOf(info.Mode()) + ", not a file or a directory")
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 && int(st.Uid) != os.Geteuid() {
		return refused("is a hard link to a file of another user")
	}
	return nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	}
	return "special file"
}
