package run

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// furnish copies the files of the case into the workspace.
func (s *stage) furnish() error {
	c := s.c
	from := filepath.Join(c.Dir, "workspace")
	if c.Workspace != "" {
		from = filepath.Join(c.Dir, c.Workspace)
		if i, err := os.Stat(from); err != nil || !i.IsDir() {
			return fmt.Errorf("%s: the workspace %s is no directory", c.At("workspace"), from)
		}
	}
	if err := s.lay("", from); err != nil {
		return err
	}
	for _, to := range sorted(c.Overlay) {
		from := filepath.Join(c.Dir, c.Overlay[to])
		i, err := os.Stat(from)
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
