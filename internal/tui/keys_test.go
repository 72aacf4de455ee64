package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"rnix/internal/soak"
	"rnix/ipc"
	"rnix/types"
)

// manyProcs are forty processes: 1 with 2 to 10 below it, and the others.
func manyProcs() []ipc.Proc {
	var out []ipc.Proc
	for i := 1; i <= 40; i++ {
		up := 0
		if i > 1 && i <= 10 {
			up = 1
		}
		p := proc(i, up, fmt.Sprintf("agent%02d", i))
		if i%7 == 0 {
			p.Name = fmt.Sprintf("needle%02d", i)
		}
		var lines []string
		for k := range 200 {
			if k%50 == 49 {
				lines = append(lines, fmt.Sprintf("a needle %d", k))
			} else {
				lines = append(lines, fmt.Sprintf("line %d", k))
			}
		}
		p.Intent = strings.Join(lines, "\n")
		out = append(out, p)
	}
	return out
}

// benchIn is a program at a place, with something to see above and below.
func benchIn(t *testing.T, p place) *bench {
	t.Helper()
	b := newBench(t, p == inTop, manyProcs()...)
	b.panes, b.told = []pane{newDetailPane(b.env), &blankPane{"Second"}, &blankPane{"Third"}}, nil
	b.send(nil)
	b.run()
	b.screenText()
	b.list.choose(20)
	b.send(nil)
	b.run()
	switch p {
	case inText:
		b.focus = right
		b.pane().(scroller).text().move(70)
	case inDash:
		b.pane().(scroller).text().move(70)
	case inInput:
		b.press("s")
		b.send(tea.PasteMsg{Content: "say some words"})
		b.press("ctrl+b", "ctrl+b") // the cursor stands within the last word
	case inHelp:
		b.press("?")
	case inQuestion:
		b.press("K")
	case inAsk:
		asksAbout(b, 21, 3)
		b.press("A")
		b.run()
		b.screenText()
		b.asking.long.move(70)
	}
	b.screenText()
	return b
}

// blankPane is a pane that only has a name.
type blankPane struct{ name string }

func (p *blankPane) title() string          { return p.name }
func (p *blankPane) show(*ipc.Proc) tea.Cmd { return nil }
func (p *blankPane) update(tea.Msg) tea.Cmd { return nil }
func (p *blankPane) view(int, int) string   { return p.name }
func (p *blankPane) keys() []binding        { return nil }

