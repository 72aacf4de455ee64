package harness

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/internal/permit"
	"rnix/types"
)

func TestCodexAsksOnlyWhereItIsJudged(t *testing.T) {
	spec := agent.Spec{Prompt: "p", CWD: "/w"}
	at := here
	plain, err := codex{}.Command(spec, at)
	if err != nil || strings.Contains(strings.Join(plain.Args, " "), "hook") {
		t.Fatalf("%v %v", plain, err)
	}
	at.Judged = true
	if _, err := (codex{}).Command(spec, at); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("it has nobody to ask: %v", err)
	}
	at.Judge = []string{"/bin/it's", "__judge", "/d/kernel.json"}
	c, err := codex{}.Command(spec, at)
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Join(c.Args, "\n")
	// The hash is what the real one has computed of it, as TestRealCommandLinesAskBeforeTheyUseTheirOwnTools shows.
	for _, want := range []string{`command="'/bin/it'\\''s' '__judge' '/d/kernel.json' || {`, `trusted_hash="sha256:`, "unified_exec_tty", `web_search="disabled"`} {
		if !strings.Contains(args, want) {
			t.Errorf("no %s in %s", want, args)
		}
	}
	spec.NoOwnTools = true
	if c, err := (codex{}).Command(spec, at); err != nil || strings.Contains(strings.Join(c.Args, " "), "PreToolUse") {
		t.Errorf("it asks without tools of its own: %v %v", c, err)
	}
}

func TestOpencodeAsksOnlyWhereItIsJudged(t *testing.T) {
	spec := agent.Spec{Prompt: "p", CWD: "/w"}
	at := here
	at.Judged, at.Judge = true, []string{"/bin/rnix", "__judge", "/d/\"kernel\".json"}
	c, err := opencode{}.Command(spec, at)
	if err != nil || c.Env["OPENCODE_PERMISSION"] != `{"?*":"deny"}` {
		t.Fatalf("%v %v", c, err)
	}
	i := slices.IndexFunc(c.Files, func(f File) bool { return f.Name == "judge.js" })
	if i < 0 || !strings.HasPrefix(string(c.Files[i].Data), `const command = ["/bin/rnix","__judge","/d/\"kernel\".json"]`+"\n// Asks") {
		t.Errorf("%+v", c.Files)
	}
	spec.NoOwnTools = true
	if c, err := (opencode{}).Command(spec, at); err != nil || c.Env["OPENCODE_PERMISSION"] != "" {
		t.Errorf("it asks without tools of its own: %v %v", c, err)
	}
}

