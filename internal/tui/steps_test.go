package tui

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"rnix/internal/compose"
	"rnix/ipc"
)

// hostile is what an agent may write: control sequences, characters that turn the direction, a picture, a long line.
var hostile = "\x1b]0;title\x07\x1b[31mred\x1b[2J \u202eesrever\u202c <script> \U0001F469\u200d\U0001F4BB \r\bover\u009b31m " + strings.Repeat("x", 500)

// fakeSteps are some steps of a process.
func fakeSteps(n int) []ipc.StepRecord {
	var out []ipc.StepRecord
	for i := 1; i <= n; i++ {
		out = append(out, ipc.StepRecord{StepNumber: i, Timestamp: begin, MessageCount: 2 * i, TokensUsed: 100 * i, RawResponse: fmt.Sprintf("first line\nanswer of step %d\n%s", i, hostile),
			Action: "tool_call", Summary: fmt.Sprintf("did %d %s", i, hostile), Provider: "offline", Model: "script", Duration: 2 * time.Second, ModelTime: time.Second, Input: 80 * i, Output: 20 * i,
			ToolCalls: []ipc.StepCall{{ID: "c", Name: "read", Path: "/dev/fs/x", Input: fmt.Sprintf(`{"path":"file%d"}`, i), Result: "a result " + hostile, Duration: time.Second}}})
	}
	return out
}

// keepSteps lets a source answer as a daemon does that has these steps.
func keepSteps(src *fakeSource, all []ipc.StepRecord) {
	src.answers["get_step_detail"] = func(req any) (any, error) {
		for _, s := range all {
			if s.StepNumber == req.(ipc.StepRequest).Step {
				return ipc.StepDetail{Step: s}, nil
			}
		}
		return nil, errors.New("no such step")
	}
	src.answers["list_steps"] = func(req any) (any, error) {
		q := req.(ipc.StepsRequest)
		r := ipc.ListStepsResponse{Steps: []ipc.StepRecord{}, First: all[0].StepNumber, Last: all[len(all)-1].StepNumber}
		from, to := max(q.After+1, r.First), r.Last+1
		if q.Before > 0 {
			to = min(to, q.Before)
		}
		span := ipc.FindSpan
		switch {
		case q.Find != "" && q.Last:
			from = max(from, to-span)
		case q.Find != "":
			to = min(to, from+span)
		}
		at := func(n int) int {
			return sort.Search(len(all), func(i int) bool { return all[i].StepNumber >= n })
		}
		for _, s := range all[at(from):max(at(to), at(from))] {
			if strings.Contains(s.Summary+s.RawResponse, q.Find) {
				if s.RawResponse = ""; len(s.ToolCalls) > 0 {
					s.ToolCalls = []ipc.StepCall{{ID: "c", Name: "read", Path: "/dev/fs/x"}}
				}
				r.Steps = append(r.Steps, s)
			}
		}
		if n := len(r.Steps); n > q.Limit && q.Last {
			r.Steps = r.Steps[n-q.Limit:]
			from = r.Steps[0].StepNumber
		} else if n > q.Limit {
			r.Steps = r.Steps[:q.Limit]
			to = r.Steps[q.Limit-1].StepNumber + 1
		}
		if to <= r.Last {
			r.Next = to - 1
		}
		if from > r.First {
			r.Prev = from
		}
		return r, nil
	}
}

func TestLongHistoryIsReadWhereItIsLookedAt(t *testing.T) {
	const steps = 100_000
	all := make([]ipc.StepRecord, steps)
	for i := range all {
		all[i] = ipc.StepRecord{StepNumber: i + 1, Action: "text", Summary: fmt.Sprint("did ", i+1), RawResponse: "said"}
	}
	all[4].RawResponse = "a needle early"
	all[70_001].RawResponse = "a needle late"
	b := paneBench(t, "Steps", func(src *fakeSource) { keepSteps(src, all) })
	p := b.pane().(*stepsPane)
	b.sees("100,000 steps")
	b.sees("> 100000")
	if n := len(p.list.known); n > 1000 {
		t.Errorf("%d steps were asked for to show the last ones", n)
	}
	b.does("g")
	b.sees(">    1      0s       0  text: did 1")
	b.does("/", "n", "e", "e", "d", "l", "e", "enter")
	b.sees(">    5 ")
	b.does("n")
	b.sees("> 70002 ")
	b.does("n") // once around
	b.sees(">    5 ")
	b.does("N")
	b.sees("> 70002 ")
	b.does("enter")
	b.sees("a needle late")
	b.does("esc", "esc", "/", "n", "o", "t", "h", "e", "r", "e", "enter")
	b.sees("no step has nothere")
	b.does("esc")
	b.sees("100,000 steps")
	b.does("G")
	p100 := proc(1, 0, "lead")
	p100.Step = steps + 2
	all = append(all, ipc.StepRecord{StepNumber: steps + 1, Summary: "one more"}, ipc.StepRecord{StepNumber: steps + 3, Summary: "after a gap"})
	keepSteps(b.src, all)
	b.frame(false, p100)
	b.settle()
	b.sees("> 100003")
	b.sees("  100002 (there is no record of it)")
	if n := len(p.list.known); n > stepsKept+1000 {
		t.Errorf("%d steps are kept", n)
	}
	sound(t, b)
}

