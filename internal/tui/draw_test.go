package tui

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rnix/ipc"
	"rnix/types"
)

var update = flag.Bool("update", false, "write the golden screens anew")

// hostileTexts are texts that an agent might use against who looks at it.
var hostileTexts = []string{
	"\x1b]52;c;aGVsbG8=\x07\x1b[2J\x1b[H", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "\x9b31m\x9d0;title\x9c", "\u202eevil\u2066", "a\tb\tc\n\n\n",
	"世界世界世界", "👩‍👩‍👧‍👦🏳️‍🌈🇩🇪👍🏽", "z̸̢̛̗̼͙̭̘̹̄̀a̷l̶g̵o̸", "\x00\x07\x08\r\n\v\f\x7f", "\xff\xfe\x80", strings.Repeat("W", 9000), "\u00ad\u200b\ufeff\u2028\u2029", "क्षत्रिय", "مرحبا", "ﷺ", "\u0301\u0301",
	"<script>alert(1)</script>", "e\u0301\u0302\u0303\u0304\u0305\u0306", "\U000e0041\U000e0042", "",
}

// TestNoSizeAndNoTextBreaksTheScreen draws everything at any size, with text that does not mean well: each line fits, there are
// never more than there is room for, and the only sequences are our own.
func TestNoSizeAndNoTextBreaksTheScreen(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w, h := rapid.IntRange(20, 300).Draw(r, "w"), rapid.IntRange(5, 100).Draw(r, "h")
		if rapid.IntRange(0, 9).Draw(r, "tiny") == 0 {
			w, h = rapid.IntRange(0, 20).Draw(r, "w2"), rapid.IntRange(0, 5).Draw(r, "h2")
		}
		word := rapid.OneOf(rapid.SampledFrom(hostileTexts), rapid.String())
		var procs []ipc.Proc
		for i := range rapid.IntRange(0, 30).Draw(r, "n") {
			p := proc(i+1, rapid.IntRange(0, 30).Draw(r, "parent"), word.Draw(r, "name"))
			p.Intent, p.Agent, p.Model, p.Wait = word.Draw(r, "intent"), word.Draw(r, "agent"), word.Draw(r, "model"), word.Draw(r, "wait")
			p.State = rapid.SampledFrom([]string{stateRunning, stateSuspended, stateDead, stateZombie, stateArchived, "new\x1b[1m"}).Draw(r, "state")
			if rapid.Bool().Draw(r, "paused") {
				p.PausedAt = begin
			}
			if rapid.Bool().Draw(r, "doing") {
				p.Doing = &ipc.Doing{Tool: word.Draw(r, "tool"), Path: word.Draw(r, "path"), Since: begin, Calls: 3}
			}
			if rapid.Bool().Draw(r, "exit") {
				p.Exit = &types.ExitStatus{Code: 1, Reason: word.Draw(r, "reason")}
			}
			p.PID = types.PID(rapid.Uint64().Draw(r, "pid"))
			p.TokensUsed = rapid.Int().Draw(r, "tokens")
			p.CostUSD = rapid.Float64().Draw(r, "cost")
			p.ElapsedMs = rapid.Int64().Draw(r, "elapsed")
			procs = append(procs, p)
		}
		b := newBench(t, rapid.Bool().Draw(r, "top"), procs...)
		b.env.t.ASCII = rapid.Bool().Draw(r, "ascii")
		b.env.t.Pure = b.env.t.ASCII && rapid.Bool().Draw(r, "pure")
		b.env.t.Color = rapid.Bool().Draw(r, "color")
		b.send(tea.WindowSizeMsg{Width: w, Height: h})
		b.run()
		keys := rapid.SampledFrom([]string{"down", "G", "enter", "/", "f", "t", "o", "?", "s", "K", "esc", "z", "tab", "pgdown", "x", "世", "R", "b", "F", "n", "p"})
		for range rapid.IntRange(0, 12).Draw(r, "keys") {
			b.press(keys.Draw(r, "key"))
			if rapid.IntRange(0, 4).Draw(r, "paste") == 0 {
				b.send(tea.PasteMsg{Content: word.Draw(r, "pasted")})
			}
			if rapid.IntRange(0, 4).Draw(r, "click") == 0 {
				b.send(tea.MouseClickMsg{X: rapid.IntRange(0, w).Draw(r, "x"), Y: rapid.IntRange(0, h).Draw(r, "y"), Button: tea.MouseLeft})
				b.send(tea.MouseWheelMsg{X: rapid.IntRange(0, w).Draw(r, "x"), Y: rapid.IntRange(0, h).Draw(r, "y"), Button: tea.MouseWheelDown})
			}
			b.run()
			checkScreen(r, b, w, h)
		}
		checkScreen(r, b, w, h)
	})
}

