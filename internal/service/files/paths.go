package files

import (
	"path/filepath"
	"strings"

	"rnix/types"
)

// resolved returns a path without symbolic links, as far as it is there.
func resolved(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return filepath.Clean(path)
}

// under reports whether a path is a directory or below it. Both are clean.
func under(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// Within reports whether a path is a directory or below it, wherever symbolic links lead.
func Within(path, dir string) bool { return under(resolved(path), resolved(dir)) }

// Made returns what tells whether a directory is, or lies in, one that was made for a history to work in: its git work tree, or the workspace of a
// fork.
func Made(t *Trees, s *Snapshots) func(id types.UUID, dir string) bool {
	return func(id types.UUID, dir string) bool { return Within(dir, t.Home(id)) || Within(dir, s.ForkDir(id)) }
}

// below returns paths, absolute or relative to dir, as ones relative to top. The whole of top is no path.
func below(op, top, dir string, paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		abs := p
		if !filepath.IsAbs(p) {
			abs = filepath.Join(dir, p)
		}
		abs = filepath.Join(resolved(filepath.Dir(abs)), filepath.Base(abs)) // the way there, not the file itself
		if !under(abs, top) {
			abs = resolved(abs)
		}
		switch {
		case p == "" || !under(abs, top) || strings.HasPrefix(p, ":"):
			return nil, types.Errorf(types.ErrInvalid, op, p, "is not a file of the work in %s", top)
		case abs == top:
			return nil, nil
		}
		out = append(out, strings.TrimPrefix(abs, strings.TrimSuffix(top, "/")+"/"))
	}
	return out, nil
}
