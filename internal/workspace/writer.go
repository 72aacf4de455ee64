package workspace

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"rnix/types"
)

// tempPrefix is what the names of files begin with that are being written into a directory of work.
const tempPrefix = ".rnix-tmp-"

// writer puts files of a snapshot into a directory. Nothing is followed out of it, and no symbolic link
// inside it either.
type writer struct {
	root  *os.Root
	exact bool // permissions as they were, and with times if the directory is new
	times bool
	dirs  map[string]bool // directories that were looked at
}

// errInTheWay says that something that is not to be removed stands where a file belongs.
var errInTheWay = errors.New("something else is in the way that no rescue holds")

// put writes one file, link or directory, whole or not at all.
func (w *writer) put(e entry, r io.Reader) error {
	if err := w.parents(path.Dir(e.Path)); err != nil {
		return err
	}
	switch {
	case e.Mode.IsDir(), e.Mode&fs.ModeIrregular != 0:
		return w.directory(e)
	case e.Mode.Type() == fs.ModeSymlink:
		return w.link(e, r)
	}
	perm := e.Mode.Perm()
	now, err := w.root.Lstat(e.Path)
	if err == nil && now.IsDir() {
		if !w.removeEmpty(e.Path) {
			return errInTheWay
		}
		now = nil
	}
	open := fs.FileMode(0o666)
	if !w.exact {
		if perm&0o100 != 0 {
			open = 0o777
		}
	} else {
		open = 0o600
	}
	tmp := path.Join(path.Dir(e.Path), tempPrefix+rand.Text())
	f, err := w.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, open)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	switch {
	case err != nil:
	case w.exact:
		err = f.Chmod(perm)
	case now != nil && now.Mode().IsRegular(): // who may read it stays; who may run it is in the snapshot
		was := now.Mode().Perm() &^ 0o111
		if perm&0o100 != 0 {
			was |= was >> 2 & 0o111
		}
		err = f.Chmod(was | 0o600)
	}
	err = errors.Join(err, f.Close())
	if err == nil && w.times && e.Mtime != 0 {
		err = w.root.Chtimes(tmp, time.Time{}, time.Unix(0, e.Mtime))
	}
	if err == nil {
		err = w.root.Rename(tmp, e.Path)
	}
	if err != nil {
		_ = w.root.Remove(tmp) // the first error counts
	}
	return err
}

func (w *writer) directory(e entry) error {
	err := w.root.Mkdir(e.Path, 0o777)
	if errors.Is(err, fs.ErrExist) {
		if now, lerr := w.root.Lstat(e.Path); lerr != nil || !now.IsDir() {
			return errInTheWay
		}
		err = nil
	}
	w.dirs[e.Path] = true
	return err
}

// permissions gives a directory its permissions; call it when everything is in it.
func (w *writer) permissions(e entry) error {
	if !w.exact || !e.Mode.IsDir() {
		return nil
	}
	return w.root.Chmod(e.Path, e.Mode.Perm())
}

func (w *writer) link(e entry, r io.Reader) error {
	var target bytes.Buffer
	if _, err := io.Copy(&target, io.LimitReader(r, 1<<16)); err != nil {
		return err
	}
	if now, err := w.root.Lstat(e.Path); err == nil && now.IsDir() && !w.removeEmpty(e.Path) {
		return errInTheWay
	}
	tmp := path.Join(path.Dir(e.Path), tempPrefix+rand.Text())
	if err := w.root.Symlink(target.String(), tmp); err != nil {
		return err
	}
	if err := w.root.Rename(tmp, e.Path); err != nil {
		_ = w.root.Remove(tmp) // the first error counts
		return err
	}
	return nil
}

// parents makes the directories above a file.
func (w *writer) parents(dir string) error {
	if dir == "." || w.dirs[dir] {
		return nil
	}
	if err := w.parents(path.Dir(dir)); err != nil {
		return err
	}
	now, err := w.root.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = w.root.Mkdir(dir, 0o777)
	case err == nil && !now.IsDir():
		err = errInTheWay
	}
	if err == nil {
		w.dirs[dir] = true
	}
	return err
}

// remove removes a file, link or empty directory, and the directories above it that this empties.
func (w *writer) remove(e entry) error {
	if w.behindLink(path.Dir(e.Path)) {
		return nil // it is not there
	}
	err := w.root.Remove(e.Path)
	if errors.Is(err, fs.ErrNotExist) || e.Mode.IsDir() {
		return nil // a directory that is not empty stays
	}
	if err == nil && !w.exact { // git knows no empty directories
		for dir := path.Dir(e.Path); dir != "." && w.root.Remove(dir) == nil; dir = path.Dir(dir) {
			delete(w.dirs, dir)
		}
	}
	return err
}

// removeEmpty removes a directory in which there is nothing but empty directories, which no snapshot of git knows, and reports whether
// it is gone. Nothing that somebody puts into it meanwhile goes.
func (w *writer) removeEmpty(dir string) bool {
	var all []string // each before what is in it
	err := fs.WalkDir(w.root.FS(), dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			err = errInTheWay
		}
		all = append(all, name)
		return err
	})
	for _, name := range slices.Backward(all) {
		if err != nil {
			return false
		}
		delete(w.dirs, name)
		err = w.root.Remove(name)
	}
	return err == nil
}

// behindLink reports whether a directory is reached through a symbolic link, or is none.
func (w *writer) behindLink(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if now, err := w.root.Lstat(dir); err == nil && !now.IsDir() {
			return true
		}
	}
	return false
}

// safePath reports whether a path of a snapshot may be written: relative, clean, and not inside .git,
// which is not work but runs programs.
func safePath(p string) bool {
	if p == "" || path.IsAbs(p) || path.Clean(p) != p || strings.IndexByte(p, 0) >= 0 {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." || strings.EqualFold(part, ".git") {
			return false
		}
	}
	return true
}

// plan says what turns have into want: what is to be written, and what is to be removed, deepest
// first. Both lists are sorted by path. comparable says that the hashes of both are of one kind.
func plan(want, have []entry, comparable bool) (write, remove []entry) {
	now := make(map[string]entry, len(have))
	for _, e := range have {
		now[e.Path] = e
	}
	for _, e := range want {
		if was, ok := now[e.Path]; !ok || !comparable || !was.is(e) {
			write = append(write, e)
		}
		// A file and a directory of the same name: the one goes before the other comes.
		if was, ok := now[e.Path]; !ok || was.Mode.IsDir() == e.Mode.IsDir() {
			delete(now, e.Path)
		}
	}
	for i := len(have) - 1; i >= 0; i-- {
		if _, gone := now[have[i].Path]; gone && have[i].Mode&fs.ModeIrregular == 0 {
			remove = append(remove, have[i])
		}
	}
	return write, remove
}

// fileError gives a failure to write a file its code.
func fileError(op, p string, err error) error {
	var se *types.SyscallError
	if errors.As(err, &se) {
		return err
	}
	code := types.ErrStorage
	if errors.Is(err, fs.ErrPermission) {
		code = types.ErrPermission
	}
	return types.Errorf(code, op, p, "%w", err)
}