func checkScreen(r *rapid.T, b *bench, w, h int) {
	s, cursor := b.draw()
	if w <= 0 || h <= 0 {
		if s != "" {
			r.Fatalf("no room, and it draws %q", s)
		}
		return
	}
	lines := strings.Split(s, "\n")
	if len(lines) != h {
		r.Fatalf("%d lines on a screen of %d:\n%s", len(lines), h, s)
	}
	for _, m := range []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth} {
		for i, l := range lines {
			if n := m.StringWidth(l); n > w && (m == b.env.t.method || n > w+w/2) {
				r.Fatalf("line %d has %d cells of %d: %q", i, n, w, l)
			}
		}
	}
	if cursor != nil && (cursor.X >= w || cursor.Y >= h || cursor.X < 0) {
		r.Fatalf("the cursor is at %d,%d of %dx%d", cursor.X, cursor.Y, w, h)
	}
	plain := ansi.Strip(s)
	for _, c := range plain {
		if c < ' ' && c != '\n' || c >= 0x7f && c < 0xa0 || c == 0x202e || c == 0x2066 || c > 0x7f && b.env.t.Pure {
			r.Fatalf("the screen has %U:\n%q", c, plain)
		}
	}
	for rest := s; ; {
		i := strings.IndexByte(rest, 0x1b)
		if i < 0 {
			break
		}
		rest = rest[i+1:]
		end := strings.IndexByte(rest, 'm')
		if end < 0 || end > 3 || rest[0] != '[' {
			r.Fatalf("the screen has the sequence %q", rest[:min(len(rest), 12)])
		}
	}
}

// family is what the golden screens show.
func family() []ipc.Proc {
	lead, review, tests, docs, night := proc(1, 0, "lead"), proc(2, 1, "review"), proc(3, 1, "tests"), proc(4, 3, ""), proc(12, 0, "night")
	lead.Intent = "Bring the parser up to the new grammar, and prove that nothing else has changed"
	lead.Doing = &ipc.Doing{Tool: "wait", Path: "/sys/wait", Since: begin.Add(-83e9), Calls: 1}
	lead.Wait = "child PID 3"
	review.Intent, review.State, review.PausedAt, review.Wait = "Review each commit", stateSuspended, begin.Add(-60e9), "paused"
	tests.Intent = "Run the tests and mend what fails"
	tests.Doing = &ipc.Doing{Tool: "shell", Path: "/dev/shell", Since: begin.Add(-12e9), Calls: 2}
	tests.Wait = "shell"
	tests.Children = []ipc.OSChild{{PID: 4711, Kind: "shell", Command: "go test ./...", RSSBytes: 348 << 20}}
	docs.Intent, docs.Wait = "Write down what the 世界 of the parser promises\x1b[31m", "rate limit of the provider"
	docs.WaitUntil = begin.Add(30e9)
	night.Intent, night.State, night.Wait = "Review all open TODOs", stateSuspended, "budget: 200,000 tokens are used up"
	night.Estimated = true
	return []ipc.Proc{lead, review, tests, docs, night}
}

