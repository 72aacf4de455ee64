package kernel

import (
	"strings"
	"testing"

	"rnix/agent"
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
