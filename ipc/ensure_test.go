package ipc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// endDaemon ends the daemon with the given PID, which may be a child of ours, and waits until it has
// given back its lock.
func endDaemon(t testing.TB, socket string, pid int) {
	t.Helper()
	_ = syscall.Kill(pid, syscall.SIGCONT)
	_ = syscall.Kill(pid, syscall.SIGTERM)
	f, err := os.OpenFile(daemonLock(socket), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// Waits for the lock, and so for the end of the process that holds it.
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLKW, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		t.Error(err)
	}
	var ws syscall.WaitStatus
	_, _ = syscall.Wait4(pid, &ws, 0, nil) // fails at once if it was no child of ours
}

// launches returns the PIDs of the daemons that were started on socket.
func launches(t testing.TB, socket string) []string {
	t.Helper()
	b, err := os.ReadFile(socket + ".launches")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

func TestFiftyClientsAtOnceStartOneDaemon(t *testing.T) {
	socket := tempSocket(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	pids := make([]string, 50)
	for i := range pids {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), envRole+"=client="+socket)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("client %d: %v: %s", i, err, out)
			}
			pids[i] = string(out)
		})
	}
	wg.Wait()
	started := launches(t, socket)
	if len(started) != 1 {
		t.Errorf("%d daemons were started: %v", len(started), started)
	}
	for i, pid := range pids {
		if len(started) > 0 && pid != started[0] {
			t.Errorf("client %d speaks with %s, not with %s", i, pid, started[0])
		}
	}
	holder, held, err := LockHolder(daemonLock(socket))
	if err != nil || !held || holder.Socket != socket {
		t.Fatalf("holder %+v, held %v, %v", holder, held, err)
	}
	endDaemon(t, socket, holder.PID)
}