func TestWhyEachOneWaitsIsSeenInEightyColumns(t *testing.T) {
	b := newBench(t, true, family()...)
	b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	b.run()
	for _, want := range []string{"waits ", "1m23s wait", "rate limit of", "suspen", "budget: 200,0"} {
		b.sees(want)
	}
}

func TestTheScreensLookAsTheyShould(t *testing.T) {
	t.Setenv("TZ", "UTC")
	for _, c := range []struct {
		name  string
		w, h  int
		top   bool
		ascii bool
		keys  []string
	}{
		{"top_80x24", 80, 24, true, false, nil}, {"top_200x50", 200, 50, true, false, []string{"down"}}, {"top_ascii", 100, 20, true, true, []string{"o"}},
		{"dashboard_80x24", 80, 24, false, false, []string{"down", "down"}}, {"dashboard_200x50", 200, 50, false, false, []string{"down", "down"}},
		{"dashboard_ascii", 100, 24, false, true, []string{"down"}}, {"dashboard_narrow", 40, 12, false, false, nil}, {"help_80x24", 80, 24, false, false, []string{"?"}},
		{"kill_80x24", 80, 24, true, false, []string{"K"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.top, family()...)
			b.env.t.ASCII = c.ascii
			b.panes, b.told = []pane{newDetailPane(b.env)}, nil // those of other panes have tests of their own
			b.send(tea.WindowSizeMsg{Width: c.w, Height: c.h})
			b.run()
			b.press(c.keys...)
			b.run()
			got := b.screenText() + "\n"
			if c.ascii {
				for _, r := range strings.ReplaceAll(got, "世界", "") {
					if r > 0x7f {
						t.Errorf("%U is drawn", r)
					}
				}
			}
			path := filepath.Join("testdata", c.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("%s (with -update it is written anew):\n%s", path, diff)
			}
		})
	}
}

func TestTheThemeFollowsTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want Theme
	}{
		{map[string]string{"LANG": "de_DE.UTF-8"}, Theme{Color: true}},
		{map[string]string{"LANG": "de_DE.UTF-8", "RNIX_ASCII": "1"}, Theme{Color: true, ASCII: true}},
		{map[string]string{"LANG": "de_DE.UTF-8", "RNIX_ASCII": "0", "NO_COLOR": "1"}, Theme{}},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, Theme{Color: true, ASCII: true, Pure: true}},
		{map[string]string{"LC_CTYPE": "C.utf8", "LANG": "C"}, Theme{Color: true}},
		{map[string]string{"TERM": "dumb"}, Theme{}},
	} {
		got := NewTheme(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if *got != c.want {
			t.Errorf("%v: %+v, want %+v", c.env, *got, c.want)
		}
	}
}

func TestCleanTextIsAsWideOnEveryTerminal(t *testing.T) {
	th := &Theme{}
	for _, s := range hostileTexts {
		got := th.clean(s)
		for l := range strings.SplitSeq(got, "\n") {
			if wc, gr := ansi.WcWidth.StringWidth(l), ansi.GraphemeWidth.StringWidth(l); wc != gr && !strings.Contains(s, "क") {
				t.Errorf("%q: %d cells as single characters, %d as clusters", l, wc, gr)
			}
		}
		if strings.ContainsAny(got, "\x1b\t\r\x07\u202e\u2066\u009b") {
			t.Errorf("%q is left of %q", got, s)
		}
	}
	if got := th.clean("\u202eevil"); got != "<U+202E>evil" {
		t.Errorf("what turns text round is shown as %q", got)
	}
	if got := th.line("  a\n\tb  "); got != "a b" {
		t.Errorf("a line is %q", got)
	}
	if got := (&Theme{Pure: true}).clean("naïve 世界"); got != "na?ve ??" {
		t.Errorf("in ASCII it is %q", got)
	}
}
