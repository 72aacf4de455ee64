package chat

import (
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/price"
	"rnix/internal/tui"
	"rnix/ipc"
)

// liveMost is how many lines of the terminal are drawn anew, at most: the others are for what is printed. Where lines are wrapped anew, there is to be room for twice as
// many rows: what goes beyond the top of the screen cannot be drawn over.
func liveMost(m *Model) int {
	if m.term != nil {
		return max(m.h/2, 4)
	}
	return max(m.h*2/3, 4)
}

// View draws what is not printed for good: what is under way, the line that is typed, and a line about the process.
func (m *Model) View() tea.View {
	if m.size.changed && !rests(m) {
		m.size.frozen = true // it rests no longer, and the terminal may have wrapped once more
	}
	if m.size.frozen {
		return m.size.last
	}
	lines, cursor := drawAll(m)
	if m.drawing != nil {
		m.drawing.begun.Store(true)
	}
	if m.term != nil {
		rest := rests(m)
		if rest {
			cursor = tea.NewCursor(0, 0)
		}
		m.term.draws(m.t, lines, cursor, rest)
	}
	v := tea.View{Content: strings.Join(lines, "\n"), Cursor: cursor}
	v.KeyboardEnhancements.ReportEventTypes = false
	m.size.last = v
	return v
}

func drawAll(m *Model) ([]string, *tea.Cursor) {
	most := min(liveMost(m), m.h-1)
	foot := footLines(m)
	var box []string
	var cursor *tea.Cursor
	x, y := 0, 0
	switch {
	case m.ask != nil && m.ask.shown:
		box, x, y = m.ask.view(m, max(most-len(foot)-2, 3))
	case m.choice != nil:
		box, y = m.choice.view(m, max(most-len(foot)-2, 3)), -1
	default:
		box, x, y = typedBox(m, max(min(most-len(foot)-3, 10), 1))
	}
	if most > len(foot)+len(box)+2 {
		box, y = append([]string{""}, box...), y+min(y+1, 1)
	}
	room := max(most-len(foot)-len(box), 0)
	if line := planLine(m); line != "" && room > planRoom {
		foot, room = append([]string{line}, foot...), room-1
	}
	head := liveLines(m, room)
	if y >= 0 {
		cursor = tea.NewCursor(min(x, m.w-1), len(head)+y)
	}
	lines := slices.Concat(head, box, foot)
	for i, l := range lines {
		lines[i] = tui.Cut(m.t, l, m.w-1)
	}
	return lines, cursor
}

// liveLines are the lines of what is under way, at most n of them.
func liveLines(m *Model, n int) []string {
	var work []string
	spin := spinnerOf(m)
	open := m.script.open
	if m.phase != working {
		open = nil
	}
	for _, c := range open[max(len(open)-4, 0):] {
		work = append(work, tui.Cut(m.t, spin+" "+callHead(m, &c), max(m.w-12, 10))+paint(m.t, dim, "  "+elapsedSince(m, c.since)))
	}
	if len(open) > 0 {
		for _, l := range m.printed {
			work = append(work, belowLine(m, dim, l))
		}
	}
	for _, q := range m.queue[max(len(m.queue)-4, 0):] {
		state := "queued: "
		switch {
		case m.phase == starting:
			state = ""
		case m.phase != working:
			state = "gets it with your next message: "
		}
		labels := with("  ", tui.Line(m.t, strings.Join(q.labels, " ")))
		text := tui.Cut(m.t, tui.Line(m.t, q.text), max(m.w-6-len(state)-tui.Cells(m.t, labels), 20)) // what goes along is seen behind a long one, too
		work = append(work, paint(m.t, dim, tui.Pick(m.t, "  ↳ ", "  > ")+state+text+labels))
	}
	if o := m.own; o != nil {
		work = append(work, spinnerOf(m)+" "+tui.Cut(m.t, "! "+tui.Line(m.t, o.command), max(m.w-30, 10))+paint(m.t, dim, "  "+elapsedSince(m, o.since)+", Esc ends it"))
	}
	if s := workLine(m); s != "" {
		work = append(work, s)
	}
	if len(work) > n {
		work = work[len(work)-n:]
	}
	n -= len(work)
	said := m.md.open()
	if m.said.think != "" && m.said.text.Len() == 0 {
		t := wrap(m.t, []span{{tui.Line(m.t, m.said.think), dim | italic}}, "", "", m.md.w)
		said = t[max(len(t)-2, 0):]
	}
	if len(said) > 0 && (m.out.kind != "" && m.out.kind != "answer" || m.said.think != "") && said[0] != "" {
		said = append([]string{""}, said...)
	}
	if len(said)+1 > n {
		said = said[max(len(said)-max(n-1, 0), 0):]
	}
	if len(said)+len(work) > 0 && n > len(said) {
		return slices.Concat(said, []string{""}, work)
	}
	return append(said, work...)
}

