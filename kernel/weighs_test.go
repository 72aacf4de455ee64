package kernel

import (
	"strings"
	"testing"

	"rnix/kernel/internal/loop"
)

// The texts of servers may have a token for each byte; ours, which are known, have less.
func TestToolsOfServersWeighTheirBytes(t *testing.T) {
	p := &Process{card: &card{}}
	p.MCPMounts = []string{"/mnt/mcp/1-notes"}
	spec := &loop.ToolSpec{Name: "x", Description: strings.Repeat("q", 1000)}
	weight := func(path string) int {
		part, err := (&kits{}).weighs(spec, path, p)
		if err != nil {
			t.Fatal(err)
		}
		return part.Most
	}
	own, server := weight("/dev/fs"), weight("/mnt/mcp/1-notes/tools/x")
	if server < 1000 || own > server/2+1 || weight("/mnt/mcp/1-notes2/tools/x") != own {
		t.Errorf("a tool of ours weighs %d, that of a server %d", own, server)
	}
}
