package llm

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	rnixctx "rnix/context"

	"rnix/internal/pattern"
)

// The words of the text protocol. A model that has no native tool calls answers with one JSON object
// whose "action" is one of these, or the name of an action of the kernel's own.
const (
	actToolCall  = "tool_call"
	actToolCalls = "tool_calls"
	actText      = "text"
	actComplete  = "complete"
)

// ownActions are the tools that are the kernel's own. Their fields stand beside "action" and not in
// an "input" of their own.
var ownActions = []string{actComplete, "plan", "replan", "spawn", "specialize"}

// scanBudget bounds the bytes that are looked at again while searching for an object in prose.
const scanBudget = 8 << 20

// ParseTextAction reads the answer of a text-only model. It returns the calls that the answer asks
// for, without ids, and what was said around them. An answer that asks for nothing is all content.
//
// The answer may be the bare object, may stand in a code fence, and may have prose around it; then it
// must be the only action in the text. Several bare objects in a row are several calls. Whatever does
// not have the form of an action is text, with one exception: a tool_call that was cut off or is not
// valid JSON comes back as a call with a ParseError, so that the model can mend it.
func ParseTextAction(text string, tools []ToolSpec) (content string, calls []rnixctx.ToolCall) {
	if !strings.Contains(text, `"action"`) {
		return text, nil
	}
	p := actionParser{tools: tools}
	var found []actionSpan
	var around strings.Builder // the text without the actions and their fences
	last, fenced := 0, false
	for _, s := range findObjects(text) {
		if !p.recognises(s.object) {
			continue
		}
		found = append(found, s)
		before := closeFence(text[last:s.start], fenced)
		before, fenced = openFence(before, text[s.end:])
		around.WriteString(before)
		last = s.end
	}
	if len(found) == 0 {
		return brokenCall(text)
	}
	around.WriteString(closeFence(text[last:], fenced))
	prose := strings.TrimSpace(around.String())
	if strings.Trim(prose, " \t\r\n,[]") == "" { // a list of actions
		prose = ""
	}
	if len(found) > 1 && prose != "" {
		return text, nil // which one is meant cannot be known
	}
	var said []string
	if prose != "" {
		said = append(said, prose)
	}
	for _, s := range found {
		s, c := p.read(s.object)
		if s != "" {
			said = append(said, s)
		}
		calls = append(calls, c...)
	}
	return strings.Join(said, "\n\n"), calls
}

// actionParser knows which names are offered.
type actionParser struct{ tools []ToolSpec }

type actionFields map[string]json.RawMessage

