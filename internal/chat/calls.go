package chat

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"rnix/debug"
	"rnix/internal/tui"
	"rnix/ipc"
)

// How much is shown of a result.
const (
	shownLines = 3
	shownDiff  = 16
)

// callHead is a call on one line: its tool and what it is about, clean.
func callHead(m *Model, c *openCall) string {
	return paint(m.t, bold, tui.Line(m.t, c.name)) + with(" ", tui.Line(m.t, about(c.name, c.input)))
}

// fields are what a call is about, the most telling first.
var fields = []string{"command", "path", "file_path", "file", "from", "pattern", "query", "url", "intent", "text", "skill", "name", "pid", "pids", "question", "reason"}

// about returns what a call is about.
func about(tool, input string) string {
	var in map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &in) != nil {
		return bounded(input, 400)
	}
	var parts []string
	for _, f := range fields {
		raw, ok := in[f]
		if !ok {
			continue
		}
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		parts = append(parts, bounded(s, 400))
		if f == "command" || len(parts) == 2 {
			break
		}
	}
	if len(parts) == 0 && len(in) > 0 && tool != "plan" && tool != "replan" && tool != "complete" {
		return bounded(input, 400)
	}
	return strings.Join(parts, " ")
}

// refusal begins the result of a call that was not made because it may not be.
const refusal = "error (permission): "

// exitLine is the last line of what a command has printed.
var exitLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\n?\[exit code (\d+), ([^\]\n]*)\]\s*$`) })

// showResult prints a call with its result.
func showResult(m *Model, c *ipc.ConversationMessage) {
	i := slices.IndexFunc(m.script.open, func(o openCall) bool { return o.id == c.ToolCallID })
	if i < 0 {
		return // its call is among the messages that are not shown
	}
	k := m.script.open[i]
	m.script.open = slices.Delete(m.script.open, i, i+1)
	if k.name == "complete" && !c.IsError {
		completedWith(m, &k)
		return
	}
	text, state, took := c.Content, "ok", ""
	if found := exitLine().FindStringSubmatchIndex(text); found != nil {
		if code := text[found[2]:found[3]]; code != "0" {
			state = "exit " + code
		}
		took = text[found[4]:found[5]]
		text = text[:found[0]]
	} else if d := c.Time.Sub(k.at); d >= time.Second {
		took = debug.Duration(d)
	}
	a := green
	switch {
	case c.IsError && strings.HasPrefix(text, refusal):
		a, state = yellow, "refused"
	case c.IsError:
		a, state = red, "failed"
	case state != "ok":
		a = red
	}
	text = strings.TrimRight(tui.Clean(m.t, text), "\n ")
	if !c.IsError && len(stepsOf(m.t, &k)) > 0 {
		m.plan.past, m.plan.stale = "", false // it is of this run
	}
	whole, diff := wholeLines(m.t, &k, text, c.IsError)
	keepResult(m, addressOf(m), callHead(m, &k), whole, diff)
	end := "  " + paint(m.t, a, state)
	if took != "" {
		end += paint(m.t, dim, " "+tui.Line(m.t, took))
	}
	m.block("call")
	m.print(tui.Cut(m.t, paint(m.t, a, tui.Pick(m.t, "● ", "* "))+callHead(m, &k), max(m.md.w-tui.Cells(m.t, strip(end)), 10)) + end)
	m.print(foldedLines(m, &k, text, c.IsError)...)
}

// completedWith prints the answer that an agent has ended with.
func completedWith(m *Model, k *openCall) {
	var in struct{ Result string }
	if json.Unmarshal([]byte(k.input), &in) != nil || strings.TrimSpace(in.Result) == "" || strings.TrimSpace(in.Result) == strings.TrimSpace(m.script.answer) {
		return
	}
	m.script.answer = in.Result
	printSaid(m, m.md.write(in.Result))
	printSaid(m, m.md.end())
}

// wholeLines returns all lines of what a call has brought: the steps of a plan, or the difference that it has made, or what its result says. One that has
// failed has changed nothing.
func wholeLines(t *tui.Theme, k *openCall, text string, failed bool) (lines []string, diff bool) {
	if steps := stepsOf(t, k); len(steps) > 0 && !failed {
		return steps, false
	}
	if text != "" {
		lines = strings.Split(text, "\n")
	}
	if _, d := tui.Change(t, k.name, k.input, text); d != nil && !failed && text != "" {
		return d, true
	}
	return lines, false
}

// stepsOf returns the steps of the plan that a call has made, clean; nil if it is another call.
func stepsOf(t *tui.Theme, k *openCall) (steps []string) {
	var in struct{ Steps []string }
	if k.name != "plan" && k.name != "replan" || json.Unmarshal([]byte(k.input), &in) != nil {
		return nil
	}
	for _, s := range in.Steps {
		steps = append(steps, tui.Line(t, s))
	}
	return steps
}

// foldedLines returns what is shown below a call: of a plan and of a difference the beginning, of all else the last lines.
func foldedLines(m *Model, k *openCall, text string, failed bool) (out []string) {
	lines, diff := wholeLines(m.t, k, text, failed)
	if diff || !failed && len(stepsOf(m.t, k)) > 0 {
		for _, l := range lines[:min(len(lines), shownDiff)] {
			if diff {
				out = append(out, belowLine(m, changeAttr(l), l))
				continue
			}
			out = append(out, belowLine(m, 0, tui.Pick(m.t, "□ ", "- ")+l))
		}
		return append(out, moreLines(m, len(lines)-shownDiff)...)
	}
	n := len(lines) - shownLines
	if n <= 1 { // the line that says so would take its place
		n = 0
	}
	out = moreLines(m, n)
	for _, l := range lines[n:] {
		if failed { // why stands at its end, as the reason of a person does
			lead := paint(m.t, dim, tui.Pick(m.t, "  │ ", "  | "))
			out = append(out, wrap(m.t, []span{{bounded(l, 1<<10), dim}}, lead, lead, m.md.w)...)
			continue
		}
		out = append(out, belowLine(m, dim, l))
	}
	return out
}

func moreLines(m *Model, n int) []string {
	if n <= 0 {
		return nil
	}
	return []string{belowLine(m, dim, tui.Pick(m.t, "… ", "... ")+plural(n, "line", "lines")+" more (Ctrl+O)")}
}

// belowLine is a line below a call.
func belowLine(m *Model, a attr, line string) string {
	return tui.Cut(m.t, paint(m.t, dim, tui.Pick(m.t, "  │ ", "  | "))+paint(m.t, a, bounded(line, 1<<10)), m.md.w)
}

// strip returns text without styles.
func strip(s string) string {
	var b bytes.Buffer
	for {
		i := strings.IndexByte(s, '\x1b')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		j := strings.IndexByte(s[i:], 'm')
		if j < 0 {
			return b.String()
		}
		s = s[i+j+1:]
	}
}
