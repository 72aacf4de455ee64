package catalog

import (
	"context"
	"errors"
	"strings"
	"testing"

	"rnix/ipc"
	"rnix/types"
)

func TestPathsOfHandMountsCannotBeThoseOfProcesses(t *testing.T) {
	for path, want := range map[string]string{
		"/mnt/mcp/db": "", "/mnt/mcp/a.b-c_1": "", "/mnt/mcp/7": "", "/mnt/mcp/7a-b": "",
		"/mnt/mcp/7-db": "such as /mnt/mcp/db", "/mnt/mcp/": "a name has", "/mnt/mcp/..": "a name has", "/mnt/mcp/a/b": "a name has", "/mnt/mcp/-x": "a name has",
		"/mnt/mcp/a b": "a name has", "/mnt/mcp": "want a path /mnt/mcp/NAME", "db": "want a path", "/dev/fs": "want a path", "": "want a path",
	} {
		err := checkHandPath(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
}

func TestServerIsMountedForAPersonAndUnmounted(t *testing.T) {
	s := &server{}
	c, where := with(t, s)
	mount := func(req ipc.MCPMountRequest) (ipc.MCPMount, error) {
		req.ProjectRequest = where
		return c.mcpMount(t.Context(), nil, req)
	}
	if m, err := mount(ipc.MCPMountRequest{Path: "/mnt/mcp/x", Server: "db"}); err != nil || m.Path != "/mnt/mcp/x" || m.Tools != 2 || m.PID != 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	if m, err := mount(ipc.MCPMountRequest{Path: "/mnt/mcp/y", Command: []string{"prog", "a", "b"}}); err != nil || m.Path != "/mnt/mcp/y" {
		t.Fatalf("%+v, %v", m, err)
	}
	if d, y := s.started[0], s.started[1]; d.Command != "run-db" || d.Dir != where.Cwd || y.Command != "prog" || strings.Join(y.Args, " ") != "a b" || y.Owner.PID != 0 || len(y.Owner.Env) == 0 {
		t.Errorf("%+v", s.started)
	}
	for name, req := range map[string]ipc.MCPMountRequest{
		"taken":       {Path: "/mnt/mcp/x", Server: "db"},
		"both":        {Path: "/mnt/mcp/z", Server: "db", Command: []string{"x"}},
		"neither":     {Path: "/mnt/mcp/z"},
		"empty":       {Path: "/mnt/mcp/z", Command: []string{""}},
		"not trusted": {Path: "/mnt/mcp/z", Server: "theirs"},
		"unknown":     {Path: "/mnt/mcp/z", Server: "nosuch"},
		"a process's": {Path: "/mnt/mcp/3-z", Server: "db"},
	} {
		if _, err := mount(req); err == nil || len(s.started) != 2 {
			t.Errorf("%s: %v, %d started", name, err, len(s.started))
		}
	}
	unmount := func(path string) error {
		_, err := c.mcpUnmount(t.Context(), nil, ipc.MCPUnmountRequest{Path: path})
		return err
	}
	if err := unmount("/mnt/mcp/3-db"); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "rnix kill 3") {
		t.Errorf("of a process: %v", err)
	}
	if err := unmount("/mnt/mcp/z"); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("of none: %v", err)
	}
	s.inside = true
	if _, err := mount(ipc.MCPMountRequest{Path: "/mnt/mcp/z", Server: "db"}); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("mount by an agent: %v", err)
	}
	if err := unmount("/mnt/mcp/x"); types.CodeOf(err) != types.ErrPermission || len(s.List()) != 3 {
		t.Errorf("unmount by an agent: %v", err)
	}
	s.inside = false
	if err := unmount("/mnt/mcp/x"); err != nil || len(s.List())-1 != 1 {
		t.Errorf("%v, %+v", err, s.List())
	}
	s.fails = errors.New("broken")
	if _, err := mount(ipc.MCPMountRequest{Path: "/mnt/mcp/x", Server: "db"}); err == nil || len(s.List())-1 != 1 {
		t.Errorf("%v, %+v", err, s.List())
	}
}

// The client may leave at any moment: no mount is left that it does not know of, and the mount of another client stays.
func TestMountOfAClientThatLeftIsTakenBack(t *testing.T) {
	s := &server{}
	c, where := with(t, s)
	ctx, leave := context.WithCancel(t.Context())
	s.onMount = leave
	req := ipc.MCPMountRequest{ProjectRequest: where, Path: "/mnt/mcp/x", Server: "db"}
	if _, err := c.mcpMount(ctx, nil, req); types.CodeOf(err) != types.ErrCancelled || len(s.List())-1 != 0 {
		t.Errorf("%v, %+v", err, s.List())
	}
	s.onMount = func() { // a second client asks while the first one's mount is under way
		s.onMount = nil
		if _, err := c.mcpMount(ctx, nil, req); types.CodeOf(err) != types.ErrAlreadyMounted {
			t.Errorf("the second: %v", err)
		}
	}
	if _, err := c.mcpMount(t.Context(), nil, req); err != nil || len(s.List())-1 != 1 {
		t.Errorf("%v, %+v", err, s.List())
	}
}
