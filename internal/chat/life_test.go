package chat

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

// goes takes the daemon away; comes lets the next one answer, which knows the process as state ("" = there is none yet).
func (d *desk) goes() (comes func(state string)) {
	d.t.Helper()
	back := make(chan tui.Source, 1)
	d.m.o.Back = func(context.Context) (tui.Source, error) { return <-back, nil }
	wait := goAway(d.m)
	return func(state string) {
		d.t.Helper()
		if state != "" {
			d.reply["get_proc_detail"] = detail(state)
		}
		back <- d
		d.does(wait)
	}
}

func TestWhatIsSaidWhileTheDaemonIsAwayIsSentWhenItIsBack(t *testing.T) {
	for _, c := range []struct{ state, method, field string }{
		{"running", "steer", `"text":"and this"`}, {"dead", "resume", `"new_input":"and this"`}, {"suspended", "resume", `"new_input":"and this"`}, {"", "spawn", `"intent":"and this"`},
	} {
		t.Run(c.state, func(t *testing.T) {
			d := newDesk(t)
			if c.state != "" {
				d = begun(t)
			}
			d.reply["resume"] = ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{PID: 8, UUID: someID}}
			comes := d.goes()
			d.says("and this")
			if d.called(c.method) != 0 || !strings.Contains(d.sees(), "and this") {
				t.Fatalf("while it is away: %q\n%s", d.calls, d.sees())
			}
			d.now = d.now.Add(time.Minute)
			comes(c.state)
			if d.called(c.method) != 1 || !strings.Contains(d.calls[len(d.calls)-1]+strings.Join(d.calls, "\n"), c.field) {
				t.Errorf("calls %q", d.calls)
			}
		})
	}
}

// What was begun in one conversation does nothing to the next one.
func TestALateAnswerDoesNotTouchAnotherConversation(t *testing.T) {
	d := newDesk(t)
	late := d.m.send("do it")
	msg := late()
	d.says("/new")
	d.tells(msg)
	if d.m.id != (types.UUID{}) || d.m.phase != none || !strings.Contains(d.sees(), ": /resume "+someID.String()) {
		t.Errorf("phase %q, process %v:\n%s", d.m.phase, d.m.id, d.sees())
	}

	d = newDesk(t)
	d.reply["spawn"] = types.Errorf(types.ErrInvalid, "Spawn", "x", "there is no such model")
	msg = d.m.send("do it")()
	d.says("/new")
	d.types("other")
	d.tells(msg)
	if d.m.phase != none || d.m.ed.value() != "do it\nother" || !strings.Contains(d.sees(), "there is no such model") {
		t.Errorf("phase %q, typed %q:\n%s", d.m.phase, d.m.ed.value(), d.sees())
	}

	d = begun(t)
	d.reply["steer"] = types.Errorf(types.ErrBrokenPipe, "Steer", "", "it has ended")
	msg = d.m.send("and this")()
	d.does(beginAnew(d.m, "a new conversation"))
	d.tells(msg)
	if d.called("resume") != 0 || d.m.phase != none || d.m.ed.value() != "and this" {
		t.Errorf("phase %q, typed %q, calls %q", d.m.phase, d.m.ed.value(), d.calls)
	}
}

func TestWhatCannotBeSentComesBackWithWhatWasSaidBehindIt(t *testing.T) {
	d := newDesk(t)
	d.reply["spawn"] = types.Errorf(types.ErrInvalid, "Spawn", "x", "there is no such model")
	msg := d.m.send("one")()
	d.says("two")
	d.types("three")
	d.tells(msg)
	if got := d.m.ed.value(); got != "one\ntwo\nthree" || len(d.m.queue) != 0 {
		t.Errorf("typed %q, queued %v", got, d.m.queue)
	}
}

