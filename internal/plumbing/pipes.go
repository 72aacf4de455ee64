package plumbing

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// rulesFiles are the files of a work tree that git opens wherever they are, and reads to their end.
var rulesFiles = []string{".gitignore", ".gitattributes"}

// Bounds of a look for a pipe, since agents write what is looked through: so many files and lines are looked at, and so many bytes of names are held. A
// system follows 40 links in a path, and git 5 alternates one after the other, so what more of them lead to is nothing that git opens.
const (
	mostEntries = 1 << 21
	mostNames   = 1 << 26
	mostLeads   = 40
)

// heldName is what a name that is held takes up besides its bytes.
const heldName = 64

// pipe returns the first pipe at which a git waits; "" if there is none, or ctx has ended.
func (w Where) pipe(ctx context.Context) string {
	p := pipes{ctx: ctx, left: mostEntries, room: mostNames, seen: map[string]bool{}}
	if w.Top != "" {
		p.add(lookAt{dir: Resolved(w.Top)})
		p.repository(Dir(w.Top), 0)
	}
	for _, dir := range w.Gits {
		p.repository(dir, 0)
	}
	p.look()
	if rel, err := filepath.Rel(Resolved(w.Top), p.found); w.Top != "" && p.found != "" && err == nil && filepath.IsLocal(rel) {
		return "./" + rel
	}
	return p.found
}

// pipes looks for one. What is to be looked through stands in a list: however long the way is on which links lead, none is inside of another.
type pipes struct {
	ctx   context.Context
	left  int             // so many files and lines are looked at yet
	room  int             // so many bytes of names are held yet
	todo  []lookAt        // the last one is the next
	seen  map[string]bool // git directories, and those of objects, that were added
	found string
}

// lookAt is a directory to look through. In a work tree only rules are what git opens without a look; in a git directory, also that of a repository in a
// work tree, it is everything.
type lookAt struct {
	dir   string // without links
	git   bool
	leads int // so many links and alternates have led here
}

// over reports whether nothing more is looked at.
func (p *pipes) over() bool { return p.found != "" || p.left < 0 || p.room < 0 || p.ctx.Err() != nil }

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
func (p *pipes) repository(dir string, leads int) {
	if dir != "" {
		p.git(dir, leads)
		p.git(CommonOf(dir), leads)
	}
}

// git adds a directory of a repository, once.
func (p *pipes) git(dir string, leads int) {
	dir = Resolved(dir)
	if leads > mostLeads || p.seen[dir] {
		return
	}
	p.seen[dir] = true
	p.room -= len(dir) + heldName
	p.add(lookAt{dir, true, leads})
}

// borrowed adds what the alternates of a directory of objects lead to.
func (p *pipes) borrowed(objects string, leads int) {
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
		p.git(other, leads+1)
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
		p.repository(Dir(at.dir), at.leads)
	case e.IsDir():
		if !at.git || !p.seen[path] {
			p.add(lookAt{path, at.git, at.leads})
		}
	case at.git || slices.Contains(rulesFiles, e.Name()):
		p.file(at, path, e.Type())
	}
}

// file looks at a file that git opens, or at what a link in its place leads to.
func (p *pipes) file(at lookAt, path string, kind fs.FileMode) {
	link := kind == fs.ModeSymlink
	if link {
		info, err := os.Stat(path)
		if err != nil {
			return
		}
		kind = info.Mode().Type()
	}
	switch {
	case kind == fs.ModeNamedPipe && link:
		p.found = Resolved(path)
	case kind == fs.ModeNamedPipe:
		p.found = path
	case kind == fs.ModeDir && at.git:
		p.git(path, at.leads+1)
	case at.git && filepath.Base(path) == "alternates" && filepath.Base(at.dir) == "info":
		p.borrowed(filepath.Dir(at.dir), at.leads)
	}
}
