package shell

import (
	"fmt"
	"strings"
	"testing"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
)

func TestAnswerSaysWhatWasRefusedBeforeHowItEnded(t *testing.T) {
	var refused []sandbox.Refusal
	for i := range 5 {
		for _, c := range []struct {
			n    int
			want string
		}{{0, ""}, {3, ""}, {4, "[and 1 more that the sandbox does not let commands do]\n"}} {
			if c.n != i {
				continue
			}
			got := string(answer(request{}, proc.ExitInfo{Code: 1}, "out", refused))
			want := "out\n"
			for _, r := range refused[:min(i, 3)] {
				want += "[" + r.Text() + "]\n"
			}
			if want += c.want + "[exit code 1, 0.0 s]\n"; got != want {
				t.Errorf("%d: %q, want %q", i, got, want)
			}
		}
		refused = append(refused, sandbox.Refusal{Wanted: sandbox.WantedWrite, Target: fmt.Sprintf("/etc/%d", i), Advice: "ask"})
	}
}

func TestWhatACommandHasChangedThoughItIsProtectedIsSaid(t *testing.T) {
	got := string(answer(request{}, proc.ExitInfo{Changed: []string{"/p/.git/hooks", "/p/.mcp.json"}}, "out\n", nil))
	if !strings.HasPrefix(got, "out\n[/p/.git/hooks is protected, ") || !strings.Contains(got, "\n[/p/.mcp.json is protected, ") || !strings.HasSuffix(got, "\n[exit code 0, 0.0 s]\n") {
		t.Error(got)
	}
}