func spinnerOf(m *Model) string {
	frames := []rune(tui.Pick(m.t, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", `|/-\`))
	return paint(m.t, cyan, string(frames[m.frame%len(frames)]))
}

// workLine is the line about what is done.
func workLine(m *Model) string {
	dot := tui.Pick(m.t, " · ", " | ")
	switch {
	case m.away && m.lost:
		return paint(m.t, red, "no daemon answers; your next message looks for it again, or start it with: rnix daemon start")
	case m.away:
		return spinnerOf(m) + paint(m.t, yellow, " the daemon has gone away; waiting for the next one, with which the agent continues")
	case m.phase == starting:
		return spinnerOf(m) + " starts" + paint(m.t, dim, dot+elapsedSince(m, m.since))
	case m.phase != working:
		return ""
	}
	parts := []string{m.doing}
	if n := len(m.kids); n > 0 {
		parts = append(parts, plural(n, "child works", "children work"))
	}
	took := elapsedSince(m, m.began)
	if len(m.script.open) > 0 { // the call above has a time, too, which began later
		took += " in all"
	}
	return spinnerOf(m) + " " + tui.Cut(m.t, strings.Join(parts, dot), max(m.w-44, 10)) + paint(m.t, dim, dot+took+dot+"Esc interrupts")
}

// typedBox is what is being typed, in at most n lines.
func typedBox(m *Model, n int) (box []string, x, y int) {
	if m.find != nil {
		line, at := m.find.view(m)
		return []string{line}, at, 0
	}
	rows, x, y := m.ed.rows(m.t, m.w-4)
	from := 0
	if len(rows) > n {
		from = min(max(y-n+1, 0), len(rows)-n)
	}
	mark := paint(m.t, cyan|bold, tui.Pick(m.t, "› ", "> "))
	for i, r := range rows[from:min(from+n, len(rows))] {
		lead := "  "
		if i+from == 0 {
			lead = mark
		}
		box = append(box, lead+r)
	}
	if m.ed.empty() {
		hint := "say what is to be done; /help shows more"
		switch {
		case m.ask != nil:
			hint = "an answer is waited for"
		case m.phase == working:
			hint = "say more while it works"
		case m.id != (ipc.ProcDetail{}.UUID):
			hint = "say what is next"
		}
		if len(m.ran) > 0 {
			hint += "; the agent gets what your " + plural(len(m.ran), "command", "commands") + " printed"
		}
		if rests(m) {
			box[0] = mark + paint(m.t, inverse, hint[:1]) + paint(m.t, dim, hint[1:])
		} else {
			box[0] = mark + paint(m.t, dim, hint)
		}
	}
	if more := m.comp.view(m); len(more) > 0 {
		return append(box, more...), x + 2, y - from
	}
	return append(box, m.along.view(m)...), x + 2, y - from
}

// footLines is the line about the process, or what is said about the last key.
func footLines(m *Model) []string {
	switch {
	case m.note != "":
		a := yellow
		if m.bad {
			a = red
		}
		lines := wrap(m.t, []span{{m.note, a}}, "", "", m.w-1)
		return lines[:min(len(lines), max(min(m.h/6, 3), 1))]
	}
	d := &m.detail
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(modelName(m.t, d))
	if m.next.model != "" {
		add("next: " + tui.Line(m.t, m.next.model))
	}
	if m.id != (ipc.ProcDetail{}.UUID) {
		forks := m.next.fork != nil // the next message goes to another process
		if d.TokensUsed > 0 && !forks {
			add(tui.Number(d.TokensUsed) + " tokens")
			add(price.Spent(d.CostUSD, d.TokensUsed, d.Unpriced))
		}
		if m.used > 0 && !forks {
			add("context " + strconv.Itoa((m.used+9)/10) + "%")
		}
		if d.Sandbox != "" {
			net := ""
			if d.Net == "open" {
				net = ", network open"
			}
			add("sandbox " + tui.Line(m.t, d.Sandbox) + net)
		}
		if forks {
			add("next: a fork of PID " + d.PID.String())
		} else {
			add("PID " + d.PID.String())
		}
	}
	if len(parts) == 0 {
		return []string{paint(m.t, dim, tui.Cut(m.t, "Enter sends | Alt+Enter new line | Ctrl+D leaves", m.w-1))}
	}
	s := strings.Join(parts, tui.Pick(m.t, " · ", " | "))
	return []string{paint(m.t, dim, tui.Cut(m.t, s, m.w-1))}
}

func modelName(t *tui.Theme, d *ipc.ProcDetail) string {
	if d.Model == "" {
		return tui.Line(t, d.Provider)
	}
	return tui.Line(t, d.Provider+"/"+d.Model)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return tui.Number(n) + " " + many
}
