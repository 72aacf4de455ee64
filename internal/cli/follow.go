package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/ipc"
)

// showEvents writes the events that req selects, one line each. render returns "" for what is not
// to be shown.
func showEvents(ctx context.Context, fl *follower, out *output, req ipc.EventsRequest, wants func(*ipc.Event) bool, render func(*ipc.Event) string) error {
	shown := false
	m := &misses{}
	var said *debug.Lines // what models are saying
	if req.Speech = req.Speech && req.Follow && !out.json() && speaks(out); req.Speech {
		said = &debug.Lines{}
		out.startStatus(func(time.Time) string { return beginning(said, out.err.width-4) })
		defer out.live.end()
	}
	show := func(e *ipc.Event) {
		if wants == nil || e.Kind == event.Lag || wants(e) {
			if line := render(e); line != "" {
				out.print(out.drawn(line) + "\n")
				shown = true
			}
		}
	}
	err := eachEvent(ctx, fl, out, req, m, func(f *ipc.Frame[ipc.Event]) {
		switch {
		case said != nil:
			for _, e := range said.Take((*event.Event)(&f.Data)) {
				show((*ipc.Event)(&e))
			}
			out.live.tick()
		case !out.json():
			show(&f.Data)
		case wants == nil || f.Data.Kind == event.Lag || wants(&f.Data):
			out.jsonLine(f.Raw)
			shown = true
		}
	}, func(x missed) {
		shown = true
		if out.json() {
			out.object(x)
			return
		}
		out.print(out.out.paint(yellow, x.line()) + "\n")
	})
	if text := m.text(); text != "" {
		out.warn(text)
	}
	if err == nil && !shown {
		out.talk("%s", nothingShown(&req))
	}
	return err
}

// beginning is the last of the lines that models have begun to say, with its end if it is long.
func beginning(said *debug.Lines, width int) string {
	open := said.Open()
	if len(open) == 0 {
		return ""
	}
	l, _ := debug.LogEntry(&open[len(open)-1])
	text := oneLine(l.Text)
	l.Text, l.Time = "", l.Time.Local()
	begin := strings.TrimRight(debug.LogLine(l), " ") + " "
	return begin + lastCells(text, width-cells(begin))
}

// lastCells is the end of a text that has at most so many cells.
func lastCells(text string, limit int) string {
	if limit < 1 || cells(text) <= limit {
		return text
	}
	n := 1
	for i := len(text); i > 0; {
		r, size := utf8.DecodeLastRuneInString(text[:i])
		if n += runeCells(r); n > limit {
			return "…" + text[i:]
		}
		i -= size
	}
	return text
}

// nothingShown says why there is nothing: what was asked for may be too little.
func nothingShown(req *ipc.EventsRequest) string {
	f := req.Filter
	if !req.Since.IsZero() || f != nil && (len(f.Classes)+len(f.Categories) > 0 || f.Failed || f.Slow > 0 || f.Path != "" || f.Level != "") {
		return "no recorded event matches"
	}
	return "there is nothing to show"
}

// eachEvent hands on the events that req selects, and what was missed in the place where it would have been. It
// returns nil when the stream is complete, or nobody reads what is written. A stream that follows survives its daemon.
func eachEvent(ctx context.Context, fl *follower, out *output, req ipc.EventsRequest, m *misses, got func(*ipc.Frame[ipc.Event]), lost func(missed)) error {
	if req.Follow && req.Target != "" {
		procs := fl.identify(ctx, append([]string{req.Target}, req.Targets...))
		req.Target = procs[0].name
		req.Targets = nil
		for i := range procs[1:] {
			req.Targets = append(req.Targets, procs[1+i].name)
		}
	}
	var seen seenEvents
	for rest := req; ; rest = seen.rest(req) {
		err := oneStream(ctx, fl.client, out, rest, &seen, m, got, lost)
		if err != nil && !gone(err) || !req.Follow || out.broken != nil || err == nil && (allOver(ctx, fl.client, &req) || !fl.left(ctx)) {
			return err
		}
		switch berr := fl.back(ctx); {
		case berr == nil:
		case fl.limit <= 0 && err != nil:
			return unreachable(err)
		case fl.limit <= 0:
			return nil
		default:
			return berr
		}
	}
}

