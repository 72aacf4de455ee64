package confine

import (
	"os"
	"strings"
	"testing"
	"time"

	"rnix/agent"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
	"rnix/vfs"
)

func TestADataDirectoryThatIsGoneIsNotMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	if err := os.Rename(w.Data, w.Data+".moved"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Box(proc.Spec{Kind: proc.KindShell, Owner: 1, Path: "sh", Dir: w.work}); types.CodeOf(err) != types.ErrStorage {
		t.Error(err)
	}
	if _, err := os.Lstat(w.Data); err == nil {
		t.Error("it is there again")
	}
}

// A daemon looks what an earlier one has left while a person already tries a server: that belongs to no process.
func TestWhatAPersonTriesKeepsItsDirectoryWhileTheDaemonCleansUp(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	w.over[types.UUID{}] = true
	w.caller.PID, w.caller.UUID = 0, types.UUID{}
	old := w.Temp(types.UUID{}) + ".of-before"
	if err := os.MkdirAll(old, 0o700); err != nil {
		t.Fatal(err)
	}
	box, err := w.Server(vfs.MCPConfig{MCPServer: agent.MCPServer{Name: "a", Command: "sh"}, Owner: w.caller}, w.caller.Env)
	if err != nil {
		t.Fatal(err)
	}
	w.sweep(time.Now())
	for _, kv := range box.Env {
		if dir, ok := strings.CutPrefix(kv, "TMPDIR="); ok {
			if _, err := os.Stat(dir); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("what an earlier daemon has left is still there")
	}
	box.Free()
	if left, _ := os.ReadDir(temps(w.Data)); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
