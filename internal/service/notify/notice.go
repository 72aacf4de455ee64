package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/config"
	"rnix/internal/event"
	"rnix/internal/hidden"
	"rnix/internal/permit"
	"rnix/internal/redact"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/types"
)

// Item is one thing that has happened.
type Item struct {
	Kind string     `json:"kind"` // of config.Notices
	PID  types.PID  `json:"pid"`
	UUID types.UUID `json:"uuid"`
	Name string     `json:"name,omitempty"`
	Text string     `json:"text"`          // in a line: what is asked, why it has failed or is suspended, what came of it
	Ask  string     `json:"ask,omitempty"` // the number by which it is answered
	// Question says that it is a question of the agent, which is answered with a text.
	Question bool      `json:"question,omitempty"`
	Time     time.Time `json:"time"`
}

// Notice is what a person is told at once: what has happened since the last one.
type Notice struct {
	Title string `json:"title"`
	Text  string `json:"text"` // a line for each item, as far as these are listed
	Items []Item `json:"items"`
	More  int    `json:"more,omitempty"` // items that are not listed
}

// maxItems bounds what is listed, maxLine a line of it, in bytes.
const (
	maxItems = 10
	maxLine  = 200
)

// itemOf returns what an event is to a person; false if it is nothing to tell. info is what is known of its process.
func itemOf(e *event.Event, info *step.ProcInfo, secrets *redact.Set) (it Item, ok bool) {
	it = Item{PID: e.PID, UUID: e.UUID, Name: info.Name, Time: e.Time}
	switch {
	case e.Kind == event.Asked:
		it.Kind, it.Text, it.Ask, it.Question = config.NoticeAsk, e.Text, e.Args, e.Path == permit.AskPath
	case e.Kind != event.Exited || e.Exit == nil || info.ParentUUID != (types.UUID{}): // who has started it hears of that
		return it, false
	case e.Result == suspended:
		it.Kind, it.Text = config.NoticeSuspended, e.Exit.Reason
	case e.Exit.Code == types.ExitOK:
		it.Kind, it.Text = config.NoticeDone, e.Text
	case e.Exit.Code == types.ExitCancelled: // a person has ended it
		return it, false
	default:
		it.Kind, it.Text = config.NoticeFailed, e.Exit.Reason
	}
	it.Name, it.Text = inLine(secrets, it.Name), inLine(secrets, it.Text)
	return it, true
}

// inLine returns the first line of a text as it may be shown anywhere: without secrets, which are looked for before it is cut, and without what
// no screen shows. Programs cannot be started with a NUL in a variable, and what stands in a terminal acts.
func inLine(secrets *redact.Set, text string) string {
	text = strings.ToValidUTF8(hidden.Strip(secrets.String(text)), "\ufffd")
	return rnixctx.Elide(service.FirstLine(text, maxLine), maxLine)
}

// suspended is the result of an Exited event of what can be resumed.
const suspended = "suspended"

// verbs are what is said of an item of a kind.
var verbs = map[string]string{config.NoticeAsk: "asks", config.NoticeFailed: "failed", config.NoticeSuspended: "is suspended", config.NoticeDone: "is done"}

func (it *Item) line() string {
	who := "PID " + it.PID.String()
	if it.Name != "" {
		who = it.Name + " (" + who + ")"
	}
	line := who + " " + verbs[it.Kind]
	if it.Text != "" {
		line += ": " + it.Text
	}
	switch {
	case it.Question:
		line += " (rnix answer " + it.Ask + " TEXT, or rnix deny " + it.Ask + ")"
	case it.Ask != "":
		line += " (rnix allow " + it.Ask + ", or rnix deny " + it.Ask + ")"
	}
	return line
}

// NoticeOf puts items together, the most urgent first. It changes the list.
func NoticeOf(items []Item) Notice {
	rank := func(it Item) int { return slices.Index(config.Notices, it.Kind) }
	slices.SortStableFunc(items, func(a, b Item) int { return rank(a) - rank(b) })
	n := Notice{Items: items, More: max(len(items)-maxItems, 0)}
	n.Items = items[:len(items)-n.More]
	first := &items[0]
	if len(items) == 1 {
		who := "PID " + first.PID.String()
		if first.Name != "" {
			who = first.Name
		}
		n.Title = "Rnix: " + who + " " + verbs[first.Kind]
	} else {
		var parts []string
		for _, kind := range config.Notices {
			count := 0
			for _, it := range items {
				if it.Kind == kind {
					count++
				}
			}
			if count > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", count, map[string]string{config.NoticeAsk: "asked", config.NoticeFailed: "failed", config.NoticeSuspended: "suspended", config.NoticeDone: "done"}[kind]))
			}
		}
		n.Title = "Rnix: " + strings.Join(parts, ", ")
	}
	var lines []string
	for i := range n.Items {
		lines = append(lines, n.Items[i].line())
	}
	if n.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", n.More))
	}
	n.Text = strings.Join(lines, "\n")
	return n
}
