package daemon_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// listenInstead puts a socket of its own in the place of another, and notes what it is sent, until a file says that it is enough.
func listenInstead(socket, dir string) int {
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
	refused, back := false, false
	until(t, "the daemon has its place again", func() bool {
		if _, err := os.Stat(filepath.Join(dir, "listens")); err != nil {
			return false
		}
		c, err := ipc.Connect(t.Context(), socket)
		switch {
		case err == nil:
			back = true
			_ = c.Close()
		case types.CodeOf(err) == types.ErrPermission && strings.Contains(err.Error(), "which an agent has started"):
			refused = true
		case types.CodeOf(err) != types.ErrUnavailable: // between two sockets
			t.Fatal(err)
		}
		return back
	})
	if !refused {
		t.Error("nobody was refused before")
	}
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
