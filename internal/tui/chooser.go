package tui

import "strings"

// chooser is a list of entries in a pane, of which one is chosen. It belongs to the goroutine of the program.
type chooser struct {
	n, at  int
	top, h int
	above  int  // lines of the pane above the list
	tail   bool // the last is chosen, and stays so when more come
	find   finder
	label  func(i int) string // an entry as clean text, for searching
	far    func(by int)       // not nil: somebody else looks for what find says, from the chosen entry on
}

// set says how many entries there are.
func (c *chooser) set(n int) {
	if c.n = n; c.tail {
		c.at = n - 1
	}
	c.at = max(min(c.at, n-1), 0)
}

// choose chooses an entry.
func (c *chooser) choose(i int) {
	c.at = max(min(i, c.n-1), 0)
	c.tail = c.at >= c.n-1
}

// window returns the entries that fit into h lines, the chosen one among them.
func (c *chooser) window(h int) (from, to int) {
	c.h = max(h, 1)
	c.top = min(c.top, max(c.n-c.h, 0), c.at)
	if c.at >= c.top+c.h {
		c.top = c.at - c.h + 1
	}
	return c.top, min(c.top+c.h, c.n)
}

// view returns the entries in sight: at most h lines of at most w cells. line renders one; it has no styles.
func (c *chooser) view(t *Theme, w, h int, line func(i int) (string, style)) string {
	from, to := c.window(h)
	out := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		text, st := line(i)
		mark := "  "
		if i == c.at {
			mark, st = "> ", reverse
		}
		text = t.pad(mark+text, w)
		if st == reverse {
			out = append(out, t.paint(st, text))
			continue
		}
		if m := c.find.mark(t, text); m != text {
			out = append(out, m)
			continue
		}
		out = append(out, t.paint(st, strings.TrimRight(text, " ")))
	}
	return strings.Join(out, "\n")
}

// search chooses the first entry from the chosen one on that has a text.
func (c *chooser) search(text string) bool {
	c.find = finder{text}
	return text == "" && c.far == nil || c.seek(0)
}

// next goes to the next entry that has it, or to the one before.
func (c *chooser) next(by int) bool { return c.find.text != "" && c.seek(by) }

func (c *chooser) seek(by int) bool {
	if c.far != nil {
		c.far(by)
		return true
	}
	step := 1
	if by < 0 {
		step = -1
	}
	for k := range c.n {
		i := ((c.at+by+k*step)%c.n + c.n) % c.n
		if c.find.in(c.label(i), 0) >= 0 {
			c.choose(i)
			return true
		}
	}
	return false
}

// picker is a pane that shows a list: the keys for moving, the mouse and search work on what it returns; nil = there is
// no list in sight.
type picker interface{ chooser() *chooser }

// picks returns the list of the pane in sight; nil = there is none.
func (m *Model) picks() *chooser {
	if p, ok := m.pane().(picker); ok && m.help == nil && m.screen == dashboard {
		return p.chooser()
	}
	return nil
}

// chooserKeys are the keys of a pane that shows a list.
func chooserKeys(c *chooser, entry string) []binding {
	do := func(f func()) func(*Model) { return func(*Model) { f() } }
	return []binding{
		key(inPane, "down j", "choose the next "+entry, "", act(do(func() { c.choose(c.at + 1) }))),
		key(inPane, "up k", "choose the "+entry+" before", "", act(do(func() { c.choose(c.at - 1) }))),
		key(inPane, "pgdown space", "a page of the list down", "", act(do(func() { c.choose(c.at + max(c.h-1, 1)) }))),
		key(inPane, "pgup", "a page of the list up", "", act(do(func() { c.choose(c.at - max(c.h-1, 1)) }))),
		key(inPane, "home g", "choose the first "+entry, "", act(do(func() { c.choose(0) }))),
		key(inPane, "end G", "choose the last "+entry, "", act(do(func() { c.choose(c.n - 1) }))),
	}
}

// headed puts a line above what a pane shows, if there is room for both.
func headed(t *Theme, head string, w, h int, body string) string {
	head = t.paint(dim, t.cut(head, w))
	if h <= 1 {
		return head
	}
	return head + "\n" + body
}

// filled puts what a pane says of itself into at most n lines above what it shows; what has no room is cut off.
func filled(t *Theme, parts []string, w, n int) []string {
	lines := []string{""}
	for i, p := range parts {
		last := len(lines) - 1
		switch {
		case i == 0:
			lines[last] = p
		case len(lines) < n && t.cells(lines[last]+t.dot()+p) > w:
			lines = append(lines, p)
		default:
			lines[last] += t.dot() + p
		}
	}
	for i := range lines {
		lines[i] = t.paint(dim, t.cut(lines[i], w))
	}
	return lines
}