// paneBench is a program with the focus in a pane.
func paneBench(t *testing.T, title string, set func(*fakeSource)) *bench {
	t.Helper()
	b := newBench(t, false, proc(1, 0, "lead"), proc(2, 1, "other"))
	keepSteps(b.src, fakeSteps(7))
	b.src.answers["list_messages"] = func(req any) (any, error) {
		r := req.(ipc.MessagesRequest)
		return ipc.MessagesResponse{Total: 40, Prev: 5, Messages: []ipc.ConversationMessage{
			{N: 20, Step: r.Step, Role: "user", From: "steer", Content: "look " + hostile, Bytes: 10},
			{N: 21, Step: r.Step, Role: "assistant", Content: "I look", ToolCalls: []ipc.ConversationCall{{Name: "read", Input: "{}"}}, Cut: 5000000}}}, nil
	}
	b.src.answers["diff_files"] = func(any) (any, error) {
		return ipc.DiffResponse{Files: []ipc.FileChange{{Path: "a.txt", Status: "M", Added: 1, Deleted: 2}}, Diff: "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"}, nil
	}
	if set != nil {
		set(b.src)
	}
	b.showPane(title)
	return b
}

// showPane shows the pane of a title and puts the focus there.
func (b *bench) showPane(title string) {
	b.t.Helper()
	for i, p := range b.panes {
		if p.title() == title {
			turnTo(b.Model, i)
			b.focus = right
			b.send(struct{}{})
			b.settle()
			return
		}
	}
	b.t.Fatalf("there is no pane %q", title)
}

// settle runs all that is to be done, the clock's part too.
func (b *bench) settle() {
	b.t.Helper()
	for range 50000 {
		b.run()
		if len(b.waits) == 0 {
			break
		}
		waits := b.waits
		b.waits = nil
		for _, w := range waits {
			if _, ok := w.msg.(tickMsg); ok {
				b.clock = false
				continue
			}
			if h, ok := w.msg.(hearMsg); ok && h.more == nil && w.d == hearAgain { // it would be refused for ever
				continue
			}
			b.now = b.now.Add(w.d)
			b.send(w.msg)
		}
	}
	b.screenText()
}

// does presses keys and waits for what comes of it.
func (b *bench) does(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.press(k)
		b.settle()
	}
}

// sound looks whether a pane keeps to its room at all widths, and lets nothing hostile through.
func sound(t *testing.T, b *bench) {
	t.Helper()
	for _, ascii := range []bool{false, true} {
		b.env.t.ASCII = ascii
		for _, w := range []int{20, 40, 79, 130, 300} {
			for _, h := range []int{1, 3, 22} {
				view := b.pane().view(w, h)
				lines := strings.Split(view, "\n")
				if len(lines) > h {
					t.Errorf("%d lines in a room of %d", len(lines), h)
				}
				for _, l := range lines {
					if n := b.env.t.cells(l); n > w {
						t.Errorf("a line of %d cells in a room of %d: %q", n, w, l)
					}
					for _, bad := range []string{"\x07", "\x1b", "[2J", "\r", "\b", "\u202e", "\u009b"} {
						if strings.Contains(ansi.Strip(l), bad) || strings.Contains(l, "\x1b[31mred") {
							t.Errorf("%q got through: %q", bad, l)
						}
					}
				}
			}
		}
	}
	b.env.t.ASCII = false
	b.screenText()
}

func TestStepsAreListedAndOpened(t *testing.T) {
	b := paneBench(t, "Steps", nil)
	b.sees("7 steps, 1,000 tokens")
	b.sees(">    7")
	sound(t, b)
	b.does("up", "enter")
	for _, want := range []string{"step 6 of 7", "answer of step 6", "offline/script   600 tokens, 480 sent, 120 answered"} {
		b.sees(want)
	}
	sound(t, b)
	b.does("/", "f", "i", "l", "e", "6", "enter", "esc")
	b.sees(`{"path":"file6"}`)
	b.does("G")
	b.sees("(5,000,000 more bytes)")
	if got := b.src.last("list_messages"); !strings.Contains(got, `"step":6`) {
		t.Errorf("asked %s", got)
	}
	for _, k := range []struct {
		key  string
		step int
	}{{"h", 5}, {"l", 6}, {"H", 1}, {"h", 1}, {"L", 7}, {"right", 7}, {"left", 6}} {
		b.does(k.key)
		b.sees(fmt.Sprintf("step %d of 7", k.step))
	}
	b.does("e")
	if got := b.src.last("list_messages"); !strings.Contains(got, `"from":-100`) {
		t.Errorf("asked %s", got)
	}
	b.press("F")
	if b.input == nil || string(b.input.text) != "6" {
		t.Error("F does not fork from the shown step")
	}
	b.does("esc", "esc")
	b.sees("7 steps")
}