func (f actionFields) str(names ...string) string {
	for _, n := range names {
		var s string
		if json.Unmarshal(f[n], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

func (f actionFields) first(names ...string) json.RawMessage {
	for _, n := range names {
		if v, ok := f[n]; ok {
			return v
		}
	}
	return nil
}

func (p actionParser) offers(name string) bool {
	return slices.ContainsFunc(p.tools, func(t ToolSpec) bool { return t.Name == name })
}

// recognises reports whether f has the form of an action.
func (p actionParser) recognises(f actionFields) bool {
	switch a := f.str("action"); a {
	case "":
		return false
	case actToolCall:
		return f.str("tool", "name") != ""
	case actToolCalls:
		var list []actionFields
		if json.Unmarshal(f["calls"], &list) != nil || len(list) == 0 {
			return false
		}
		return !slices.ContainsFunc(list, func(c actionFields) bool { return c.str("tool", "name") == "" })
	case actText:
		return f.str("content", "text", "result") != ""
	case actComplete:
		return f.first("result", "input") != nil
	default:
		return p.offers(a)
	}
}

// read turns an object that recognises has accepted into what is said and what is called.
func (p actionParser) read(f actionFields) (said string, calls []rnixctx.ToolCall) {
	said = f.str("thought")
	switch a := f.str("action"); {
	case a == actToolCall:
		return said, []rnixctx.ToolCall{p.call(f)}
	case a == actToolCalls:
		var list []actionFields
		_ = json.Unmarshal(f["calls"], &list) // recognises has read it
		for _, c := range list {
			calls = append(calls, p.call(c))
		}
		return said, calls
	case a == actText:
		return f.str("content", "text", "result"), nil
	case a == actComplete && !p.offers(actComplete):
		return plainText(f.first("result", "input")), nil
	default:
		return said, []rnixctx.ToolCall{{Name: a, Input: ownInput(a, f)}}
	}
}

// call reads one tool call. What the tool needs is checked by whoever runs it.
func (p actionParser) call(f actionFields) rnixctx.ToolCall {
	c := rnixctx.ToolCall{Name: f.str("tool", "name"), Input: asObject(f.first("input", "arguments", "args"))}
	if c.Name == actComplete {
		c.Input = stringResult(c.Input)
	}
	return c
}

// ownInput collects the fields beside "action", or takes an "input" object if there is one.
func ownInput(name string, f actionFields) json.RawMessage {
	in := asObject(f["input"])
	if len(f["input"]) == 0 || len(in) == 0 || in[0] != '{' {
		rest := actionFields{}
		for k, v := range f {
			if k != "action" && k != "thought" {
				rest[k] = v
			}
		}
		in, _ = json.Marshal(rest) // raw messages that were just decoded
	}
	if name == actComplete {
		return stringResult(in)
	}
	return in
}

// stringResult makes the result of a complete a string: models like to give an object.
func stringResult(in json.RawMessage) json.RawMessage {
	var f actionFields
	if json.Unmarshal(in, &f) != nil || len(f["result"]) == 0 || f["result"][0] == '"' {
		return in
	}
	f["result"], _ = json.Marshal(plainText(f["result"]))
	out, _ := json.Marshal(f)
	return out
}

// asObject returns v, or what v holds if it is an object that was encoded twice. Nothing is {}.
func asObject(v json.RawMessage) json.RawMessage {
	if v = bytes.TrimSpace(v); len(v) == 0 || string(v) == "null" {
		return json.RawMessage("{}")
	}
	var s string
	if json.Unmarshal(v, &s) == nil {
		if in := strings.TrimSpace(s); strings.HasPrefix(in, "{") && json.Valid([]byte(in)) {
			return json.RawMessage(in)
		}
	}
	return v
}

// plainText is a JSON value as text: a string without its quotes, anything else as it is.
func plainText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// actionSpan is a JSON object in a text.
type actionSpan struct {
	start, end int
	object     actionFields
}

// findObjects finds the outermost JSON objects of a text, in order.
func findObjects(text string) (found []actionSpan) {
	budget := scanBudget
	for i := 0; i < len(text) && budget > 0; i++ {
		if text[i] != '{' || !beginsObject(text[i+1:]) {
			continue
		}
		end := balanced(text[i:])
		if end < 0 {
			budget -= len(text) - i
			continue
		}
		budget -= end
		var f actionFields
		src := []byte(text[i : i+end])
		if json.Unmarshal(src, &f) != nil && json.Unmarshal(escapeControls(src), &f) != nil {
			continue
		}
		found = append(found, actionSpan{i, i + end, f})
		i += end - 1
	}
	return found
}

// beginsObject reports whether s can follow the opening brace of a JSON object.
func beginsObject(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return s != "" && (s[0] == '"' || s[0] == '}')
}

// balanced returns the length of the balanced object that s begins with, or -1.
func balanced(s string) int {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// escapeControls escapes the control characters inside strings, such as the bare newlines that
// models write into long texts.
func escapeControls(src []byte) []byte {
	out := make([]byte, 0, len(src)+16)
	quoted := false
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case quoted && c == '\\' && i+1 < len(src):
			out = append(out, c)
			i++
			c = src[i]
		case c == '"':
			quoted = !quoted
		case quoted && c < 0x20:
			q := strconv.AppendQuoteRuneToASCII(nil, rune(c)) // '\n', '\x00'
			if esc := string(q[1 : len(q)-1]); len(esc) == 2 && strings.ContainsAny(esc[1:], "bfnrt") {
				out = append(out, esc...)
			} else {
				out = append(out, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			}
			continue
		}
		out = append(out, c)
	}
	return out
}

var actionFence = pattern.New("```[a-zA-Z0-9]*[ \t]*\\s*$")

// openFence returns the text before an object without the fence that opens around the object, and
// whether there was one.
func openFence(before, after string) (string, bool) {
	if !strings.HasPrefix(strings.TrimLeft(after, " \t\r\n"), "```") {
		return before, false
	}
	cut := actionFence().ReplaceAllString(before, "")
	return cut, len(cut) < len(before)
}

// closeFence returns the text behind an object without the end of the fence around it.
func closeFence(after string, fenced bool) string {
	if !fenced {
		return after
	}
	return strings.TrimPrefix(strings.TrimLeft(after, " \t\r\n"), "```")
}

var (
	callStart = pattern.New("^(?:```[a-z]*\\s*)?\\{\\s*\"action\"\\s*:\\s*\"tool_calls?\"")
	callTool  = pattern.New(`"tool"\s*:\s*"([^"\\]{1,128})"`)
)

// brokenCall handles a text without a readable action: it is content, unless it begins like a call.
func brokenCall(text string) (string, []rnixctx.ToolCall) {
	t := strings.TrimSpace(text)
	if !callStart().MatchString(t) {
		return text, nil
	}
	m := callTool().FindStringSubmatch(t)
	if m == nil {
		return text, nil
	}
	var v any
	why := "the object does not end"
	if err := json.Unmarshal([]byte(t), &v); err != nil {
		why = err.Error()
	}
	raw, _ := json.Marshal(t)
	return "", []rnixctx.ToolCall{{Name: m[1], Input: raw, ParseError: why}}
}
