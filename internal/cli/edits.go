package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"rnix/internal/event"
	"rnix/internal/tui"
	"rnix/ipc"
)

const (
	shownEdits   = 4                // of one step
	shownChange  = 16               // lines of one edit
	longestEdit  = 1024             // bytes of one of these lines
	editPatience = drainTime / 2    // the events behind wait for it, and the end of the run does not wait longer than drainTime for them
	editPause    = 10 * time.Second // without edits after a record that did not answer, which costs its patience once
	cutSummary   = 300              // bytes from which on the line of a step may leave some of its calls out
)

// editReader reads what steps have changed in files. It belongs to one goroutine.
type editReader struct {
	not time.Time // before that nothing is asked, since the record has not answered
}

// of returns, of the event that a step has ended, the calls that have edited files, as the record has them: events have only the beginning of what they
// brought. What cannot be read is not shown.
func (r *editReader) of(ctx context.Context, c *ipc.Client, e *ipc.Event) []ipc.StepCall {
	if e.Kind != event.StepEnded || e.Name == "text" || !tui.Edits(e.Text) && len(e.Text) < cutSummary || time.Now().Before(r.not) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, editPatience)
	defer cancel()
	s, err := ipc.Call(ctx, c, ipc.GetStepDetail, ipc.StepRequest{Target: e.UUID.String(), Step: e.Step, Alone: true})
	if err != nil {
		if ctx.Err() != nil {
			r.not = time.Now().Add(editPause)
		}
		return nil
	}
	return slices.DeleteFunc(s.Step.ToolCalls, func(k ipc.StepCall) bool { return k.Error != "" || !tui.Edits(k.Name) })
}

// edited shows below the line of a step what its calls have changed in files.
func (v *view) edited(e *ipc.Event, calls []ipc.StepCall) {
	for _, line := range editLines(v.out, &v.out.err, e, calls, func(k *ipc.StepCall, file string) string {
		if len(calls) == 1 && strings.Contains(e.Text, file) {
			return "" // the line of the step names it
		}
		return v.agent(e.PID) + "   " + oneLine(k.Name) + with(" ", file)
	}) {
		v.out.say(line)
	}
}

// editLines returns what the calls of a step have changed in files, for people who see it in s: of each call a line of head, if that is not empty, and a few
// lines of the difference; and the command that shows all.
func editLines(out *output, s *stream, e *ipc.Event, calls []ipc.StepCall, head func(k *ipc.StepCall, file string) string) (lines []string) {
	t := &tui.Theme{ASCII: out.ascii, Color: true, Bare: !s.color}
	put := func(text string) {
		line := tui.Paint(t, tui.Dim, tui.Pick(t, "  │ ", "  | ")) + text
		if s.width > 0 {
			line = tui.Cut(t, line, s.width)
		}
		lines = append(lines, line)
	}
	more := func(n int, one, many string) {
		put(tui.Paint(t, tui.Dim, fmt.Sprintf("(%s; see: rnix diff %d %d)", plural(n, one, many), e.PID, e.Step)))
	}
	for i := range calls {
		if i == shownEdits {
			more(len(calls)-i, "more edit", "more edits")
			break
		}
		k := &calls[i]
		file, change := tui.Change(t, k.Name, k.Input, k.Result)
		if len(change) == 0 {
			continue
		}
		if line := head(k, file); line != "" {
			lines = append(lines, line)
		}
		for _, l := range change[:min(len(change), shownChange)] {
			if len(l) > longestEdit {
				l = strings.ToValidUTF8(l[:longestEdit], "") + tui.Pick(t, "…", "~")
			}
			put(tui.Paint(t, tui.ChangeStyle(l), l))
		}
		if n := len(change) - shownChange; n > 0 {
			more(n, "more line", "more lines")
		}
	}
	return lines
}
