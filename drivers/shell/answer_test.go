package shell

import (
	"strings"
	"testing"

	"rnix/internal/proc"
)

func TestWhatACommandHasChangedThoughItIsProtectedIsSaid(t *testing.T) {
	got := string(answer(request{}, proc.ExitInfo{Changed: []string{"/p/.git/hooks", "/p/.mcp.json"}}, "out\n", nil))
	if !strings.HasPrefix(got, "out\n[/p/.git/hooks is protected, ") || !strings.Contains(got, "\n[/p/.mcp.json is protected, ") || !strings.HasSuffix(got, "\n[exit code 0, 0.0 s]\n") {
		t.Error(got)
	}
}
