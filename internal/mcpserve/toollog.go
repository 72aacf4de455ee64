package mcpserve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// Bounds of a log that is returned.
const (
	usualLines = 200
	mostLines  = 2000
	maxLog     = 128 << 10 // bytes of text
	maxLine    = 8 << 10   // bytes of one line; what is longer is cut
)

type logIn struct {
	Process  process `json:"process"`
	Since    *int    `json:"since,omitempty" jsonschema:"the lines behind this one; 0 = from the first one on; left out = the last lines"`
	Limit    int     `json:"limit,omitempty" jsonschema:"at most so many lines; default 200, at most 2000"`
	Category string  `json:"category,omitempty" jsonschema:"only these lines; default all"`
}

type logOut struct {
	Lines   []logLine `json:"lines"`
	Next    int       `json:"next" jsonschema:"pass this as since to go on"`
	More    bool      `json:"more,omitempty" jsonschema:"there are more lines already"`
	Missing int       `json:"missing,omitempty" jsonschema:"so many events came faster than they could be read; some may have been lines"`
}

// logLine is a line of a log. Numbers count the lines of one process, over all its runs, from 1.
type logLine struct {
	Number   int       `json:"number"`
	Time     time.Time `json:"time"`
	Category string    `json:"category" jsonschema:"think, tool, output or warning"`
	Text     string    `json:"text"`
}

func (p looker) log(ctx context.Context, in logIn) (out logOut, words string, err error) {
	limit := cmp.Or(in.Limit, usualLines)
	switch {
	case limit < 1 || limit > mostLines:
		return out, "", types.Errorf(types.ErrInvalid, "log", "", "limit %d is not from 1 to %d", limit, mostLines)
	case in.Since != nil && *in.Since < 0:
		return out, "", types.Errorf(types.ErrInvalid, "log", "", "since %d is negative; 0 is before the first line", *in.Since)
	}
	w := &logWindow{limit: limit, bytes: maxLog, last: in.Since == nil, category: in.Category}
	if in.Since != nil {
		w.since = *in.Since
	}
	if err := p.readLog(ctx, string(in.Process), w); err != nil {
		return out, "", err
	}
	out = w.out()
	var b strings.Builder
	for _, l := range out.Lines {
		fmt.Fprintf(&b, "%d %s [%s] %s\n", l.Number, l.Time.UTC().Format(time.TimeOnly), l.Category, debug.Sanitize(l.Text))
	}
	if len(out.Lines) == 0 {
		b.WriteString("[nothing new]\n")
	}
	fmt.Fprintf(&b, "[next: %d]", out.Next)
	return out, b.String(), nil
}

// readLog shows a window the log of a process, from its first line on.
func (p looker) readLog(ctx context.Context, target string, w *logWindow) error {
	if target == "" {
		return types.Errorf(types.ErrInvalid, "log", "", "name a process")
	}
	// A look at the process first: its answer says plainly if there is none, and makes sure of the connection.
	d, err := call(ctx, p.Processes, ipc.GetProcDetail, ipc.TargetRequest{Target: target})
	if err != nil {
		return err
	}
	c, err := p.daemon(ctx, nil)
	if err != nil {
		return err
	}
	feed, err := ipc.Open(ctx, c, ipc.Events, ipc.EventsRequest{Target: d.UUID.String(), History: true, Kinds: []event.Kind{event.LogLine}})
	if err != nil {
		return err
	}
	defer feed.Close()
	for !w.full {
		f, err := feed.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case f.Missed != nil:
			w.missing += int(f.Missed.To - f.Missed.From + 1)
		case f.Data.Kind == event.LogLine:
			w.take(&f.Data)
		}
	}
	return nil
}

// logWindow picks lines: the first ones behind a number, or the last ones.
type logWindow struct {
	limit, bytes int
	since        int
	last         bool
	category     string // empty = all

	seen    int // lines so far
	next    int // of what was looked at: the last line that is taken or passed over
	size    int
	lines   []logLine
	full    bool
	missing int
}

// take looks at the next line.
func (w *logWindow) take(e *ipc.Event) {
	w.seen++
	if !w.last && w.seen <= w.since {
		return
	}
	if w.category != "" && e.Name != w.category {
		w.next = w.seen
		return
	}
	l := logLine{Number: w.seen, Time: e.Time, Category: e.Name, Text: short(e.Text, maxLine)}
	if !w.last && (len(w.lines) == w.limit || w.size+len(l.Text) > w.bytes && len(w.lines) > 0) {
		w.full = true
		return
	}
	w.lines, w.next, w.size = append(w.lines, l), w.seen, w.size+len(l.Text)
	for w.last && (len(w.lines) > w.limit || w.size > w.bytes && len(w.lines) > 1) {
		w.size -= len(w.lines[0].Text)
		w.lines = w.lines[1:]
	}
}

func (w *logWindow) out() logOut {
	lines := w.lines
	if lines == nil {
		lines = []logLine{}
	}
	return logOut{Lines: lines, Next: max(w.next, min(w.since, w.seen)), More: w.full, Missing: w.missing}
}
