package plumbing

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Patience is after how long it is looked for what a git waits that has not ended.
const Patience = 2 * time.Second

// rulesFiles are the files of a work tree that git opens wherever they are, and reads to their end.
var rulesFiles = []string{".gitignore", ".gitattributes"}

// A PipeError says which file keeps a git from ending.
type PipeError struct{ Path string }

func (e *PipeError) Error() string {
	return e.Path + " is a pipe, at which git waits for ever: remove it"
}

// Where are the directories that a git reads: the top of a work tree, and git directories. What is "" is not there.
type Where struct {
	Top  string
	Gits []string
	PID  int // of the git; 0 = not known, and less = it has not started
}

// mostEntries is how many files are looked at for a pipe.
const mostEntries = 1 << 21

// Watch returns the context of a git that is about to start. Agents can put a pipe in the place of a file that git opens, at which it waits for whoever
// writes. If the git has not ended after some time, it is looked whether there is one where it works, and again after twice the time, and so on. The
// context ends if there is one and the git, as far as that is known, does nothing meanwhile. end belongs to the end of the git; it returns a *PipeError
// if that was why.
func Watch(ctx context.Context, after time.Duration, where func() Where) (watched context.Context, end func() error) {
	watched, cancel := context.WithCancelCause(ctx)
	looked := make(chan struct{})
	pause := func(d time.Duration) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-watched.Done():
			return false
		}
	}
	go func() { // ends with watched, which end ends
		defer close(looked)
		for wait := after; pause(wait); wait *= 2 {
			w := where()
			path := w.pipe(watched)
			if path == "" || w.PID < 0 {
				continue
			}
			if before, known := spent(w.PID); known {
				if !pause(after / 2) {
					return
				}
				if now, known := spent(w.PID); !known || now != before {
					continue // it works, or is no more: it is another file's
				}
			}
			cancel(&PipeError{path})
			return
		}
	}()
	return watched, func() error {
		why := context.Cause(watched)
		cancel(nil)
		<-looked
		if pipe, ok := errors.AsType[*PipeError](why); ok {
			return pipe
		}
		return nil
	}
}

// spent returns the processor time that a process and its children have used, in ticks, where the system says it.
func spent(pid int) (ticks uint64, known bool) {
	if pid <= 0 {
		return 0, false
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	b, err := os.ReadFile(filepath.Join(proc, "stat"))
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // behind the name, which can have anything in it
	if err != nil || len(f) < 15 {
		return 0, false
	}
	for _, field := range f[11:15] { // of itself, and of children that have ended
		n, _ := strconv.ParseUint(field, 10, 64)
		ticks += n
	}
	lists, _ := filepath.Glob(filepath.Join(proc, "task", "*", "children"))
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for child := range strings.FieldsSeq(string(b)) {
			if id, err := strconv.Atoi(child); err == nil {
				n, _ := spent(id)
				ticks += n
			}
		}
	}
	return ticks, true
}

// pipe returns the first pipe at which a git waits; "" if there is none, or ctx has ended.
func (w Where) pipe(ctx context.Context) string {
	p := pipes{ctx: ctx, left: mostEntries, seen: map[string]bool{}}
	for _, dir := range w.Gits {
		if dir != "" {
			p.repository(dir)
		}
	}
	if w.Top != "" && p.found == "" {
		p.repository(Dir(w.Top))
		p.below(w.Top, false)
	}
	if rel, err := filepath.Rel(w.Top, p.found); w.Top != "" && p.found != "" && err == nil && filepath.IsLocal(rel) {
		return "./" + rel
	}
	return p.found
}

// pipes looks for one.
type pipes struct {
	ctx   context.Context
	left  int             // so many files are looked at yet
	seen  map[string]bool // git directories, and those of objects
	found string
}

// repository looks through a git directory, that of its repository, and the objects that this borrows.
func (p *pipes) repository(dir string) {
	for _, dir := range []string{dir, CommonOf(dir)} {
		if dir != "" {
			p.git(dir)
			p.borrowed(filepath.Join(dir, "objects"))
		}
	}
}

// borrowed looks through the alternates of a directory of objects.
func (p *pipes) borrowed(objects string) {
	if p.found != "" {
		return
	}
	b, err := Beginning(filepath.Join(objects, "info", "alternates"), MostText)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(b)) {
		other := strings.TrimRight(line, "\n")
		if other == "" || other[0] == '#' {
			continue
		}
		if !filepath.IsAbs(other) {
			other = filepath.Join(objects, other)
		}
		if p.git(other) {
			p.borrowed(other)
		}
	}
}

// git looks through a directory of a repository, once.
func (p *pipes) git(dir string) bool {
	dir = Resolved(dir)
	if p.found != "" || p.seen[dir] {
		return false
	}
	p.seen[dir] = true
	p.below(dir, true)
	return true
}

// below looks through a directory. In a work tree only rules are what git opens without a look; in a git directory, also that of a repository in a
// work tree, it is everything.
func (p *pipes) below(dir string, git bool) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // what cannot be read is none
		p.left--
		mine := git || slices.Contains(rulesFiles, filepath.Base(path))
		switch {
		case p.ctx.Err() != nil, p.left < 0, p.found != "":
			return fs.SkipAll
		case err != nil:
			return nil // of a directory nothing more comes
		case !git && e.Name() == ".git" && path != dir:
			p.repository(Dir(filepath.Dir(path)))
			if e.IsDir() {
				return fs.SkipDir
			}
		case e.IsDir() && git && path != dir && p.seen[path]:
			return fs.SkipDir
		case e.Type() == fs.ModeNamedPipe && mine:
			p.found = path
		case e.Type() == fs.ModeSymlink && mine:
			if info, err := os.Stat(path); err == nil && info.Mode().Type() == fs.ModeNamedPipe {
				p.found = Resolved(path)
			} else if err == nil && git && info.IsDir() {
				p.git(path)
			}
		}
		return nil
	})
}
