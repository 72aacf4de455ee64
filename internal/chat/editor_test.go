package chat

import (
	"strings"
	"testing"

	"rnix/internal/tui"
)

func TestALongPasteIsOneCharacter(t *testing.T) {
	var e editor
	e.insert("look: ")
	long := strings.Repeat("a line\r\n", 214)
	if why := e.paste(long); why != "" {
		t.Fatal(why)
	}
	rows, x, y := e.rows(&tui.Theme{Bare: true}, 60)
	if rows[0] != "look: [pasted 214 lines]" || x != 24 || y != 0 {
		t.Errorf("rows %q, cursor %d,%d", rows, x, y)
	}
	if want := "look: " + strings.Repeat("a line\n", 214); e.value() != want {
		t.Errorf("value is %.80q", e.value())
	}
	e.key("backspace")
	if e.value() != "look: " {
		t.Errorf("value is %.80q", e.value())
	}
	if why := e.paste(strings.Repeat("x", maxText+1)); !strings.Contains(why, "put it into a file") || e.value() != "look: " {
		t.Errorf("a paste of more than 1 MiB: %q, %d bytes", why, len(e.value()))
	}
	if e.set(strings.Repeat("x", maxText+1)); len(e.value()) != maxText+1 {
		t.Errorf("of %d bytes that come back there are %d", maxText+1, len(e.value()))
	}
	e.set("")
	if why := e.paste("y\x1b[31m\x00\ue000 two\rlines"); why != "" || e.value() != "y[31m two\nlines" {
		t.Errorf("value is %q, %s", e.value(), why)
	}
}

func TestKeysEditText(t *testing.T) {
	for _, c := range []struct{ start, keys, want string }{
		{"one two", "ctrl+w", "one "}, {"one two", "ctrl+a delete", "ne two"}, {"one two", "home ctrl+k", ""}, {"one", "alt+enter", "one\n"},
		{"one\ntwo", "up ctrl+u", "e\ntwo"[1:]}, {"one\ntwo", "left left left left backspace", "on\ntwo"}, {"one two", "alt+b alt+d", "one "}, {"a", "backspace backspace", ""},
	} {
		var e editor
		e.insert(c.start)
		for k := range strings.FieldsSeq(c.keys) {
			if !e.key(k) {
				t.Errorf("%q: %s means nothing", c.start, k)
			}
		}
		if e.value() != c.want {
			t.Errorf("%q after %s is %q, want %q", c.start, c.keys, e.value(), c.want)
		}
	}
}

func TestEarlierMessagesComeBack(t *testing.T) {
	var e editor
	for _, s := range []string{"first", "second", strings.Repeat("long\n", 300)} {
		e.insert("")
		e.set(s)
		e.take()
	}
	e.insert("draft")
	for _, c := range []struct{ key, want string }{{"up", strings.Repeat("long\n", 300)}, {"ctrl+p", "second"}, {"up", "first"}, {"up", "first"}, {"down", "second"}, {"ctrl+n", strings.Repeat("long\n", 300)}, {"ctrl+n", "draft"}} {
		if e.key(c.key); e.value() != c.want {
			t.Errorf("after %s there is %.20q, want %.20q", c.key, e.value(), c.want)
		}
	}
}

func TestRowsAreNeverTooWide(t *testing.T) {
	th := &tui.Theme{Bare: true}
	var e editor
	e.insert("世界 " + strings.Repeat("x", 100) + "\n\tend\n")
	rows, x, y := e.rows(th, 20)
	for _, r := range rows {
		if tui.Cells(th, r) > 20 {
			t.Errorf("a row of %d cells: %q", tui.Cells(th, r), r)
		}
	}
	if y != len(rows)-1 || x != 0 {
		t.Errorf("the cursor is at %d,%d of %d rows", x, y, len(rows))
	}
}
