package fs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/types"
	"rnix/vfs"
)

// OwnDir is a directory of Rnix itself.
type OwnDir struct {
	Path string // absolute; it need not exist
	What string // such as "data directory"
	// Links says that what symbolic links in it lead to belongs to it, as files of a configuration that is kept elsewhere do.
	Links bool
}

// WorkPlace is a directory of Rnix in which processes work.
type WorkPlace struct {
	Path  string // absolute
	Depth int    // how many levels below Path a workspace begins, at least
}

// Own are the directories of Rnix itself: the devices serve nothing in them, whatever the caller, so that an agent whose
// workspace holds them can neither change what Rnix does nor read what other agents do. nil = none. It never changes.
type Own struct {
	dirs  []OwnDir
	works []WorkPlace
	// Writes, if it is set, returns what refuses a caller changes of its workspace, or nil: of what is at an absolute path without symbolic links, and with
	// whole of all that is below it. It is set before the first request.
	Writes func(vfs.Caller) func(abs string, whole bool) error
}

// NewOwn returns the directories that are refused. Of these a caller can reach nothing but its scratch and its inputs, and
// its workspace and what else it may read if that is in one of works.
func NewOwn(dirs []OwnDir, works ...WorkPlace) *Own {
	return &Own{dirs: slices.Clone(dirs), works: slices.Clone(works)}
}

// Paths returns where the directories are.
func (o *Own) Paths() (out []string) {
	for i := range o.dirs {
		out = append(out, o.dirs[i].Path)
	}
	return out
}

// guard is what Own means for one request. The zero value refuses nothing.
type guard struct {
	shut []shutDir
	open []string // directories that the caller may reach all the same, without symbolic links
}

// shutDir is a directory that is refused, or a file to which a link in it leads.
type shutDir struct {
	*OwnDir
	names []string    // under which it can be reached, the last one without symbolic links
	info  fs.FileInfo // nil if it does not exist
}

// guard looks at where the directories are now.
func (o *Own) guard(c vfs.Caller) (g guard) {
	if o == nil {
		return g
	}
	for i := range o.dirs {
		d := &o.dirs[i]
		g.add(d, d.Path)
		if d.Links {
			g.addLinks(d)
		}
	}
	open := []string{c.Scratch, c.Inputs}
	for _, w := range o.works {
		for _, dir := range append([]string{c.WorkDir}, c.ReadRoots...) { // it is given the work trees of its children to read
			if real, ok := w.holds(dir); ok {
				open = append(open, real)
			}
		}
	}
	for _, dir := range open {
		if dir != "" {
			names := trail(dir)
			g.open = append(g.open, names[len(names)-1])
		}
	}
	return g
}

// holds reports whether dir is a workspace in w.
func (w WorkPlace) holds(dir string) (real string, ok bool) {
	if dir == "" {
		return "", false
	}
	names, places := trail(dir), trail(w.Path)
	real = names[len(names)-1]
	rel, err := filepath.Rel(places[len(places)-1], real)
	return real, err == nil && filepath.IsLocal(rel) && rel != "." && strings.Count(rel, "/")+1 >= w.Depth
}

func (g *guard) add(d *OwnDir, path string) {
	s := shutDir{OwnDir: d, names: trail(path)}
	s.info, _ = os.Stat(path) // what does not exist has no other names
	g.shut = append(g.shut, s)
}

// maxLinks bounds how many entries of a directory are searched for links.
const maxLinks = 2000

func (g *guard) addLinks(d *OwnDir) {
	n := 0
	_ = filepath.WalkDir(d.Path+"/", func(path string, e fs.DirEntry, err error) error {
		if n++; n > maxLinks {
			return fs.SkipAll
		}
		if err == nil && e.Type()&fs.ModeSymlink != 0 {
			g.add(d, path)
		}
		return nil // what cannot be read is no link that Rnix follows
	})
}

// trail returns the names under which an absolute path can be reached: as it is given, with its first symbolic link
// replaced, and so on. The last one has none. What does not exist stays as it stands.
func trail(path string) []string {
	path = filepath.Clean(path)
	out := []string{path}
	for range 40 { // as many as Linux follows
		link, rest := firstLink(path)
		if link == "" {
			break
		}
		target, err := os.Readlink(link)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		path = filepath.Join(target, rest)
		out = append(out, path)
	}
	return out
}

// firstLink splits a path behind its first element that is a symbolic link.
func firstLink(path string) (link, rest string) {
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != '/' {
			continue
		}
		info, err := os.Lstat(path[:end])
		if err != nil {
			return "", ""
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return path[:end], path[end:]
		}
	}
	return "", ""
}

// named returns the directory of ours that abs is or lies in by its text; nil if there is none. abs has no symbolic links,
// but for the last element.
func (g *guard) named(abs string) *OwnDir {
	if g == nil || len(g.shut) == 0 || g.reachable(abs) {
		return nil
	}
	for _, s := range g.shut {
		if slices.ContainsFunc(s.names, func(name string) bool { return vfs.Below(abs, name) }) {
			return s.OwnDir
		}
	}
	return nil
}

func (g *guard) reachable(abs string) bool {
	return slices.ContainsFunc(g.open, func(dir string) bool { return vfs.Below(abs, dir) })
}

// is returns the directory of ours that info describes, under whatever name it was found.
func (g *guard) is(info fs.FileInfo) *OwnDir {
	for _, s := range g.shut {
		if s.info != nil && os.SameFile(s.info, info) {
			return s.OwnDir
		}
	}
	return nil
}

// holding returns the directory of ours that abs is or lies in, whatever it is called there: a bind mount or a file system
// that does not distinguish cases gives it other names.
func (g *guard) holding(abs string) *OwnDir {
	if d := g.named(abs); d != nil || len(g.shut) == 0 || g.reachable(abs) {
		return d
	}
	for at := abs; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil {
			if d := g.is(info); d != nil {
				return d
			}
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// below returns the directory of ours that abs is or holds: to move or delete abs would take it along.
func (g *guard) below(abs string) *OwnDir {
	for _, s := range g.shut {
		if slices.ContainsFunc(s.names, func(name string) bool { return vfs.Below(name, abs) }) {
			return s.OwnDir
		}
	}
	return nil
}

// opened refuses an open file that is in a directory of ours: between check and use a path may have come to lead there.
func (g *guard) opened(f *os.File) error {
	if g == nil || len(g.shut) == 0 {
		return nil
	}
	if d := g.named(nameOf(f)); d != nil {
		return refused(d.refusal())
	}
	return nil
}

// listed is opened for a directory, which is known under other names too.
func (g *guard) listed(f *os.File) error {
	if g == nil || len(g.shut) == 0 {
		return nil
	}
	if err := g.opened(f); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if d := g.is(info); d != nil {
		return refused(d.refusal())
	}
	return nil
}

func (d *OwnDir) refusal() string {
	return "belongs to Rnix itself (its " + d.What + ", " + d.Path + "), which agents may not reach"
}

// refuse makes an error of a directory that was found; nil of none.
func refuse(path string, d *OwnDir) error {
	if d == nil {
		return nil
	}
	return types.Errorf(types.ErrPermission, "Open", path, "%s", d.refusal())
}
