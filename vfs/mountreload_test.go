package vfs

import (
	"testing"

	"rnix/types"
)

// A reload that is refused before anything is started leaves the server that runs, and the way to it, as they are.
func TestReloadThatIsRefusedLeavesTheServerAsItIs(t *testing.T) {
	s := &server{}
	m := NewMountManager(NewDeviceRegistry(), func(c MCPConfig) (MCPTransport, error) {
		if c.Command == "changed" {
			return nil, types.Errorf(types.ErrPermission, "Mount", c.Name, "nobody has looked at it")
		}
		return s, nil
	})
	const path = "/mnt/mcp/1-calc"
	cfg := config("calc")
	var told []MCPNewsKind
	cfg.Tell = func(n MCPNews) { told = append(told, n.Kind) }
	if err := m.Mount(path, cfg); err != nil {
		t.Fatal(err)
	}
	changed := config("calc").MCPServer
	changed.Command = "changed"
	if _, err := m.Reload(t.Context(), path, changed); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("%v", err)
	}
	l := m.List()
	if now, ok := m.Configured(path); len(l) != 1 || l[0].State != MCPRunning || s.closed.Load() != 0 || !ok || now.Command != "" || len(told) != 0 {
		t.Errorf("%+v, closed %d times, %+v, told %v", l, s.closed.Load(), now, told)
	}
	if err := m.Unmount(path); err != nil || s.closed.Load() != 1 {
		t.Errorf("%v, closed %d times", err, s.closed.Load())
	}
}