// proofs press a key and look whether it does what the table says. Their keys are "what", or "place: what" where
// the same words mean another thing.
func proofs() map[string]func(b *bench, press func()) {
	m := map[string]func(b *bench, press func()){}
	is := func(b *bench, ok bool, format string, args ...any) {
		b.t.Helper()
		if !ok {
			b.t.Errorf(format, args...)
		}
	}
	goes := func(what string, to int) {
		m[what] = func(b *bench, press func()) {
			press()
			is(b, b.list.at == to && b.list.sel == b.list.entries[to].UUID, "the choice is %d (%s), want %d", b.list.at, b.list.sel, to)
		}
	}
	goes("the next process", 21)
	goes("the process before", 19)
	goes("a page down", 39) // 27 lines are in sight
	goes("a page up", 0)
	goes("the first process", 0)
	goes("the last process", 39)

	m["search: name, intent, state, PID, beginning of a UUID"] = func(b *bench, press func()) {
		b.list.choose(0)
		press()
		b.press("n", "e", "e", "d", "l", "e", "1", "4", "enter")
		is(b, b.chosen().PID == 14, "PID %d is chosen", b.chosen().PID)
	}
	m["the next place that was searched for"] = func(b *bench, press func()) {
		b.list.find = finder{"needle"}
		b.list.choose(13)
		press()
		is(b, b.chosen().PID == 15, "PID %d is chosen", b.chosen().PID) // each intent has it
	}
	m[string(inList)+": the place before"] = func(b *bench, press func()) {
		b.list.find = finder{"needle14"}
		press()
		is(b, b.chosen().PID == 14, "PID %d is chosen", b.chosen().PID)
	}
	m["filter: only what has a text, and what stands above it"] = func(b *bench, press func()) {
		press()
		b.press("n", "e", "e", "d", "l", "e", "0", "7")
		is(b, len(b.list.entries) == 2 && b.list.entries[0].PID == 1 && !b.list.entries[0].match && b.list.entries[1].PID == 7, "%d entries", len(b.list.entries))
		b.press("enter")
		b.sees("filter: needle07")
	}
	m["a tree, or flat"] = func(b *bench, press func()) {
		b.list.choose(0)
		b.sees("├ ● agent02")
		press()
		b.seesNot("├ ● agent02")
		b.sees("● agent02")
	}
	m["sort by the next column"] = func(b *bench, press func()) {
		press()
		is(b, b.list.sort == byName && b.chosen().PID == 21, "sorted by %s, PID %d is chosen", b.list.sort, b.chosen().PID)
		b.press("t")
		for i := range b.list.entries[1:] {
			is(b, title(b.list.entries[i].row) <= title(b.list.entries[i+1].row), "%s stands before %s", title(b.list.entries[i].row), title(b.list.entries[i+1].row))
		}
	}
	m["sort the other way round"] = func(b *bench, press func()) {
		press()
		is(b, b.list.entries[0].PID == 40, "PID %d is the first", b.list.entries[0].PID)
	}
	m["history: ended processes too, or not"] = func(b *bench, press func()) {
		press()
		b.run()
		is(b, strings.Contains(b.src.last("watch_procs"), `"all":true`), "asked: %s", b.src.last("watch_procs"))
		b.press("H")
		b.run()
		is(b, !strings.Contains(b.src.last("watch_procs"), `"all"`), "asked: %s", b.src.last("watch_procs"))
	}
	sends := func(what, method string, keys []string, want ...string) {
		m[what] = func(b *bench, press func()) {
			press()
			b.press(keys...)
			b.run()
			got := b.src.last(method)
			for _, w := range append(want, uuid(21).String()) {
				is(b, strings.Contains(got, w), "%s was asked: %s; it lacks %s", method, got, w)
			}
		}
	}
	sends("pause the process and all below it, or resume them", "signal_tree", nil, `"SIGPAUSE"`)
	sends("say something to the agent", "steer", []string{"h", "i", "enter"}, `"text":"hi"`)
	sends("fork: a copy resumes from the shown step", "resume", []string{"enter"}, `"fork":true`, `"from_step":21`)
	sends("add to the budget: tokens as 50k, dollars as $2", "add_budget", []string{"5", "k", "enter"}, `"tokens":5000`)
	sends("end the process, after a question", "signal", []string{"y"}, `"SIGTERM"`)
	askProofs(m, is)
	m["resume a suspended or ended process"] = func(b *bench, press func()) {
		p := proc(21, 0, "agent21")
		p.State = stateSuspended
		b.frame(false, p)
		press()
		b.run()
		is(b, strings.Contains(b.src.last("resume"), uuid(21).String()), "asked: %s", b.src.last("resume"))
	}

	m["open the dashboard on the process"] = func(b *bench, press func()) {
		press()
		b.run()
		is(b, b.screen == dashboard, "the screen is %d", b.screen)
		b.sees("uuid       " + uuid(21).String())
		b.press("esc")
		is(b, b.screen == top, "Esc leads to %d", b.screen)
	}
	m["take the filter away; back to top, if you came from there"] = func(b *bench, press func()) {
		setFilter(b.Model, "needle07")
		b.send(nil)
		press()
		is(b, b.list.filter == "" && len(b.list.entries) == 40, "the filter is %q", b.list.filter)
		b.under = true
		press()
		is(b, b.screen == top, "the screen is %d", b.screen)
	}
	m["the next pane"] = func(b *bench, press func()) {
		press()
		is(b, b.cur == 1, "pane %d", b.cur)
		b.sees("Second")
	}
	m["the pane before"] = func(b *bench, press func()) {
		press()
		is(b, b.cur == 2, "pane %d", b.cur)
	}
	for i := range 12 {
		what := fmt.Sprintf("pane %d", i+1)
		if titles := paneTitles(); i < len(titles) {
			what += ": " + titles[i]
		}
		m[what] = func(b *bench, press func()) {
			b.cur = 1
			press()
			want := i
			if i >= len(b.panes) {
				want = 1
			}
			is(b, b.cur == want, "pane %d", b.cur)
		}
	}
	m["back to the list"] = func(b *bench, press func()) {
		press()
		is(b, b.focus == left, "the focus is %d", b.focus)
	}
	m["into the right side"] = func(b *bench, press func()) {
		press()
		is(b, b.focus == right, "the focus is %d", b.focus)
	}
	m["the right side alone, or both"] = func(b *bench, press func()) {
		press()
		b.seesNot("agent20")
		b.sees("1 Detail")
		press()
		b.sees("agent20")
	}

	scrolls := func(what string, want func(l *long, before place2) bool) {
		m[what] = func(b *bench, press func()) {
			l := b.pane().(scroller).text()
			before := l.at
			press()
			b.screenText()
			is(b, want(l, before), "from %v to %v", before, l.at)
		}
	}
	scrolls("a line down", func(l *long, was place2) bool { return l.at.part == was.part+1 })
	scrolls("a line up", func(l *long, was place2) bool { return l.at.part == was.part-1 })
	for _, what := range []string{string(inText) + ": a page down", "the right side a page down"} {
		scrolls(what, func(l *long, was place2) bool { return l.at.part == was.part+l.h-1 })
	}
	for _, what := range []string{string(inText) + ": a page up", "the right side a page up"} {
		scrolls(what, func(l *long, was place2) bool { return l.at.part == was.part-l.h+1 })
	}
	scrolls("the beginning", func(l *long, _ place2) bool { return l.at == place2{} })
	scrolls("the end", func(l *long, _ place2) bool { return l.atEnd() })
	m["search"] = func(b *bench, press func()) {
		press()
		b.press("n", "e", "e", "d", "l", "e", "enter")
		b.sees("a needle 99")
		is(b, strings.HasPrefix(rightSide(b)[0], "  a needle 99"), "the first line is %q", rightSide(b)[0])
	}
	m["the next place"] = func(b *bench, press func()) {
		b.press("/", "n", "e", "e", "d", "l", "e", "enter")
		press()
		is(b, strings.Contains(b.screenText(), "a needle 149"), "the first line is %q", rightSide(b)[0])
	}
	m[string(inText)+": the place before"] = func(b *bench, press func()) {
		b.press("/", "n", "e", "e", "d", "l", "e", "enter")
		press()
		b.sees("a needle 49")
	}

	edits := func(what, want string, at int) {
		m[what] = func(b *bench, press func()) {
			press()
			is(b, string(b.input.text) == want && b.input.at == at, "%q with the cursor at %d", string(b.input.text), b.input.at)
		}
	}
	edits("a line break", "say some wor\nds", 13)
	edits("a character to the left", "say some words", 11)
	edits("a character to the right", "say some words", 13)
	edits(string(inInput)+": the beginning", "say some words", 0)
	edits(string(inInput)+": the end", "say some words", 14)
	edits("delete the character before", "say some wods", 11)
	edits("delete this character", "say some wors", 12)
	edits("delete the word before", "say some ds", 9)
	edits("delete all before", "ds", 0)
	edits("delete the rest", "say some wor", 12)
	m["send it"] = func(b *bench, press func()) {
		press()
		b.run()
		is(b, b.input == nil && strings.Contains(b.src.last("steer"), "say some words"), "asked: %s", b.src.last("steer"))
	}
	m["give it up"] = func(b *bench, press func()) {
		press()
		b.run()
		is(b, b.input == nil && b.src.last("steer") == "", "asked: %s", b.src.last("steer"))
	}

	m["back"] = func(b *bench, press func()) {
		press()
		is(b, b.help == nil, "the help is still there")
	}
	m["the keys of this place"] = func(b *bench, press func()) {
		press()
		b.sees("the next process")
	}
	m["the mouse on, or off: then it selects text"] = func(b *bench, press func()) {
		press()
		is(b, b.View().MouseMode == tea.MouseModeNone, "the mouse is on")
		press()
		is(b, b.View().MouseMode == tea.MouseModeCellMotion, "the mouse is off")
	}
	m["leave; agents run on"] = func(b *bench, press func()) {
		b.cmds = nil
		press()
		quit := false
		for _, c := range b.cmds {
			quit = quit || isQuit(c)
		}
		is(b, quit, "it goes on")
	}

	m["end it before its next action (SIGTERM)"] = func(b *bench, press func()) {
		press()
		b.run()
		is(b, b.ask == nil && strings.HasPrefix(b.src.last("signal"), "signal ") && strings.Contains(b.src.last("signal"), `"SIGTERM"`), "asked: %s", b.src.last("signal"))
	}
	m["end it and all below it at once (SIGKILL)"] = func(b *bench, press func()) {
		press()
		b.run()
		is(b, b.ask == nil && strings.Contains(b.src.last("signal_tree"), `"SIGKILL"`), "asked: %s", b.src.last("signal_tree"))
	}
	m["end it and all below it"] = func(b *bench, press func()) {
		press()
		b.run()
		is(b, b.ask == nil && strings.Contains(b.src.last("signal_tree"), `"SIGTERM"`), "asked: %s", b.src.last("signal_tree"))
	}
	m["nothing"] = func(b *bench, press func()) {
		press()
		b.run()
		is(b, b.ask == nil && b.src.last("signal") == "" && b.src.last("signal_tree") == "", "something was sent")
	}
	return m
}

