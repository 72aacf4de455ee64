package harness

import (
	"bytes"
	"cmp"
	"encoding/json"

	"rnix/agent"
	"rnix/internal/permit"
	"rnix/types"
)

// Verdict is what becomes of a call that a command line is about to make with a tool of its own.
type Verdict struct {
	Decision permit.Decision // Allow, Deny, or Ask: as the command line decides by itself
	Input    json.RawMessage // of Allow: what the tool is called with in place of its input; nil = as it is
	Why      string          // of Deny: what the model is told
}

// judgeName is what we call our judging in claude's protocol.
const judgeName = "rnix"

// Judge is as CLI has it: a line for its standard input.
func (claude) Judge(e agent.PermitEvent, v Verdict) []byte {
	out := map[string]any{}
	switch v.Decision {
	case permit.Allow:
		said := map[string]any{"hookEventName": "PreToolUse", "permissionDecision": "allow"}
		if len(v.Input) > 0 {
			said["updatedInput"] = v.Input
		}
		out["hookSpecificOutput"] = said
	case permit.Deny:
		out["hookSpecificOutput"] = map[string]any{"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": v.Why}
	}
	line, err := jsonLine(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": e.RequestID, "response": out}})
	if err != nil { // the input is no JSON: what is not answered is not run
		return nil
	}
	return line
}

// Question is as CLI has it: claude asks on its standard streams.
func (claude) Question([]byte) (agent.PermitEvent, error) {
	return agent.PermitEvent{}, types.Errorf(types.ErrInvalid, "Judge", "claude", "it asks on its standard output")
}

// Asked is as CLI has it.
func (claude) Asked(e agent.PermitEvent) string { return e.ToolUseID }

// Began is as CLI has it.
func (claude) Began(e agent.ToolUseEvent) string {
	if harmless[e.ToolName] {
		return ""
	}
	return e.ToolUseID
}

// harmless are tools of the command lines that do nothing beside showing what there is.
var harmless = map[string]bool{"DeferredToolPlaceholder": true, "ToolSearch": true, "ListMcpResourcesTool": true, "ReadMcpResourceTool": true, "TodoWrite": true}

// Harmless reports whether a tool of a command line does nothing beside showing what there is.
func Harmless(tool string) bool { return harmless[tool] }

// judgeFirst has claude ask before each call of a tool, by the hook that whoever started it has: it comes before its own permissions, whatever
// their mode. A call about which that fails is not made. The settings of files could switch it off, but for those that it is given.
func (claude) judgeFirst() ([]byte, error) {
	return jsonLine(map[string]any{"type": "control_request", "request_id": judgeName, "request": map[string]any{"subtype": "initialize",
		"hooks": map[string]any{"PreToolUse": []any{map[string]any{"hookCallbackIds": []string{judgeName}, "timeout": int(maxToolTime.Seconds()), "onFailure": "block"}}}}})
}

// claudeAsks is a line by which claude asks about a call, or does not ask any more.
type claudeAsks struct {
	Type    string `json:"type"`
	ID      string `json:"request_id"`
	Request struct {
		Subtype string `json:"subtype"`
		CallID  string `json:"tool_use_id"`
		Input   struct {
			Tool   string          `json:"tool_name"`
			Input  json.RawMessage `json:"tool_input"`
			CallID string          `json:"tool_use_id"`
		} `json:"input"`
	} `json:"request"`
}

// Asks is as CLI has it.
func (claude) Asks(line []byte) (e agent.PermitEvent, ok bool) {
	if !bytes.Contains(line, []byte(`"control_`)) { // most lines are others, and some are long
		return e, false
	}
	var a claudeAsks
	if json.Unmarshal(line, &a) != nil || a.ID == "" {
		return e, false // what is not answered is not run
	}
	switch {
	case a.Type == "control_cancel_request":
		return agent.PermitEvent{RequestID: a.ID, Withdrawn: true}, true
	case a.Type != "control_request" || a.Request.Subtype != "hook_callback":
		return e, false
	}
	return agent.PermitEvent{RequestID: a.ID, ToolUseID: cmp.Or(a.Request.CallID, a.Request.Input.CallID), ToolName: a.Request.Input.Tool, Input: object(a.Request.Input.Input)}, true
}
