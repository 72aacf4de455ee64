package prelude

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Become adds the last call, which executes another program in the place of this one: execve(2).
func (p *Program) Become(path string, argv, env []string) {
	p.Call(Call{What: path, Number: unix.SYS_EXECVE, Args: [6]uint64{p.Text(path), p.Texts(argv), p.Texts(env)}})
}

// Open returns the program as a file that can be executed, which nothing can change: by /proc/self/fd/N, as descriptor N of the child. Nothing is added to the program
// afterwards. When a call fails it writes a report to its descriptor says, see Failed, and ends with NotRun. The caller closes the file. It fails with
// errors.ErrUnsupported on other processors.
func (p *Program) Open(says int) (*os.File, error) {
	content := p.finish(runtime.GOARCH, says)
	if content == nil {
		return nil, errors.ErrUnsupported
	}
	return File(content)
}

// File returns a file with this content, at its beginning, which nothing can change and which can be executed.
func File(content []byte) (*os.File, error) {
	f, err := memory(content)
	if errors.Is(err, unix.EACCES) { // vm.memfd_noexec = 2
		return onDisk(os.TempDir(), content)
	}
	return f, err
}

// memory returns a file in memory.
func memory(content []byte) (*os.File, error) {
	const name = "rnix-start"
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = f.WriteAt(content, 0); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = f.Close() // nothing is lost
		return nil, err
	}
	return f, nil
}

// onDisk returns a file without a name in a directory, open for reading alone. While any process has it open for writing it cannot be executed, so that none is
// started meanwhile.
func onDisk(dir string, content []byte) (*os.File, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	w, err := os.OpenFile(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o500)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	return os.Open("/proc/self/fd/" + strconv.Itoa(int(w.Fd())))
}
