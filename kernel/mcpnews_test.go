package kernel

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/agent"
	"rnix/types"
	"rnix/vfs"
)

func TestProcessBeginsWithoutAServerThatItDoesNotNeed(t *testing.T) {
	s := newSys(t, func(c *Config) { c.Mounts = &failingMounts{mounted: map[string]bool{}} })
	s.model = finish("x")
	pid, err := s.Spawn("x", &agent.Agent{MCPConfigs: []agent.MCPServer{{Name: "good"}, {Name: "bad"}}}, opts())
	if err != nil {
		t.Fatal(err)
	}
	i, err := s.WaitInfo(t.Context(), pid)
	if err != nil || len(i.MCPDown) != 1 || !strings.HasPrefix(i.MCPDown[0], "bad: ") || len(i.MCPMounts) != 2 {
		t.Errorf("%q, %q, %v", i.MCPDown, i.MCPMounts, err)
	}
}

func TestModelIsToldOfItsServersOnceAndInBounds(t *testing.T) {
	var n serverNews
	for range 3 {
		n.note("the same")
	}
	if got := n.take(); got != "[MCP SERVERS] the same" || n.take() != "" {
		t.Errorf("%q", got)
	}
	for i := range 100 {
		n.note(strings.Repeat("x", i*100))
	}
	if got := n.take(); len(got) > maxNewsLines*(maxNewsLine+100) {
		t.Errorf("%d bytes", len(got))
	}
}

// listed is a transport of a server with one tool.
type listed struct {
	tool atomic.Value // string
	tell func(vfs.MCPNews)
}

func (l *listed) Connect(context.Context) error { return nil }
func (l *listed) Call(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"tools":[{"name":"` + l.tool.Load().(string) + `"}]}`), nil
}
func (l *listed) Close() error               { return nil }
func (l *listed) Ping(context.Context) error { return nil }

// A reload offers what the server has now, also what has changed before the reload; one that is refused makes no server one that is down.
func TestReloadOffersWhatHasChangedBeforeIt(t *testing.T) {
	l := &listed{}
	l.tool.Store("one")
	s := newSys(t, func(c *Config) {
		c.Mounts = vfs.NewMountManager(c.Devices, func(cfg vfs.MCPConfig) (vfs.MCPTransport, error) {
			if cfg.Command == "changed" {
				return nil, types.Errorf(types.ErrPermission, "Mount", cfg.Name, "nobody has looked at it")
			}
			l.tell = cfg.Tell
			return l, nil
		})
	})
	s.model = untilKilled
	good := agent.MCPServer{Name: "good"}
	pid, err := s.Spawn("x", &agent.Agent{MCPConfigs: []agent.MCPServer{good}}, opts())
	if err != nil {
		t.Fatal(err)
	}
	path, changed := mcpRoot+"/"+pid.String()+"-good", good
	changed.Command = "changed"
	_, err = s.Reload(t.Context(), path, changed)
	if i, ierr := s.Info(pid); types.CodeOf(err) != types.ErrPermission || ierr != nil || len(i.MCPDown) != 0 {
		t.Errorf("%v, down %q, %v", err, i.MCPDown, ierr)
	}

	l.tool.Store("two")
	l.tell(vfs.MCPNews{Kind: vfs.NewsList})
	for cur, text := s.events.Cursor(s.events.Oldest()), ""; !strings.Contains(text, "have changed"); {
		e, err := cur.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text = e.Text
	}
	c, err := s.Reload(t.Context(), path, good)
	if i, ierr := s.Info(pid); err != nil || c.String() != "new: mcp__good__two; gone: mcp__good__one" || ierr != nil || !slices.Contains(i.Tools, "mcp__good__two") {
		t.Errorf("%s, %v, %q, %v", c.String(), err, i.Tools, ierr)
	}
}