// isQuit reports whether a command, or one of a batch, ends the program.
func isQuit(c tea.Cmd) bool {
	if c == nil {
		return false
	}
	switch msg := c().(type) {
	case tea.QuitMsg:
		return true
	case tea.BatchMsg:
		for _, c := range msg {
			if isQuit(c) {
				return true
			}
		}
	}
	return false
}

// rightSide is what the pane shows, line by line.
func rightSide(b *bench) []string {
	x := b.boxes().pane
	return strings.Split(ansi.Strip(b.pane().view(x.w, x.h)), "\n")
}

func TestEachKeyDoesWhatItSays(t *testing.T) {
	proofs := proofs()
	answered := func(method string, v any) func(any) (any, error) { return func(any) (any, error) { return v, nil } }
	try := func(t *testing.T, k binding, name string, setUp func(*bench)) {
		t.Helper()
		proof := proofs[string(k.place)+": "+k.what]
		if proof == nil {
			proof = proofs[k.what]
		}
		if proof == nil {
			t.Fatalf("no proof for %q at %q", k.what, k.place)
		}
		b := benchIn(t, k.place)
		for method, v := range map[string]any{"signal": ipc.SignalResponse{Affected: 1}, "signal_tree": ipc.SignalResponse{Affected: 3}, "steer": ipc.SendResponse{},
			"resume": ipc.ResumeResponse{}, "add_budget": ipc.AddBudgetResponse{}} {
			b.src.answers[method] = answered(method, v)
		}
		if setUp != nil {
			setUp(b)
		}
		proof(b, func() { b.t.Helper(); b.press(name) })
	}
	for _, k := range bindings() {
		for i, name := range k.keys {
			t.Run(fmt.Sprintf("%s/%s", k.place, name), func(t *testing.T) {
				if i > 0 { // the others lead to the same
					soak.Turn(t)
				}
				try(t, k, name, nil)
			})
		}
	}
	family := func(b *bench) {
		b.press("esc")
		b.list.choose(0)
		b.send(nil)
		b.press("K")
	}
	b := benchIn(t, inList)
	family(b)
	for _, k := range b.ask.answers {
		for _, name := range k.keys {
			t.Run(fmt.Sprintf("question/%s", name), func(t *testing.T) { try(t, k, name, family) })
		}
	}
	for _, p := range newPanes(b.env) {
		for _, k := range p.keys() {
			for _, name := range k.keys {
				t.Run(fmt.Sprintf("%s/%s", p.title(), name), func(t *testing.T) { tryInPane(t, p.title(), k, name) })
			}
		}
	}
}

