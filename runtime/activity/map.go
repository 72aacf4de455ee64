package activity

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"rnix/agent"
	"rnix/runtime/journal"
)

// Activity is one thing that an agent did, as a platform sees it. Part of the wire format.
type Activity struct {
	EventID      string          `json:"eventId,omitempty"` // the same each time that it is posted
	Type         string          `json:"type"`              // thought, action, response or error
	Content      string          `json:"content"`
	ToolName     string          `json:"toolName,omitempty"`
	ToolInput    json.RawMessage `json:"toolInput,omitempty"` // an object
	ToolCategory string          `json:"toolCategory,omitempty"`
	ToolOutput   string          `json:"toolOutput,omitempty"`
	ToolUseID    string          `json:"toolUseId,omitempty"`
	IsError      bool            `json:"isError,omitempty"`
	DurationMs   *int64          `json:"durationMs,omitempty"` // of a tool; 0 if its beginning is not known
	ProviderName string          `json:"providerName,omitempty"`
	Timestamp    string          `json:"timestamp,omitempty"` // of Send, RFC 3339 in UTC
}

// maxStarts bounds what is remembered of tools that never end.
const maxStarts = 4096

// mapLocked makes an activity of an event, or none.
//
// +checklocks:p.mu
func (p *Poster) mapLocked(ev agent.Event) (Activity, bool) {
	now := p.cfg.Now()
	a := Activity{ProviderName: p.cfg.ProviderName, Timestamp: now.UTC().Format(time.RFC3339Nano)}
	switch e := ev.(type) {
	case agent.AssistantTextEvent:
		a.Type, a.Content = "thought", strings.TrimSpace(e.Text)
		if e.Delta || a.Content == "" {
			return a, false // parts come again as a whole
		}
	case agent.ToolUseEvent:
		if len(p.starts) >= maxStarts {
			clear(p.starts)
		}
		p.starts[e.ToolUseID] = now
		a.Type, a.ToolName, a.ToolUseID, a.ToolCategory = "action", e.ToolName, e.ToolUseID, e.Category
		a.Content = summary(e, p.cfg.Redact)
		a.ToolInput = p.input(e.Input)
	case agent.ToolResultEvent:
		a.Type, a.ToolName, a.ToolUseID, a.IsError = "action", e.ToolName, e.ToolUseID, e.IsError
		a.Content = strings.TrimSpace(e.ToolName + " result")
		if e.IsError {
			a.Content += " (error)"
		}
		a.ToolOutput = Elide(p.cfg.Redact(e.Content), p.cfg.MaxToolOutputChars)
		ms := int64(0)
		if start, ok := p.starts[e.ToolUseID]; ok {
			ms = max(0, now.Sub(start).Milliseconds())
			delete(p.starts, e.ToolUseID)
		}
		a.DurationMs = &ms
	case agent.ResultEvent:
		clear(p.starts)
		a.Type, a.IsError, a.Content = "response", !e.Success, e.Message
		switch {
		case e.Message != "":
		case e.Success:
			a.Content = "Session completed"
		case len(e.Errors) > 0:
			a.Content = strings.Join(e.Errors, "; ")
		default:
			a.Content = "Session ended"
		}
	case agent.ErrorEvent:
		clear(p.starts)
		a.Type, a.IsError, a.Content = "error", true, firstOf(e.Message, e.Code, "agent error")
	default:
		return a, false
	}
	a.Content = Elide(p.cfg.Redact(a.Content), maxContent)
	return a, true
}

// maxContent bounds a text in characters, so that one event fits into a request.
const maxContent = 60_000

// maxOutput bounds an output in characters for whoever wants no bound: in JSON it fits into an event of a journal.
const maxOutput = 100_000

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// salient says which argument of a tool tells a person most.
var salient = map[string][]string{
	"bash": {"command"}, "read": {"file_path"}, "edit": {"file_path"}, "write": {"file_path"}, "notebookedit": {"file_path", "notebook_path"},
	"grep": {"pattern"}, "glob": {"pattern"}, "agent": {"description", "prompt"}, "task": {"description", "prompt"},
}

// summary returns "Name: argument" or the name alone.
func summary(e agent.ToolUseEvent, redact func(string) string) string {
	keys := salient[strings.ToLower(e.ToolName)]
	if keys == nil && e.Category == "shell" {
		keys = []string{"command"}
	}
	var input map[string]any
	if json.Unmarshal(e.Input, &input) == nil {
		for _, k := range keys {
			if s, ok := input[k].(string); ok {
				if s = strings.Join(strings.Fields(redact(s)), " "); s != "" {
					return e.ToolName + ": " + Elide(s, DefaultMaxToolSummaryChars)
				}
			}
		}
	}
	return e.ToolName
}

// input returns a copy of a tool's input whose texts are redacted and short.
func (p *Poster) input(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil {
		object = map[string]any{"input": string(raw)} // not what was agreed on, but what there is
	}
	b, err := json.Marshal(p.shorten(object))
	if err == nil && len(b) > 4*maxContent {
		b, err = json.Marshal(map[string]any{"input": Elide(string(b), maxContent)})
	}
	if err != nil {
		return nil // what Unmarshal has made can be written
	}
	return b
}

func (p *Poster) shorten(v any) any {
	switch v := v.(type) {
	case string:
		return Elide(p.cfg.Redact(v), p.cfg.MaxToolOutputChars)
	case map[string]any:
		for k, x := range v {
			v[k] = p.shorten(x)
		}
	case []any:
		for i, x := range v {
			v[i] = p.shorten(x)
		}
	}
	return v
}

// Elide returns s if it has at most max characters, or else its beginning and its end, with a word between that says how
// many are left out: max characters in all. The end of an output is where the news is. A negative max is no bound.
func Elide(s string, max int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if max < 0 || len(s) <= max {
		return s
	}
	r := []rune(s)
	if len(r) <= max {
		return s
	}
	mark := fmt.Sprintf("\n… %d characters left out …\n", len(r)-max)
	room := max - len([]rune(mark)) - 3 // the number may grow by as many digits
	if room < 2 {
		return string(r[:max])
	}
	head := (room + 1) / 2
	tail := room - head
	mark = fmt.Sprintf("\n… %d characters left out …\n", len(r)-head-tail)
	return string(r[:head]) + mark + string(r[len(r)-tail:])
}

// fromEvent returns the activity of a journal's event.
func (p *Poster) fromEvent(e journal.Event) (a Activity, err error) {
	if e.Kind == journal.KindGap {
		var g journal.Gap
		if err := json.Unmarshal(e.Data, &g); err != nil {
			return a, err
		}
		return Activity{EventID: e.ID, Type: "error", Content: fmt.Sprintf("%d activities are missing here: %s", g.Count, g.Reason),
			IsError: true, ProviderName: p.cfg.ProviderName, Timestamp: e.Time.UTC().Format(time.RFC3339Nano)}, nil
	}
	err = json.Unmarshal(e.Data, &a)
	a.EventID = e.ID
	return a, err
}
