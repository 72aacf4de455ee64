package tui

import (
	"fmt"
	"strings"

	"rnix/debug"
	"rnix/internal/price"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

// shownText is how much of one text of a step is shown, in bytes.
const shownText = 256 << 10

// bounded returns at most shownText bytes of a text, and says what is left out.
func bounded(s string) string {
	if len(s) <= shownText {
		return s
	}
	return s[:shownText] + fmt.Sprintf("\n(%s more bytes are not shown here)", number(len(s)-shownText))
}

// heading begins a part of a text.
func heading(b *strings.Builder, name, text string) {
	fmt.Fprintf(b, "\n%s\n", name)
	if text != "" {
		b.WriteString(strings.TrimRight(bounded(text), "\n") + "\n")
	}
}

// writeStep writes a step, without its prompt.
func writeStep(b *strings.Builder, t *Theme, r *ipc.StepRecord, of int) {
	fmt.Fprintf(b, "step %d of %d   %s   took %s, %s of it the model\n", r.StepNumber, of, r.Timestamp.Local().Format("2006-01-02 15:04:05"), debug.Duration(r.Duration), debug.Duration(r.ModelTime))
	fmt.Fprintf(b, "%s   %s tokens", t.modelName(&ipc.Proc{ProcStatus: types.ProcStatus{Provider: r.Provider, Model: r.Model}}), approx(r.TokensUsed, r.Estimated))
	for _, part := range []struct {
		n    int
		what string
	}{{r.Input, "sent"}, {r.CacheRead, "from the cache"}, {r.CacheWrite, "to the cache"}, {r.Output, "answered"}} {
		if part.n > 0 {
			fmt.Fprintf(b, ", %s %s", number(part.n), part.what)
		}
	}
	if r.TokensUsed > 0 {
		b.WriteString("   " + price.Spent(r.CostUSD, r.TokensUsed, r.Unpriced()))
	}
	if r.StopReason != "" {
		b.WriteString("   stopped: " + t.line(r.StopReason))
	}
	b.WriteString("\n")
	if r.Error != "" {
		heading(b, "FAILED", r.Error)
	}
	heading(b, "ANSWER", answerOf(r))
	for i, c := range callsOf(r) {
		heading(b, fmt.Sprintf("CALL %d  %s %s  (%s)", i+1, t.line(c.Name), t.line(c.Path), debug.Duration(c.Duration))+failing(t, &c), "")
		if c.Input != "" {
			fmt.Fprintf(b, "input:\n%s\n", bounded(c.Input))
		}
		if c.Error != "" {
			fmt.Fprintf(b, "error: %s\n", bounded(strings.TrimSpace(string(c.Code)+" "+c.Error)))
		}
		if c.Result != "" || c.Error == "" {
			fmt.Fprintf(b, "output:\n%s\n", bounded(orNothing(c.Result)))
		}
	}
}

// failing says behind a call how its command failed.
func failing(t *Theme, c *ipc.StepCall) string {
	if c.Failure == "" {
		return ""
	}
	return "  " + t.line(c.Failure)
}

func orNothing(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return s
}

func answerOf(r *ipc.StepRecord) string { return orNothing(r.RawResponse) }

// callsOf returns the calls of a step.
func callsOf(r *ipc.StepRecord) []ipc.StepCall {
	if len(r.ToolCalls) == 0 && r.ToolPath != "" {
		return []ipc.StepCall{{Name: r.Action, Path: r.ToolPath, Input: r.ToolInput, Result: r.ToolResult, Error: r.ToolError}}
	}
	return r.ToolCalls
}

// messageText writes a message of a conversation.
func messageText(b *strings.Builder, t *Theme, m *ipc.ConversationMessage) {
	who := m.Role
	if m.From != "" && m.From != m.Role {
		who += " (" + m.From + ")"
	}
	fmt.Fprintf(b, "\n#%d %s", m.N, t.line(who))
	if m.Step > 0 {
		fmt.Fprintf(b, ", step %d", m.Step)
	}
	if !m.Time.IsZero() {
		b.WriteString(", " + m.Time.Local().Format("15:04:05"))
	}
	if m.IsError {
		b.WriteString(", an error")
	}
	if m.Shortened {
		b.WriteString(", shortened by a compaction")
	}
	b.WriteString("\n")
	if m.Skipped > 0 {
		fmt.Fprintf(b, "(%s bytes before this are not shown)\n", number(m.Skipped))
	}
	if m.Content != "" {
		b.WriteString(strings.TrimRight(m.Content, "\n") + "\n")
	}
	if m.Cut > 0 {
		fmt.Fprintf(b, "(%s more bytes)\n", number(m.Cut))
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		fmt.Fprintf(b, "calls %s %s\n", t.line(c.Name), c.Input)
		if c.Cut > 0 {
			fmt.Fprintf(b, "(%s more bytes)\n", number(c.Cut))
		}
	}
}

// compared is what is different between the two steps that are compared.
func (s *stepsPane) compared() string {
	t := s.e.t
	for _, f := range []*fetch[ipc.StepRequest, ipc.StepDetail]{s.mark, s.one} {
		if state := f.state(t); state != "" {
			return fmt.Sprintf("what is different: step %d (-) and step %d (+)\n%s", min(s.base, s.num), max(s.base, s.num), state)
		}
	}
	from, to := &s.mark.got.Step, &s.one.got.Step
	var b strings.Builder
	fmt.Fprintf(&b, "what is different: step %d (-) and step %d (+)\n", from.StepNumber, to.StepNumber)
	fmt.Fprintf(&b, "tokens %s and %s, took %s and %s\n", number(from.TokensUsed), number(to.TokensUsed), debug.Duration(from.Duration), debug.Duration(to.Duration))
	heading(&b, "ANSWERS AND CALLS", orNothing(workspace.Unified([]byte(said(from)), []byte(said(to)))))
	if state := s.diff.state(t); state != "" {
		heading(&b, "FILES", state)
		return b.String()
	}
	heading(&b, "FILES", orNothing(diffText(t, &s.diff.got)))
	return b.String()
}

// said is the answer and the calls of a step, for comparing.
func said(r *ipc.StepRecord) string {
	var b strings.Builder
	b.WriteString(bounded(r.RawResponse) + "\n")
	for _, c := range callsOf(r) {
		fmt.Fprintf(&b, "call %s %s\n%s\n", c.Name, c.Path, bounded(c.Input))
		if c.Error != "" {
			fmt.Fprintf(&b, "error: %s %s\n", c.Code, c.Error)
		}
		b.WriteString("output:\n" + bounded(c.Result) + "\n")
	}
	return b.String()
}

// diffText is a difference of files: the list, and the text.
func diffText(t *Theme, r *ipc.DiffResponse) string {
	var b strings.Builder
	for i := range r.Files {
		f := &r.Files[i]
		lines := fmt.Sprintf("+%d -%d", f.Added, f.Deleted)
		if f.Binary {
			lines = "binary"
		}
		fmt.Fprintf(&b, "%s %s  %s\n", t.line(f.Status), t.line(f.Path), lines)
	}
	for i := range r.Autorun {
		b.WriteString("run or obeyed unasked: " + t.line(r.Autorun[i].Line()) + "\n")
	}
	for _, at := range []*ipc.FilesAt{&r.From, &r.To} {
		if at.Limited != "" {
			b.WriteString("not all files were kept: " + t.line(at.Limited) + "\n")
		}
	}
	if text := r.Text(); len(text) > 0 {
		b.WriteString("\n" + string(text))
	}
	if r.Missing > 0 {
		fmt.Fprintf(&b, "\n(%s more bytes are not shown here)\n", number(int(r.Missing)))
	}
	return b.String()
}

// tintDiff colours the lines of a difference. Rows have no styles yet, or those of what was searched for.
func tintDiff(t *Theme, view string) string {
	if !t.Color {
		return view
	}
	lines := strings.Split(view, "\n")
	for i, l := range lines {
		if !strings.Contains(l, "\x1b") {
			lines[i] = t.paint(ChangeStyle(l), l)
		}
	}
	return strings.Join(lines, "\n")
}