// paneProofs press a key that a pane has of its own, by "title: what". The keys that move in a list of a pane have theirs
// in tryInPane.
var paneProofs = map[string]func(b *bench, key string){
	"Steps: mark the step, and on another one: what is different between the two": func(b *bench, key string) {
		b.does("g", key)
		b.sees("step 1 is marked")
		b.does("down", key)
		b.sees("step 1 (-) and step 2 (+)")
	},
	"Steps: open the step": func(b *bench, key string) {
		b.does("up", key)
		b.sees("step 6 of 7")
	},
}

// tryInPane proves a key that a pane has for itself.
func tryInPane(t *testing.T, title string, k binding, name string) {
	t.Helper()
	b := paneBench(t, title, nil)
	if proof := paneProofs[title+": "+k.what]; proof != nil {
		proof(b, name)
		return
	}
	c := b.picks()
	if c == nil || c.n < 3 || !strings.HasPrefix(k.what, "choose the ") && !strings.HasPrefix(k.what, "a page of the list ") {
		return // TestEachKeyOfAPaneDoesWhatItSays proves it, and fails for one that it does not know
	}
	middle := c.n / 2
	want, ok := map[string]int{"choose the next": middle + 1, "choose the first": 0, "choose the last": c.n - 1, "a page of the list down": c.n - 1, "a page of the list up": 0}[k.what]
	if !ok {
		what := k.what[:strings.LastIndexByte(k.what, ' ')]
		want, ok = map[string]int{"choose the next": middle + 1, "choose the first": 0, "choose the last": c.n - 1}[what]
	}
	if strings.HasPrefix(k.what, "choose the ") && strings.HasSuffix(k.what, " before") {
		want, ok = middle-1, true
	}
	if !ok {
		t.Fatalf("no proof for %q of the pane %s", k.what, title)
	}
	c.choose(middle)
	b.does(name)
	if c = b.picks(); c.at != want {
		t.Errorf("entry %d is chosen, want %d", c.at, want)
	}
}