func TestTwoStepsAreCompared(t *testing.T) {
	b := paneBench(t, "Steps", nil)
	b.does("g", "d")
	b.sees("step 1 is marked")
	b.does("down", "d")
	for _, want := range []string{"step 1 (-) and step 2 (+)", "-answer of step 1", "+answer of step 2"} {
		b.sees(want)
	}
	if got := b.src.last("diff_files"); !strings.Contains(got, `"from":1,"to":2`) {
		t.Errorf("asked %s", got)
	}
	sound(t, b)
	b.does("G")
	b.sees("+new")
	b.does("esc")
	b.sees("7 steps")
	b.seesNot("is marked")
}

func TestAnAnswerThatIsRefusedOrLateIsShownAsSuch(t *testing.T) {
	refuse := func(any) (any, error) { return nil, errors.New("no \x1b[31mway") }
	for _, p := range newPanes(newBench(t, false).env) {
		t.Run(p.title(), func(t *testing.T) {
			b := newBench(t, false, proc(1, 0, "lead"))
			b.src.answers, b.src.refuse = map[string]func(any) (any, error){}, errors.New("no \x1b[31mway")
			for _, m := range []string{"get_proc_detail", "list_steps", "get_step_detail", "list_messages", "diff_files", "context_profile", "compose_status", "compose_plan", "cost", "budget", "list_groups", "lineage", "trace", "mailbox"} {
				b.src.answers[m] = refuse
			}
			for i := range b.panes {
				if b.panes[i].title() == p.title() {
					turnTo(b.Model, i)
				}
			}
			b.send(struct{}{})
			if text := b.pane().view(80, 20); text == "" {
				t.Error("nothing is shown before the answer comes")
			}
			b.settle()
			sound(t, b)
			if p.title() != "Graph" && !strings.Contains(b.pane().view(80, 20), "no way") {
				t.Errorf("the pane says %q", b.pane().view(80, 20))
			}
			b.frame(true)
			b.list.sel = uuid(99)
			b.send(struct{}{})
			b.send(struct{}{})
			b.settle()
			if text := b.pane().view(80, 20); !strings.Contains(text, noProcess) {
				t.Errorf("without a process the pane says %q", text)
			}
		})
	}
}

func TestWhatCannotBeForkedOrToldIsRefusedAtOnce(t *testing.T) {
	run, fresh := proc(1, 0, "flow"), proc(2, 0, "fresh")
	run.Kind, fresh.Step = compose.ProcessKind, 0
	for _, c := range []struct {
		proc ipc.Proc
		key  string
		says string
	}{
		{run, "s", "PID 1 (flow) is a workflow, which has no model to listen"}, {run, "F", "PID 1 (flow) is a workflow, which has no steps to fork from"},
		{fresh, "F", "PID 2 (fresh) has no ended step to fork from yet"},
	} {
		b := newBench(t, true, c.proc)
		b.press(c.key)
		if b.input != nil {
			t.Errorf("%s asks first", c.key)
		}
		b.sees(c.says)
	}
	b := newBench(t, true, fresh)
	if b.press("s"); b.input == nil {
		t.Error("nothing can be said to an agent without an ended step")
	}
}

func TestAPaneAsksOnlyAfterAChangeAndNotTooOften(t *testing.T) {
	b := paneBench(t, "Steps", nil)
	count := func() int {
		n := 0
		for _, a := range b.src.all() {
			if strings.HasPrefix(a, "list_steps ") {
				n++
			}
		}
		return n
	}
	before := count()
	b.frame(false, proc(1, 0, "lead")) // the same again
	b.settle()
	if n := count(); n != before {
		t.Errorf("%d questions without a change", n-before)
	}
	for i := range 50 {
		p := proc(1, 0, "lead")
		p.Step = 10 + i
		b.frame(false, p)
		b.run()
	}
	if n := count(); n != before {
		t.Errorf("%d questions at once after a question", n-before)
	}
	b.settle()
	if n := count(); n != before+1 {
		t.Errorf("%d questions for fifty changes in no time", n-before)
	}
}