func TestQuestionsOfHooksAreReadAndAnswered(t *testing.T) {
	for _, c := range []struct {
		cli      CLI
		question string
		want     agent.PermitEvent
		key      string
		began    agent.ToolUseEvent // of the same call
		edit     string
		says     []string // to an edit, a refusal, and what is allowed as it is
	}{
		{codex{}, `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"echo 'it''s' >x"},"tool_use_id":"t1"}`,
			agent.PermitEvent{RequestID: "t1", ToolUseID: "t1", ToolName: "Bash", Input: json.RawMessage(`{"command":"echo 'it''s' >x"}`)}, "shell echo 'it''s' >x",
			agent.ToolUseEvent{ToolName: "shell", Category: "shell", Input: json.RawMessage(`{"command":"/bin/bash -lc \"echo 'it''s' >x\""}`)}, `{"command":"<y>"}`,
			[]string{`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"<y>"}}}`,
				`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`, ""}},
		{codex{}, `{"hook_event_name":"PreToolUse","tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch"},"tool_use_id":"t2"}`,
			agent.PermitEvent{RequestID: "t2", ToolUseID: "t2", ToolName: "apply_patch", Input: json.RawMessage(`{"command":"*** Begin Patch"}`)}, "apply_patch",
			agent.ToolUseEvent{ToolName: "apply_patch", Category: "file"}, `{"command":"y"}`,
			[]string{`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"another input was chosen for it, and that has no command"}}`,
				`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`, ""}},
		{codex{}, `{"hook_event_name":"PreToolUse","agent_id":"a","tool_name":"Bash","tool_input":7,"tool_use_id":"t3"}`,
			agent.PermitEvent{RequestID: "t3", ToolUseID: "t3", ToolName: "Bash", Input: json.RawMessage(`{}`), Subagent: "a"}, "", agent.ToolUseEvent{Category: "agent"}, "", nil},
		{opencode{}, `{"tool":"bash","session":"s","call":"t4","input":{"command":"x"}}`,
			agent.PermitEvent{RequestID: "t4", ToolUseID: "t4", ToolName: "bash", Input: json.RawMessage(`{"command":"x"}`)}, "t4", agent.ToolUseEvent{ToolUseID: "t4"}, `{"command":"y"}`,
			[]string{`{"allow":true,"input":{"command":"y"}}`, `{"allow":false,"why":"no"}`, `{"allow":true}`}},
	} {
		e, err := c.cli.Question([]byte(c.question))
		if got, want := mustJSON(t, e), mustJSON(t, c.want); err != nil || got != want {
			t.Errorf("%s: %s, want %s (%v)", c.question, got, want, err)
		}
		if asked, began := c.cli.Asked(e), c.cli.Began(c.began); asked != c.key || began != c.key {
			t.Errorf("%s: asked as %q, began as %q, want %q", c.question, asked, began, c.key)
		}
		for i, want := range c.says {
			v := []Verdict{{Decision: permit.Allow, Input: json.RawMessage(c.edit)}, {Decision: permit.Deny, Why: "no"}, {Decision: permit.Allow}}[i]
			if got := strings.TrimSpace(string(c.cli.Judge(e, v))); got != want {
				t.Errorf("%s: %s, want %s", c.question, got, want)
			}
		}
	}
	for _, cli := range []CLI{codex{}, opencode{}, claude{}} {
		for _, bad := range []string{"", "null", "[]", `{"hook_event_name":"Stop"}`, `{"tool":7}`, "{\"tool\":\"\xff"} {
			if e, err := cli.Question([]byte(bad)); types.CodeOf(err) != types.ErrInvalid {
				t.Errorf("%s: %q is a question: %+v %v", cli.Name(), bad, e, err)
			}
		}
		if said := string(cli.Judge(agent.PermitEvent{ToolName: "Bash"}, Verdict{Decision: permit.Deny})); cli.Name() != "claude" && !strings.Contains(said, "refused") {
			t.Errorf("%s refuses without a reason: %q", cli.Name(), said)
		}
	}
	// codex would run its first command in place of an input without one.
	if said := string(codex{}.Judge(agent.PermitEvent{ToolName: "Bash"}, Verdict{Decision: permit.Allow, Input: json.RawMessage(`{"x":1}`)})); !strings.Contains(said, `"deny"`) {
		t.Errorf("%s", said)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheLastWordOfACommandLine(t *testing.T) {
	for line, want := range map[string]string{
		`/bin/bash -lc ls`: "ls", `/bin/bash -lc 'a b'`: "a b", `/bin/bash -lc "it's \"x\" \$y \z"`: `it's "x" $y \z`,
		`sh -c 'a'"'"'b'`: "a'b", `sh -c a\ b`: "a b", `sh -c 'open`: "open", "": "", `x "`: "", `x \`: "", "sh -c 'a\nb'": "a\nb",
	} {
		if got := lastWord(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestRulesKnowWhatAPatchDoes(t *testing.T) {
	const patch = "*** Begin Patch\n*** Add File: docs/a.md\n+x\n*** Update File: b.go\n*** Move to: docs/c.go\n@@\n*** Delete File: d.go\n*** End Patch\n"
	in, err := json.Marshal(map[string]string{"command": patch})
	if err != nil {
		t.Fatal(err)
	}
	judge := func(r permit.Rules) (out []permit.Decision) {
		for _, c := range Ruled("apply_patch", in) {
			c.Dir = "/w"
			if !c.Fixed {
				t.Errorf("%s can be changed", c.Tool)
			}
			out = append(out, permit.Settings{Layers: []permit.Rules{r}}.Judge(&c).Decision)
		}
		return out
	}
	for _, c := range []struct {
		rules permit.Rules
		want  []permit.Decision // of what is written, changed and deleted
	}{
		{permit.Rules{Deny: []string{"write_file docs/**"}}, []permit.Decision{permit.Deny, permit.Allow, permit.Allow}},
		{permit.Rules{Ask: []string{"edit_file *.go"}}, []permit.Decision{permit.Allow, permit.Ask, permit.Allow}},
		{permit.Rules{Deny: []string{"delete"}}, []permit.Decision{permit.Allow, permit.Allow, permit.Deny}},
		{permit.Rules{Ask: []string{"/dev/workspace"}, Allow: []string{"write_file docs/*"}}, []permit.Decision{permit.Allow, permit.Ask, permit.Ask}},
		{permit.Rules{Ask: []string{"write_file"}, Allow: []string{"write_file *.md"}}, []permit.Decision{permit.Ask, permit.Allow, permit.Allow}}, // not all of them
	} {
		if got := judge(c.rules); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.rules, got, c.want)
		}
	}
	for _, odd := range []string{`{}`, `{"command":7}`, `[]`, `{"command":"no patch"}`} { // every file, for all that is known
		c := Ruled("apply_patch", []byte(odd))
		if v := (permit.Settings{Layers: []permit.Rules{{Deny: []string{"edit_file docs/**"}}}}).Judge(&c[0]); len(c) != 1 || v.Decision != permit.Ask {
			t.Errorf("%s: %+v %v", odd, c, v)
		}
	}
}
