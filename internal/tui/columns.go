package tui

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"rnix/debug"
)

// column is a column of top.
type column struct {
	name  string
	sort  sortKey // empty = it cannot be sorted by
	right bool
	least int // cells
	most  int // cells; 0 = what is left over
	drop  int // the lower, the earlier it goes where the width is too little; 0 = never
	text  func(t *Theme, p *row, now time.Time) string
}

// Columns of which one takes in what the other has no room for.
const (
	columnState = "STATE"
	columnDoing = "DOING"
)

// columns are those of top, from left to right.
func columns() []column {
	return []column{
		{name: "PID", sort: byPID, right: true, least: 4, most: 8, text: func(_ *Theme, p *row, _ time.Time) string { return p.PID.String() }},
		{name: columnState, sort: byState, least: 7, most: 30, drop: 9, text: (*Theme).stateText},
		{name: "STEP", sort: byStep, right: true, least: 4, most: 9, drop: 6, text: func(_ *Theme, p *row, _ time.Time) string { return stepText(&p.Proc) }},
		{name: columnDoing, least: 14, most: 40, drop: 8, text: (*Theme).doingText},
		{name: "MODEL", least: 6, most: 24, drop: 3, text: func(t *Theme, p *row, _ time.Time) string { return t.line(cmp.Or(p.Model, p.Provider)) }},
		{name: "TOKENS", sort: byTokens, right: true, least: 6, most: 11, drop: 5, text: func(_ *Theme, p *row, _ time.Time) string { return tokensText(&p.Proc) }},
		{name: "COST", sort: byCost, right: true, least: 5, most: 9, drop: 4, text: func(_ *Theme, p *row, _ time.Time) string { return costText(&p.Proc) }},
		{name: "ELAPSED", sort: byElapsed, right: true, least: 7, most: 9, drop: 7, text: func(_ *Theme, p *row, now time.Time) string { return debug.Age(p.elapsed(now)) }},
		{name: "OS", right: true, least: 2, most: 4, drop: 1, text: func(_ *Theme, p *row, _ time.Time) string { return childrenText(p) }},
		{name: "RSS", sort: byMemory, right: true, least: 6, most: 8, drop: 2, text: func(_ *Theme, p *row, _ time.Time) string { return sizeText(p.rss()) }},
		{name: "NAME", sort: byName, least: 16},
	}
}

// childrenText is how many processes of the operating system a process has.
func childrenText(p *row) string {
	if n := len(p.Children); n > 0 {
		return strconv.Itoa(n)
	}
	return "-"
}

// fitted is a column with its width.
type fitted struct {
	column
	w int
}

// fitColumns chooses the columns that a width has room for, and divides it: what is left over goes first to what the
// rows in sight need, and then to the last one.
func fitColumns(t *Theme, all []column, entries []entry, w int, now time.Time) []fitted {
	kept := append([]column(nil), all...)
	for i, c := range kept {
		if c.right { // a number that is cut is another number
			for k := range entries {
				kept[i].least = max(kept[i].least, t.cells(c.text(t, entries[k].row, now)))
			}
			kept[i].most = max(c.most, kept[i].least)
		}
	}
	for {
		need := -1
		for _, c := range kept {
			need += c.least + 1
		}
		lowest := -1
		for i, c := range kept {
			if c.drop > 0 && (lowest < 0 || c.drop < kept[lowest].drop) {
				lowest = i
			}
		}
		if need <= w || lowest < 0 {
			break
		}
		kept = append(kept[:lowest], kept[lowest+1:]...)
	}
	out := make([]fitted, len(kept))
	spare := w + 1
	for i, c := range kept {
		out[i] = fitted{c, c.least}
		spare -= c.least + 1
	}
	name := len(out) - 1
	grow := func(i, want int) {
		n := max(min(want-out[i].w, spare), 0)
		out[i].w += n
		spare -= n
	}
	grow(name, 24)
	for i, c := range kept[:name] {
		want := len(c.name)
		if c.sort != "" {
			want++
		}
		for k := range entries {
			want = max(want, min(t.cells(c.text(t, entries[k].row, now)), c.most))
		}
		grow(i, min(want, c.most))
	}
	grow(name, w)
	out[name].w = max(min(out[name].w, w), 1)
	return out
}

// tableLines renders top: the names of the columns, and the rows that are in sight.
func tableLines(m *Model, w, h int) []string {
	t, now := m.env.t, m.env.now()
	entries, first := m.list.shown(max(h-1, 0))
	cols := fitColumns(t, columns(), entries, w, now)
	out := make([]string, 0, h)
	if h > 0 {
		out = append(out, t.paint(bold, t.cut(columnNames(m, cols), w)))
	}
	for i := range entries {
		out = append(out, tableRow(m, cols, &entries[i], first+i, w))
	}
	if len(entries) == 0 && h > 1 {
		out = append(out, t.cut(nothing(m), w))
	}
	return out
}

// tableRow renders a row, the i-th of all.
func tableRow(m *Model, cols []fitted, e *entry, i, w int) string {
	t, now := m.env.t, m.env.now()
	sign, st := t.badge(e.row)
	var b strings.Builder
	why := "" // the reason for a state, where that has room for its word only
	for _, c := range cols[:len(cols)-1] {
		s := c.text(t, e.row, now)
		switch {
		case c.name == columnState && t.cells(s) > c.w:
			s, why, _ = strings.Cut(s, ": ")
		case c.name == columnDoing && s == "":
			s = why
		}
		b.WriteString(c.pad(t, s) + " ")
	}
	return rowLine(m, i, e, b.String()+t.branch(e), sign, st, t.name(e.row), w)
}

func (c *fitted) pad(t *Theme, s string) string {
	if c.right {
		return t.right(s, c.w)
	}
	return t.pad(s, c.w)
}

// columnNames is the first line, with the order.
func columnNames(m *Model, cols []fitted) string {
	var b strings.Builder
	for i := range cols {
		name := cols[i].name
		if cols[i].sort == m.list.sort {
			name = m.env.t.cut(name, cols[i].w-1) + m.env.t.arrow(m.list.desc)
		}
		if i == len(cols)-1 {
			b.WriteString(name)
			break
		}
		b.WriteString(cols[i].pad(m.env.t, name) + " ")
	}
	return b.String()
}
