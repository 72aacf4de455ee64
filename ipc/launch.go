package ipc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"rnix/internal/proc"
	"rnix/runtime/statehome"
	"rnix/types"
)

// errOnline says that no name space was asked for.
var errOnline = errors.New("online")

// reason returns an error of a system call without what was tried.
func reason(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// launched is a daemon that this process has started.
type launched struct {
	pid  int
	proc *os.Process
	log  string // path; empty = none
	from int64  // where its output begins in the log
}

// DaemonCommand is what runs the daemon in a process of this program: its arguments, with spaces between them.
const DaemonCommand = "daemon start --foreground"

// launch starts the daemon: in a session of its own, in the root directory, with its output in the
// log and none of our other files. It does not end with us.
//
// This is the one place besides internal/proc where a process is started, because this process must
// not be accounted to anybody and must not die with its starter.
func launch(o EnsureOptions) (*launched, error) {
	const op = "Launch"
	exe := o.Executable
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return nil, types.Errorf(types.ErrInternal, op, "", "where this program lies is unknown: %w", err)
		}
	}
	args := o.Args
	if args == nil {
		args = strings.Fields(DaemonCommand)
	}
	env := o.Env
	if env == nil {
		env = os.Environ()
	}
	if o.DataDir != "" {
		env = append(env[:len(env):len(env)], statehome.EnvDataDir+"="+o.DataDir)
	}
	cmd := exec.Command(exe, args...)
	cmd.Dir = "/"
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	l := &launched{log: o.Log}
	if o.Log != "" {
		if err := statehome.CheckPrivateDir(filepath.Dir(o.Log)); err != nil {
			return nil, err
		}
		f, err := openLog(o.Log)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if l.from, err = f.Seek(0, io.SeekEnd); err != nil {
			return nil, types.Errorf(types.ErrStorage, op, o.Log, "%w", err)
		}
		cmd.Stdout, cmd.Stderr = f, f
	}
	// What we have inherited, such as the pipe of a $(command), the daemon must not hold open. A
	// system without the call leaves such files open, which costs less than to start no daemon.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	err := errOnline
	if o.Offline { // a network name space of its own has no way out, and Unix sockets go on to be reached by their paths
		again := *cmd.SysProcAttr
		again.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
		again.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		again.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		cut := *cmd
		cut.SysProcAttr = &again
		if err = proc.Shown(cut.Start); err == nil {
			cmd = &cut
		} else if o.MustOffline {
			return nil, types.Errorf(types.ErrUnavailable, op, "", "the network cannot be cut off: a network name space cannot be made: %w", reason(err))
		} else if o.Online != nil {
			o.Online(reason(err))
		}
	}
	if err != nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, types.Errorf(types.ErrUnavailable, op, exe, "the daemon cannot be started: %w", err)
	}
	l.pid, l.proc = cmd.Process.Pid, cmd.Process
	return l, nil
}

// ended reports whether the daemon has ended, and how, without waiting for it.
func (l *launched) ended() (how string, ended bool) {
	var ws unix.WaitStatus
	pid, err := unix.Wait4(l.pid, &ws, unix.WNOHANG, nil)
	switch {
	case err == unix.EINTR || err == nil && pid == 0:
		return "", false
	case err != nil:
		return "it is no child of ours any more", true
	case ws.Signaled():
		return "killed by " + unix.SignalName(ws.Signal()), true
	}
	return fmt.Sprintf("exit code %d", ws.ExitStatus()), true
}

// release forgets the daemon, and leaves it running if it runs.
func (l *launched) release() { _ = l.proc.Release() }

// tail returns the last lines of what the daemon wrote, indented, or nothing.
func (l *launched) tail() string {
	const most = 4 << 10
	f, err := os.Open(l.log)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	from := min(l.from, size)
	cut := size-from > most
	if cut {
		from = size - most
	}
	text, _ := io.ReadAll(io.NewSectionReader(f, from, size-from))
	if _, rest, ok := bytes.Cut(text, []byte("\n")); cut && ok {
		text = rest
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return "; it wrote nothing"
	}
	return "; it wrote:\n    " + strings.ReplaceAll(string(text), "\n", "\n    ")
}
