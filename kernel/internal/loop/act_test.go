package loop

import (
	"encoding/json"
	"testing"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

func TestTheSummaryOfAStepSaysHowItsCommandEnded(t *testing.T) {
	for output, want := range map[string]string{
		"FAIL\n[exit code 1, 0.2 s]":                      "shell go test ./... (exit 1)",
		"[exit code 137: killed by SIGKILL, 0.2 s]":       "shell go test ./... (killed by SIGKILL)",
		"[timed out after 5 s; killed]":                   "shell go test ./... (timed out after 5 s)",
		"ok\n[exit code 0, 0.2 s]":                        "shell go test ./...",
		"a command printed this: [exit code 1, 0.2 s]\nx": "shell go test ./...",
	} {
		a := Action{Call: rnixctx.ToolCall{Name: "shell", Input: json.RawMessage(`{"command":"go test ./..."}`)}, fields: map[string]json.RawMessage{"command": json.RawMessage(`"go test ./..."`)}, Tool: vfs.Tool{Path: "/dev/shell"}}
		var rec step.StepRecord
		fill(&rec, []Action{a}, []Outcome{{Output: output}})
		if rec.Summary != want {
			t.Errorf("%q: %q, want %q", output, rec.Summary, want)
		}
	}
	a := Action{Call: rnixctx.ToolCall{Name: "shell", Input: json.RawMessage(`{"command":"x"}`)}, fields: map[string]json.RawMessage{"command": json.RawMessage(`"x"`)}, Tool: vfs.Tool{Path: "/dev/shell"}}
	if got := summary(&a, &Outcome{Err: types.Errorf(types.ErrPermission, "Write", "/dev/shell", "no")}); got != "shell x (failed: permission)" {
		t.Errorf("a call with an error: %q", got)
	}
}
