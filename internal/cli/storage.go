package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"rnix/debug"
	"rnix/ipc"
)

// askEvery is how often a person who waits is told how far the daemon is.
const askEvery = 500 * time.Millisecond

// slowly calls a method that may take long. On a terminal a line says how far the daemon is.
func slowly[Req, Resp any](ctx context.Context, c *ipc.Client, out *output, m ipc.Method[Req, Resp], req Req, doing string) (Resp, error) {
	var work ipc.Work
	began := time.Now()
	out.startStatus(func(now time.Time) string { return workText(doing, &work, now.Sub(began)) })
	if out.live == nil {
		return ipc.Call(ctx, c, m, req)
	}
	defer out.live.end()
	type answer struct {
		r   Resp
		err error
	}
	answered := make(chan answer, 1)
	// Owned by this call, which waits for it: the end of ctx ends both.
	go func() {
		r, err := ipc.Call(ctx, c, m, req)
		answered <- answer{r, err}
	}()
	tick, ask := time.NewTicker(statusEvery), time.NewTicker(askEvery)
	defer tick.Stop()
	defer ask.Stop()
	for {
		select {
		case a := <-answered:
			return a.r, a.err
		case <-tick.C:
			out.live.tick()
		case <-ask.C:
			p, err := ipc.Call(ctx, c, ipc.StorageProgress, ipc.Empty{})
			for i := range p.Works { // of an error there are none
				if err == nil && p.Works[i].Method == m.Name {
					work = p.Works[i]
				}
			}
		}
	}
}

// workText says how far a piece of work is; nothing while it may still be over at once.
func workText(doing string, w *ipc.Work, took time.Duration) string {
	switch {
	case took < time.Second:
		return ""
	case w.Total == 0:
		return doing + ", " + debug.Age(took)
	}
	return fmt.Sprintf("%s: %s of %s, %s", doing, number(w.Done), plural(w.Total, "history", "histories"), debug.Age(took))
}

// longAge renders how long ago something was, in days when it is long.
func longAge(d time.Duration) string {
	if days := int(d / (24 * time.Hour)); days >= 2 {
		return number(days) + "d"
	}
	return debug.Age(d)
}

// historyName is how a line about a history begins: "PID 3 (night)".
func historyName(r *ipc.HistoryRef) string {
	s := fmt.Sprintf("PID %d", r.PID)
	if r.Name != "" {
		s += " (" + oneLine(r.Name) + ")"
	}
	return s
}

// tally renders counts of texts, the most frequent first, and at most so many of them.
func tally(texts []string, most int) string {
	counts := map[string]int{}
	var order []string
	for _, t := range texts {
		if counts[t]++; counts[t] == 1 {
			order = append(order, t)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return counts[b] - counts[a] })
	var b strings.Builder
	for i, t := range order {
		if i == most {
			fmt.Fprintf(&b, "; and %s", plural(len(order)-most, "other reason", "other reasons"))
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(oneLine(t))
		if counts[t] > 1 {
			b.WriteString(" (" + number(counts[t]) + ")")
		}
	}
	return b.String()
}

// storageText says what is archived, and what garbage collection takes next.
func storageText(s *ipc.StorageStatus) string {
	text := number(s.Archived) + " archived"
	if s.Deleted > 0 {
		text += ", " + number(s.Deleted) + " deleted"
	}
	switch {
	case s.Mode == "":
		text += "; garbage collection is off"
	case s.Leaving == 0:
		text += "; nothing goes within a day"
	default:
		text += fmt.Sprintf("; within a day %s %s (see: rnix gc --dry-run)", plural(s.Leaving, "history is", "histories are"), past(s.Mode))
	}
	for i := range s.Working {
		w := &s.Working[i]
		text += fmt.Sprintf("; %s is at %s of %s", oneLine(w.Method), number(w.Done), number(w.Total))
	}
	return text
}
