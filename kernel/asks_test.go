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

// Who is told of a command in a line sees that there is more of it.
func TestMoreLinesOfACommandAreCounted(t *testing.T) {
	for command, want := range map[string]string{"": "", "git x": "", "git x\n": "", "git x\nrm y": " (+1 line)", "\ngit x\n\nrm y\n": " (+2 lines)"} {
		if got := moreLines(command); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}
