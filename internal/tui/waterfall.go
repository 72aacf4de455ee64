package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/debug"
	"rnix/internal/step"
	"rnix/internal/trace"
	"rnix/ipc"
	"rnix/types"
)

const (
	waterfallWidth = 100 // in cells, where there is no terminal
	leastBars      = 16
	mostIndent     = 12 // levels that are shown as such
)

// axis is the time of a trace without that in which its root did not run, in so many cells.
type axis struct {
	start time.Time
	gaps  []ipc.Span
	whole time.Duration
	cells int
}

func newAxis(r *ipc.TraceResponse, cells int) *axis {
	x := &axis{start: r.Start, cells: cells}
	for i := range r.Spans {
		if s := &r.Spans[i]; s.Idle && s.UUID == r.Root {
			x.gaps = append(x.gaps, *s)
		}
	}
	slices.SortFunc(x.gaps, func(a, b ipc.Span) int { return a.Start.Compare(b.Start) })
	x.whole = max(x.at(r.End), 1)
	return x
}

// at returns how much of the time that counts lies before t.
func (x *axis) at(t time.Time) time.Duration {
	d := t.Sub(x.start)
	for i := range x.gaps {
		g := &x.gaps[i]
		switch {
		case !t.Before(g.End()):
			d -= g.Dur
		case t.After(g.Start):
			d -= t.Sub(g.Start)
		}
	}
	return max(d, 0)
}

// place returns the cells from one moment to another, at least one of them.
func (x *axis) place(from, to time.Time) (first, last int) {
	first = int(int64(x.cells) * int64(x.at(from)/1000) / max(int64(x.whole/1000), 1))
	last = int(int64(x.cells) * int64(x.at(to)/1000) / max(int64(x.whole/1000), 1))
	first = min(first, x.cells-1)
	return first, min(max(last, first+1), x.cells)
}

// bar draws a span: its time, and on it the parts of the critical path that are its own.
func (x *axis) bar(s *ipc.Span, parts []ipc.PathPart) string {
	cells := slices.Repeat([]byte{' '}, x.cells)
	fill := byte('-')
	if s.Kind == trace.Wait {
		fill = '~'
	}
	first, last := x.place(s.Start, s.End())
	for i := first; i < last; i++ {
		cells[i] = fill
	}
	for _, p := range parts {
		if p.Span == s.ID {
			from, to := x.place(p.From, p.To)
			for i := max(from, first); i < min(to, last); i++ {
				cells[i] = '#'
			}
		}
	}
	if s.Open {
		cells[last-1] = '>'
	}
	return strings.TrimRight(string(cells), " ")
}

// Waterfall draws the spans of a trace in lines of so many cells, one line each: spans are those of r that are to be seen. width 0 = there
// is no terminal.
func Waterfall(t *Theme, r *ipc.TraceResponse, spans []ipc.Span, width int) string {
	if width <= 0 {
		width = waterfallWidth
	}
	depth, labels := map[string]int{}, make([]string, len(spans))
	widest := len("SPAN")
	for i := range r.Spans {
		if s := &r.Spans[i]; s.Parent != "" {
			depth[s.ID] = depth[s.Parent] + 1
		}
	}
	for i := range spans {
		labels[i] = strings.Repeat("  ", min(depth[spans[i].ID], mostIndent)) + t.spanLabel(&spans[i])
		widest = max(widest, t.cells(labels[i]))
	}
	const times = 7
	rest := width - 2*(times+2) - 2 // both times, and the mark
	label := min(widest, max(rest-leastBars-2, 12))
	if most := rest - rest*2/5; label > most && rest > 60 {
		label = most
	}
	x := newAxis(r, max(rest-label-2, leastBars))
	own := map[string][]ipc.PathPart{}
	for _, p := range r.Critical {
		own[p.Span] = append(own[p.Span], p)
	}
	paint := func(st style, text string) string {
		if !t.Color { // goes to a file, too: no attributes either
			return text
		}
		return t.paint(st, text)
	}
	var b strings.Builder
	head := fmt.Sprintf("  %s  %*s  %*s  ", t.pad("SPAN", label), times, "TIME", times, "PATH")
	end := t.took(x.whole.Round(time.Microsecond))
	scale := "0" + strings.Repeat(" ", max(x.cells-1-t.cells(end), 1)) + end
	b.WriteString(paint(dim, strings.TrimRight(head+scale, " ")) + "\n")
	for i := range spans {
		s := &spans[i]
		mark, path := " ", ""
		if s.Critical {
			mark = "*"
		}
		if s.CriticalNs > 0 {
			path = t.took(s.CriticalNs)
		}
		took := t.took(s.Dur - s.IdleNs)
		if s.Verdict == step.LedgerNotBegun {
			took = "-"
		}
		line := fmt.Sprintf("%s %s  %*s  %*s  %s", mark, t.pad(labels[i], label), times, took, times, path, x.bar(s, own[s.ID]))
		b.WriteString(strings.TrimRight(paint(spanStyle(s), strings.TrimRight(line, " ")), " ") + "\n")
	}
	b.WriteString(pathLine(t, r) + "\n")
	return b.String()
}

