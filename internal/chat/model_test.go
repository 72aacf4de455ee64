package chat

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

// desk is a conversation without a terminal and without a daemon: answers stand in a table, and commands are run at once.
type desk struct {
	t     *testing.T
	m     *Model
	now   time.Time
	calls []string
	reply map[string]any // by method; an error is one
	put   []string       // what was printed
}

func (d *desk) Call(_ context.Context, method string, req, resp any) error {
	raw, err := json.Marshal(req)
	if err != nil {
		d.t.Fatal(err)
	}
	d.calls = append(d.calls, method+" "+string(raw))
	switch r := d.reply[method].(type) {
	case nil:
		return nil
	case error:
		return r
	default:
		raw, err := json.Marshal(r)
		if err != nil {
			d.t.Fatal(err)
		}
		return json.Unmarshal(raw, resp)
	}
}

// Open is a stream that says nothing; its events are given to hears.
func (d *desk) Open(context.Context, string, any) (tui.Stream, error) { return silent{}, nil }

type silent struct{}

func (silent) Next(any) (*ipc.Missed, error) { return nil, io.EOF }
func (silent) Close() error                  { return nil }

var someID = types.NewUUID()

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, now: time.Unix(1e9, 0), reply: map[string]any{"spawn": ipc.SpawnResponse{PID: 7, UUID: someID, Provider: "p", Model: "m"}}}
	d.m = New(t.Context(), Options{Source: d, Theme: &tui.Theme{Bare: true}, Dir: t.TempDir()})
	d.m.now = func() time.Time { return d.now }
	d.m.after = func(time.Duration, tea.Msg) tea.Cmd { return nil }
	return d
}

// does runs a command and what follows from it, but no streams.
func (d *desk) does(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			d.does(c)
		}
	case eventsMsg:
	case tea.QuitMsg:
		d.put = append(d.put, "(left)")
	default:
		d.tells(msg)
	}
}

func (d *desk) tells(msg tea.Msg) {
	d.does(d.m.take(msg))
	showDue(d.m)
	d.put = append(d.put, d.m.out.lines...)
	d.m.out.lines = nil
}

// hears is what the stream says.
func (d *desk) hears(events ...ipc.Event) { d.tells(eventsOf(d, events...)) }

func eventsOf(d *desk, events ...ipc.Event) tea.Msg {
	for i := range events {
		if events[i].UUID == (types.UUID{}) {
			events[i].UUID = d.m.id
		}
	}
	d.m.ev.open = true
	more := make(chan heard)
	close(more)
	return eventsMsg{n: d.m.ev.n, got: events, more: more}
}

func (d *desk) types(text string) { d.tells(tea.PasteMsg{Content: text}) }

func (d *desk) key(name string) {
	k := map[string]tea.KeyPressMsg{"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+o": {Code: 'o', Mod: tea.ModCtrl}, "tab": {Code: tea.KeyTab}}
	msg, ok := k[name]
	if !ok {
		msg = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
	}
	d.tells(msg)
}

func (d *desk) says(text string) { d.types(text); d.key("enter") }

func (d *desk) sees() string { lines, _ := drawAll(d.m); return strings.Join(lines, "\n") }

func (d *desk) printed() string { return strings.Join(d.put, "\n") }

func (d *desk) called(method string) (n int) {
	for _, c := range d.calls {
		if strings.HasPrefix(c, method+" ") {
			n++
		}
	}
	return n
}

func detail(state string) ipc.ProcDetail {
	d := ipc.ProcDetail{}
	d.UUID, d.PID, d.State, d.Provider, d.Model = someID, 7, state, "p", "m"
	if state == "dead" {
		d.Exit = &types.ExitStatus{Reason: types.ReasonCompleted}
	}
	return d
}

// begun is a desk at which an agent works.
func begun(t *testing.T) *desk {
	d := newDesk(t)
	d.reply["get_proc_detail"] = detail("running")
	d.says("do it")
	if d.m.phase != working || d.called("spawn") != 1 {
		t.Fatalf("phase %q after %q", d.m.phase, d.calls)
	}
	return d
}