func TestWhatIsUnavailableIsNotTakenForADaemonThatIsGone(t *testing.T) {
	for _, left := range []bool{false, true} {
		d := begun(t)
		d.m.o.Left = func(context.Context) bool { return left }
		d.reply["diff_files"] = types.Errorf(types.ErrUnavailable, "DiffFiles", "", "no checkpoints are kept")
		d.says("/diff")
		if d.m.away != left || strings.Contains(d.sees(), "no checkpoints are kept") == left {
			t.Errorf("left %v: away %v\n%s", left, d.m.away, d.sees())
		}
	}
}

func TestRemarksWaitForTheEndOfTheAnswer(t *testing.T) {
	d := begun(t)
	d.hears(ipc.Event{Kind: "step_started", Step: 1}, ipc.Event{Kind: "piece", Name: "output", Answer: 5, Text: "One "},
		ipc.Event{Kind: "log", Name: "warning", Text: "the disk is nearly full"}, ipc.Event{Kind: "piece", Name: "output", Answer: 5, At: 4, Text: "two."})
	if strings.Contains(d.printed(), "nearly full") {
		t.Errorf("in the middle of an answer:\n%s", d.printed())
	}
	d.reply["list_messages"] = ipc.MessagesResponse{Messages: []ipc.ConversationMessage{{N: 1, Role: "user", From: "user", Content: "do it"}, {N: 2, Step: 1, Role: "assistant", Content: "One two."}}}
	d.hears(ipc.Event{Kind: "step_ended", Step: 1})
	said, warned := strings.Index(d.printed(), "One two."), strings.Index(d.printed(), "the disk is nearly full")
	if said < 0 || warned < said {
		t.Errorf("printed:\n%s", d.printed())
	}
}

func TestANoticeOfTheKernelIsNotShownAsSaidByThePerson(t *testing.T) {
	d := begun(t)
	d.reply["list_messages"] = ipc.MessagesResponse{Messages: []ipc.ConversationMessage{{N: 1, Role: "user", From: "user", Content: "do it"}, {N: 2, Step: 1, Role: "user", From: "system", Content: "[Your last answer was empty.]"}}}
	d.hears(ipc.Event{Kind: "step_ended", Step: 1})
	if text := d.printed(); !strings.Contains(text, "⎿ a notice: [Your last answer was empty.]") || strings.Contains(text, "› [Your") {
		t.Errorf("printed:\n%s", text)
	}
}

func TestWhatIsHeldBackIsBoundedAndComplete(t *testing.T) {
	d := begun(t)
	d.m.hold = true
	word := "words of an answer "
	for i := range 5 * maxHeld {
		speak(d.m, &ipc.Event{Kind: "piece", Name: "output", UUID: someID, Answer: 1, At: i * len(word), Text: word})
	}
	if n := len(d.m.held); n != 1 {
		t.Errorf("%d events are held", n)
	}
	releaseHeld(d.m)
	if n := len(d.m.said.text.String()); n != 5*maxHeld*len(word) {
		t.Errorf("%d bytes were heard of %d", n, 5*maxHeld*len(word))
	}
}

func TestWhoComesToASuspendedProcessSeesWhyAndTheQuestion(t *testing.T) {
	d := newDesk(t)
	s := detail("suspended")
	s.WaitKind, s.Wait = types.SuspendAsk, "ask: shell rm -rf x"
	d.reply["get_proc_detail"] = s
	k := ipc.Ask{Number: 3, PID: 7, UUID: someID, Tool: "shell", Path: "/dev/shell", Text: "shell rm -rf x", Input: json.RawMessage(`{"command":"rm -rf x"}`), Rule: "shell rm *"}
	d.reply["asks"] = ipc.AsksResponse{Asks: []ipc.Ask{k}}
	d.says("/resume " + someID.String())
	d.now = d.now.Add(time.Second)
	d.tells(tickMsg{})
	if text := d.printed() + d.sees(); !strings.Contains(text, "suspended: ask: shell rm -rf x") || !strings.Contains(text, "it wants to call shell") {
		t.Errorf("shown:\n%s", text)
	}
	s.Exit, s.State = &types.ExitStatus{Code: types.ExitError, Reason: "the model is gone"}, "dead"
	d = newDesk(t)
	d.reply["get_proc_detail"] = s
	d.says("/resume " + someID.String())
	if !strings.Contains(d.printed(), "failed: the model is gone") {
		t.Errorf("shown:\n%s", d.printed())
	}
}

