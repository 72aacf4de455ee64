package harness

import (
	"cmp"
	"encoding/json"
	"strings"

	"rnix/agent"
	"rnix/drivers/llm"
)

// claudeLines reads the lines of one run of claude.
type claudeLines struct {
	began   bool              // the InitEvent was given
	tools   map[string]string // name of each tool that runs, by id
	open    []*claudeRequest  // requests whose usage is not counted yet; few
	counted map[string]bool   // ids of those that are
	total   agent.UsageEvent  // of this run
	cost    float64           // what the program said of it last, over all that it knows of
	ended   bool              // the last turn has its result
	success bool              // and that is a good one
	stray   string            // the last line that is no JSON
}

// claudeLine is a line of any type, as far as it is of use.
type claudeLine struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Parent  string `json:"parent_tool_use_id"`
	Replay  bool   `json:"isReplay"`
	Message struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"` // a text or a list of blocks
		Usage   *claudeUsage    `json:"usage"`
	}
	Event     claudeStreamed `json:"event"`
	MessageID string         `json:"api_message_id"`
}

// claudeStreamed is an event of the model's API.
type claudeStreamed struct {
	Type    string `json:"type"`
	Message struct {
		ID    string       `json:"id"`
		Model string       `json:"model"`
		Usage *claudeUsage `json:"usage"`
	} `json:"message"`
	Delta struct {
		Text string `json:"text"`
	} `json:"delta"`
	Usage *claudeUsage `json:"usage"`
}

// Line is as Lines has it.
func (l *claudeLines) Line(b []byte) []agent.Event {
	var in claudeLine
	// Fields of other types than we know them are left out, and the rest is read.
	if err := json.Unmarshal(b, &in); err != nil && in.Type == "" {
		return l.broken(b)
	}
	switch in.Type {
	case "assistant":
		return l.assistant(&in)
	case "user":
		return l.user(&in)
	case "stream_event":
		return l.streamed(&in)
	case "result":
		return l.result(b)
	case "system":
		return l.system(&in, b)
	case "rate_limit_event":
		return l.limit(b)
	case "control_response":
		return l.control(b)
	} // requests are read by Asks
	return nil
}

// broken takes in a line that is no JSON. What a tool gave can be too long for a line: then it has a
// result all the same.
func (l *claudeLines) broken(b []byte) []agent.Event {
	start := string(b[:min(len(b), 4<<10)])
	if strings.Contains(start, `"tool_result"`) {
		for id, name := range l.tools {
			if strings.Contains(start, `"`+id+`"`) {
				delete(l.tools, id)
				return []agent.Event{agent.ToolResultEvent{ToolUseID: id, ToolName: name, Content: "(what it gave is too long, or was cut, and cannot be read)"}}
			}
		}
	}
	e := unreadable(b)
	l.stray = e.(agent.SystemEvent).Message
	return []agent.Event{e}
}

