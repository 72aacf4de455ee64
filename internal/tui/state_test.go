package tui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheViewIsKeptBetweenStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ui-state.json")
	b := newBench(t, false, manyProcs()...)
	b.panes = []pane{newDetailPane(b.env), &blankPane{"Second"}}
	b.press("o", "O", "t", "2", "m", "G")
	if err := save(b.Model, path); err != nil {
		t.Fatal(err)
	}
	c := newBench(t, false)
	c.panes = []pane{newDetailPane(c.env), &blankPane{"Second"}}
	load(c.Model, path)
	c.frame(true, manyProcs()...)
	if c.list.sort != byName || !c.list.desc || !c.list.flat || c.cur != 1 || c.mouse || c.list.sel != b.list.sel {
		t.Errorf("it begins with %+v, pane %d, mouse %v, chosen %s", c.list.sort, c.cur, c.mouse, c.list.sel)
	}
}

func TestAMalformedStateIsIgnoredWithANote(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "no json": "{", "other": `[1]`, "newer": `{"v":99}`, "odd": `{"v":1,"sort":7}`,
		"huge": `{"v":1,"pane":"` + strings.Repeat("x", maxState) + `"}`} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ui-state.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			b := newBench(t, false, proc(1, 0, "a"))
			load(b.Model, path)
			b.sees("the view begins anew: ")
			b.sees("a: Work on a")
		})
	}
	b := newBench(t, false, proc(1, 0, "a"))
	load(b.Model, filepath.Join(t.TempDir(), "none"))
	if b.note.text != "" {
		t.Errorf("no file is no reason to say %q", b.note.text)
	}
}

func TestAnUnknownStateOfTheViewDoesNoHarm(t *testing.T) {
	b := newBench(t, false, proc(1, 0, "a"))
	restore(b.Model, &state{V: 1, Sort: "\x1b[31m", Pane: "none"})
	if b.list.sort != byPID || b.cur != 0 {
		t.Errorf("sorted by %q, pane %d", b.list.sort, b.cur)
	}
}
