package chat

import (
	"strings"

	"rnix/internal/tui"
)

// drawTable draws the rows of a table, "| a | b |", in at most w cells. One that does not fit is shown as it is written.
func drawTable(t *tui.Theme, lines []string, w int) (out []string) {
	var rows [][][]span
	var widths []int
	rule := -1
	for _, l := range lines {
		cells := strings.Split(strings.Trim(strings.ReplaceAll(l, `\|`, "\x00"), "| "), "|")
		if strings.Trim(l, "|-: ") == "" {
			if rule < 0 {
				rule = len(rows)
			}
			continue
		}
		row := make([][]span, len(cells))
		for i, c := range cells {
			a := attr(0)
			if rule < 0 && len(rows) == 0 {
				a = bold
			}
			row[i] = inline(strings.ReplaceAll(strings.TrimSpace(c), "\x00", "|"), a)
			for len(widths) <= i {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cellsOf(t, row[i]))
		}
		rows = append(rows, row)
	}
	total := 0
	for _, n := range widths {
		total += n + 2
	}
	if total > w+2 || rule < 0 {
		for _, l := range lines {
			out = append(out, hardWrap(t, inline(l, 0), w)...)
		}
		return out
	}
	for i, row := range rows {
		if i == rule {
			out = append(out, paint(t, dim, strings.Repeat(tui.Pick(t, "─", "-"), max(total-2, 1))))
		}
		var b strings.Builder
		for j, c := range row {
			for _, s := range c {
				b.WriteString(paint(t, s.a, s.text))
			}
			if j < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[j]-cellsOf(t, c)+2))
			}
		}
		out = append(out, b.String())
	}
	return out
}

func cellsOf(t *tui.Theme, spans []span) (n int) {
	for _, s := range spans {
		n += tui.Cells(t, s.text)
	}
	return n
}
