package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"rnix/internal/plumbing"
	"rnix/runtime/worktree"
	"rnix/types"
)

// cutOff puts a work tree in order that was cut off while it was made or removed, so that Remove can look at it as at any other: git fails in one
// that has lost its .git. It writes that anew if the repository still knows the work tree. Otherwise, if no file is in the directory, it removes it,
// and what git has noted of a work tree that it had not finished.
func (k *desks) cutOff(ctx context.Context, d desk) error {
	leave, err := worktree.Enter(ctx, d.Common, true) // nobody here is at making it
	if err != nil {
		return err
	}
	defer leave()
	link := filepath.Join(d.Dir, ".git")
	_, err = os.Lstat(link)
	linked, known := err == nil, plumbing.Registration(d.Common, d.Dir)
	adding := known != "" && plumbing.Adding(known)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || linked && !adding {
		return nil
	}
	files := filesBelow(d.Dir, ".", 2)
	switch {
	case len(files) == 0, adding && len(files) == 1 && files[0] == ".git": // git writes files when it has ended
		if linked {
			if err := os.Remove(link); err != nil {
				return fileError("Remove", link, err)
			}
		}
		if err := removeHollow(d.Dir); err != nil {
			return err
		}
		if !adding {
			return nil
		}
		_, err := k.run(ctx, d.owner(), call{args: []string{"--git-dir=" + d.Common, "worktree", "unlock", "--", d.Dir}})
		return err
	case known != "" && !linked:
		if err := os.WriteFile(link, []byte("gitdir: "+known+"\n"), 0o666); err != nil {
			return fileError("Remove", link, err)
		}
	}
	return nil
}

// removeHollow removes a directory, if it is there, in which there is nothing but directories. Anything else that has come meanwhile stays, and is an error.
func removeHollow(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		dirs = append(dirs, p)
		return err
	})
	for _, d := range slices.Backward(dirs) {
		if err == nil {
			err = unix.Rmdir(d)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return types.Errorf(types.ErrConflict, "Remove", dir, "it cannot be removed: %w", err)
	}
	return nil
}

// openDirs lets the user remove what is in a directory: tools such as Go's module cache make directories in which nobody may write. What cannot be
// changed stays as it is.
func openDirs(dir string) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode()&0o700 != 0o700 {
			_ = os.Chmod(p, info.Mode().Perm()|0o700)
		}
		return nil
	})
}
