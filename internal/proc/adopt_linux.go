package proc

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"rnix/internal/prelude"
)

// Every child is a subreaper: what descends from it stays below it while it lives, whatever leaves its session, its group
// and its environment. Linux gives that only to who asks for it itself, and no program that we start does. So a child
// begins with a program that asks, and then becomes the program that is meant.
//
// What a child leaves at its end is adopted by us. So an orphan of ours, whom nothing marks, can only be of a child that has
// ended: see stray.

// The descriptors that a child has for the time of its first program, which closes them when it becomes the program that is meant.
const (
	adopterSays = 3 // a pipe: why it could not
	adopterFile = 4 // the program itself
)

// adopts reports whether children can begin so. They cannot on other processors, without /proc, and on a system that runs nothing out of memory, or that does
// not let them ask. It is proved once.
var adopts = func() bool {
	adopting.Lock()
	defer adopting.Unlock()
	if !adopting.tried {
		_, err := startBy(noProgram, []string{"/"}, &os.ProcAttr{Env: []string{}, Files: []*os.File{nil, nil, nil}})
		adopting.works = provesStart(err)
		adopting.tried = !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.ENOMEM) && !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE)
	}
	return adopting.works
}

var adopting struct {
	sync.Mutex
	tried bool // +checklocks:Mutex
	works bool // +checklocks:Mutex
}

// startProcess starts a program as os.StartProcess does, as a subreaper where that can be had. A program that is given
// the descriptors after its three streams is none: its first program needs these.
func startProcess(path string, argv []string, attr *os.ProcAttr) (p *os.Process, subreaper bool, err error) {
	if adopts() && free(attr.Files) {
		p, err = startBy(path, argv, attr)
		return p, true, err
	}
	p, err = os.StartProcess(path, argv, attr)
	return p, false, err
}

// streams is how many descriptors every program has.
const streams = 3

// free reports whether there is room for those of the first program after the streams.
func free(files []*os.File) bool {
	for i := streams; i <= adopterFile && i < len(files); i++ {
		if files[i] != nil {
			return false
		}
	}
	return len(files) >= streams
}

// startBy starts a program that asks first.
func startBy(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	env := attr.Env
	if env == nil {
		env = os.Environ()
	}
	var first prelude.Program
	first.Call(prelude.Call{What: "orphans cannot be adopted", Number: unix.SYS_PRCTL, Args: [6]uint64{unix.PR_SET_CHILD_SUBREAPER, 1}})
	for _, fd := range []uint64{adopterSays, adopterFile} {
		first.Call(prelude.Call{What: "its descriptors cannot be closed", Number: unix.SYS_FCNTL, Args: [6]uint64{fd, unix.F_SETFD, unix.FD_CLOEXEC}})
	}
	first.Become(path, argv, env)
	file, err := first.Open(adopterSays)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	says, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer says.Close()
	of := *attr
	of.Files = append(append([]*os.File{}, attr.Files[:streams]...), w, file) // 3 and 4
	if len(attr.Files) > len(of.Files) {
		of.Files = append(of.Files, attr.Files[len(of.Files):]...)
	}
	p, err := os.StartProcess("/proc/self/fd/4", argv, &of)
	_ = w.Close()   // the child has the other
	if err != nil { // such as a list of arguments that is too long
		return nil, pathError(path, err)
	}
	report, err := io.ReadAll(says)
	if err != nil || len(report) == 0 { // it has become the program
		return p, nil
	}
	_, _ = reap(p, func() {}) // it ends at once
	return nil, pathError(path, first.Failed(report))
}

// pathError returns an error of a start as os.StartProcess does.
func pathError(path string, err error) error {
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return &os.PathError{Op: "fork/exec", Path: path, Err: no}
	}
	return err
}
