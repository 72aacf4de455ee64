package harness

import (
	"encoding/json"
	"strconv"
	"strings"

	"rnix/agent"
)

// opencodeLines reads the lines of one run of opencode, which has one turn and says only by its end how
// that has ended.
type opencodeLines struct {
	began    bool
	total    agent.UsageEvent // of this run
	message  string           // the model's last
	steps    int
	finished bool   // the model has ended its last answer, and wanted no tool
	trouble  string // an error; empty = none
	name     string // of it
	stray    string // the last line that is no JSON
}

// opencodeLine is a line of any type, as far as it is of use.
type opencodeLine struct {
	Type      string       `json:"type"`
	SessionID string       `json:"sessionID"`
	Part      opencodePart `json:"part"`
	Error     struct {
		Name string `json:"name"`
		Data struct {
			Message string  `json:"message"`
			Status  float64 `json:"statusCode"`
		} `json:"data"`
	} `json:"error"`
}

type opencodePart struct {
	Text   string `json:"text"`
	Tool   string `json:"tool"`
	CallID string `json:"callID"`
	State  struct {
		Status string          `json:"status"`
		Input  json.RawMessage `json:"input"`
		Output string          `json:"output"`
		Error  string          `json:"error"`
	} `json:"state"`
	Reason string `json:"reason"`
	Tokens struct {
		Input     float64 `json:"input"`
		Output    float64 `json:"output"`
		Reasoning float64 `json:"reasoning"`
		Cache     struct {
			Read  float64 `json:"read"`
			Write float64 `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
	Cost float64 `json:"cost"`
}

// Line is as Lines has it. A tool is said only when it has ended, with its result.
func (l *opencodeLines) Line(b []byte) []agent.Event {
	var in opencodeLine
	// Fields of other types than we know them are left out, and the rest is read.
	if err := json.Unmarshal(b, &in); err != nil && in.Type == "" {
		e := unreadable(b)
		l.stray = e.(agent.SystemEvent).Message
		return []agent.Event{e}
	}
	var out []agent.Event
	if in.SessionID != "" && !l.began {
		l.began = true
		out = append(out, agent.InitEvent{SessionID: in.SessionID})
	}
	p := &in.Part
	switch in.Type {
	case "step_start":
		l.finished = false
		l.steps++
	case "text":
		if p.Text != "" {
			l.message = p.Text
			out = append(out, agent.AssistantTextEvent{Text: p.Text})
		}
	case "tool_use":
		if p.CallID == "" {
			break
		}
		r := agent.ToolResultEvent{ToolUseID: p.CallID, ToolName: p.Tool, Content: p.State.Output, IsError: p.State.Status != "completed"}
		if p.State.Error != "" {
			r.Content = p.State.Error
		}
		out = append(out, agent.ToolUseEvent{ToolUseID: p.CallID, ToolName: p.Tool, Input: object(p.State.Input), Category: opencodeCategory(p.Tool)}, r)
	case "step_finish":
		t := &p.Tokens
		u := agent.UsageEvent{Input: tokens(t.Input), Output: tokens(t.Output) + tokens(t.Reasoning), CacheRead: tokens(t.Cache.Read), CacheWrite: tokens(t.Cache.Write), CostUSD: dollars(p.Cost)}
		a := &l.total
		a.Input, a.Output, a.CacheRead, a.CacheWrite, a.CostUSD = a.Input+u.Input, a.Output+u.Output, a.CacheRead+u.CacheRead, a.CacheWrite+u.CacheWrite, a.CostUSD+u.CostUSD
		l.finished = p.Reason != "tool-calls"
		out = append(out, u)
	case "error":
		l.name, l.trouble = in.Error.Name, strings.TrimSpace(in.Error.Name+": "+in.Error.Data.Message)
		if n := tokens(in.Error.Data.Status); n > 0 {
			l.trouble += " (status " + strconv.Itoa(n) + ")"
		}
		out = append(out, agent.SystemEvent{Subtype: "error", Message: head(l.trouble, 2000)})
	}
	return out
}

// End is as Lines has it.
func (l *opencodeLines) End(exit Exit) agent.Event {
	exit.Stderr = plain(exit.Stderr)
	if exit.Stderr == "" {
		exit.Stderr = l.stray
	}
	u := l.total
	u.Total = true
	switch {
	case l.trouble != "":
		why := whyInWords(l.trouble)
		if l.name == "MessageAbortedError" {
			why = WhyInterrupted
		}
		return agent.ResultEvent{Subtype: why, Errors: []string{head(l.trouble, 2000)}, Turns: l.steps, Usage: &u}
	case l.finished && exit.Code == 0 && exit.Signal == 0:
		return agent.ResultEvent{Success: true, Message: l.message, Turns: l.steps, Usage: &u}
	}
	return noResult("opencode", exit)
}

// plain is a text without the colours of a terminal.
func plain(text string) string {
	var out strings.Builder
	for text != "" {
		before, rest, found := strings.Cut(text, "\x1b[")
		out.WriteString(before)
		if !found {
			break
		}
		text = strings.TrimLeft(rest, "0123456789;")
		if text != "" {
			text = text[1:]
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(out.String(), "\uFFFD"))
}

// opencodeCategory says what kind of tool one is. Those of MCP servers are server_tool.
func opencodeCategory(name string) string {
	switch name {
	case "bash":
		return "shell"
	case "read", "write", "edit", "patch", "apply_patch", "glob", "grep", "list":
		return "file"
	case "webfetch", "websearch", "codesearch":
		return "web"
	case "task":
		return "agent"
	}
	if strings.Contains(name, "_") {
		return "mcp"
	}
	return ""
}