func TestAnAnswerIsThereOnceHoweverItComes(t *testing.T) {
	const text = "One.\n\nTwo **three**.\n"
	say := func(at int, s string) ipc.Event {
		return ipc.Event{Kind: "piece", Name: "output", Answer: 5, At: at, Text: s}
	}
	answer := ipc.MessagesResponse{Messages: []ipc.ConversationMessage{{N: 1, Role: "user", From: "user", Content: "do it"}, {N: 2, Step: 1, Role: "assistant", Content: text}}}
	for name, events := range map[string][]ipc.Event{
		"whole": {say(0, text)}, "pieces": {say(0, "One."), say(4, "\n\nTwo **th"), say(14, "ree**.\n")}, "again": {say(0, "One.\n\n"), say(0, text)}, "half": {say(0, "One.\n\nTw")}, "none": nil,
		"line": {say(0, "On"), {Kind: "log", Name: "output", Answer: 5, At: 0, Total: 5, Text: "One."}, say(5, "\nTwo **three**.\n")},
	} {
		t.Run(name, func(t *testing.T) {
			d := begun(t)
			d.hears(append([]ipc.Event{{Kind: "step_started", Step: 1}}, events...)...)
			d.reply["list_messages"] = answer
			d.hears(ipc.Event{Kind: "step_ended", Step: 1})
			d.hears(say(0, text)) // late
			for _, want := range []string{"› do it", "One.", "Two three."} {
				if n := strings.Count(d.printed(), want); n != 1 {
					t.Errorf("%q is there %d times in:\n%s", want, n, d.printed())
				}
			}
		})
	}
}

func TestAKeyForAMessageAnswersNothing(t *testing.T) {
	d := begun(t)
	k := ipc.Ask{Number: 3, PID: 7, UUID: someID, Tool: "shell", Path: "/dev/shell", Text: "shell rm -rf x", Input: json.RawMessage(`{"command":"rm -rf x"}`), Rule: "shell rm *"}
	d.reply["asks"] = ipc.AsksResponse{Asks: []ipc.Ask{k}}
	d.hears(ipc.Event{Kind: "asked", Args: "3"})
	d.key("y") // was on its way to a message
	d.now = d.now.Add(time.Second)
	d.tells(tickMsg{})
	if d.m.ask.shown || d.called("answer") != 0 {
		t.Fatal("it is shown while something is typed")
	}
	d.m.ed.set("")
	d.tells(tickMsg{})
	if text := d.sees(); !strings.Contains(text, "rm -rf x") || !strings.Contains(text, "y allow") {
		t.Fatalf("the question is not shown:\n%s", text)
	}
	d.types("y\n")
	if d.called("answer") != 0 {
		t.Fatal("a paste answers")
	}
	d.reply["answer"] = ipc.AnswerResponse{Ask: k, Allowed: true}
	d.reply["asks"] = ipc.AsksResponse{}
	d.key("y")
	if d.called("answer") != 1 || d.m.ask != nil || !strings.Contains(d.printed(), "allowed: shell rm -rf x") {
		t.Errorf("after y: %q, %s", d.calls, d.printed())
	}
}

func TestAChangedCommandIsAllowedInstead(t *testing.T) {
	a := asking{Ask: ipc.Ask{Path: "/dev/shell", Input: json.RawMessage(`{"command":"rm -rf x","timeout_ms":5}`)}}
	if in, err := a.changed("ls x"); err != nil || string(in) != `{"command":"ls x","timeout_ms":5}` {
		t.Errorf("changed: %s, %v", in, err)
	}
	if _, err := a.changed(""); err == nil {
		t.Error("an empty command is taken")
	}
	a.Path = "/dev/fs"
	if _, err := a.changed("[1]"); err == nil {
		t.Error("what is no object is taken")
	}
}

