package cli

import (
	"strings"
	"testing"

	"rnix/internal/event"
	"rnix/ipc"
)

// What a model says beside its calls is shown when its answer is there, and the result once.
func TestWhatAModelSaysIsShownWithoutATerminal(t *testing.T) {
	says := func(answer uint64, text string) []ipc.Event {
		var out []ipc.Event
		at := 0
		for line := range strings.SplitAfterSeq(text, "\n") {
			if line != "" {
				out = append(out, ipc.Event{Kind: event.LogLine, Name: "output", Text: strings.TrimSuffix(line, "\n"), Answer: answer, At: at, Total: len(line)})
			}
			at += len(line)
		}
		return out
	}
	begins := func(n int) ipc.Event { return ipc.Event{Kind: event.StepStarted, Step: n} }
	ends := func(n int, name string) ipc.Event {
		return ipc.Event{Kind: event.StepEnded, Step: n, Name: name, Text: "shell ls"}
	}
	calls := ipc.Event{Kind: event.LogLine, Name: "tool", Text: "shell ls"}
	exits := ipc.Event{Kind: event.Exited, Exit: &done}
	join := func(parts ...any) (out []ipc.Event) {
		for _, p := range parts {
			switch p := p.(type) {
			case ipc.Event:
				out = append(out, p)
			case []ipc.Event:
				out = append(out, p...)
			}
		}
		return out
	}
	child := func(list []ipc.Event) []ipc.Event {
		for i := range list {
			list[i].PID, list[i].UUID = 4, id(4)
		}
		return list
	}
	const step = "[agent]   shell ls\n"
	for _, c := range []struct {
		name   string
		events []ipc.Event
		result string
		want   string // of the lines that begin with [agent
	}{
		{"before its calls have ended", join(begins(1), says(1, "I look.\n\n    twice\x1b[2J\n"), calls, begins(2), exits), "r", "[agent] step 1\n[agent]   I look.\n[agent]       twice\n[agent] step 2\n"},
		{"with the step, if nothing says that a call begins", join(says(1, "I look."), ends(1, "tool_call"), says(2, "r"), ends(2, "text"), exits), "r", "[agent]   I look.\n" + step + "[agent]   answers\n"},
		{"not the result", join(begins(1), says(1, "The\nresult\n"), ends(1, "text"), exits), "The\nresult", "[agent] step 1\n[agent]   answers\n"},
		{"not a result that was cut", join(says(1, "The re"), ends(1, "text"), begins(2), says(2, "sult"), ends(2, "text"), exits), "The result", "[agent]   answers\n[agent] step 2\n[agent]   answers\n"},
		{"an answer that a person has replied to", join(says(1, "Which?"), ends(1, "text"), ipc.Event{Kind: event.Delivered}, begins(2), says(2, "r"), ends(2, "text"), exits), "r", "[agent]   answers\n[agent]   Which?\n[agent] step 2\n[agent]   answers\n"},
		{"what stands before the result in its answer", join(says(1, "First.\nThe result"), ends(1, "text"), exits), "The result", "[agent]   answers\n[agent]   First.\n"},
		{"what an agent CLI says before it, which nothing divides", join(says(1, "First.The result"), ends(1, "text"), exits), "The result", "[agent]   answers\n[agent]   First.\n"},
		{"an answer that only ends like the result", join(says(1, "Not the result"), ends(1, "complete"), exits), "the result", step + "[agent]   Not the result\n"},
		{"beside the call that hands over the result", join(says(1, "I hand it over."), ends(1, "complete"), exits), "r", step + "[agent]   I hand it over.\n"},
		{"the same in the call", join(says(1, "r"), ends(1, "complete"), exits), "r", step},
		{"an answer that was broken off", join(says(1, "Half"), exits), "", "[agent]   Half\n"},
		{"thoughts are details", join(ipc.Event{Kind: event.LogLine, Name: "think", Text: "Hm.", Answer: 1, Total: 3}, says(1, "I look."), calls, exits), "r", "[agent]   I look.\n"},
		{"all that a child says", join(child(join(begins(1), says(1, "r"), ends(1, "text"))), exits), "r", "[agent 4] step 1\n[agent 4]   r\n[agent 4]   answers\n"},
		{"a result of which a line is cut in the log", join(ipc.Event{Kind: event.LogLine, Name: "output", Text: "a[...]z", Answer: 1, Total: 9000}, ends(1, "text"), exits), strings.Repeat("a", 9000), "[agent]   answers\n"},
	} {
		f := newFake(t).serve()
		end := anEnd()
		end.Result = c.result
		f.theRun(c.events, end)
		r := f.run("run", "do it")
		var got strings.Builder
		for line := range strings.Lines(strings.ReplaceAll(r.err, " | 0s", "")) {
			if strings.HasPrefix(line, "[agent") {
				got.WriteString(line)
			}
		}
		if got.String() != c.want || strings.TrimSuffix(r.out, "\n") != c.result {
			t.Errorf("%s: standard output %.30q, shown:\n%swant:\n%s", c.name, r.out, got.String(), c.want)
		}
		f.theRun(c.events, end)
		if r := f.run("run", "-q", "do it"); r.err != "" {
			t.Errorf("%s: with -q it says %q", c.name, r.err)
		}
	}
}
