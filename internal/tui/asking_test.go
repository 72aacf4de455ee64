package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/permit"
	"rnix/ipc"
	"rnix/types"
)

// askOf is an ask about process n.
func askOf(n int, number uint64, command string) ipc.Ask {
	in, _ := json.Marshal(map[string]any{"command": command, "timeout": 5}) // strings always can
	return ipc.Ask{Number: number, PID: types.PID(n), UUID: uuid(n), Name: fmt.Sprintf("agent%02d", n), Lineage: []ipc.Kin{{PID: 1, Name: "lead"}, {PID: 2}},
		Tool: "shell", Path: permit.ShellPath, Text: "shell " + command, Input: in, Rule: "shell echo *", Since: begin}
}

// open is what the fake daemon is asked about.
type open struct{ asks []ipc.Ask }

// asksAbout has a process wait for an answer to so many calls.
func asksAbout(b *bench, n, many int) *open {
	b.t.Helper()
	o := &open{}
	for i := range many {
		o.asks = append(o.asks, askOf(n, uint64(i+1), fmt.Sprintf("echo %d%s", i+1, strings.Repeat("\nline", 200))))
	}
	b.src.answers["asks"] = func(req any) (any, error) {
		r := ipc.AsksResponse{Asks: []ipc.Ask{}}
		for _, a := range o.asks {
			if a.UUID.String() == req.(ipc.AsksRequest).Target {
				r.Asks = append(r.Asks, a)
			}
		}
		return r, nil
	}
	b.src.answers["answer"] = func(req any) (any, error) {
		r := req.(ipc.AnswerRequest)
		for i, a := range o.asks {
			if a.Number == r.Number {
				o.asks = append(o.asks[:i:i], o.asks[i+1:]...)
				resp := ipc.AnswerResponse{Ask: a, Allowed: r.Allow}
				if r.For != "" || r.ForMs > 0 {
					resp.Grant = &ipc.Grant{Grant: permit.Grant{Scope: r.For}, Text: a.Text, PID: a.PID}
				}
				return resp, nil
			}
		}
		return nil, types.Errorf(types.ErrNotFound, "Answer", "1", "it was answered already, or its process has ended")
	}
	o.wait(b, n)
	return o
}

// wait tells of a process that waits for an answer, anew.
func (o *open) wait(b *bench, n int) {
	b.t.Helper()
	p := proc(n, 0, fmt.Sprintf("agent%02d", n))
	p.Wait, p.WaitKind = "ask: "+o.asks[0].Text, types.SuspendAsk
	p.WaitSince = begin
	b.frame(false, p)
}

// askProofs are those of the keys that answer.
func askProofs(m map[string]func(b *bench, press func()), is func(b *bench, ok bool, format string, args ...any)) {
	answers := func(what string, keys []string, want ...string) {
		m[what] = func(b *bench, press func()) {
			press()
			b.press(keys...)
			b.run()
			got := b.src.last("answer")
			for _, w := range append(want, `"number":1`) {
				is(b, strings.Contains(got, w), "asked: %s; it lacks %s", got, w)
			}
			is(b, b.asking == nil, "what was asked is still in sight")
		}
	}
	answers("allow this call, or answer a question", nil, `"allow":true`)
	answers("deny it, with a reason or without", []string{"n", "o", "enter"}, `"allow":false`, `"because":"no"`)
	answers("allow it, and the same again by this process", nil, `"allow":true`, `"for":"process"`)
	answers("allow it, and the same again by its family", nil, `"allow":true`, `"for":"family"`)
	answers("allow it, and the same again by its family for an hour", nil, `"allow":true`, `"for_ms":3600000`)
	answers("change what runs, and allow that", []string{"ctrl+u", "l", "s", "enter"}, `"allow":true`, `"command":"ls"`, `"timeout":5`)
	m["the next call of this process that waits"] = func(b *bench, press func()) {
		press()
		is(b, b.asking.cur.Number == 2, "ask %d is shown", b.asking.cur.Number)
		b.sees("ask 2 (2 of 3)")
		b.press("n", "n")
		is(b, b.asking.cur.Number == 1, "ask %d is shown", b.asking.cur.Number)
	}
	m["back, without an answer"] = func(b *bench, press func()) {
		press()
		b.run()
		is(b, b.asking == nil && b.src.last("answer") == "", "asked: %s", b.src.last("answer"))
	}
	scrolls := func(what string, want func(l *long, was place2) bool) {
		m[string(inAsk)+": "+what] = func(b *bench, press func()) {
			l := b.asking.long
			was := l.at
			press()
			b.screenText()
			is(b, want(l, was), "from %v to %v", was, l.at)
		}
	}
	scrolls("a line down", func(l *long, was place2) bool { return l.at.part == was.part+1 })
	scrolls("a line up", func(l *long, was place2) bool { return l.at.part == was.part-1 })
	scrolls("a page down", func(l *long, was place2) bool { return l.at.part == was.part+l.h-1 })
	scrolls("a page up", func(l *long, was place2) bool { return l.at.part == was.part-l.h+1 })
	scrolls("the beginning", func(l *long, _ place2) bool { return l.at == place2{} })
	scrolls("the end", func(l *long, _ place2) bool { return l.atEnd() })
	m["answer what it asks, or go to the next one that asks"] = func(b *bench, press func()) {
		asksAbout(b, 9, 1)
		press() // 21 asks nothing
		is(b, b.asking == nil && b.chosen().PID == 9, "PID %s is chosen", b.chosen().PID)
		press()
		b.run()
		is(b, b.asking != nil && b.asking.cur != nil, "nothing is shown")
		b.sees("PID 9 (agent09) wants to call shell")
	}
}

