package confine

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/internal/event"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/vfs"
)

// What an MCP server was refused, as far as it says so, and what it changed, is an event of its process when it has ended, whatever its status.
func TestWhatAServerIsRefusedIsToldWhenItHasEnded(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	w.Refusals.Events = event.New(16)
	defer w.Refusals.Events.Close()
	events := func() (texts []string) {
		for at := w.Refusals.Events.Cursor(1); ; {
			e, ok, err := at.TryNext()
			if !ok || err != nil {
				return texts
			}
			if e.Kind != event.Refused || e.PID != w.caller.PID || e.UUID != w.caller.UUID {
				t.Errorf("%+v", e)
			}
			texts = append(texts, e.Name+" "+e.Path+" "+e.Text)
		}
	}
	box, err := w.Server(vfs.MCPConfig{MCPServer: agent.MCPServer{Name: "notes"}, Owner: w.caller}, w.caller.Env)
	if err != nil {
		t.Fatal(err)
	}
	box.Ended(proc.ExitInfo{}, "started\ncat: nowhere: No such file or directory\n")
	if got := events(); len(got) > 0 {
		t.Errorf("its own errors are told: %q", got)
	}
	box.Ended(proc.ExitInfo{Changed: []string{filepath.Join(w.work, ".claude")}}, "touch: cannot touch '/etc/x': Read-only file system\nError: EROFS: read-only file system, open '/etc/y'\n")
	got := events()
	for _, want := range []string{"changed " + w.work + "/.claude " + w.work + "/.claude is protected, and the MCP server notes has changed it", "write /etc/x the MCP server notes: the sandbox does not let", "write /etc/y "} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%q is not told: %q", want, got)
		}
	}
	person := w.caller
	person.PID = 0
	if box, err = w.Server(vfs.MCPConfig{MCPServer: agent.MCPServer{Name: "notes"}, Owner: person}, nil); err != nil || box.Ended != nil {
		t.Errorf("of one that is no process's: %v", err)
	}
}