func (l *claudeLines) system(in *claudeLine, b []byte) []agent.Event {
	var d struct {
		SessionID string                          `json:"session_id"`
		Model     string                          `json:"model"`
		CWD       string                          `json:"cwd"`
		Tools     []string                        `json:"tools"`
		Servers   []struct{ Name, Status string } `json:"mcp_servers"`
		Tool      string                          `json:"tool_name"`
		Text      string                          `json:"message"`
		Error     string                          `json:"error"`
		Status    string                          `json:"status"`
		Attempt   int                             `json:"attempt"`
		Max       int                             `json:"max_retries"`
		Summary   string                          `json:"summary"`
		Tasks     []struct {
			Type string `json:"task_type"`
			Text string `json:"description"`
		} `json:"tasks"`
	}
	_ = json.Unmarshal(b, &d) // it is JSON; what has another type is left out
	switch in.Subtype {
	case "init": // comes again with each turn
		l.ended = false
		if l.began {
			return []agent.Event{agent.SystemEvent{Subtype: SystemTurn}}
		}
		l.began = true
		servers := map[string]string{}
		for _, s := range d.Servers {
			servers[s.Name] = s.Status
		}
		return []agent.Event{agent.InitEvent{SessionID: d.SessionID, Model: d.Model, CWD: d.CWD, Tools: d.Tools, MCPServers: servers}}
	case "status":
		if d.Status == "requesting" || d.Status == "" { // before each request
			return nil
		}
		d.Text = d.Status
	case "background_tasks_changed":
		var beside []string // without commands, which may be servers that do not end
		for _, t := range d.Tasks {
			if t.Type == "local_agent" {
				beside = append(beside, cmp.Or(strings.TrimSpace(t.Text), "a subagent"))
			}
		}
		return []agent.Event{agent.SystemEvent{Subtype: SystemBeside, Message: head(strings.Join(beside, ", "), 2000)}}
	case "api_retry":
		d.Text = strings.TrimSpace(d.Error + " " + ordinal(d.Attempt, d.Max))
	case "permission_denied":
		d.Text = strings.TrimSpace(d.Tool + ": " + d.Text)
	}
	text := d.Text
	for _, s := range []string{d.Error, d.Summary} {
		if text == "" {
			text = s
		}
	}
	return []agent.Event{agent.SystemEvent{Subtype: in.Subtype, Message: head(text, 2000)}}
}

func (l *claudeLines) assistant(in *claudeLine) []agent.Event {
	l.ended = false
	m := &in.Message
	synthetic := m.Model == "<synthetic>" // the program's own words, such as an error of the API
	var out []agent.Event
	if !synthetic && m.ID != "" {
		out = l.count(m.ID, in.Parent, m.Model, m.Usage)
	}
	for _, b := range blocks(m.Content) {
		switch {
		case b.Type == "text" && b.Text != "" && synthetic:
			out = append(out, agent.SystemEvent{Subtype: "notice", Message: head(b.Text, 2000)})
		case b.Type == "text" && b.Text != "" && in.Parent == "":
			out = append(out, agent.AssistantTextEvent{Text: b.Text})
		case b.Type == "tool_use" && b.ID != "":
			if l.tools == nil {
				l.tools = map[string]string{}
			}
			l.tools[b.ID] = b.Name
			out = append(out, agent.ToolUseEvent{ToolUseID: b.ID, ToolName: b.Name, Input: object(b.Input), Category: claudeCategory(b.Name)})
		}
	}
	return out
}

func (l *claudeLines) user(in *claudeLine) []agent.Event {
	var out []agent.Event
	for _, b := range blocks(in.Message.Content) {
		switch {
		case b.Type == "tool_result" && b.CallID != "":
			name := l.tools[b.CallID]
			delete(l.tools, b.CallID)
			out = append(out, agent.ToolResultEvent{ToolUseID: b.CallID, ToolName: name, Content: blockText(b.Content), IsError: b.IsError})
		case b.Type == "text" && in.Replay && in.Parent == "":
			out = append(out, agent.SystemEvent{Subtype: SystemHeard, Message: b.Text})
		}
	}
	return out
}

func (l *claudeLines) streamed(in *claudeLine) []agent.Event {
	e := &in.Event
	switch e.Type {
	case "message_start":
		return l.count(e.Message.ID, in.Parent, e.Message.Model, e.Message.Usage)
	case "message_delta", "message_stop":
		id := in.MessageID
		for _, r := range l.open {
			if id == "" && r.parent == in.Parent {
				id = r.id
			}
		}
		if e.Type == "message_stop" {
			return l.close(id)
		}
		for _, r := range l.open {
			if r.id == id {
				r.add("", e.Usage)
			}
		}
	case "content_block_delta":
		if e.Delta.Text != "" && in.Parent == "" {
			return []agent.Event{agent.AssistantTextEvent{Text: e.Delta.Text, Delta: true}}
		}
	}
	return nil
}