// took is a duration as all commands write it, in at most seven cells; where only ASCII is drawn, µs is us.
func (t *Theme) took(d time.Duration) string {
	if t.ASCII {
		return strings.ReplaceAll(debug.Duration(d), "µ", "u")
	}
	return debug.Duration(d)
}

func spanStyle(s *ipc.Span) style {
	switch {
	case s.Status == trace.Failed:
		return red
	case s.Kind == trace.Wait:
		return yellow
	case s.Critical:
		return plain
	}
	return dim
}

// spanFailed says how a call failed; a command that answered with an exit code has its own words.
func spanFailed(t *Theme, s *ipc.Span) string {
	if s.ExitCode != nil {
		return "failed: " + t.line(s.Err)
	}
	return "failed: " + with2(string(s.Code), t.line(s.Err))
}

// spanLabel says what a span is of.
func (t *Theme) spanLabel(s *ipc.Span) string {
	var text string
	switch s.Kind {
	case trace.Process:
		text = "PID " + s.PID.String() + " " + t.line(s.Name)
		if s.Runs > 1 {
			text += " (" + strconv.Itoa(s.Runs) + " runs)"
		}
		if s.Exit != nil && s.Exit.Code != types.ExitOK {
			text += ": " + t.line(s.Exit.Reason)
		}
	case trace.Tool:
		text = t.line(s.Name)
		if s.Attempt > 1 {
			text += " (attempt " + strconv.Itoa(s.Attempt) + ")"
		}
		if s.Status == trace.Failed {
			text += " " + spanFailed(t, s)
		} else if s.Open {
			text += " " + string(s.Verdict)
		}
	case trace.Model:
		text = t.line(s.Name)
		if s.Tokens > 0 {
			text += " " + approx(s.Tokens, s.Estimated) + " " + map[bool]string{true: "token", false: "tokens"}[s.Tokens == 1]
		}
		if s.Status == trace.Failed {
			text += " failed: " + with2(string(s.Code), t.line(s.Err))
		}
	default:
		text = t.line(s.Name)
	}
	return text
}

// pathLine says what the critical path consists of.
func pathLine(t *Theme, r *ipc.TraceResponse) string {
	var whole time.Duration
	by := map[types.SpanKind]time.Duration{}
	kind := map[string]types.SpanKind{}
	for i := range r.Spans {
		kind[r.Spans[i].ID] = r.Spans[i].Kind
	}
	for _, p := range r.Critical {
		d := p.To.Sub(p.From)
		whole += d
		k := kind[p.Span]
		if k == trace.Step || k == "" {
			k = trace.Process
		}
		by[k] += d
	}
	line := "critical path " + t.took(whole)
	var shares, names []string
	var parts []time.Duration
	for _, k := range []struct {
		kind types.SpanKind
		name string
	}{{trace.Model, "model"}, {trace.Tool, "tools"}, {trace.Wait, "waits"}, {trace.Process, "the rest"}} {
		if by[k.kind] > 0 {
			names, parts = append(names, k.name), append(parts, by[k.kind])
		}
	}
	for i, n := range percents(parts) {
		share := strconv.Itoa(n)
		if n == 0 {
			share = "<1" // what is there is never shown as nothing
		}
		shares = append(shares, names[i]+" "+share+"%")
	}
	if len(shares) > 0 {
		line += ": " + strings.Join(shares, ", ")
	}
	if len(r.Spans) > 0 && r.Spans[0].IdleNs > 0 {
		line += fmt.Sprintf("; %s between runs left out", t.took(r.Spans[0].IdleNs))
	}
	return line
}

// percents returns the shares of parts in their sum, in whole percents that add up to 100: those with the largest remainders are rounded up.
func percents(parts []time.Duration) []int {
	var whole time.Duration
	for _, p := range parts {
		whole += p
	}
	out, order := make([]int, len(parts)), make([]int, len(parts))
	rest := make([]float64, len(parts))
	left := 100
	for i, p := range parts {
		share := 100 * float64(p) / float64(whole)
		out[i], order[i] = int(share), i
		rest[i] = share - float64(out[i])
		left -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, i := range order[:max(min(left, len(order)), 0)] {
		out[i]++
	}
	return out
}
