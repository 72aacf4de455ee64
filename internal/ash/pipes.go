package ash

import (
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
)

// Source is a command that brings the result of an agent, has written into a pipe, and did not complete.
type Source struct {
	Name       string // of the command
	Code       int    // its exit status
	Unfinished bool   // the agent has not ended, it is suspended
	Last       bool   // no command of its kind has completed behind it
}

// bringers are the commands that bring results of agents.
var bringers = []string{"spawn", "run", "resume", "wait", "compose"}

// pipes are what went wrong on the writing side of pipes, for those who read them. Its lock is a leaf.
type pipes struct {
	mu sync.Mutex
	// +checklocks:mu
	failed map[uint64]Source // by the inode of the pipe
}

// maxFailed bounds how many pipes are remembered that nobody has asked for.
const maxFailed = 10_000

// inodeOf returns what both ends of a pipe have in common.
func inodeOf(f any) (uint64, bool) {
	file, ok := f.(*os.File)
	if !ok {
		return 0, false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Ino, true
}

// ended notes how a command ended that may have written into a pipe. It is called before the command's end of the pipe is closed.
func (p *pipes) ended(out io.Writer, args []string, code int, unfinished bool) {
	if !slices.Contains(bringers, args[0]) {
		return
	}
	ino, ok := inodeOf(out)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	was, failed := p.failed[ino]
	switch {
	case code != 0:
		p.putLocked(ino, Source{args[0], code, unfinished, true})
	case failed:
		was.Last = false
		p.putLocked(ino, was)
	}
}

// +checklocks:p.mu
func (p *pipes) putLocked(ino uint64, s Source) {
	if p.failed == nil || len(p.failed) >= maxFailed {
		p.failed = map[uint64]Source{}
	}
	p.failed[ino] = s
}

// through hands on what went wrong before a program that has read one pipe and written another.
func (p *pipes) through(in io.Reader, out io.Writer) {
	from, ok := inodeOf(in)
	to, writes := inodeOf(out)
	if !ok || !writes {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, failed := p.failed[from]; failed {
		p.putLocked(to, s)
	}
}

// of returns what went wrong on the writing side of a pipe that was read to its end, once.
func (p *pipes) of(in *os.File) (Source, bool) {
	ino, ok := inodeOf(in)
	if !ok {
		return Source{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s, failed := p.failed[ino]
	delete(p.failed, ino)
	return s, failed
}
