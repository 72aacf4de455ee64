package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"rnix/agent"
	"rnix/internal/profile"
	"rnix/internal/redact"
	"rnix/ipc"
	"rnix/runtime/env"
	"rnix/types"
	"rnix/vfs"
)

// server is an MCP server of a user, as all that the service needs of others.
type server struct {
	inside  bool
	started []vfs.MCPConfig
	ended   int
	fails   error

	mu      sync.Mutex
	mounts  []vfs.MountInfo // +checklocks:mu
	onMount func()
}

func (s *server) AgentOf(*ipc.Peer) (types.PID, bool) { return 7, s.inside }

func (s *server) List() []vfs.MountInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]vfs.MountInfo{{Path: "/mnt/mcp/3-db", PID: 3, Tools: 1}}, s.mounts...)
}

func (s *server) Mount(path string, c vfs.MCPConfig) error {
	if s.onMount != nil {
		s.onMount()
	}
	if s.fails != nil {
		return s.fails
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started, s.mounts = append(s.started, c), append(s.mounts, vfs.MountInfo{Path: path, PID: c.Owner.PID, Tools: 2})
	return nil
}

func (s *server) Configured(string) (vfs.MCPConfig, bool) { return vfs.MCPConfig{}, false }

func (s *server) Reload(context.Context, string, agent.MCPServer) (vfs.ToolChange, error) {
	return vfs.ToolChange{}, nil
}

func (s *server) Unmount(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.mounts)
	s.mounts = slices.DeleteFunc(s.mounts, func(m vfs.MountInfo) bool { return m.Path == path })
	if len(s.mounts) == before {
		return types.Errorf(types.ErrNotFound, "Unmount", path, "not mounted")
	}
	return nil
}

func (s *server) start(c vfs.MCPConfig) (vfs.MCPTransport, error) {
	s.started = append(s.started, c)
	return s, nil
}

func (s *server) Connect(context.Context) error { return nil }

func (s *server) Call(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	switch {
	case s.fails != nil:
		return nil, s.fails
	case method == "tools/list":
		return json.RawMessage(`{"tools":[]}`), nil
	}
	return nil, errors.New("it has none")
}

func (s *server) Close() error { s.ended++; return nil }

func (s *server) Ping(context.Context) error { return nil }

// with is the service of a user who has a server, and in the directory "p" a project that has another one.
func with(t *testing.T, s *server) (*Service, ipc.ProjectRequest) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"config/mcp.yaml": "servers:\n  db: {command: run-db}\n", "p/.rnix/mcp.yaml": "servers:\n  theirs: {command: evil}\n",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &profile.Reader{UserDir: filepath.Join(dir, "config"), Home: dir, Lookup: func(string) (string, bool) { return "", false }, Learn: func([]env.Secret) {}}
	return &Service{Profiles: r, Mounts: s, Mounter: s, Callers: s, Transports: s.start, Scratch: filepath.Join(dir, "scratch")},
		ipc.ProjectRequest{Cwd: filepath.Join(dir, "p"), Env: []string{"HOME=" + dir}}
}

func TestMCPServersAreListedWithWhyTheyCannotBeUsed(t *testing.T) {
	c, where := with(t, &server{})
	problems := func() map[string]string {
		r, err := c.mcpList(t.Context(), nil, where)
		if err != nil || len(r.Servers) != 2 || len(r.Mounts) != 1 || r.Mounts[0].PID != 3 {
			t.Fatalf("%+v, %v", r, err)
		}
		return map[string]string{r.Servers[0].Name: r.Servers[0].Problem, r.Servers[1].Name: r.Servers[1].Problem}
	}
	if p := problems(); p["db"] != "" || p["theirs"] == "" {
		t.Errorf("%q", p)
	}
	where.TrustProject = true
	if p := problems(); p["theirs"] != "" {
		t.Errorf("trusted: %q", p)
	}
}

// Why a server is down may end with what it wrote to its standard error.
func TestWhyAServerIsDownIsToldToItsOwnAgentAndToPeopleWithoutSecrets(t *testing.T) {
	s := &server{}
	c, where := with(t, s)
	c.Secrets = new(redact.Set)
	c.Secrets.Add(redact.Secret{Name: "TOKEN", Value: "a-secret-of-it"})
	down := vfs.MCPState{State: vfs.MCPFailed, Reason: types.Errorf(types.ErrDisconnected, "Mount", "x", "no login with a-secret-of-it")}
	s.mounts = []vfs.MountInfo{{Path: "/mnt/mcp/7-own", PID: 7, MCPState: down}, {Path: "/mnt/mcp/8-other", PID: 8, MCPState: down}, {Path: "/mnt/mcp/hand", MCPState: down}}
	for inside, told := range map[bool]int{false: 3, true: 1} {
		s.inside = inside // of process 7
		r, err := c.mcpList(t.Context(), nil, where)
		if err != nil || len(r.Mounts) != 4 {
			t.Fatalf("%+v, %v", r, err)
		}
		for i, m := range r.Mounts[1:] {
			if want := i < told; m.State != vfs.MCPFailed || (m.Reason != "") != want || want && m.Reason != "no login with [secret TOKEN]" {
				t.Errorf("inside %t: %+v", inside, m)
			}
		}
	}
}

func TestMCPServerIsTriedAndEnded(t *testing.T) {
	s := &server{}
	c, where := with(t, s)
	req := ipc.MCPTestRequest{ProjectRequest: where, Server: "db"}
	r, err := c.mcpTest(t.Context(), nil, req)
	if err != nil || string(r.Tools) != `{"tools":[]}` || r.Resources != nil || s.ended != 1 { // a server need not have resources
		t.Errorf("%+v, %v, ended %d", r, err, s.ended)
	}
	if len(s.started) != 1 || s.started[0].Command != "run-db" || s.started[0].Dir != where.Cwd || s.started[0].Owner.PID != 0 {
		t.Errorf("started %+v", s.started)
	}
	s.fails = errors.New("broken")
	if _, err := c.mcpTest(t.Context(), nil, req); err == nil || s.ended != 2 {
		t.Errorf("%v, ended %d", err, s.ended)
	}
	req.Server = "theirs"
	if _, err := c.mcpTest(t.Context(), nil, req); err == nil {
		t.Error("a server of a project that is not trusted is started")
	}
	s.inside, req.Server = true, "db"
	if _, err := c.mcpTest(t.Context(), nil, req); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("by an agent: %v", err)
	}
	if len(s.started) != 2 {
		t.Errorf("started %+v", s.started)
	}
}
