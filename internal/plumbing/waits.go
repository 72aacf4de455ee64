package plumbing

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
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
}

// Watch returns the context of a git that is about to start. Agents can put a pipe in the place of a file that git opens, at which it waits for whoever
// writes. If the git has not ended after some time, it is looked once whether there is one where it works, and the context ends if so. end belongs to
// the end of the git; it returns a *PipeError if that was why. A git that ends in time costs nothing but a timer.
func Watch(ctx context.Context, after time.Duration, where func() Where) (watched context.Context, end func() error) {
	watched, cancel := context.WithCancelCause(ctx)
	looked := make(chan struct{})
	timer := time.AfterFunc(after, func() {
		defer close(looked)
		if path := where().pipe(watched); path != "" {
			cancel(&PipeError{path})
		}
	})
	return watched, func() error {
		idle, why := timer.Stop(), context.Cause(watched)
		cancel(nil)
		if !idle {
			<-looked
		}
		if pipe, ok := errors.AsType[*PipeError](why); ok {
			return pipe
		}
		return nil
	}
}

// pipe returns the first pipe at which a git waits; "" if there is none, or ctx has ended.
func (w Where) pipe(ctx context.Context) string {
	if w.Top != "" {
		if path := pipeBelow(ctx, w.Top, false); path != "" {
			if rel, err := filepath.Rel(w.Top, path); err == nil {
				return "./" + rel
			}
			return path
		}
	}
	for _, dir := range w.Gits {
		if dir != "" {
			if path := pipeBelow(ctx, dir, true); path != "" {
				return path
			}
		}
	}
	return ""
}

// pipeBelow looks through a directory. In a work tree only rules are what git opens without a look; in a git directory, also that of a repository in a
// work tree, it is all but objects, of which there are too many.
func pipeBelow(ctx context.Context, dir string, git bool) (found string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // what cannot be read is none
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			return nil // of a directory nothing more comes
		case e.IsDir() && git && e.Name() == "objects" && path != dir:
			return fs.SkipDir
		case e.IsDir() && !git && e.Name() == ".git" && path != dir:
			if found = pipeBelow(ctx, path, true); found != "" {
				return fs.SkipAll
			}
			return fs.SkipDir
		case e.Type() == fs.ModeNamedPipe && (git || slices.Contains(rulesFiles, e.Name())):
			found = path
			return fs.SkipAll
		}
		return nil
	})
	return found
}