// claudeResult is the end of a turn.
type claudeResult struct {
	Subtype  string                 `json:"subtype"`
	IsError  bool                   `json:"is_error"`
	Status   float64                `json:"api_error_status"`
	Result   string                 `json:"result"`
	Errors   []string               `json:"errors"`
	Terminal string                 `json:"terminal_reason"`
	Turns    float64                `json:"num_turns"`
	Cost     float64                `json:"total_cost_usd"`
	Usage    *claudeUsage           `json:"usage"`
	Since    map[string]claudeModel `json:"model_usage_since_last_result"`
}

func (l *claudeLines) result(b []byte) (out []agent.Event) {
	r := claudeResult{IsError: true} // a line that does not say so is no success
	err := json.Unmarshal(b, &r)     // it is JSON; what has another type is left out
	for len(l.open) > 0 {            // a turn that was cut off
		out = append(out, l.close(l.open[0].id)...)
	}
	l.add(&r)
	total := l.total
	total.Total = true
	e := agent.ResultEvent{Success: !r.IsError && (r.Subtype == "success" || r.Subtype == ""), Message: r.Result, Errors: r.Errors, Turns: tokens(r.Turns), Usage: &total}
	if err != nil && e.Success && r.Result == "" {
		e.Success = false
	}
	if !e.Success {
		why, text := claudeWhy(&r)
		e.Subtype = why
		if len(e.Errors) == 0 && text != "" {
			e.Errors = []string{text}
		}
	}
	l.tools, l.ended, l.success = nil, true, e.Success
	return append(out, e)
}

// claudeWhy says why a turn did not succeed.
func claudeWhy(r *claudeResult) (why, text string) {
	text = strings.TrimSpace(r.Result + " " + strings.Join(r.Errors, "; "))
	switch {
	case r.Subtype == "error_max_turns" || r.Terminal == "max_turns":
		return WhyTurns, text
	case r.Subtype == "error_max_budget_usd" || r.Terminal == "budget_exhausted":
		return WhyBudget, text
	case r.Terminal == "aborted_streaming" || r.Terminal == "aborted_tools":
		return WhyInterrupted, text
	case noSession(text):
		return WhyNoSession, text
	}
	code, text := llm.ClaudeFault(int(r.Status), r.Terminal, head(text, 2000))
	return whyOf(code), text
}

func (l *claudeLines) limit(b []byte) []agent.Event {
	var in struct {
		Info struct {
			Status string `json:"status"`
			Type   string `json:"rateLimitType"`
		} `json:"rate_limit_info"`
	}
	if _ = json.Unmarshal(b, &in); in.Info.Status == "" || in.Info.Status == "allowed" {
		return nil
	}
	return []agent.Event{agent.SystemEvent{Subtype: "rate_limit", Message: strings.TrimSpace(in.Info.Status + " " + in.Info.Type)}}
}

func (l *claudeLines) control(b []byte) []agent.Event {
	var in struct {
		Response struct{ Subtype, Error string } `json:"response"`
	}
	if _ = json.Unmarshal(b, &in); in.Response.Subtype != "error" {
		return nil
	}
	return []agent.Event{agent.SystemEvent{Subtype: "control_error", Message: head(in.Response.Error, 2000)}}
}

// End is as Lines has it.
func (l *claudeLines) End(exit Exit) agent.Event {
	if !l.ended {
		if strings.TrimSpace(exit.Stderr) == "" {
			exit.Stderr = l.stray
		}
		return noResult("claude", exit)
	}
	if l.success {
		return badExit("claude", exit)
	}
	return nil
}

// claudeCategory says what kind of tool one is.
func claudeCategory(name string) string {
	if strings.HasPrefix(name, "mcp__") {
		return "mcp"
	}
	switch name {
	case "Bash", "BashOutput", "KillShell", "Monitor", "PowerShell":
		return "shell"
	case "Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Glob", "Grep", "LS":
		return "file"
	case "WebFetch", "WebSearch":
		return "web"
	case "Task", "Agent", "Workflow":
		return "agent"
	}
	return ""
}
