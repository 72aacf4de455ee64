package tui

import (
	"encoding/json"
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

func TestPanesKeepWhatWasSetBetweenStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ui-state.json")
	b := paneBench(t, "Log", everything)
	b.does("t", "w", "T", "y")
	b.showPane("Cost")
	b.does("v", "v", "a")
	b.showPane("Trace")
	b.does("c", "a")
	b.focus = left
	b.does("f", "l", "e", "a", "d", "enter")
	if err := save(b.Model, path); err != nil {
		t.Fatal(err)
	}
	c := paneBench(t, "Detail", everything)
	load(c.Model, path)
	c.sees("filter: lead")
	c.showPane("Log")
	c.sees("without think, warning")
	if asked := c.src.last("events"); !strings.Contains(asked, `"tree":true`) || !strings.Contains(asked, `"syscall","syscall_begin"]`) {
		t.Errorf("the log asks %s", asked)
	}
	c.showPane("Cost")
	c.sees("COST BY DAY, of all histories")
	c.showPane("Trace")
	if asked := c.src.last("trace"); !strings.Contains(asked, `"children":false`) || !c.pane().(*tracePane).critical {
		t.Errorf("the trace asks %s", asked)
	}
	if err := openOn(c.Model, t.Context(), "lead"); err == nil && c.list.filter != "" {
		t.Error("a filter hides the process that somebody asks for")
	}
}

func TestWhatPanesCannotReadTheyLeaveAsItIs(t *testing.T) {
	for _, raw := range []string{`7`, `"x"`, `[]`, `{"hidden":7}`, `{"hidden":["lost","\u001b[31m"]}`, `{"by":"\u001b[31m"}`, `null`, `{}`} {
		b := paneBench(t, "Log", everything)
		s := &state{V: 1, Sort: byPID, Pane: "Log", Own: map[string]json.RawMessage{}}
		for _, p := range b.panes {
			s.Own[p.title()] = json.RawMessage(raw)
		}
		restore(b.Model, s)
		b.settle()
		b.sees("follows")
		b.seesNot("without")
		b.sees("are missed")
		b.showPane("Cost")
		b.sees("COST BY MODEL, of this process")
	}
}
