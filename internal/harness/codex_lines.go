package harness

import (
	"crypto/rand"
	"encoding/json"
	"strings"

	"rnix/agent"
	"rnix/internal/pattern"
)

// codexLines reads the lines of one run of codex.
type codexLines struct {
	run     string           // makes the ids of tools, which begin anew with each run, those of this one
	before  agent.UsageEvent // what the session had used before
	open    map[string]bool  // ids of the tools that run
	total   agent.UsageEvent // of this run
	message string           // the model's last
	trouble string           // what was the matter last
	ended   bool             // the turn has its result
	success bool
}

func newCodexLines(before agent.UsageEvent) *codexLines {
	return &codexLines{run: rand.Text()[:8], before: before, open: map[string]bool{}}
}

// codexLine is a line of any type, as far as it is of use.
type codexLine struct {
	Type     string      `json:"type"`
	ThreadID string      `json:"thread_id"`
	Message  string      `json:"message"`
	Item     codexItem   `json:"item"`
	Usage    *codexUsage `json:"usage"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
}

// codexItem is a piece of a turn.
type codexItem struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Message  string          `json:"message"`
	Status   string          `json:"status"`
	Command  string          `json:"command"`
	Output   string          `json:"aggregated_output"`
	ExitCode *float64        `json:"exit_code"`
	Server   string          `json:"server"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"arguments"`
	Changes  json.RawMessage `json:"changes"`
	Query    string          `json:"query"`
	Result   struct {
		Content json.RawMessage `json:"content"`
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

// codexUsage is what the session has used, the runs before this one included.
type codexUsage struct {
	Input      float64 `json:"input_tokens"` // with those of the cache
	CacheRead  float64 `json:"cached_input_tokens"`
	CacheWrite float64 `json:"cache_write_input_tokens"`
	Output     float64 `json:"output_tokens"`
}

// Line is as Lines has it.
func (l *codexLines) Line(b []byte) []agent.Event {
	var in codexLine
	// Fields of other types than we know them are left out, and the rest is read.
	if err := json.Unmarshal(b, &in); err != nil && in.Type == "" {
		e := unreadable(b)
		l.trouble = e.(agent.SystemEvent).Message
		return []agent.Event{e}
	}
	switch in.Type {
	case "thread.started":
		return []agent.Event{agent.InitEvent{SessionID: in.ThreadID}}
	case "turn.started":
		l.ended = false
	case "item.started":
		return l.started(&in.Item)
	case "item.completed":
		return l.completed(&in.Item)
	case "error": // it tries again, or a turn.failed follows
		l.trouble = in.Message
		return []agent.Event{agent.SystemEvent{Subtype: "error", Message: head(in.Message, 2000)}}
	case "turn.completed":
		l.count(in.Usage)
		return l.result(agent.ResultEvent{Success: true, Message: l.message})
	case "turn.failed":
		text := in.Error.Message
		if text == "" {
			text = l.trouble
		}
		return l.result(agent.ResultEvent{Subtype: whyInWords(text), Errors: []string{head(text, 2000)}})
	}
	return nil
}

// count takes in what the session has used by now. A number that is smaller than what was used before is
// of this run only.
func (l *codexLines) count(u *codexUsage) {
	if u == nil {
		return
	}
	read, write := tokens(u.CacheRead), tokens(u.CacheWrite)
	l.total = agent.UsageEvent{Input: max(tokens(u.Input)-read-write, 0), Output: tokens(u.Output), CacheRead: read, CacheWrite: write}
	t, x := &l.total, &l.before
	if t.Input >= x.Input && t.Output >= x.Output && t.CacheRead >= x.CacheRead && t.CacheWrite >= x.CacheWrite {
		t.Input, t.Output, t.CacheRead, t.CacheWrite = t.Input-x.Input, t.Output-x.Output, t.CacheRead-x.CacheRead, t.CacheWrite-x.CacheWrite
	}
}

func (l *codexLines) result(e agent.ResultEvent) []agent.Event {
	u := l.total
	u.Total = true
	e.Usage = &u
	l.ended, l.success = true, e.Success
	clear(l.open)
	return []agent.Event{e}
}

// started gives the tool that an item is, if it is one.
func (l *codexLines) started(i *codexItem) []agent.Event {
	e := agent.ToolUseEvent{ToolUseID: l.run + "-" + i.ID}
	var input any
	e.ToolName, e.Category, input = i.tool()
	if e.ToolName == "" || i.ID == "" || l.open[i.ID] {
		return nil
	}
	var err error
	if e.Input, err = json.Marshal(input); err != nil {
		return nil // it was made of JSON
	}
	e.Input = object(e.Input)
	l.open[i.ID] = true
	return []agent.Event{e}
}

// tool says which tool an item is, of what kind, and with which input; "" if it is none.
func (i *codexItem) tool() (name, category string, input any) {
	switch i.Type {
	case "command_execution":
		return "shell", "shell", map[string]string{"command": i.Command}
	case "file_change":
		changes := i.Changes
		if len(changes) == 0 {
			changes = json.RawMessage("[]")
		}
		return "apply_patch", "file", map[string]json.RawMessage{"changes": changes}
	case "mcp_tool_call":
		return "mcp__" + i.Server + "__" + i.Tool, "mcp", object(i.Args)
	case "web_search":
		return "web_search", "web", map[string]string{"query": i.Query}
	case "collab_tool_call":
		return "agents", "agent", map[string]string{"tool": i.Tool}
	}
	return "", "", nil
}

func (l *codexLines) completed(i *codexItem) []agent.Event {
	switch i.Type {
	case "agent_message":
		if i.Text == "" {
			return nil
		}
		l.message = i.Text
		return []agent.Event{agent.AssistantTextEvent{Text: i.Text}}
	case "error": // a warning
		return []agent.Event{agent.SystemEvent{Subtype: "notice", Message: head(i.Message, 2000)}}
	}
	name, _, _ := i.tool()
	if name == "" || i.ID == "" {
		return nil
	}
	out := l.started(i) // if nobody has said so before
	delete(l.open, i.ID)
	r := agent.ToolResultEvent{ToolUseID: l.run + "-" + i.ID, ToolName: name, Content: i.Output}
	r.IsError = i.Status == "failed" || i.Status == "declined" || i.Error.Message != "" || i.ExitCode != nil && *i.ExitCode != 0
	if i.Type == "mcp_tool_call" {
		r.Content = blockText(i.Result.Content)
	}
	if i.Error.Message != "" {
		r.Content = strings.TrimSpace(r.Content + "\n" + i.Error.Message)
	}
	if i.Type == "file_change" && len(i.Changes) > 0 {
		r.Content = string(i.Changes)
	}
	return append(out, r)
}

// End is as Lines has it.
func (l *codexLines) End(exit Exit) agent.Event {
	if l.ended {
		if l.success {
			return badExit("codex", exit)
		}
		return nil
	}
	exit.Stderr = codexStderr(exit.Stderr)
	if exit.Stderr == "" {
		exit.Stderr = l.trouble
	}
	return noResult("codex", exit)
}

// codexStderr is standard error without what helps nobody: the addresses of its calls, and lines of its
// log.
func codexStderr(text string) string {
	text, _, _ = strings.Cut(text, "\nStack backtrace:")
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Reading ") && !logLine().MatchString(line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

var (
	logLine   = pattern.New(`^\d{4}-\d\d-\d\dT[\d:.]+Z +(ERROR|WARN|INFO|DEBUG|TRACE) `)
	authWords = pattern.New(`(?i)\b401\b|\b403\b|unauthorized|forbidden|invalid.{0,10}api.key|incorrect api key|not logged in|log ?in again|refresh token|insufficient_quota|exceeded your current quota`)
	rateWords = pattern.New(`(?i)\b429\b|rate.?limit|usage limit|too many requests`)
	fullWords = pattern.New(`(?i)context.{0,10}(window|length)|\b40[049]\b|\b413\b|bad request|does not exist|not supported`)
	downWords = pattern.New(`(?i)\b5\d\d\b|stream disconnected|connection|timed? ?out|network|overload|unavailable|at capacity|high demand`)
)

// whyInWords says why a turn failed, for a program that tells it in words only.
func whyInWords(text string) string {
	switch {
	case authWords().MatchString(text):
		return WhyAuth
	case rateWords().MatchString(text):
		return WhyRateLimited
	case fullWords().MatchString(text):
		return WhyInvalid
	case downWords().MatchString(text):
		return WhyUnavailable
	case strings.Contains(strings.ToLower(text), "interrupted"):
		return WhyInterrupted
	}
	return WhyFailed
}
