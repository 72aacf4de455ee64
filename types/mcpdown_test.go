package types

import "testing"

func TestTheCommandThatStartsAnMCPServerAgainNamesProcessAndServer(t *testing.T) {
	for down, want := range map[MCPDown]string{
		"tracker: no such file: x": "rnix mcp reload --process 3 tracker",
		"tracker":                  "rnix mcp reload --process 3 tracker",
		"a b'c: gone":              `rnix mcp reload --process 3 'a b'\''c'`,
	} {
		if got := down.Reload(3); got != want {
			t.Errorf("%q: %s, want %s", down, got, want)
		}
	}
}
