package plumbing

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Patience is after how long it is looked for what a git waits that has not ended.
const Patience = 2 * time.Second

// mostPatience is how many times as long as it takes to the first look a git may wait for one file to open without a pipe that is found. On Linux an open
// waits so for a pipe, for a server that does not answer and for a file that another program gives back, and for the latter two not that long; locks,
// hooks, editors and the network are waited for by other calls. With looks after 2, 6, 14, 30, 62 and 126 seconds, it is ended after one or two minutes,
// and after twice that if the looks are slow.
const mostPatience = 25

// A PipeError says which file keeps a git from ending.
type PipeError struct {
	Path  string // "" = it lies elsewhere than in the work tree and its repository, or is not found
	leads bool   // it only leads to the pipe, which lies elsewhere
}

func (e *PipeError) Error() string {
	switch {
	case e.Path == "":
		return "git waits for ever to open or read a file, such as a pipe, that is neither in its work tree nor in its repository: see what .git leads to, and what include.path, core.excludesFile and core.attributesFile name"
	case e.leads:
		return e.Path + " leads to a pipe, at which git waits for ever: remove it"
	}
	return e.Path + " is a pipe, at which git waits for ever: remove it"
}

// Where are the directories that a git reads: the top of a work tree, and git directories. What is "" is not there.
type Where struct {
	Top  string
	Gits []string
	Ours string // a directory in which no agent writes: what repositories in it borrow may be named
}

// watchKey is under what the context of Watch has the PID of its git: 0 = not known, and less = it has not started.
type watchKey struct{}

// Starting says that the git is being started that a context of Watch is for. The function that it returns says which process that is: without it, it is
// not known what the git does.
func Starting(ctx context.Context) (started func(pid int)) {
	pid, ok := ctx.Value(watchKey{}).(*atomic.Int64)
	if !ok {
		return func(int) {}
	}
	pid.Store(-1)
	return func(is int) { pid.Store(int64(is)) }
}

// Watch returns the context of a git that is about to start. Agents can put a pipe in the place of a file that git opens, at which it waits for whoever
// writes, or reads for ever. If the git has not ended after some time, it is looked whether it does, and again after twice the time, and so on. The
// context ends if so, and after a longer time also without a pipe that is found. end belongs to the end of the git; it returns a *PipeError if that was why.
func Watch(ctx context.Context, after time.Duration, where func() Where) (watched context.Context, end func() error) {
	var pid atomic.Int64
	watched, cancel := context.WithCancelCause(context.WithValue(ctx, watchKey{}, &pid))
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
		var last doing
		since := time.Now() // it has done nothing but what last says
		for wait := after; pause(wait); wait *= 2 {
			w, is := where(), int(pid.Load())
			if is < 0 {
				continue
			}
			before := doingOf(is)
			if !last.waits(before) {
				since = time.Now()
			}
			last = before
			looking, stop := context.WithTimeout(watched, wait) // an agent can have it search for longer
			found := w.pipe(looking, before.pipe)
			stop()
			if found == nil && (before.pipe != "" || before.opens && time.Since(since) >= mostPatience*after) {
				found = &PipeError{}
			}
			if found == nil {
				continue
			}
			if before.known && before.pipe == "" {
				if !pause(after / 2) {
					return
				}
				if now := doingOf(is); now.pipe == "" && !before.waits(now) {
					continue // it works, or is no more: it is another file's
				}
			}
			cancel(found)
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
