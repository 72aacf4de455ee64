package chat

import (
	"strings"

	"rnix/internal/tui"
)

// markdown draws Markdown for a terminal while it comes. It is read line by line: a line of code is final as soon as it is complete, all others with
// the block that they belong to. What it has in hand is bounded, however long the lines are. It belongs to one goroutine.
type markdown struct {
	t *tui.Theme
	w int // of the lines that it makes, in cells

	rest  string // the line that has begun, as it came
	block block
	fence string // what ends the code; empty = there is none
	in    string // how far the code is indented
	code  coder
	table []string
	hang  string // where lines that continue a list begin; empty = there is no list
	gap   bool   // an empty line comes before the next block
	begun bool   // there was a line
}

// block is a paragraph, an item of a list or a quotation that may continue.
type block struct {
	text string // its lines, joined by blanks; \n is a break that was asked for
	lead string // before its first line
	hang string // before its others
	st   attr   // of all of it
	open bool
}

// What is held back at most, in bytes and lines.
const (
	maxOpenLine  = 4 << 10
	maxOpenBlock = 8 << 10
	maxTable     = 200
)

// write takes text in, and returns the lines that are final with it.
func (m *markdown) write(text string) (out []string) {
	for {
		line, rest, ok := strings.Cut(text, "\n")
		m.rest += line
		if !ok {
			break
		}
		out = append(out, m.take(m.rest)...)
		m.rest, text = "", rest
	}
	for len(m.rest) > maxOpenLine {
		n := strings.LastIndexByte(m.rest[:maxOpenLine], ' ') + 1
		if n < maxOpenLine/2 {
			for n = maxOpenLine; n > maxOpenLine-4 && m.rest[n]&0xc0 == 0x80; n-- {
			}
		}
		out = append(out, m.take(m.rest[:n])...)
		m.rest = m.rest[n:]
	}
	return out
}

// end takes the text as complete, and returns the lines that are left.
func (m *markdown) end() (out []string) {
	if m.rest != "" {
		out = m.take(m.rest)
	}
	out = append(out, m.flush()...)
	m.rest, m.fence, m.hang, m.gap, m.begun = "", "", "", false, false
	return out
}

// open returns how what has begun looks now. It changes nothing.
func (m *markdown) open() []string {
	c := *m
	c.table = append([]string(nil), m.table...)
	return c.end()
}

// take takes a complete line in.
func (m *markdown) take(raw string) (out []string) {
	for line := range strings.SplitSeq(tui.Clean(m.t, strings.TrimSuffix(raw, "\r")), "\n") {
		out = append(out, m.line(line)...)
	}
	return out
}

func (m *markdown) line(line string) []string {
	trimmed := strings.TrimSpace(line)
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	if m.fence != "" {
		if strings.HasPrefix(trimmed, m.fence) && strings.Trim(trimmed, m.fence[:1]) == "" {
			m.fence, m.gap = "", true
			return nil
		}
		return m.codeLine(strings.TrimPrefix(line, m.in))
	}
	if f := fenceOf(trimmed); f != "" {
		out := m.flush()
		out = append(out, m.space()...)
		m.fence, m.in, m.code = f, indent, newCoder(strings.TrimSpace(strings.TrimLeft(trimmed, f[:1])))
		return out
	}
	if trimmed == "" {
		out := m.flush()
		m.gap = m.begun || len(out) > 0
		return out
	}
	if strings.HasPrefix(trimmed, "|") {
		var out []string
		if m.block.open {
			out = m.flush()
		}
		if m.table = append(m.table, trimmed); len(m.table) >= maxTable {
			out = append(out, m.flush()...)
		}
		return out
	}
	if n := len(trimmed) - len(strings.TrimLeft(trimmed, "#")); n > 0 && n <= 6 && len(trimmed) > n && trimmed[n] == ' ' {
		out := m.flush()
		m.hang, m.gap = "", m.begun
		m.block = block{text: strings.TrimSpace(strings.TrimRight(trimmed[n:], "# ")), st: bold, open: true}
		out = append(out, m.flush()...)
		m.gap = true
		return out
	}
	if isRule(trimmed) {
		out := append(m.flush(), m.space()...)
		m.begun, m.gap = true, true
		return append(out, paint(m.t, dim, strings.Repeat(tui.Pick(m.t, "─", "-"), min(m.w, 40))))
	}
	return m.text(indent, trimmed, line)
}