func TestNoKeyIsTwiceAtOnePlace(t *testing.T) {
	seen := map[string]string{}
	for _, k := range bindings() {
		for _, name := range k.keys {
			at := string(k.place) + "/" + name
			if seen[at] != "" {
				t.Errorf("%s means %q and %q", at, seen[at], k.what)
			}
			seen[at] = k.what
		}
		if len(k.what) > 58 {
			t.Errorf("%q does not fit a line of the help in 80 columns", k.what)
		}
	}
}

func TestWhatIsPastedIsNoKey(t *testing.T) {
	b := benchIn(t, inList)
	b.send(tea.PasteMsg{Content: "Ky\nq"})
	b.run()
	if b.ask != nil || b.src.last("signal") != "" {
		t.Error("pasted text was taken for keys")
	}
	b.press("s")
	b.send(tea.PasteMsg{Content: "first\r\nsecond\x1b[31m\n"})
	if b.input == nil || string(b.input.text) != "first\nsecond\n" {
		t.Fatalf("the input is %q", string(b.input.text))
	}
	b.sees("first⏎second⏎")
	if b.run(); b.src.last("steer") != "" {
		t.Error("a pasted line break has sent it")
	}
}

func TestAnErrorOfAnActionIsSaid(t *testing.T) {
	b := benchIn(t, inList)
	b.src.answers["signal_tree"] = func(any) (any, error) {
		return nil, types.Errorf(types.ErrNotFound, "SignalTree", "", "no process \x1b[31m21")
	}
	b.press("p")
	b.run()
	b.sees("no process 21")
}
