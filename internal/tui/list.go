package tui

import (
	"strconv"
	"strings"
	"time"

	"rnix/types"
)

// list is the processes in order, with the one that is chosen. It is the table of top and the left side of the dashboard,
// and knows its choice by UUID, so that rows may come and go. It belongs to the goroutine of the program.
type list struct {
	sort   sortKey
	desc   bool
	flat   bool
	filter string
	find   finder

	entries []entry
	built   built // what entries were made of
	sel     types.UUID
	at      int // the index of sel, or where it was
	top     int // the first line that is shown
	h       int // lines that are shown
}

// built is what the order of a list depends on. While it is the same the list is.
type built struct {
	ver    uint64
	sort   sortKey
	desc   bool
	flat   bool
	filter string
}

// arrange puts the entries in order, if they can have changed, and finds the choice again: where it is gone, the one that
// stands in its place now.
func (l *list) arrange(r *rows, now time.Time) {
	b := built{r.ver, l.sort, l.desc, l.flat, l.filter}
	if b == l.built && l.entries != nil {
		return
	}
	l.built = b
	var matches func(*row) bool
	if l.filter != "" {
		f := finder{l.filter}
		matches = func(p *row) bool { return f.of(p) }
	}
	l.entries = arrange(r, l.sort, l.desc, l.flat, matches, now)
	l.settle()
}

// settle finds the index of the choice.
func (l *list) settle() {
	if i := l.index(l.sel); i >= 0 {
		l.at = i
	} else if len(l.entries) > 0 {
		l.at = max(min(l.at, len(l.entries)-1), 0)
		l.sel = l.entries[l.at].UUID
	} else {
		l.at = 0
	}
	l.scroll()
}

func (l *list) index(id types.UUID) int {
	if l.at < len(l.entries) && l.at >= 0 && l.entries[l.at].UUID == id {
		return l.at
	}
	for i := range l.entries {
		if l.entries[i].UUID == id {
			return i
		}
	}
	return -1
}

// chosen returns the row that is chosen; nil = there is none.
func (l *list) chosen() *row {
	if l.at < 0 || l.at >= len(l.entries) {
		return nil
	}
	return l.entries[l.at].row
}

// choose chooses the entry at an index.
func (l *list) choose(i int) {
	if len(l.entries) == 0 {
		return
	}
	l.at = max(min(i, len(l.entries)-1), 0)
	l.sel = l.entries[l.at].UUID
	l.scroll()
}

func (l *list) move(n int) { l.choose(l.at + n) }

// scroll keeps the choice in the window.
func (l *list) scroll() {
	h := max(l.h, 1)
	l.top = max(min(l.top, l.at), l.at-h+1, 0)
	l.top = max(min(l.top, len(l.entries)-h), 0)
}

// wheel moves the window, and the choice only as far as it has to.
func (l *list) wheel(n int) {
	h := max(l.h, 1)
	l.top = max(min(l.top+n, len(l.entries)-h), 0)
	l.choose(max(min(l.at, l.top+h-1), l.top))
}

// shown returns the entries of the window, of h lines, with the index of the first.
func (l *list) shown(h int) ([]entry, int) {
	l.h = h
	l.scroll()
	end := min(l.top+max(h, 0), len(l.entries))
	return l.entries[l.top:end], l.top
}

// searchFor goes to the next entry that has what is looked for, from the choice on; by 0 may stay.
func (l *list) search(by int) bool {
	n := len(l.entries)
	for k := range n {
		step := k + by
		if by < 0 {
			step = -k + by
		}
		if i := ((l.at+step)%n + n) % n; l.find.of(l.entries[i].row) {
			l.choose(i)
			return true
		}
	}
	return false
}

// of reports whether a process is one that is looked for.
func (f finder) of(p *row) bool {
	for _, s := range []string{p.Name, p.Intent, p.Agent, p.Model, p.Provider, p.State, p.Wait, p.Kind, p.Labels.String()} {
		if f.in(s, 0) >= 0 {
			return true
		}
	}
	return strings.HasPrefix(p.UUID.String(), f.text) || strconv.Itoa(int(p.PID)) == f.text || p.Doing != nil && f.in(p.Doing.Tool, 0) >= 0
}