func TestAQuestionOfAnAgentIsAnswered(t *testing.T) {
	d := begun(t)
	k := ipc.Ask{Number: 4, PID: 7, UUID: someID, Tool: "ask", Question: &ipc.Question{Text: "Which port?", Choices: []string{"80", "8080"}, Default: "80"}}
	d.reply["asks"] = ipc.AsksResponse{Asks: []ipc.Ask{k}}
	d.hears(ipc.Event{Kind: "asked", Args: "4"})
	d.now = d.now.Add(time.Second)
	d.tells(tickMsg{})
	if text := d.sees(); !strings.Contains(text, "Which port?") || !strings.Contains(text, "2 8080") {
		t.Fatalf("the question is not shown:\n%s", text)
	}
	d.reply["answer"] = ipc.AnswerResponse{Ask: k, Allowed: true, Text: "8080"}
	d.reply["asks"] = ipc.AsksResponse{}
	d.key("2")
	d.key("enter")
	if d.called("answer") != 1 || !strings.Contains(strings.Join(d.calls, "\n"), `"text":"2"`) {
		t.Errorf("calls: %q", d.calls)
	}
}

func TestWhatCannotBeSentIsNotLost(t *testing.T) {
	d := newDesk(t)
	d.reply["spawn"] = types.Errorf(types.ErrInvalid, "Spawn", "x", "there is no such model")
	d.says("my long message")
	if d.m.ed.value() != "my long message" || !strings.Contains(d.sees(), "there is no such model") {
		t.Errorf("typed %q:\n%s", d.m.ed.value(), d.sees())
	}
	d = begun(t)
	d.reply["steer"] = types.Errorf(types.ErrBrokenPipe, "Steer", "", "it has ended")
	d.reply["resume"] = ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{PID: 8, UUID: someID}}
	d.says("and this")
	if d.called("steer") != 1 || d.called("resume") != 1 || !strings.Contains(d.calls[len(d.calls)-2]+d.calls[len(d.calls)-1]+strings.Join(d.calls, " "), `"new_input":"and this"`) {
		t.Errorf("calls: %q", d.calls)
	}
}

func TestCtrlCLeavesTheSecondTime(t *testing.T) {
	d := begun(t)
	d.types("half a message")
	d.key("ctrl+c")
	if !d.m.ed.empty() || !strings.Contains(d.sees(), "Ctrl+C again leaves; the agent works on") {
		t.Errorf("after one Ctrl+C:\n%s", d.sees())
	}
	d.now = d.now.Add(5 * time.Second)
	d.key("ctrl+c")
	if strings.Contains(d.printed(), "(left)") {
		t.Fatal("it leaves although it was long ago")
	}
	d.key("ctrl+c")
	if !strings.Contains(d.printed(), "(left)") || d.called("signal_tree") != 0 {
		t.Errorf("printed %q, calls %q", d.put, d.calls)
	}
}

func TestAnOldLookDoesNotEndANewRun(t *testing.T) {
	d := begun(t)
	d.m.phase = ended
	stale := detail("dead")
	late := d.m.settle()
	d.reply["get_proc_detail"] = stale
	msg := late() // asked before the next run
	d.reply["resume"] = ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{PID: 8, UUID: someID}}
	d.reply["get_proc_detail"] = detail("running")
	d.says("next")
	d.tells(msg)
	if d.m.phase != working {
		t.Errorf("phase %q", d.m.phase)
	}
}

