package plumbing

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// rulesFiles are the files of a work tree that git opens wherever they are, and reads to their end.
var rulesFiles = []string{".gitignore", ".gitattributes", ".gitmodules"}

// Bounds of a look for a pipe, since agents write what is looked through: so many files and lines are looked at, and so many bytes of names are held. A
// system follows 40 links in a path, and git 5 alternates one after the other, so what more of them lead to is nothing that git opens.
const (
	mostEntries = 1 << 21
	mostNames   = 1 << 26
	mostLeads   = 40
)

// heldName is what a name that is held takes up besides its bytes.
const heldName = 64

// pipe returns the first pipe at which a git may wait; nil if there is none, or ctx has ended. open is one that it has open, which then is the one; "" = none.
func (w Where) pipe(ctx context.Context, open string) *PipeError {
	p := pipes{ctx: ctx, open: open, left: mostEntries, room: mostNames, seen: map[string]bool{}}
	gits, by := w.Gits, ""
	if w.Ours != "" {
		p.ours = Resolved(w.Ours)
	}
	if w.Top != "" {
		p.top = Resolved(w.Top)
		p.named = append(p.named, p.top)
		gits, by = append([]string{Dir(p.top)}, gits...), filepath.Join(p.top, ".git")
	}
	for _, dir := range gits {
		if dir != "" && IsDir(CommonOf(dir)) {
			p.named = append(p.named, Resolved(dir), CommonOf(dir))
		}
	}
	if p.mayName(open) {
		p.find(open, "")
		return p.found
	}
	if p.top != "" {
		p.add(lookAt{dir: p.top})
	}
	for _, dir := range gits {
		p.repository(dir, by, 0)
	}
	if p.look(); p.found == nil && open != "" && ctx.Err() == nil {
		return &PipeError{}
	}
	return p.found
}

// pipes looks for one. What is to be looked through stands in a list: however long the way is on which links lead, none is inside of another.
type pipes struct {
	ctx   context.Context
	top   string          // of the work tree; "" = none
	ours  string          // see Where
	open  string          // the only one that counts; "" = each does
	named []string        // what is in these directories may be named: those that links and a .git lead to can be anybody's
	left  int             // so many files and lines are looked at yet
	room  int             // so many bytes of names are held yet
	todo  []lookAt        // the last one is the next
	seen  map[string]bool // git directories, and those of objects, that were added
	found *PipeError
}

// lookAt is a directory to look through. In a work tree only rules are what git opens without a look; in a git directory, also that of a repository in a
// work tree, it is everything.
type lookAt struct {
	dir   string // without links
	git   bool
	by    string // what has led out of the directories that may be named; "" = nothing
	leads int    // so many links and alternates have led here
}

// over reports whether nothing more is looked at.
func (p *pipes) over() bool { return p.found != nil || p.left < 0 || p.room < 0 || p.ctx.Err() != nil }

// look looks through what is to be looked through.
func (p *pipes) look() {
	for len(p.todo) > 0 && !p.over() {
		last := len(p.todo) - 1
		at := p.todo[last]
		p.todo = p.todo[:last]
		p.room += len(at.dir) + heldName
		p.through(at)
	}
}

// add adds a directory to what is to be looked through.
func (p *pipes) add(at lookAt) {
	p.room -= len(at.dir) + heldName
	p.todo = append(p.todo, at)
}

// repository adds a git directory and that of its repository.
func (p *pipes) repository(dir, by string, leads int) {
	if dir != "" {
		p.git(dir, by, leads)
		p.git(CommonOf(dir), by, leads)
	}
}

// git adds a directory of a repository, once.
func (p *pipes) git(dir, by string, leads int) {
	dir = Resolved(dir)
	if leads > mostLeads || p.seen[dir] {
		return
	}
	p.seen[dir] = true
	p.room -= len(dir) + heldName
	if p.mayName(dir) {
		by = ""
	}
	p.add(lookAt{dir, true, by, leads})
}

// mayName reports whether a path may be named.
func (p *pipes) mayName(path string) bool {
	return slices.ContainsFunc(p.named, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

// find notes a pipe, to which something may have led.
func (p *pipes) find(path, by string) {
	if p.open != "" && path != p.open {
		return
	}
	p.found = &PipeError{}
	switch {
	case p.mayName(path):
		p.found.Path = path
	case by != "" && p.mayName(by):
		p.found.Path, p.found.leads = by, true
	}
	if rel, below := strings.CutPrefix(p.found.Path, p.top+"/"); p.top != "" && below {
		p.found.Path = "./" + rel
	}
}

// borrowed adds what the alternates of a directory of objects lead to.
func (p *pipes) borrowed(objects, by string, leads int) {
	b, err := Beginning(filepath.Join(objects, "info", "alternates"), MostText)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) {
		if p.left--; p.over() {
			return
		}
		other := strings.TrimRight(line, "\n")
		if other == "" || other[0] == '#' {
			continue
		}
		if !filepath.IsAbs(other) {
			other = filepath.Join(objects, other)
		}
		if p.ours != "" && strings.HasPrefix(objects, p.ours+"/") {
			p.named = append(p.named, Resolved(other))
		}
		p.git(other, by, leads+1)
	}
}

// batch is how many files of a directory are read at once: one can have more than memory holds.
const batch = 1 << 10

// through looks through a directory, and adds those in it. What cannot be read is none.
func (p *pipes) through(at lookAt) {
	f, err := os.OpenFile(at.dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // another file may have its place by now
	if err != nil {
		return
	}
	defer f.Close()
	for !p.over() {
		entries, err := f.ReadDir(batch)
		for _, e := range entries {
			if p.left--; p.over() {
				return
			}
			p.entry(at, e)
		}
		if err != nil {
			return
		}
	}
}

// entry looks at one entry of a directory.
func (p *pipes) entry(at lookAt, e fs.DirEntry) {
	path := filepath.Join(at.dir, e.Name())
	switch {
	case !at.git && e.Name() == ".git":
		p.repository(Dir(at.dir), path, at.leads)
	case e.IsDir():
		if !at.git || !p.seen[path] {
			p.add(lookAt{path, at.git, at.by, at.leads})
		}
	case at.git || slices.Contains(rulesFiles, e.Name()):
		p.file(at, path, e.Type())
	}
}

// file looks at a file that git opens, or at what a link in its place leads to.
func (p *pipes) file(at lookAt, path string, kind fs.FileMode) {
	real, by := path, cmp.Or(at.by, path)
	if kind == fs.ModeSymlink {
		info, err := os.Stat(path)
		if err != nil {
			return
		}
		real, kind = Resolved(path), info.Mode().Type()
	}
	switch {
	case kind == fs.ModeNamedPipe:
		p.find(real, by)
	case kind == fs.ModeDir && at.git:
		p.git(real, by, at.leads+1)
	case at.git && filepath.Base(path) == "alternates" && filepath.Base(at.dir) == "info":
		p.borrowed(filepath.Dir(at.dir), by, at.leads)
	}
}
