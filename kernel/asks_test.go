package kernel

import "testing"

func TestRulesNameServersAsTheConfigurationDoes(t *testing.T) {
	p := &Process{PID: 3}
	for path, want := range map[string]string{
		"/mnt/mcp/3-github": "/mnt/mcp/github", "/mnt/mcp/3-github/list": "/mnt/mcp/github/list",
		"/mnt/mcp/33-github": "/mnt/mcp/33-github", "/mnt/mcp/mine": "/mnt/mcp/mine", "/dev/shell": "/dev/shell",
	} {
		if got := ruled(p, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
