package cli

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/event"
	"rnix/internal/permit"
	"rnix/ipc"
	"rnix/types"
)

func TestATypedLineAnswersAnAsk(t *testing.T) {
	call, question := &ipc.Ask{Number: 3}, &ipc.Ask{Number: 3, Question: &ipc.Question{Text: "Which?", Default: "SQLite"}}
	for _, c := range []struct {
		ask  *ipc.Ask
		line string
		want ipc.AnswerRequest
		ok   bool
	}{
		{call, "y", ipc.AnswerRequest{Allow: true}, true},
		{call, "YES", ipc.AnswerRequest{Allow: true}, true},
		{call, "n", ipc.AnswerRequest{}, true},
		{call, "no not on a Friday", ipc.AnswerRequest{Because: "not on a Friday"}, true},
		{call, "a", ipc.AnswerRequest{Allow: true, For: permit.ForProcess}, true},
		{call, "f", ipc.AnswerRequest{Allow: true, For: permit.ForFamily}, true},
		{call, "", ipc.AnswerRequest{}, false},
		{call, "yes but", ipc.AnswerRequest{Allow: true}, false}, // what is meant is not known
		{call, "ls", ipc.AnswerRequest{}, false},
		{question, "2", ipc.AnswerRequest{Allow: true, Text: "2"}, true},
		{question, "n", ipc.AnswerRequest{Allow: true, Text: "n"}, true},
		{question, "", ipc.AnswerRequest{Allow: true, Text: "SQLite"}, true},
		{question, strings.Repeat("x", permit.MaxAnswer+1), ipc.AnswerRequest{Allow: true, Text: strings.Repeat("x", permit.MaxAnswer+1)}, false},
	} {
		c.want.Number = 3
		got, ok := reply(c.ask, c.line)
		if ok != c.ok || got.Allow != c.want.Allow || got.For != c.want.For || got.Because != c.want.Because || got.Text != c.want.Text || got.Number != 3 {
			t.Errorf("%.20q: %+v %t, want %+v %t", c.line, got, ok, c.want, c.ok)
		}
	}
}

func TestAnUnknownPriceIsExplainedOnceForEachModel(t *testing.T) {
	var procs []ipc.Proc
	for _, m := range []string{"b", "a", "b", "c", "d"} {
		procs = append(procs, ipc.Proc{ProcStatus: types.ProcStatus{Provider: "p", Model: "last", Unpriced: 7}, UnpricedModels: []string{"p/" + m}})
	}
	procs = append(procs, ipc.Proc{ProcStatus: types.ProcStatus{Provider: "p", Model: "known", TokensUsed: 7}})
	var err strings.Builder
	out := newOutput(&strings.Builder{}, &err, func(string) (string, bool) { return "", false })
	sayUnpriced(out, procs)
	sayUnpriced(out, procs[5:])
	if want := "cost ?: no price is known for p/a, p/b, p/c and 1 more; set it in prices.yaml, as this shows: rnix help cost\n"; err.String() != want {
		t.Errorf("it says %q", err.String())
	}
}

func TestATextIsFoundByItsBeginningInALaterList(t *testing.T) {
	long := strings.Repeat("word ", 200)
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"x", "x", true}, {"x", "y", false}, {long, long[:512] + "… (1000 bytes)", true}, {long[:512] + "… (1000 bytes)", long, true},
		{long, long[:512] + "… (1001 bytes)", false}, {long + "!", long[:512] + "… (1000 bytes)", false}, {long, "other … (1000 bytes)", false},
	} {
		if got := sameText(c.a, c.b); got != c.want {
			t.Errorf("%.20q and %.20q: %t", c.a, c.b, got)
		}
	}
}

// asking is a prompter that shows an ask.
func asking(t *testing.T) (*prompter, *strings.Builder) {
	t.Helper()
	var err strings.Builder
	out := newOutput(&strings.Builder{}, &err, func(string) (string, bool) { return "", false })
	p := &prompter{out: out, view: newView(out, ipc.SpawnResponse{PID: 1}), open: &ipc.Ask{Number: 3}, shown: time.Now(), lines: make(chan typedLine), want: make(chan struct{}, 1)}
	p.view.prompts = true
	return p, &err
}

