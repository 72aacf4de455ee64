//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"rnix/internal/prelude"
)

// inherited returns a limit of resources that our children begin with.
func inherited(which int) (limit unix.Rlimit, err error) {
	if which == unix.RLIMIT_NOFILE {
		return openFiles.limit()
	}
	err = unix.Getrlimit(which, &limit)
	return limit, err
}

// openFiles is the limit of open files of our children. Ours is another: the Go runtime raises it at the start of a program, and gives its children back what was
// before, which it tells nobody. So a child is asked, once.
var openFiles filesLimit

type filesLimit struct {
	mu sync.Mutex
	// +checklocks:mu
	known bool
	of    unix.Rlimit // +checklocks:mu
}

func (l *filesLimit) limit() (unix.Rlimit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known {
		return l.of, nil
	}
	var err error
	l.of, err = askChild(unix.RLIMIT_NOFILE)
	l.known = err == nil
	return l.of, err
}

// askChild starts a child that tells a limit of its own.
func askChild(which int) (unix.Rlimit, error) {
	const (
		out, program = 1, 3 // descriptors of the child
		size         = 16   // struct rlimit64
	)
	p := entry{&prelude.Program{}}
	at := p.Put(make([]byte, size))
	p.call("the limit", unix.SYS_PRLIMIT64, 0, uint64(which), 0, at)
	p.call("the answer", unix.SYS_WRITE, out, at, size)
	p.call("the end", unix.SYS_EXIT_GROUP, 0)
	file, err := p.Open(program) // which takes no report: the exit status says enough
	if err != nil {
		return unix.Rlimit{}, err
	}
	defer file.Close()
	answer, w, err := os.Pipe()
	if err != nil {
		return unix.Rlimit{}, err
	}
	defer answer.Close()
	child, err := os.StartProcess("/proc/self/fd/3", []string{"rnix-limit"}, &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{nil, w, nil, file}})
	_ = w.Close() // the child has the other
	if err != nil {
		return unix.Rlimit{}, err
	}
	text, rerr := io.ReadAll(answer)
	state, err := child.Wait()
	if err != nil || rerr != nil || !state.Success() || len(text) != size {
		return unix.Rlimit{}, fmt.Errorf("a child that was asked for it gave no answer: %v, %d bytes", state, len(text))
	}
	return unix.Rlimit{Cur: binary.NativeEndian.Uint64(text), Max: binary.NativeEndian.Uint64(text[8:])}, nil
}
