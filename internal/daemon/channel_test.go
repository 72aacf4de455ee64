package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/ipc"
	"rnix/types"
)

// What a daemon has of its channels ends with the commands that they were for, whatever these have done with them.
func TestChannelsLeaveNothingInTheDaemon(t *testing.T) {
	s, _ := insider(t, hangs)
	s.Write("ask.sh", "test -e /proc/self/fd/200 && echo \"$RNIX_CHANNEL\"\nsetsid sleep 1000 &\n")
	sockets := func() (n int) {
		t.Helper()
		dir := fmt.Sprintf("/proc/%d/fd", s.PID())
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Skip("needs /proc/PID/fd: ", err)
		}
		for _, name := range names {
			if to, err := os.Readlink(filepath.Join(dir, name.Name())); err == nil && strings.HasPrefix(to, "socket:") {
				n++
			}
		}
		return n
	}
	goroutines := func() int {
		t.Helper()
		st, err := ipc.Call(t.Context(), s.Client, ipc.DaemonStatus, ipc.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		return st.Goroutines
	}
	ask := func(times int) {
		t.Helper()
		for range times {
			w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
			if want := "200:" + s.Data + "\n"; !strings.HasPrefix(w.Result, want) {
				t.Fatalf("%q, want %q", w.Result, want)
			}
		}
	}
	ask(1)
	open, running := sockets(), goroutines()
	const times = 12
	ask(times)
	if d, g := sockets(), goroutines(); d >= open+times/2 || g >= running+times/2 { // connections of ours come and go
		t.Errorf("%d sockets and %d goroutines after %d more commands; before there were %d and %d", d, g, times, open, running)
	}
}
