package tui

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"rnix/ipc"
	"rnix/types"
)

func TestTheChoiceStaysWithItsProcessWhileRowsComeAndGo(t *testing.T) {
	b := newBench(t, true, proc(2, 0, "b"), proc(4, 0, "d"), proc(6, 0, "f"))
	b.press("down")
	for i := range 5 {
		b.frame(false, proc(2*i+1, 0, fmt.Sprint("new", i)))
	}
	if p := b.chosen(); p.PID != 4 {
		t.Fatalf("PID %d is chosen", p.PID)
	}
	// one that ends stays while it is looked at, and goes when the choice moves on
	b.rows.fold(&ipc.ProcTable{At: b.now, Gone: []types.UUID{uuid(4)}}, b.list.sel)
	b.send(nil)
	if p := b.chosen(); p.PID != 4 || !p.gone {
		t.Fatalf("PID %d is chosen, gone: %v", p.PID, p.gone)
	}
	b.press("down")
	b.seesNot("d: Work on d")
	if b.chosen().PID != 5 {
		t.Errorf("PID %d is chosen", b.chosen().PID)
	}
}

// Whatever frames come, the rows are what the frames say, and the choice is one of them.
func TestFramesFoldToTheTableThatTheyTell(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var rows rows
		var l list
		l.sort = byPID
		truth := map[types.UUID]uint64{}
		for range rapid.IntRange(1, 40).Draw(r, "frames") {
			f := &ipc.ProcTable{At: begin, Whole: rapid.IntRange(0, 9).Draw(r, "whole") == 0}
			if f.Whole {
				clear(truth)
			}
			for _, n := range rapid.SliceOfN(rapid.IntRange(1, 12), 0, 5).Draw(r, "procs") {
				p := proc(n, rapid.IntRange(0, 12).Draw(r, "parent"), "x")
				p.Step = rapid.IntRange(0, 99).Draw(r, "step")
				f.Procs = append(f.Procs, p)
				truth[p.UUID] = uint64(p.Step)
			}
			for _, n := range rapid.SliceOfN(rapid.IntRange(1, 12), 0, 2).Draw(r, "gone") {
				f.Gone = append(f.Gone, uuid(n))
				delete(truth, uuid(n))
			}
			rows.fold(f, types.UUID{})
			l.flat = rapid.Bool().Draw(r, "flat")
			l.arrange(&rows, begin)
			if len(l.entries) != len(truth) {
				r.Fatalf("%d entries of %d rows", len(l.entries), len(truth))
			}
			for _, e := range l.entries {
				if step, ok := truth[e.UUID]; !ok || int(step) != e.Step {
					r.Fatalf("%s is at step %d, want %d", e.UUID, e.Step, step)
				}
			}
			if len(l.entries) > 0 && l.entries[l.at].UUID != l.sel {
				r.Fatalf("%s is chosen and %s is marked", l.sel, l.entries[l.at].UUID)
			}
			l.move(rapid.IntRange(-3, 3).Draw(r, "move"))
		}
	})
}

func TestElapsedStandsStillDuringAPauseAndAfterTheEnd(t *testing.T) {
	run, paused, dead := proc(1, 0, "a"), proc(2, 0, "b"), proc(3, 0, "c")
	paused.State, paused.PausedAt, dead.State = stateSuspended, begin, stateDead
	b := newBench(t, true, run, paused, dead)
	b.now = begin.Add(time.Minute)
	for i, want := range []time.Duration{61 * time.Second, 2 * time.Second, 3 * time.Second} {
		if got := b.list.entries[i].elapsed(b.now); got != want {
			t.Errorf("PID %d: %s, want %s", i+1, got, want)
		}
	}
}

func TestTheClockTicksOnlyWhileSomethingRuns(t *testing.T) {
	ticks := func(b *bench) int {
		n := 0
		for _, w := range b.waits {
			if _, ok := w.msg.(tickMsg); ok {
				n++
			}
		}
		return n
	}
	b := newBench(t, true, proc(1, 0, "a"))
	if ticks(b) != 1 {
		t.Fatalf("%d ticks were asked for", ticks(b))
	}
	b.send(tickMsg{})
	b.press("down", "up")
	if ticks(b) != 2 {
		t.Errorf("%d ticks were asked for", ticks(b))
	}
	p := proc(1, 0, "a")
	p.State = stateDead
	b.frame(false, p)
	b.send(tickMsg{})
	b.press("down")
	if ticks(b) != 2 {
		t.Errorf("nothing runs, and %d ticks were asked for", ticks(b))
	}
}

func TestNothingIsDrawnWhereNothingHasChangedAndNeverTooOften(t *testing.T) {
	b := newBench(t, true, proc(1, 0, "a"), proc(2, 0, "b"))
	drawn := 0
	last := time.Time{}
	for range 1000 { // a second of messages
		b.now = b.now.Add(time.Millisecond)
		b.press("down")
		b.View()
		if b.paint.at != last {
			drawn, last = drawn+1, b.paint.at
		}
	}
	if drawn < 25 || drawn > 31 {
		t.Errorf("%d drawings in a second", drawn)
	}
	b.now = b.now.Add(time.Second)
	b.View()
	last = b.paint.at
	b.now = b.now.Add(time.Second)
	b.View()
	if b.paint.at != last {
		t.Error("it was drawn without a reason")
	}
}

