package harness

import (
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

// Judge returns what has to be written to the standard input to answer a PermitEvent. UNAVAILABLE if it does not ask.
func (claude) Judge(e agent.PermitEvent, v Verdict) ([]byte, error) {
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
	return jsonLine(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": e.RequestID, "response": out}})
}

// Judge is as CLI has it: it asks nobody.
func (codex) Judge(agent.PermitEvent, Verdict) ([]byte, error) { return nil, asksNobody("codex") }

// Judge is as CLI has it: it asks nobody.
func (opencode) Judge(agent.PermitEvent, Verdict) ([]byte, error) { return nil, asksNobody("opencode") }

func asksNobody(name string) error {
	return types.Errorf(types.ErrUnavailable, "Judge", name, "it does not ask before it calls its own tools")
}

// judgeFirst has claude ask before each call of a tool, by the hook that whoever started it has: it comes before its own permissions, whatever
// their mode. A call about which that fails is not made. The settings of files cannot switch it off.
func (claude) judgeFirst(b *builder) ([]byte, error) {
	b.arg("--settings", `{"disableAllHooks":false}`)
	return jsonLine(map[string]any{"type": "control_request", "request_id": judgeName, "request": map[string]any{"subtype": "initialize",
		"hooks": map[string]any{"PreToolUse": []any{map[string]any{"hookCallbackIds": []string{judgeName}, "timeout": int(maxToolTime.Seconds()), "onFailure": "block"}}}}})
}

// claudeAsks is a line by which claude asks about a call, or does not ask any more.
type claudeAsks struct {
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

func (l *claudeLines) asks(in *claudeLine, b []byte) []agent.Event {
	var a claudeAsks
	if json.Unmarshal(b, &a) != nil || a.ID == "" {
		return nil // what is not answered is not run
	}
	if in.Type == "control_cancel_request" {
		return []agent.Event{agent.PermitEvent{RequestID: a.ID, Withdrawn: true}}
	}
	if a.Request.Subtype != "hook_callback" {
		return nil
	}
	id := a.Request.CallID
	if id == "" {
		id = a.Request.Input.CallID
	}
	return []agent.Event{agent.PermitEvent{RequestID: a.ID, ToolUseID: id, ToolName: a.Request.Input.Tool, Input: object(a.Request.Input.Input)}}
}

// commands are the tools of command lines that run one, and files those that do what tools of the kernel's do: rules are about these by the
// kernel's names.
var (
	commands = map[string]bool{"Bash": true, "PowerShell": true, "Monitor": true}
	files    = map[string]struct{ tool, path string }{
		"Read": {"read_file", "/dev/fs"}, "Glob": {"glob", "/dev/fs"}, "Grep": {"grep", "/dev/fs"}, "LS": {"list_files", "/dev/fs"},
		"Write": {"write_file", "/dev/workspace"}, "Edit": {"edit_file", "/dev/workspace"}, "MultiEdit": {"edit_file", "/dev/workspace"}, "NotebookEdit": {"edit_file", "/dev/workspace"},
	}
)

// Ruled is a call of a tool of a command line's own as rules know it. Its working directory is not set.
func Ruled(tool string, input json.RawMessage) permit.Call {
	c := permit.Call{Tool: tool, Input: input}
	if f, ok := files[tool]; ok {
		c.Tool, c.Path = f.tool, f.path
	} else if commands[tool] {
		c.Tool, c.Path = "shell", permit.ShellPath
	}
	return c
}