// asksBench is a program of 80x24 in which what is asked about process 1 is in sight.
func asksBench(t *testing.T, change func(*open)) (*bench, *open) {
	t.Helper()
	b := newBench(t, true, proc(1, 0, "lead"), proc(7, 1, "agent07"))
	b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	o := asksAbout(b, 7, 1)
	if change != nil {
		change(o)
	}
	b.press("A")
	b.run()
	if b.asking == nil {
		b.press("A")
		b.run()
	}
	return b, o
}

func TestAProcessThatAsksStandsOut(t *testing.T) {
	b := newBench(t, true, proc(1, 0, "lead"), proc(7, 1, "agent07"))
	b.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	b.seesNot("asks you")
	asksAbout(b, 7, 1)
	b.sees("1 asks you (A)")
	b.sees("? agent07")
	b.sees("7 ask     7/20 shell echo 1")
	p := proc(7, 1, "agent07")
	b.frame(false, p)
	b.seesNot("asks you")
	b.press("A")
	b.sees("no process in this list asks you anything")
}

func TestAllThatIsAskedIsSeenIn80Columns(t *testing.T) {
	b, _ := asksBench(t, nil)
	for _, want := range []string{"PID 7 (agent07) wants to call shell", "below PID 1 lead > PID 2", "ask 1", "rule shell echo *", "echo 1", "y allow", "d deny", "p allow process", "f allow family"} {
		b.sees(want)
	}
	for i, line := range strings.Split(b.screenText(), "\n") {
		if n := b.env.t.cells(line); n > 80 {
			t.Errorf("line %d has %d cells", i, n)
		}
	}
}

func TestAHostileCommandIsShownAsItIs(t *testing.T) {
	command := "ls \x1b[2J\x1b]8;;javascript:1\x07 \u202egnp.exe\u200b <script> " + strings.Repeat("x", 200<<10) + "\nrm -rf ~"
	b, _ := asksBench(t, func(o *open) { o.asks[0] = askOf(7, 1, command) })
	s, _ := b.draw()
	if strings.Contains(s, "\x1b[2J") || strings.Contains(s, "\x1b]8") {
		t.Error("the terminal obeys what is asked")
	}
	b.sees("<script>")
	b.press("G")
	b.sees(`rm -rf ~"`)
	all := askText(b.env.t, b.asking.cur)
	for _, want := range []string{`\x1b[2J`, `\u202e`, `\u200b`, "\nrm -rf ~\n", "with what is not shown above"} {
		if !strings.Contains(strings.ToLower(all), strings.ToLower(want)) {
			t.Errorf("%q is not in what is shown", want)
		}
	}
	file := ipc.Ask{Tool: "write_file", Path: "/dev/workspace", Text: "write_file a", Input: json.RawMessage("{\"path\":\"a\u202eb\u200b\",\"content\":\"\\u001b[2J\"}")}
	for _, want := range []string{`\u202e`, `\u200b`, `\u001b[2J`, "INPUT"} {
		if got := askText(b.env.t, &file); !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

// What was answered elsewhere cannot be answered, and no key answers what came into its place.
func TestWhatIsAnsweredElsewhereIsSaid(t *testing.T) {
	b, o := asksBench(t, nil)
	o.asks = []ipc.Ask{askOf(7, 2, "echo another")}
	o.wait(b, 7)
	b.now = b.now.Add(askEvery)
	b.send(tickMsg{})
	b.run()
	for _, w := range b.waits { // a question that had to wait
		b.send(w.msg)
	}
	b.run()
	b.sees("it was answered elsewhere; n shows the next one")
	b.sees("echo 1")
	b.press("y")
	b.run()
	if got := b.src.last("answer"); got != "" {
		t.Fatalf("asked: %s", got)
	}
	b.press("n")
	b.sees("echo another")
	b.press("y")
	b.run()
	if got := b.src.last("answer"); !strings.Contains(got, `"number":2`) {
		t.Errorf("asked: %s", got)
	}
}

func TestAProcessThatEndsWhileItAsksIsSaid(t *testing.T) {
	b, o := asksBench(t, nil)
	o.asks = nil
	p := proc(7, 1, "agent07")
	p.PID = 70
	p.State, p.Exit = stateDead, &types.ExitStatus{Code: 4}
	b.now = b.now.Add(askEvery)
	b.frame(false, p)
	b.run()
	for _, w := range b.waits {
		b.send(w.msg)
	}
	b.run()
	b.sees("its process has ended")
	b.sees("PID 70 (agent07) wants to call")
	b.press("d")
	if b.input != nil {
		t.Error("a reason is asked for")
	}
	b.press("esc", "A")
	b.sees("no process in this list asks you anything")
}

func TestARefusedAnswerStays(t *testing.T) {
	b, _ := asksBench(t, nil)
	b.src.answers["answer"] = func(any) (any, error) {
		return nil, types.Errorf(types.ErrInvalid, "Answer", "1", "it cannot be")
	}
	b.press("y")
	b.run()
	b.sees("it cannot be")
	b.sees("wants to call shell")
	b.press("e", "ctrl+u", "enter")
	b.sees("the command is empty")
}
