package cli

import "strings"

// column describes a column of a table.
type column struct {
	name  string
	right bool
	max   int // cells, where not all fits; 0 = no limit
	drop  int // columns with a number are left out when the line does not fit, the lowest first; 0 = never
	hide  bool
}

// cell is a piece of clean text with its style.
type cell struct {
	text string
	st   style
}

func text(s string) cell { return cell{text: s} }

// leastLast is the width in cells that the last column keeps at least.
const leastLast = 24

// table writes rows under their headings. The last column takes what the width leaves; if that is too
// little, columns are left out.
func (o *output) table(cols []column, rows [][]cell) {
	width := o.out.width
	widths := make([]int, len(cols))
	whole := 0
	for i, c := range cols {
		if c.hide {
			continue
		}
		widths[i] = cells(c.name)
		for _, r := range rows {
			if n := cells(r[i].text); n > widths[i] {
				widths[i] = n
			}
		}
		whole += widths[i] + 2
	}
	for i, c := range cols {
		if c.max > 0 && (width == 0 || whole-2 > width) {
			widths[i] = min(widths[i], max(c.max, cells(c.name)))
		}
	}
	shown := make([]bool, len(cols))
	for i := range shown {
		shown[i] = !cols[i].hide
	}
	last := len(cols) - 1
	for width > 0 && used(widths[:last], shown)+min(leastLast, widths[last]) > width {
		i := nextDrop(cols, shown)
		if i < 0 {
			break
		}
		shown[i] = false
	}
	if width > 0 {
		widths[last] = min(widths[last], max(width-used(widths[:last], shown), leastLast))
	}
	var b strings.Builder
	head := make([]cell, len(cols))
	for i, c := range cols {
		head[i] = cell{c.name, dim}
	}
	o.row(&b, cols, widths, shown, head)
	for _, r := range rows {
		o.row(&b, cols, widths, shown, r)
	}
	o.print(o.drawn(b.String()))
}

// used returns the cells that columns take, with the two between them.
func used(widths []int, shown []bool) int {
	n := 0
	for i, w := range widths {
		if shown[i] {
			n += w + 2
		}
	}
	return n
}

// nextDrop returns the column that goes next, or -1.
func nextDrop(cols []column, shown []bool) int {
	best := -1
	for i, c := range cols {
		if shown[i] && c.drop > 0 && (best < 0 || c.drop < cols[best].drop) {
			best = i
		}
	}
	return best
}

func (o *output) row(b *strings.Builder, cols []column, widths []int, shown []bool, row []cell) {
	gap := 0 // blanks that are owed; those at the end of a line are never paid
	for i, c := range cols {
		if !shown[i] {
			continue
		}
		s := cut(row[i].text, widths[i])
		before, behind := 0, max(widths[i]-cells(s), 0)
		if c.right {
			before, behind = behind, before
		}
		gap += before
		if s != "" {
			b.WriteString(strings.Repeat(" ", gap) + o.out.paint(row[i].st, s))
			gap = 0
		}
		gap += behind
		gap += 2
	}
	b.WriteByte('\n')
}
