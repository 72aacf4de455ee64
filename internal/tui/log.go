package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/ipc"
)

// category is a sort of lines of the log that is shown or not.
type category string

const (
	catThink  category = "think"
	catTool   category = "tool"
	catOutput category = "output"
	catWarn   category = "warning"
	catLife   category = "steps" // steps, states, messages: all that is no line of a log
	catCalls  category = "syscalls"
	catLost   category = "lost" // what was missed; always shown
)

// hideable are those that somebody can hide, in the order in which they are told.
var hideable = []category{catThink, catTool, catOutput, catWarn, catLife}

// How much of a log is kept.
const (
	logLines    = 5000
	logBytes    = 4 << 20
	logLineSize = 64 << 10 // of one line
)

// logLine is a line of the log, or several of one text.
type logLine struct {
	cat  category
	text string
}

// logPane shows what a process does, as it does it.
type logPane struct {
	e     *env
	sub   subject
	ear   listener
	lines []logLine
	bytes int
	gone  int // lines that are kept no more
	lost  uint64
	off   map[category]bool
	calls bool // syscalls are asked for
	tree  bool // those below it, too
	said  debug.Lines
	long  *long
}

func newLogPane(e *env) *logPane {
	return &logPane{e: e, ear: listener{e: e}, off: map[category]bool{}, long: newLong(e.t)}
}

func (l *logPane) title() string { return "Log" }
func (l *logPane) text() *long   { return l.long }
func (l *logPane) hide()         { l.ear.close() }

// lifeKinds are the events that a log shows besides the lines of the log itself.
var lifeKinds = []event.Kind{event.LogLine, event.Spawned, event.StepStarted, event.StepEnded, event.StateChanged, event.Signalled, event.Paused, event.Resumed, event.Waiting, event.Exited,
	event.Reaped, event.Reparented, event.Renamed, event.Compacted, event.Mounted, event.Unmounted, event.StorageError, event.Grouped, event.Snapshot, event.Messaged, event.Delivered, event.NodeChanged,
	event.Stalled, event.Leased, event.Refused, event.Asked, event.Answered, event.Lag}

func (l *logPane) show(p *ipc.Proc) tea.Cmd {
	before := l.sub.state
	other, _ := l.sub.take(p)
	switch {
	case l.sub.none():
		l.ear.close()
		return nil
	case other:
		return l.begin()
	case l.ear.done && before != p.State:
		return l.ear.resume()
	case !l.ear.done:
		return l.ear.resume()
	}
	return nil
}

// begin reads the log from its beginning.
func (l *logPane) begin() tea.Cmd {
	l.lines, l.bytes, l.gone, l.lost, l.said = nil, 0, 0, 0, debug.Lines{}
	l.long.set("")
	l.long.parts = nil
	l.long.home()
	l.long.tail = true
	req := ipc.EventsRequest{Target: l.sub.target(), Tree: l.tree, History: true, Follow: true, Speech: true, Kinds: lifeKinds}
	if p := l.sub.proc; p.State == stateDead || p.State == stateArchived {
		req.Follow = false
	}
	if l.calls {
		req.Kinds = append(slices.Clone(lifeKinds), event.Syscall, event.SyscallBegun)
	}
	return l.ear.about(req)
}

func (l *logPane) update(msg tea.Msg) tea.Cmd {
	cmd, got := l.ear.update(msg)
	if len(got) > 0 {
		l.hear(got)
	}
	return cmd
}

// hear takes lines in.
func (l *logPane) hear(got []heard) {
	var text strings.Builder
	add := func(n logLine) {
		l.lines = append(l.lines, n)
		l.bytes += len(n.text)
		if !l.off[n.cat] {
			text.WriteString(n.text + "\n")
		}
	}
	for i := range got {
		if m := got[i].missed; m != nil {
			l.lost += m.To - m.From + 1
			add(heardLine(&got[i]))
			continue
		}
		for _, e := range l.said.Take((*event.Event)(&got[i].ev)) {
			add(lineOf(&e))
		}
	}
	if len(l.lines) > logLines || l.bytes > logBytes {
		l.trim()
		l.render()
		return
	}
	if text.Len() > 0 {
		l.long.add(text.String())
	}
}

// trim drops the oldest lines, a quarter more than it has to, so that it is not done for each line.
func (l *logPane) trim() {
	n := 0
	for ; n < len(l.lines) && (len(l.lines)-n > logLines*3/4 || l.bytes > logBytes*3/4); n++ {
		l.bytes -= len(l.lines[n].text)
	}
	l.lines = append([]logLine(nil), l.lines[n:]...)
	l.gone += n
}

