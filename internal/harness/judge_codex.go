package harness

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"rnix/agent"
	"rnix/internal/permit"
	"rnix/types"
)

// codexUnjudged are features of codex whose calls have no hook: what is written to a command that runs in a terminal, and what the vendor does
// before it answers.
var codexUnjudged = []string{"unified_exec_tty", "image_generation"}

// judge has codex ask before each call of a tool by its hook, which runs a command. codex runs a hook that it trusts only, by a hash of what it is,
// so the one of this run is trusted in its arguments, and no other is.
func (codex) judge(b *builder) {
	if len(b.at.Judge) == 0 {
		b.refuse("there is no program by which it could ask about its calls")
		return
	}
	words := make([]string, len(b.at.Judge))
	for i, w := range b.at.Judge {
		words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	// Only 2 refuses a call, so that is the end of whatever goes wrong.
	command := strings.Join(words, " ") + ` || { echo "the rules could not be asked about this call" >&2; exit 2; }`
	timeout := int(maxToolTime.Seconds())
	identity, err := jsonLine(map[string]any{"event_name": "pre_tool_use", "hooks": []any{
		map[string]any{"async": false, "command": command, "timeout": timeout, "type": "command"}}})
	if err != nil {
		b.refuse("its hook cannot be written: %w", err)
	}
	sum := sha256.Sum256(bytes.TrimSpace(identity))
	b.arg("-c", `hooks.PreToolUse=[{hooks=[{type="command",command=`+toml(command)+`,timeout=`+strconv.Itoa(timeout)+`}]}]`,
		"-c", `hooks.state={"/<session-flags>/config.toml:pre_tool_use:0:0"={enabled=true,trusted_hash="sha256:`+hex.EncodeToString(sum[:])+`"}}`, "--enable", "hooks")
	for _, feature := range codexUnjudged {
		b.arg("--disable", feature)
	}
	b.arg("-c", `web_search="disabled"`)
}

// codexQuestion is what codex gives a hook.
type codexQuestion struct {
	Event  string          `json:"hook_event_name"`
	CallID string          `json:"tool_use_id"`
	Agent  string          `json:"agent_id"` // of a subagent, of whose calls its output does not tell
	Tool   string          `json:"tool_name"`
	Input  json.RawMessage `json:"tool_input"`
}

// Question is as CLI has it.
func (c codex) Question(b []byte) (agent.PermitEvent, error) {
	var q codexQuestion
	if err := json.Unmarshal(b, &q); err != nil || q.Event != "PreToolUse" || q.Tool == "" {
		return agent.PermitEvent{}, notAQuestion("codex")
	}
	return agent.PermitEvent{RequestID: q.CallID, ToolUseID: q.CallID, ToolName: q.Tool, Input: object(q.Input), Subagent: q.Agent}, nil
}

func notAQuestion(name string) error {
	return types.Errorf(types.ErrInvalid, "Judge", name, "what its hook was given is no question about a call")
}

// Asks is as CLI has it: codex asks by Place.Judge.
func (codex) Asks([]byte) (e agent.PermitEvent, ok bool) { return e, false }

// Judge is as CLI has it. codex takes another input for a command only, and would run the first one in place of an input without a command.
func (codex) Judge(e agent.PermitEvent, v Verdict) []byte {
	said := map[string]any{"hookEventName": "PreToolUse"}
	if len(v.Input) > 0 && (e.ToolName != "Bash" || commandOf(v.Input) == "") {
		v = Verdict{Decision: permit.Deny, Why: "another input was chosen for it, and that has no command"}
	}
	switch {
	case v.Decision == permit.Deny:
		said["permissionDecision"], said["permissionDecisionReason"] = "deny", cmp.Or(strings.TrimSpace(v.Why), "refused") // without a reason it would be made
	case len(v.Input) > 0:
		said["permissionDecision"], said["updatedInput"] = "allow", v.Input
	default: // as without the hook
		return nil
	}
	line, err := jsonLine(map[string]any{"hookSpecificOutput": said})
	if err != nil {
		return nil
	}
	return line
}

// Asked is as CLI has it: of a command its text, of other tools the name, since the ids in its output are others.
func (codex) Asked(e agent.PermitEvent) string {
	switch {
	case e.Subagent != "":
		return ""
	case e.ToolName == "Bash":
		return "shell " + commandOf(e.Input)
	}
	return e.ToolName
}

// Began is as CLI has it. What it does with agents is asked about under names that stand nowhere in its output.
func (codex) Began(e agent.ToolUseEvent) string {
	switch e.Category {
	case "agent":
		return ""
	case "shell":
		return "shell " + lastWord(commandOf(e.Input))
	}
	return e.ToolName
}

func commandOf(input json.RawMessage) string {
	var in struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(input, &in) // what has none runs none
	return in.Command
}

// lastWord returns the last word of a command line that a shell would read so, without its quotes.
func lastWord(line string) string {
	var word strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t', '\n':
			word.Reset()
		case '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				end = len(line) - i - 1
			}
			word.WriteString(line[i+1 : i+1+end])
			i += end + 1
		case '"':
			for i++; i < len(line) && line[i] != '"'; i++ {
				if line[i] == '\\' && i+1 < len(line) && strings.IndexByte("$`\"\\", line[i+1]) >= 0 {
					i++
				}
				word.WriteByte(line[i])
			}
		case '\\':
			if i++; i < len(line) {
				word.WriteByte(line[i])
			}
		default:
			word.WriteByte(c)
		}
	}
	return word.String()
}
