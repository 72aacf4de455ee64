package run

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// furnish copies the files of the case into the workspace.
func (s *stage) furnish() error {
	c := s.c
	from, err := c.Path(cmp.Or(c.Workspace, "workspace"))
	if i, serr := os.Stat(from); err == nil && (serr != nil || !i.IsDir()) {
		err = fmt.Errorf("it is no directory")
	}
	switch {
	case err == nil:
		err = s.lay("", from)
	case c.Workspace == "" && errors.Is(err, fs.ErrNotExist):
		err = nil // it begins with nothing
	default:
		err = fmt.Errorf("%s: the workspace: %w", c.At("workspace"), err)
	}
	if err != nil {
		return err
	}
	for _, to := range sorted(c.Overlay) {
		var i os.FileInfo
		from, err := c.Path(c.Overlay[to])
		if err == nil {
			i, err = os.Stat(from)
		}
		switch {
		case err != nil:
		case i.IsDir():
			err = s.lay(to, from)
		default:
			var b []byte
			if b, err = os.ReadFile(from); err == nil {
				err = write(s.work, map[string][]byte{to: b}, map[string]fs.FileMode{to: i.Mode() & 0o111})
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.At("overlay."+to), err)
		}
	}
	return nil
}

// lay copies the files below a directory into one of the workspace.
func (s *stage) lay(to, from string) error {
	files, err := tree(from)
	if err != nil {
		return err
	}
	what := special(from, files)
	if to != "" {
		moved, as := map[string][]byte{}, map[string]fs.FileMode{}
		for name, b := range files {
			at := path.Join(filepath.ToSlash(to), name)
			moved[at], as[at] = b, what[name]
		}
		files, what = moved, as
	}
	return write(s.work, files, what)
}