// render makes the text anew, and stays at its place as far as it is still there.
func (l *logPane) render() {
	var text strings.Builder
	for _, n := range l.lines {
		if !l.off[n.cat] {
			text.WriteString(n.text + "\n")
		}
	}
	before, at := len(l.long.parts), l.long.at
	l.long.set(text.String())
	if cut := before - len(l.long.parts); cut > 0 && !l.long.tail {
		l.long.at = place2{max(at.part-cut, 0), 0}
	}
	if l.long.tail {
		l.long.end()
	}
}

// heardLine renders what was heard: an event, or which ones were not.
func heardLine(h *heard) logLine {
	if m := h.missed; m != nil {
		return logLine{catLost, fmt.Sprintf("-- events %d to %d of the daemon are missed: this screen was too slow for them --", m.From, m.To)}
	}
	return lineOf((*event.Event)(&h.ev))
}

// lineOf renders an event. It is cleaned where it is shown.
func lineOf(ev *event.Event) logLine {
	ev.Time = ev.Time.Local()
	cat := catLife
	switch ev.Kind {
	case event.LogLine:
		switch cat = category(ev.Name); cat {
		case catThink, catTool, catOutput, catWarn:
		default:
			cat = catOutput
		}
	case event.Syscall, event.SyscallBegun:
		cat = catCalls
	case event.Lag:
		cat = catLost
	}
	text := debug.Line(ev)
	if len(text) > logLineSize {
		text = text[:logLineSize] + " (" + plural(len(text)-logLineSize, "more byte", "more bytes") + ")"
	}
	return logLine{cat, text}
}

func (l *logPane) view(w, h int) string {
	t := l.e.t
	if l.sub.none() {
		return noProcess
	}
	var parts []string
	if l.ear.err != nil {
		parts = append(parts, l.ear.state(t))
	}
	if l.long.tail {
		parts = append(parts, "follows")
	} else {
		parts = append(parts, "does not follow")
	}
	if l.ear.done {
		parts = append(parts, l.ear.state(t))
	}
	if l.lost > 0 {
		parts = append(parts, number(int(l.lost))+" missed")
	}
	if l.tree {
		parts = append(parts, "all below it")
	}
	if l.calls {
		parts = append(parts, "syscalls")
	}
	var off []string
	for _, c := range hideable {
		if l.off[c] {
			off = append(off, string(c))
		}
	}
	if len(off) > 0 {
		parts = append(parts, "without "+strings.Join(off, ", "))
	}
	if l.gone > 0 {
		parts = append(parts, fmt.Sprintf("the last %s of %s lines", number(len(l.lines)), number(len(l.lines)+l.gone)))
	} else {
		parts = append(parts, plural(len(l.lines), "line", "lines"))
	}
	head := filled(t, parts, w, max(h/4, 1))
	open := l.beginnings(w, h-len(head)-1)
	if room := h - len(head) - len(open); room > 0 {
		head = append(head, l.long.view(w, room))
	}
	return strings.Join(append(head, open...), "\n")
}

// beginnings are the lines that models have begun to say, with their ends if they are long, as many as there is room for.
func (l *logPane) beginnings(w, room int) (rows []string) {
	if !l.long.tail || l.ear.done {
		return nil
	}
	for _, e := range l.said.Open() {
		n := lineOf(&e)
		text := l.e.t.line(n.text)
		if over := ansi.StringWidth(text) - w; over > 0 {
			text = ansi.TruncateLeft(text, over+1, l.e.t.ellipsis())
		}
		if !l.off[n.cat] {
			rows = append(rows, text)
		}
	}
	return rows[max(len(rows)-max(room, 0), 0):]
}

func (l *logPane) keys() []binding {
	toggle := func(k string, c category, what string) binding {
		return key(inPane, k, "show or hide "+what, "", act(func(m *Model) {
			l.off[c] = !l.off[c]
			l.render()
			m.say(what + map[bool]string{true: " are hidden", false: " are shown"}[l.off[c]])
		}))
	}
	return []binding{
		key(inPane, "f", "follow the end, or stand still", "follow", act(func(*Model) {
			if l.long.tail = !l.long.tail; l.long.tail {
				l.long.end()
			}
		})),
		toggle("t", catThink, "thoughts"),
		toggle("c", catTool, "tools"),
		toggle("o", catOutput, "outputs"),
		toggle("w", catWarn, "warnings"),
		toggle("e", catLife, "steps and states"),
		key(inPane, "y", "read the log again with syscalls, or without", "", func(*Model) tea.Cmd {
			l.calls = !l.calls
			return l.again()
		}),
		key(inPane, "T", "read the log again with all processes below it, or without", "", func(*Model) tea.Cmd {
			l.tree = !l.tree
			return l.again()
		}),
	}
}

func (l *logPane) again() tea.Cmd {
	if l.sub.none() {
		return nil
	}
	return l.begin()
}