// Nothing here has a daemon: an answer that is sent ends the test.
func TestWhatIsNoAnswerIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		line typedLine
		says string
	}{
		"typed for the ask before": {typedLine{text: "y", at: time.Now().Add(-time.Minute)}, `"y" was typed before this ask was shown`},
		"no whole line":            {typedLine{text: "y", at: time.Now().Add(time.Minute), wrong: "a line ends with Enter"}, "a line ends with Enter"},
		"no word that is known":    {typedLine{text: "ls", at: time.Now().Add(time.Minute)}, `"ls" is no answer, and nothing was answered`},
	} {
		p, said := asking(t)
		p.answer(t.Context(), c.line)
		if p.open == nil || !p.wanted || !strings.Contains(said.String(), c.says) {
			t.Errorf("%s: open %v, another line is wanted: %t; it says %q", name, p.open, p.wanted, said)
		}
	}
	p, _ := asking(t)
	p.answer(t.Context(), typedLine{end: true})
	if p.view.prompts || p.wanted {
		t.Error("after the end of the input more is wanted")
	}
}

// After a gap in the events the asks are those that the daemon has: none is missed, none is shown twice, and one that was answered is closed.
func TestAsksAreReadAnewAfterAGap(t *testing.T) {
	own, other := types.NewUUID(), types.NewUUID()
	p, _ := asking(t)
	p.queue = []uint64{4, 5}
	below := ipc.Ask{Number: 6, UUID: types.NewUUID(), Lineage: []ipc.Kin{{UUID: own}}}
	all := []ipc.Ask{{Number: 3, UUID: own}, {Number: 5, UUID: own}, below, {Number: 7, UUID: other}}
	p.waiting(all, own)
	if p.open == nil || !slices.Equal(p.queue, []uint64{5, 6}) {
		t.Errorf("open %v, and %v wait", p.open, p.queue)
	}
	p.event(t.Context(), &ipc.Event{Kind: event.Asked, Args: "6"})
	if !slices.Equal(p.queue, []uint64{5, 6}) {
		t.Errorf("an ask is shown twice: %v", p.queue)
	}
	p.waiting(all[3:], own)
	if p.open != nil || len(p.queue) != 0 {
		t.Errorf("what was answered meanwhile stays: %v, %v", p.open, p.queue)
	}
}

// A daemon that does not answer holds the view up for a while, and not for ever.
func TestAsksOfASilentDaemonAreGivenUp(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket) // which accepts nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, said := asking(t)
	p.client, p.patience = ipc.NewClient(socket), 20*time.Millisecond
	defer p.client.Close()
	if p.resume(t.Context(), types.NewUUID()); !strings.Contains(said.String(), "does not answer") {
		t.Errorf("it says %q", said)
	}
	if p.answer(t.Context(), typedLine{text: "y", at: time.Now().Add(time.Minute)}); p.open == nil || !p.wanted {
		t.Error("an answer that the daemon has not taken closes the ask")
	}
}

func TestOnlyAWholeLineIsTaken(t *testing.T) {
	for name, c := range map[string]struct{ typed, wrong string }{
		"a line":         {"yes\n", ""},
		"a beginning":    {"ye\x04", "Enter"},
		"several lines":  {"one\ntwo\n", "only one line"},
		"more than fits": {strings.Repeat("x", 5000) + "\n", "no longer line"},
	} {
		screen, terminal := openTerminal(t)
		if _, err := screen.WriteString(c.typed); err != nil {
			t.Fatal(err)
		}
		line := readLine(terminal)
		if line.end || line.wrong == "" != (c.wrong == "") || !strings.Contains(line.wrong, c.wrong) {
			t.Errorf("%s: %.40q, wrong: %q, end: %t", name, line.text, line.wrong, line.end)
		}
		terminal.Close()
	}
	screen, terminal := openTerminal(t)
	defer terminal.Close()
	if _, err := screen.WriteString("\x04"); err != nil {
		t.Fatal(err)
	}
	if line := readLine(terminal); !line.end {
		t.Errorf("Ctrl+D: %+v", line)
	}
	mode, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if !byLine(terminal) {
		t.Error("a terminal as it begins gives no lines")
	}
	mode.Lflag &^= unix.ICANON
	if err := unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, mode); err != nil {
		t.Fatal(err)
	}
	if byLine(terminal) {
		t.Error("a pager's terminal is taken for one of lines")
	}
}