func TestTenThousandProcessesAreDrawnAsFastAsTen(t *testing.T) {
	var procs []ipc.Proc
	for i := 1; i <= 10000; i++ {
		procs = append(procs, proc(i, i/10, fmt.Sprint("agent", i)))
	}
	b := newBench(t, true, procs...)
	b.press("G")
	begin := worked(t)
	for i := range 20 {
		p := proc(5000+i, 500, "changed")
		b.frame(false, p)
		b.press("k")
		b.screenText()
	}
	if d := (worked(t) - begin) / 20; d > 500*time.Millisecond {
		t.Errorf("a frame of 10,000 rows takes %s", d)
	}
	b.sees("agent")
}

func TestATreeOfCirclesShowsEveryProcessOnce(t *testing.T) {
	a, c := proc(1, 2, "a"), proc(2, 1, "b")
	self := proc(3, 3, "c")
	b := newBench(t, true, a, c, self, proc(4, 99, "orphan"))
	if len(b.list.entries) != 4 {
		t.Errorf("%d entries", len(b.list.entries))
	}
}

func TestALostDaemonIsSaidAndNothingOfTheViewIsLost(t *testing.T) {
	b := newBench(t, false, proc(1, 0, "a"), proc(2, 0, "b"))
	b.press("down")
	b.src.refuse = types.Errorf(types.ErrUnavailable, "Connect", "/sock", "no daemon runs here")
	b.send(lostMsg{b.link.n, io.EOF})
	b.sees("the daemon is gone since")
	b.sees("b: Work on b")
	retry := b.waits[len(b.waits)-1]
	if _, ok := retry.msg.(retryMsg); !ok || retry.d > 5*time.Second {
		t.Fatalf("what was asked of the clock: %v", retry)
	}
	b.send(retry.msg) // still gone
	b.run()
	if !errors.Is(b.link.err, b.src.refuse) {
		t.Fatalf("the link says %v", b.link.err)
	}
	b.src.refuse = nil
	b.send(b.waits[len(b.waits)-1].msg)
	cmds := b.cmds
	b.cmds = nil
	for _, c := range cmds { // the stream is opened, and not read: there is nothing yet
		for msg := range messages(c) {
			b.send(msg)
		}
	}
	b.frame(true, proc(2, 0, "b"), proc(3, 0, "c"))
	b.sees("the daemon is there again")
	if b.chosen().PID != 2 {
		t.Errorf("PID %d is chosen", b.chosen().PID)
	}
	for _, s := range b.src.opened() {
		close(s.frames)
	}
}

// messages runs a command, and those of a batch.
func messages(c tea.Cmd) func(func(tea.Msg) bool) {
	return func(yield func(tea.Msg) bool) {
		if c == nil {
			return
		}
		switch msg := c().(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				for m := range messages(c) {
					if !yield(m) {
						return
					}
				}
			}
		default:
			yield(msg)
		}
	}
}

func TestAnswersOfAnOlderStreamAreNotListenedTo(t *testing.T) {
	b := newBench(t, true, proc(1, 0, "a"))
	b.press("H")
	b.send(frameMsg{n: b.link.n - 1, t: &ipc.ProcTable{Whole: true}})
	if len(b.list.entries) != 1 {
		t.Error("a frame of the stream before was folded")
	}
	old := &fakeStream{frames: make(chan any)}
	b.send(openedMsg{b.link.n - 1, old})
	if !old.closed {
		t.Error("a stream that nobody reads stays open")
	}
}

func TestAmountsAreTokensOrDollars(t *testing.T) {
	for text, want := range map[string]string{"50k": "50000 0", "1.5m": "1500000 0", "700": "700 0", "$2": "0 2", " $0.25 ": "0 0.25"} {
		n, usd, err := amount(text)
		if got := fmt.Sprint(n, " ", usd); err != nil || strings.ReplaceAll(got, "  ", " ") != want {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "k", "-5", "$", "$-1", "nan", "$nan", "inf", "1e99", "12x", "0"} {
		if n, usd, err := amount(text); err == nil {
			t.Errorf("%q is %d, %f", text, n, usd)
		}
	}
}

func TestLabelsAreInTheDetailAndFindAProcess(t *testing.T) {
	marked := proc(2, 0, "marked")
	marked.Labels = types.Labels{"ticket": "12", "note": "\x1b[2Jtwo\u202ewords"}
	b := newBench(t, false, proc(1, 0, "plain"), marked)
	b.run()
	b.press("/")
	for _, key := range "ticket=12" {
		b.press(string(key))
	}
	b.press("enter")
	b.run()
	b.sees("labels     note=two<U+202E>words ticket=12")
}

func TestDetailShowsTheElapsedTimeOfTheTable(t *testing.T) {
	b := newBench(t, false, proc(1, 0, "a"))
	b.run()
	b.now = begin.Add(time.Minute)
	b.send(tickMsg{})
	b.sees("elapsed    1m01s")
}
