package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// connected waits until clients have so many connections to the daemon, at several looks in a row, since those of a command that has ended
// are still there for a moment: one for each wait or log -f, two for each run: connected 3
func connected(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: connected number")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	socket := placesOf(ts).Socket
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late, held := time.Now().Add(2*time.Minute), 0
	for ; held < 5; <-tick.C {
		table, err := os.ReadFile("/proc/net/unix")
		ts.Check(err)
		n := 0
		for line := range strings.Lines(string(table)) {
			// Num RefCount Protocol Flags Type St Inode Path; state 03 is connected
			if f := strings.Fields(line); len(f) == 8 && f[5] == "03" && f[7] == socket {
				n++
			}
		}
		if held++; n < want {
			held = 0
		}
		if time.Now().After(late) {
			ts.Fatalf("%d connections, want %d", n, want)
		}
	}
}
