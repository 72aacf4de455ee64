package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
)

// tracePane shows where the time of a process and of those below it went.
type tracePane struct {
	drawn[ipc.TraceRequest, ipc.TraceResponse]
	critical bool // only what the critical path goes through
	alone    bool // without the processes below it
}

const (
	traceEvery = 2 * time.Second
	traceSpans = 2000 // at most
)

func newTracePane(e *env) *tracePane {
	p := &tracePane{drawn: newDrawn(e, ipc.ShowTrace)}
	p.get.least, p.request, p.content = traceEvery, p.about, p.waterfall
	return p
}

func (p *tracePane) title() string { return "Trace" }

func (p *tracePane) about() ipc.TraceRequest {
	below := !p.alone
	return ipc.TraceRequest{Target: p.sub.target(), Children: &below, Limit: traceSpans}
}

// waterfall is the waterfall, what made the process fail, and what is left out, in w cells.
func (p *tracePane) waterfall(w int) string {
	r, t := &p.get.got, p.e.t
	if len(r.Spans) == 0 || r.Spans[0].Runs == 0 {
		return "it has not run yet"
	}
	spans := r.Spans
	if p.critical {
		spans = nil
		for i := range r.Spans {
			if r.Spans[i].Critical {
				spans = append(spans, r.Spans[i])
			}
		}
	}
	bare := *t
	bare.Color = false
	var b strings.Builder
	for line := range strings.SplitSeq(Waterfall(&bare, r, spans, w), "\n") {
		if !strings.HasPrefix(line, "critical path") {
			line = t.cut(line, w)
		}
		b.WriteString(line + "\n")
	}
	if r.Cut > 0 {
		b.WriteString(plural(r.Cut, "span is", "spans are") + " left out\n")
	}
	for _, m := range r.Missing {
		b.WriteString("not in the trace: " + t.line(m) + "\n")
	}
	if len(r.Blame) > 0 {
		heading(&b, "WHAT MADE IT FAIL", "")
	}
	for i := range r.Blame {
		f := &r.Blame[i]
		b.WriteString(blanks(2*min(i, 12)) + blameText(t, f) + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func blameText(t *Theme, f *ipc.Blame) string {
	s := "PID " + f.PID.String() + " " + string(f.Kind) + " " + t.line(f.Name)
	if f.Step > 0 {
		s += ", step " + number(f.Step)
	}
	s += ": " + strings.TrimSpace(string(f.Code)+" "+t.line(f.Err))
	if len(f.Lost) > 0 {
		s += "; not run because of it: " + t.line(strings.Join(f.Lost, ", "))
	}
	return s
}

func (p *tracePane) keys() []binding {
	return []binding{
		key(inPane, "c", "only the critical path, or all", "critical", act(func(*Model) { p.critical, p.wide = !p.critical, 0 })),
		key(inPane, "a", "this process alone, or with all below it", "alone", func(*Model) tea.Cmd {
			if p.alone = !p.alone; p.sub.none() {
				return nil
			}
			return p.get.about(p.about())
		}),
	}
}