// A stream that ends at once is not opened again at once.
func TestAStreamThatFailsIsOpenedAgainAfterAMoment(t *testing.T) {
	d := begun(t)
	waits := 0
	d.m.after = func(time.Duration, tea.Msg) tea.Cmd { waits++; return nil }
	n := d.m.ev.n
	d.tells(eventsMsg{n: n, err: io.EOF})
	if d.m.ev.n != n+1 || d.m.ev.open || waits == 0 {
		t.Errorf("stream %d after %d, open %v, %d waits", d.m.ev.n, n, d.m.ev.open, waits)
	}
	d.now = d.now.Add(2 * reopenAfter)
	d.does(d.m.settle())
	if !d.m.ev.open {
		t.Error("it is not opened again")
	}
}

func TestUndoGivesBackWhatWasTypedAndNotTheFile(t *testing.T) {
	d := newDesk(t)
	if err := os.WriteFile(filepath.Join(d.m.o.Dir, "a.txt"), []byte("the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const said = "look at @a.txt\n\n[file this in your head]"
	text, err := inlinedText(d.m, said)
	if err != nil || !strings.Contains(text, "the file") || typedOf(text) != said {
		t.Errorf("%q is %q, %v", text, typedOf(text), err)
	}
	if got := typedOf("[This process is a fork of x.]\n\nnext\n\nWhat follows was handed over with this task. y"); got != "next" {
		t.Errorf("%q", got)
	}
}

// A pipe is not waited for, and a device is not read, also where it takes the place of a file that was named a moment ago.
func TestOnlyRegularFilesAreGivenToTheAgent(t *testing.T) {
	d := newDesk(t)
	pipe := filepath.Join(d.m.o.Dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Second, func() { _ = f.Close() }) // so that who waits ends
	began := time.Now()
	for _, name := range []string{pipe, "/dev/zero"} {
		if text, err := contentsOf(d.m, name); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
		if isMedia(name) {
			t.Errorf("%s is an image", name)
		}
	}
	if time.Since(began) > 9*time.Second {
		t.Error("it waits")
	}
}

func TestACallIsNotChangedByWhatCannotBeShown(t *testing.T) {
	for text, ok := range map[string]bool{"ls x": true, "ls \u001b[31m": false, strings.Repeat("x", maxRunes+1): false} {
		d := begun(t)
		in, _ := json.Marshal(map[string]string{"command": text})
		d.m.ask = &asking{Ask: ipc.Ask{Number: 3, PID: 7, UUID: someID, Tool: "shell", Path: "/dev/shell", Input: in}, shown: true}
		d.key("e")
		if got := d.m.ask.mode == askEdit; got != ok {
			t.Errorf("%.20q: %v", text, got)
		}
	}
}

// What a failed change would have been is not shown as if it were done.
func TestAFailedChangeShowsWhyAndNoDifference(t *testing.T) {
	m := begun(t).m
	k := openCall{name: "write_file", input: `{"path":"a","content":"new\n"}`}
	if got := strings.Join(foldedLines(m, &k, "the file exists and you have not read it", true), "\n"); !strings.Contains(got, "you have not read it") || strings.Contains(got, "+new") {
		t.Errorf("failed:\n%s", got)
	}
	if got := strings.Join(foldedLines(m, &k, "written", false), "\n"); !strings.Contains(got, "+new") {
		t.Errorf("done:\n%s", got)
	}
	if got := foldedLines(m, &openCall{name: "shell"}, "1\n2\n3\n4", false); len(got) != 4 || strings.Contains(got[0], "more") {
		t.Errorf("%q", got)
	}
}