// text takes a line of a paragraph, a list or a quotation in.
func (m *markdown) text(indent, trimmed, line string) []string {
	if quoted, ok := strings.CutPrefix(trimmed, ">"); ok {
		bar := tui.Pick(m.t, "│ ", "| ")
		quoted = strings.TrimSpace(quoted)
		if m.block.open && m.block.hang == bar {
			return m.more(quoted)
		}
		out := m.flush()
		m.hang = ""
		m.block = block{text: quoted, lead: bar, hang: bar, st: dim, open: true}
		return out
	}
	if mark, item := bullet(trimmed); mark != "" {
		out := m.flush()
		if mark == "-" || mark == "*" || mark == "+" {
			mark = tui.Pick(m.t, "•", "-")
		}
		indent = indent[:min(len(indent), 16)]
		if m.hang != "" {
			m.gap = false // items of one list stand close
		}
		m.hang = indent + strings.Repeat(" ", tui.Cells(m.t, mark)+1)
		m.block = block{text: item, lead: indent + mark + " ", hang: m.hang, open: true}
		return out
	}
	if strings.HasSuffix(line, "  ") || strings.HasSuffix(line, `\`) {
		trimmed = strings.TrimSuffix(trimmed, `\`) + "\n"
	}
	if m.block.open {
		return m.more(trimmed)
	}
	out := m.flush()
	if indent == "" {
		m.hang = ""
	}
	m.block = block{text: trimmed, lead: m.hang, hang: m.hang, open: true}
	return out
}

// more continues a block. One that gets too long is final up to here.
func (m *markdown) more(text string) []string {
	if !strings.HasSuffix(m.block.text, "\n") {
		m.block.text += " "
	}
	if m.block.text += text; len(m.block.text) < maxOpenBlock {
		return nil
	}
	next := block{lead: m.block.hang, hang: m.block.hang, st: m.block.st}
	out := m.flush()
	m.block = next
	return out
}

// flush returns the lines of the block in hand, which is final.
func (m *markdown) flush() (out []string) {
	if len(m.table) > 0 {
		out = append(m.space(), drawTable(m.t, m.table, m.w)...)
		m.table, m.begun = nil, true
		return out
	}
	if !m.block.open {
		return nil
	}
	b := m.block
	m.block = block{}
	out = append(m.space(), wrap(m.t, inline(b.text, b.st), b.lead, b.hang, m.w)...)
	m.begun = true
	return out
}

// space returns the empty line before a block, if there is to be one.
func (m *markdown) space() (out []string) {
	if m.gap {
		out = []string{""}
	}
	m.gap = false
	return out
}

// codeLine returns the lines of a line of code.
func (m *markdown) codeLine(line string) (out []string) {
	m.begun = true
	lead := "  " + m.hang
	for _, l := range hardWrap(m.t, m.code.line(line), max(m.w-len(lead), 8)) {
		out = append(out, lead+l)
	}
	return out
}

// fenceOf returns what opens a block of code at the beginning of a line.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 && !(c == "`" && strings.Contains(line[n:], "`")) {
			return line[:min(n, 32)]
		}
	}
	return ""
}

func isRule(line string) bool {
	bare := strings.ReplaceAll(line, " ", "")
	return len(bare) >= 3 && (strings.Trim(bare, "-") == "" || strings.Trim(bare, "*") == "" || strings.Trim(bare, "_") == "")
}

// bullet splits an item of a list.
func bullet(line string) (mark, item string) {
	mark, item, ok := strings.Cut(line, " ")
	if !ok {
		return "", ""
	}
	switch digits := strings.TrimLeft(mark, "0123456789"); {
	case mark == "-", mark == "*", mark == "+":
	case len(mark) <= 10 && len(digits) < len(mark) && (digits == "." || digits == ")"):
	default:
		return "", ""
	}
	return mark, strings.TrimSpace(item)
}
