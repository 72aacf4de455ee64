package harness

import (
	"cmp"
	_ "embed" // the plugin
	"encoding/json"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/internal/permit"
)

// opencodeJudge is a plugin that asks about each call of a tool.
//
//go:embed judge_opencode.js
var opencodeJudge []byte

// judge has opencode ask before each call of a tool, by a plugin. One that cannot be loaded does not end opencode, so every tool is denied to it, and
// the plugin takes that back.
func (opencode) judge(b *builder) (plugin string) {
	if len(b.at.Judge) == 0 {
		b.refuse("there is no program by which it could ask about its calls")
		return ""
	}
	command, err := json.Marshal(b.at.Judge)
	if err != nil {
		b.refuse("the program by which it asks about its calls cannot be written: %w", err)
	}
	b.set("OPENCODE_PERMISSION", `{"?*":"deny"}`)
	return "file://" + b.file("judge.js", slices.Concat([]byte("const command = "), command, []byte("\n"), opencodeJudge))
}

// Question is as CLI has it.
func (opencode) Question(b []byte) (agent.PermitEvent, error) {
	var q struct {
		Tool  string          `json:"tool"`
		Call  string          `json:"call"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(b, &q); err != nil || q.Tool == "" {
		return agent.PermitEvent{}, notAQuestion("opencode")
	}
	return agent.PermitEvent{RequestID: q.Call, ToolUseID: q.Call, ToolName: q.Tool, Input: object(q.Input)}, nil
}

// Asks is as CLI has it: opencode asks by Place.Judge.
func (opencode) Asks([]byte) (e agent.PermitEvent, ok bool) { return e, false }

// Judge is as CLI has it.
func (opencode) Judge(_ agent.PermitEvent, v Verdict) []byte {
	said := map[string]any{"allow": true}
	if v.Decision == permit.Deny {
		said = map[string]any{"allow": false, "why": cmp.Or(strings.TrimSpace(v.Why), "refused")}
	} else if len(v.Input) > 0 {
		said["input"] = v.Input
	}
	line, err := jsonLine(said)
	if err != nil { // the input is no JSON: what is not answered is not run
		return nil
	}
	return line
}

// Asked is as CLI has it.
func (opencode) Asked(e agent.PermitEvent) string { return e.ToolUseID }

// Began is as CLI has it.
func (opencode) Began(e agent.ToolUseEvent) string { return e.ToolUseID }