func TestCommandsThatCannotBeMeantAreRefused(t *testing.T) {
	d := newDesk(t)
	for line, want := range map[string]string{"/undo": "there is no conversation yet", "/budgte": "did you mean /budget", "/budget 5": "there is no conversation yet", "/diff": "there is no conversation"} {
		d.says(line)
		if !strings.Contains(d.sees(), want) {
			t.Errorf("%s:\n%s", line, d.sees())
		}
		d.m.ed.set("")
	}
	d = begun(t)
	for line, want := range map[string]string{"/undo": "interrupt it first", "/budget lots": "invalid amount lots", "/budget 0.4": "dollars such as $0.4", "/fork": "interrupt it first"} {
		d.says(line)
		if !strings.Contains(d.sees(), want) {
			t.Errorf("%s:\n%s", line, d.sees())
		}
		d.m.ed.set("")
	}
	if d.called("spawn") != 1 || d.called("steer") != 0 {
		t.Errorf("a command was sent to the agent: %q", d.calls)
	}
	d.says("/etc/hosts is a path")
	if d.called("steer") != 1 {
		t.Error("a path is not sent")
	}
}

func TestTheLiveRegionFitsTheTerminal(t *testing.T) {
	d := begun(t)
	d.hears(ipc.Event{Kind: "step_started", Step: 1}, ipc.Event{Kind: "piece", Name: "output", Answer: 1, Text: strings.Repeat("word ", 1000)})
	d.m.ed.set(strings.Repeat("typed ", 100))
	for _, size := range [][2]int{{80, 24}, {20, 6}, {200, 60}, {30, 8}} {
		d.tells(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		lines, cursor := drawAll(d.m)
		if len(lines) >= size[1] || cursor == nil || cursor.Y >= len(lines) || cursor.X >= size[0] {
			t.Errorf("%v: %d lines, cursor %v", size, len(lines), cursor)
		}
		for _, l := range lines {
			if n := tui.Cells(d.m.t, strip(l)); n > size[0] {
				t.Errorf("%v: a line of %d cells: %q", size, n, l)
			}
		}
	}
}

// A call that is in hand when a budget ends has no result yet; it is shown when it has.
func TestACallOfASuspendedProcessIsShownWithItsResult(t *testing.T) {
	d := begun(t)
	msgs := []ipc.ConversationMessage{{N: 1, Role: "user", From: "user", Content: "do it"}, {N: 2, Step: 1, Role: "assistant", Content: "I look.", ToolCalls: []ipc.ConversationCall{{ID: "c", Name: "shell", Input: `{"command":"seq 9"}`}}}}
	d.reply["list_messages"] = ipc.MessagesResponse{Messages: msgs}
	s := detail("suspended")
	s.WaitKind, s.Wait = types.SuspendBudget, "budget: 9 of 8 tokens are used"
	d.reply["get_proc_detail"] = s
	d.hears(ipc.Event{Kind: "exited"})
	if text := d.printed(); strings.Contains(text, "seq 9") || !strings.Contains(text, "suspended: budget: 9 of 8 tokens are used; give it more with /budget") {
		t.Errorf("printed:\n%s", text)
	}
	d.reply["get_proc_detail"] = detail("running")
	d.tells(tickMsg{})
	d.reply["list_messages"] = ipc.MessagesResponse{Messages: []ipc.ConversationMessage{{N: 3, Step: 1, Role: "tool", ToolCallID: "c", Content: "1\n2\n3\n4\n5\n[exit code 2, 3 s]\n"}}}
	d.hears(ipc.Event{Kind: "step_ended", Step: 1})
	if text := d.printed(); !strings.Contains(text, "● shell seq 9  exit 2 3 s\n  │ … 2 lines more (Ctrl+O)\n  │ 3") {
		t.Errorf("printed:\n%s", text)
	}
}

// BenchmarkPiece is what a piece of an answer costs from the stream to the lines that are drawn, in the middle of a long paragraph.
func BenchmarkPiece(b *testing.B) {
	m := New(b.Context(), Options{Theme: &tui.Theme{Color: true}})
	m.id, m.phase = someID, working
	at := 0
	for b.Loop() {
		const text = "some words of an answer "
		speak(m, &ipc.Event{Kind: "piece", Name: "output", UUID: someID, Answer: 1, At: at, Text: text})
		at += len(text)
		_ = m.View()
		m.out.lines = nil
	}
}
