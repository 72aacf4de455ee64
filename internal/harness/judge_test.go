package harness

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
	"rnix/internal/permit"
)

func TestClaudeAsksOnlyWhereItIsJudged(t *testing.T) {
	spec := agent.Spec{Prompt: "p", CWD: "/w", SandboxLevel: SandboxFull}
	at := here
	plain, err := claude{}.Command(spec, at)
	if err != nil {
		t.Fatal(err)
	}
	at.Judged = true
	judged, err := claude{}.Command(spec, at)
	if err != nil || !strings.HasPrefix(string(judged.Stdin), `{"request":{"hooks":{"PreToolUse":[{"hookCallbackIds":["rnix"],"onFailure":"block"`) ||
		!strings.HasSuffix(string(judged.Stdin), string(plain.Stdin)) || !slices.Contains(judged.Args, `--settings={"disableAllHooks":false}`) {
		t.Errorf("%s %v %v", judged.Stdin, judged.Args, err)
	}
	if strings.Contains(string(plain.Stdin), "hook") || slices.ContainsFunc(plain.Args, func(a string) bool { return strings.HasPrefix(a, "--settings") }) {
		t.Errorf("it asks without rules: %s %v", plain.Stdin, plain.Args)
	}
	at.Gateway = &Gateway{URL: "http://127.0.0.1:9/gateway", Vendors: []Vendor{{Name: "anthropic"}}}
	if c, err := (claude{}).Command(spec, at); err != nil || strings.Count(strings.Join(c.Args, "\n"), "--settings") != 1 || !slices.Contains(c.Args, `--settings={"disableAllHooks":false,"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:9/gateway/anthropic"}}`) {
		t.Errorf("its settings: %v %v", c, err) // it takes the last one
	}
	at.Gateway = nil
	spec.NoOwnTools = true
	if c, err := (claude{}).Command(spec, at); err != nil || string(c.Stdin) != string(plain.Stdin) {
		t.Errorf("it asks without tools of its own: %s %v", c.Stdin, err)
	}
}

func TestClaudesQuestionsAreAnswered(t *testing.T) {
	var got []agent.Event
	for _, line := range []string{
		`{"type":"control_request","request_id":"r1","request":{"subtype":"hook_callback","callback_id":"rnix","tool_use_id":"t1","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t1"}}}`,
		`{"type":"control_request","request_id":"r2","request":{"subtype":"hook_callback","input":{"tool_name":"Read","tool_input":[],"tool_use_id":"t2"}}}`,
		`{"type":"control_request","request_id":"r3","request":{"subtype":"something_new"}}`, `{"type":"control_request","request":{"subtype":"hook_callback"}}`,
		`{"type":"control_cancel_request","request_id":"r1"}`, `{"type":"control_response","request_id":"r9","request":{"subtype":"hook_callback"}}`, `"control_request"`,
		`{"type":"assistant","request_id":"r9","text":"\"type\":\"control_request\"","request":{"subtype":"hook_callback"}}`} {
		if e, ok := (claude{}).Asks([]byte(line)); ok {
			got = append(got, e)
		}
	}
	want := []agent.Event{
		agent.PermitEvent{RequestID: "r1", ToolUseID: "t1", ToolName: "Bash", Input: json.RawMessage(`{"command":"ls"}`)},
		agent.PermitEvent{RequestID: "r2", ToolUseID: "t2", ToolName: "Read", Input: json.RawMessage(`{}`)},
		agent.PermitEvent{RequestID: "r1", Withdrawn: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for said, v := range map[string]Verdict{
		`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`:                                          {Decision: permit.Allow},
		`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"x"}}}`:           {Decision: permit.Allow, Input: []byte(`{"command":"x"}`)},
		`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no <good>\nx"}}`: {Decision: permit.Deny, Why: "no <good>\nx"},
		`{}`: {Decision: permit.Ask},
	} {
		line := claude{}.Judge(agent.PermitEvent{RequestID: "r1"}, v)
		if want := `{"response":{"request_id":"r1","response":` + said + `,"subtype":"success"},"type":"control_response"}` + "\n"; string(line) != want {
			t.Errorf("%v: %s, want %s", v, line, want)
		}
	}
}

func TestRulesKnowClaudesToolsByTheKernelsNames(t *testing.T) {
	for _, c := range []struct{ rule, tool, input string }{
		{"shell git push *", "Bash", `{"command":"env git push origin"}`},
		{"/dev/shell", "Monitor", `{"command":"x"}`},
		{"write_file docs/**", "Write", `{"file_path":"/w/docs/a.md"}`},
		{"/dev/workspace", "NotebookEdit", `{"notebook_path":"/w/a.ipynb"}`},
		{"edit_file *.ipynb", "NotebookEdit", `{"notebook_path":"/w/a.ipynb"}`},
		{"read_file /etc/**", "Read", `{"file_path":"/etc/passwd"}`},
		{"WebFetch", "WebFetch", `{"url":"https://x"}`},
		{"web_fetch", "WebFetch", `{"url":"https://x"}`},
		{"web_fetch *.x.test", "webfetch", `{"url":"https://a.x.test/y","format":"markdown"}`},
		{"/dev/web", "WebSearch", `{"query":"x"}`},
		{"web_search", "websearch", `{"query":"x"}`},
		{"Bash git push *", "Bash", `{"command":"git push origin"}`},
		{"Read", "Read", `{"file_path":"/etc/passwd"}`},
		{"apply_patch", "apply_patch", `{"command":"*** Begin Patch\n*** Add File: a\n"}`},
		{"shell git push *", "bash", `{"command":"git push origin","description":"x"}`},
		{"write_file docs/**", "write", `{"filePath":"/w/docs/a.md"}`},
		{"edit_file docs/**", "edit", `{"filePath":"docs/a.md"}`},
		{"read_file /etc/**", "read", `{"filePath":"/etc/passwd"}`},
		{"read_file *.png", "view_image", `{"path":"a.png"}`},
		{"/dev/fs", "list", `{}`},
	} {
		call := Ruled(c.tool, []byte(c.input))[0]
		call.Dir = "/w"
		if v := (permit.Settings{Layers: []permit.Rules{{Deny: []string{c.rule}}}}).Judge(&call); v.Decision != permit.Deny {
			t.Errorf("%s is not about %s %s: %v", c.rule, c.tool, c.input, v)
		}
		other := call
		if v := (permit.Settings{Layers: []permit.Rules{{Deny: []string{"move"}}}}).Judge(&other); v.Decision != permit.Allow {
			t.Errorf("%s: %v", c.tool, v)
		}
	}
}

func TestRulesWithNamesOfAgentCLIsAreDoubtedWithOurs(t *testing.T) {
	names := []string{"Agent", "WebFetch"}
	for name := range commands {
		names = append(names, name)
	}
	for name := range does {
		names = append(names, name)
	}
	for _, name := range names {
		want := Ruled(name, nil)[0].Tool
		if want == name {
			want = ""
		}
		if got := permit.Ours(name); got != want {
			t.Errorf("%s is %q in rules, and %q where a rule is doubted", name, want, got)
		}
	}
}
