package plumbing

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Patience is after how long it is looked for what a git waits that has not ended.
const Patience = 2 * time.Second

// A PipeError says which file keeps a git from ending.
type PipeError struct {
	Path  string // "" = it lies elsewhere than in the work tree and its repository
	leads bool   // it only leads to the pipe, which lies elsewhere
}

func (e *PipeError) Error() string {
	switch {
	case e.Path == "":
		return "git waits for ever at a pipe that is neither in its work tree nor in its repository: see what .git, and its configuration, lead to"
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
	PID  int    // of the git; 0 = not known, and less = it has not started
}

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
			found := w.pipe(watched)
			if found == nil || w.PID < 0 {
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