func TestStoppedDaemonIsWaitedForAndKeepsItsSocket(t *testing.T) {
	socket := tempSocket(t)
	c, err := Ensure(t.Context(), daemonAt(socket))
	if err != nil {
		t.Fatal(err)
	}
	first, err := Call(t.Context(), c, Ping, Empty{})
	if err != nil {
		t.Fatal(err)
	}
	defer endDaemon(t, socket, first.PID)
	if first.Version != "/" {
		t.Errorf("its directory is %s", first.Version)
	}
	if sid, err := unix.Getsid(first.PID); err != nil || sid != first.PID {
		t.Errorf("its session is %d, %v", sid, err)
	}
	_ = c.Close()
	before, err := os.Lstat(socket)
	if err != nil {
		t.Fatal(err)
	}
	if before.Mode().Perm() != 0o600 {
		t.Errorf("socket has mode %v", before.Mode())
	}
	if err := syscall.Kill(first.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var ws unix.WaitStatus // the signal is sent now, and has been obeyed when this returns
	if _, err := unix.Wait4(first.PID, &ws, unix.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatalf("status %x, %v", ws, err)
	}
	c2, err := Ensure(t.Context(), daemonAt(socket))
	if err != nil {
		t.Fatal(err)
	}
	defer c2.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Call(ctx, c2, Ping, Empty{}); types.CodeOf(err) != types.ErrTimeout {
		t.Errorf("a stopped daemon answers: %v", err)
	}
	if err := syscall.Kill(first.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	again, err := Call(t.Context(), c2, Ping, Empty{})
	if err != nil || again.PID != first.PID {
		t.Errorf("pid %d, then %d, %v", first.PID, again.PID, err)
	}
	if after, err := os.Lstat(socket); err != nil || !os.SameFile(before, after) {
		t.Errorf("the socket is another one: %v", err)
	}
	if n := launches(t, socket); len(n) != 1 {
		t.Errorf("started: %v", n)
	}
}

func TestDaemonThatRunsButDoesNotListenIsWaitedForByName(t *testing.T) {
	socket := tempSocket(t)
	lock, err := TakeLock(daemonLock(socket), socket)
	if err != nil {
		t.Fatal(err)
	}
	o := daemonAt(socket)
	o.Patience = 50 * time.Millisecond
	var told []string
	o.Progress = func(s string) { told = append(told, s) }
	e := &starter{EnsureOptions: o, began: time.Now().Add(-time.Minute)}
	_, err = e.run(t.Context())
	e.close()
	if types.CodeOf(err) != types.ErrTimeout || !strings.Contains(err.Error(), fmt.Sprintf("kill %d", os.Getpid())) {
		t.Errorf("err = %v", err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "does not listen") {
		t.Errorf("told %q", told)
	}
	if n := launches(t, socket); len(n) != 0 {
		t.Errorf("started: %v", n)
	}
	// When it is gone, the next one is started.
	_ = lock.Close()
	began := 0
	o = daemonAt(socket)
	o.Started = func() { began++ }
	c, err := Ensure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := Call(t.Context(), c, Ping, Empty{})
	if err != nil {
		t.Fatal(err)
	}
	if other, err := Ensure(t.Context(), o); err != nil { // it runs now, and is not started by this
		t.Error(err)
	} else {
		_ = other.Close()
	}
	late := &starter{EnsureOptions: o, began: time.Now()} // as one that looked before another client had started it
	if other, err := late.run(t.Context()); err != nil {
		t.Error(err)
	} else {
		_ = other.Close()
	}
	late.close()
	if began != 1 {
		t.Errorf("it was told %d times that a daemon was started", began)
	}
	endDaemon(t, socket, p.PID)
}

func TestDaemonHoldsNoFileThatItsStarterInherited(t *testing.T) {
	socket := tempSocket(t)
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil { // not close-on-exec, as a shell's are
		t.Fatal(err)
	}
	c, err := Ensure(t.Context(), daemonAt(socket))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := Call(t.Context(), c, Ping, Empty{})
	if err != nil {
		t.Fatal(err)
	}
	defer endDaemon(t, socket, got.PID)
	_ = unix.Close(p[1])
	if err := unix.SetNonblock(p[0], true); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Read(p[0], make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("the pipe is still held open: %d, %v", n, err)
	}
	_ = unix.Close(p[0])
}

func TestDaemonThatCannotStartShowsWhatItWrote(t *testing.T) {
	socket := tempSocket(t)
	o := daemonAt(socket)
	o.Env = append(os.Environ(), envRole+"=broken")
	_, err := Ensure(t.Context(), o)
	if types.CodeOf(err) != types.ErrUnavailable || !strings.Contains(err.Error(), "made of cheese") || !strings.Contains(err.Error(), "exit code 7") {
		t.Errorf("err = %v", err)
	}
	if fi, err := os.Stat(o.Log); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("log: %v, %v", fi.Mode(), err)
	}
	o.Executable = "/nonexistent"
	if _, err := Ensure(t.Context(), o); types.CodeOf(err) != types.ErrUnavailable || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("err = %v", err)
	}
}

func TestSocketOfADeadDaemonIsReplaced(t *testing.T) {
	socket := tempSocket(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	c, err := Ensure(t.Context(), daemonAt(socket))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := Call(t.Context(), c, Ping, Empty{})
	if err != nil {
		t.Fatal(err)
	}
	endDaemon(t, socket, p.PID)
}

func TestSecondDaemonIsToldWhoIsTheFirst(t *testing.T) {
	socket := tempSocket(t)
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Listen(socket)
	if types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("err = %v", err)
	}
	if _, err := os.Lstat(socket); err != nil {
		t.Errorf("the first one's socket: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if l, err = Listen(socket); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

func TestWhatIsInTheWayOfTheSocketIsNotRemoved(t *testing.T) {
	socket := tempSocket(t)
	if err := os.WriteFile(socket, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(socket); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("file: %v", err)
	}
	if b, _ := os.ReadFile(socket); string(b) != "precious" {
		t.Errorf("the file is gone: %q", b)
	}
	other := socket + "2"
	l, err := net.Listen("unix", other)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Listen(other); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("foreign listener: %v", err)
	}
	link := filepath.Join(filepath.Dir(socket), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(filepath.Join(link, "s")); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("linked directory: %v", err)
	}
	if _, err := Ensure(t.Context(), EnsureOptions{Socket: filepath.Join(link, "s")}); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("linked directory, client: %v", err)
	}
}

func TestDaemonOfTheSameDataIsFoundAtAnotherSocket(t *testing.T) {
	c, _ := serveOn(t, ServerOptions{}, nil)
	data := t.TempDir()
	lock, err := TakeLock(DataLock(data), c.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	o := daemonAt(tempSocket(t))
	o.DataDir = data
	found, err := Ensure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	if found.Socket() != c.socket {
		t.Errorf("found %s", found.Socket())
	}
	if n := launches(t, o.Socket); len(n) != 0 {
		t.Errorf("started: %v", n)
	}
}

func TestFullLogIsPutAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log", "d.log")
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	l.limit = 10
	for _, s := range []string{"one two\n", "three\n", "four\n", "five six seven eight\n"} {
		if _, err := l.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	now, _ := os.ReadFile(path)
	was, _ := os.ReadFile(path + ".1")
	if string(now) != "five six seven eight\n" || string(was) != "four\n" {
		t.Errorf("now %q, before %q", now, was)
	}
	if err := os.Truncate(path, maxLog); err != nil {
		t.Fatal(err)
	}
	f, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if fi, _ := os.Stat(path + ".1"); fi.Size() != maxLog {
		t.Errorf("the full log was not put aside: %d bytes", fi.Size())
	}
}
