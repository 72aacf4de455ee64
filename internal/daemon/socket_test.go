package daemon_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// listenInstead puts a socket of its own in the place of another, when a file says so, and notes what it is sent, until one says that it is
// enough.
func listenInstead(socket, dir string) int {
	if err := os.WriteFile(filepath.Join(dir, "runs"), nil, 0o600); err != nil {
		return 1
	}
	for ; ; <-time.After(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
			break
		}
	}
	if err := os.Remove(socket); err != nil {
		return 1
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return 1
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	go func() { // ends with the program
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
			b := make([]byte, 1<<10)
			if n, _ := c.Read(b); n > 0 {
				_ = os.WriteFile(filepath.Join(dir, "heard"), b[:n], 0o600)
			}
		}
	}()
	if err := os.WriteFile(filepath.Join(dir, "listens"), nil, 0o600); err != nil {
		return 1
	}
	for ; ; <-time.After(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "enough")); err == nil {
			return 0
		}
	}
}

// An agent's shell that puts a socket of its own in the place of the daemon's is told nothing, and the daemon takes its place back.
func TestWhoTakesTheSocketsPlaceIsToldNothing(t *testing.T) { // T17
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	s, p, socket, dir := playing(t, "listen")
	waits := func(what string) {
		t.Helper()
		until(t, what, func() bool { _, err := os.Stat(filepath.Join(dir, what)); return err == nil })
	}
	waits("runs")
	daemon := s.PID()
	if err := syscall.Kill(daemon, syscall.SIGSTOP); err != nil { // so that it does not take its place back at once
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(daemon, syscall.SIGCONT) })
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waits("listens")
	if _, err := ipc.Connect(t.Context(), socket); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "which an agent has started") {
		t.Fatal(err)
	}
	if err := syscall.Kill(daemon, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "the daemon has its place again", func() bool {
		c, err := ipc.Connect(t.Context(), socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	if b, err := os.ReadFile(filepath.Join(dir, "heard")); err == nil {
		t.Errorf("it heard %q", b)
	}
	if err := os.WriteFile(filepath.Join(dir, "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Wait(p.PID)
	if b, err := os.ReadFile(filepath.Join(s.Data, "log", "daemon.log")); err != nil || !strings.Contains(string(b), "the socket was removed or replaced") {
		t.Errorf("the log does not say so: %v", err)
	}
}