// allOver reports whether all processes have ended that a stream was to follow until their end.
func allOver(ctx context.Context, c *ipc.Client, req *ipc.EventsRequest) bool {
	if !req.UntilEnd || req.Target == "" {
		return false
	}
	for _, name := range append([]string{req.Target}, req.Targets...) {
		p, err := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: name})
		if err != nil || p.Exit == nil {
			return false
		}
	}
	return true
}

// oneStream is eachEvent for one daemon.
func oneStream(ctx context.Context, c *ipc.Client, out *output, req ipc.EventsRequest, seen *seenEvents, m *misses, got func(*ipc.Frame[ipc.Event]), lost func(missed)) error {
	feed, err := ipc.Open(ctx, c, ipc.Events, req)
	if err != nil {
		return err
	}
	defer feed.Close()
	for {
		f, err := feed.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case out.broken != nil:
			return nil // the reason is reported at the end
		case f.Missed != nil:
			lost(m.range_(f.Missed.From, f.Missed.To, time.Now()))
		case seen.take(&f.Data):
			m.event(&f.Data)
			got(&f)
		}
	}
}

// misses counts what was not shown.
type misses struct {
	last   time.Time // of the last event that was seen
	ranges int
	events uint64
	most   bool // some ranges may hold events of others
}

// missed is a range of events that could not be shown. Part of the wire format of --json.
type missed struct {
	Kind   string    `json:"kind"` // missed
	From   uint64    `json:"from"`
	To     uint64    `json:"to"`
	Count  uint64    `json:"count"`
	After  time.Time `json:"after,omitzero"` // the event before; zero = there was none
	Before time.Time `json:"before"`         // when it was known
}

// range_ counts a range that the stream has lost.
func (m *misses) range_(from, to uint64, now time.Time) missed {
	x := missed{Kind: "missed", From: from, To: to, Count: to - from + 1, After: m.last, Before: now}
	m.ranges++
	m.events += x.Count
	m.most = true // whose they are, nobody knows any more
	return x
}

// event notes an event; one of a file may say that others are missing before it.
func (m *misses) event(e *ipc.Event) {
	if from, to, ok := event.Missing((*event.Event)(e)); ok {
		m.ranges++
		m.events += to - from + 1
		m.most = true
	} else if e.Kind == event.Lag {
		m.ranges++
	}
	if e.Kind != event.Lag {
		m.last = e.Time
	}
}

// line says what was missed, in its place.
func (x *missed) line() string {
	when := "before " + x.Before.Local().Format("15:04:05.000")
	if !x.After.IsZero() {
		when = "between " + x.After.Local().Format("15:04:05.000") + " and " + x.Before.Local().Format("15:04:05.000")
	}
	return fmt.Sprintf("missed %s, %d to %d, %s: they came faster than they could be shown", plural(int(x.Count), "event", "events"), x.From, x.To, when)
}

// text says how much was missed in all; empty = nothing.
func (m *misses) text() string {
	if m.ranges == 0 {
		return ""
	}
	most := ""
	if m.most {
		most = ", as far as they belong to what is shown: at most " + plural(int(m.events), "event", "events")
	}
	return fmt.Sprintf("events are missing in %s%s", plural(m.ranges, "place", "places"), most)
}

// about returns the request for the events of targets, or of all processes.
func about(args []string, follow, tree bool) ipc.EventsRequest {
	req := ipc.EventsRequest{History: true, Follow: follow, Tree: tree}
	if len(args) > 0 {
		req.Target, req.Targets, req.UntilEnd = args[0], args[1:], follow
	}
	return req
}

// lagLine says which events a file does not have: how many at most, and since when.
func lagLine(e *ipc.Event) string {
	if from, to, ok := event.Missing((*event.Event)(e)); ok {
		return fmt.Sprintf("%s %s at most %s may be missing here, %d to %d: the file could not be written in time", e.Time.Local().Format("15:04:05.000"), e.PID, plural(int(to-from+1), "event", "events"), from, to)
	}
	return e.Time.Local().Format("15:04:05.000") + " " + e.PID.String() + " " + debug.Sanitize(e.Text)
}
