package chat

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

func TestThePlanIsReadAsItIsWritten(t *testing.T) {
	th := &tui.Theme{Bare: true}
	for text, want := range map[string]string{
		"":                                   "",
		"1. read the code\n":                 "plan, 1 step: read the code",
		"1. read the code\n2. run the tests": "plan, 2 steps: read the code; run the tests",
		"(the tests fail)\n1. mend\nthem\n2. run\n":                  "plan, 2 steps: mend; run",
		"(nothing is left to do)\n":                                  "",
		"1. [x] read the code\n2. [ ] run the tests\n3. [ ] write\n": "plan 2/3: run the tests",
		"1. [ ] read the code\n2. [ ] run the tests\n":               "plan 1/2: read the code",
		"1. ✓ read the code\n2. ✅ run the tests\n":                   "",
		"1. say \x1b[31mred\u202e\n":                                 "plan, 1 step: say [31mred<U+202E>",
		"2. this is no first step\n":                                 "",
	} {
		m := newDesk(t).m
		m.phase = working
		m.plan.read(th, text)
		if got := planLine(m); got != want && !strings.Contains(text, "\x1b") || strings.Contains(got, "\x1b") {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// planned is how it stands with a process that has a plan.
func planned(state, plan string) ipc.ProcDetail {
	d := detail(state)
	d.Plan = plan
	return d
}

const someSteps = "1. read the code\n2. run the tests\n"

func (d *desk) seesPlan(want bool, when string) {
	d.t.Helper()
	if text := d.sees(); strings.Contains(text, "plan, 2 steps: read the code; run the tests") != want {
		d.t.Errorf("%s the plan is shown: %v\n%s", when, !want, text)
	}
}

// madePlan are the messages of a step that made a plan.
func madePlan(n, step int) ipc.MessagesResponse {
	return ipc.MessagesResponse{Messages: []ipc.ConversationMessage{
		{N: n, Step: step, Role: "assistant", ToolCalls: []ipc.ConversationCall{{ID: "p", Name: "plan", Input: `{"steps":["read the code","run the tests"]}`}}},
		{N: n + 1, Step: step, Role: "tool", ToolCallID: "p", Content: "The plan is noted."},
	}}
}

func TestThePlanStandsAtTheFootWhileTheProcessRuns(t *testing.T) {
	d := begun(t)
	d.seesPlan(false, "before there is one")
	d.reply["get_proc_detail"] = planned("running", someSteps)
	d.reply["list_messages"] = madePlan(1, 1)
	d.hears(ipc.Event{Kind: "step_ended", Step: 1})
	d.seesPlan(true, "after the step that made it")
	asked := d.called("get_proc_detail")
	d.hears(ipc.Event{Kind: "step_started", Step: 2}, ipc.Event{Kind: "piece", Name: "output", Answer: 1, Text: "One. "}, ipc.Event{Kind: "log", Name: "tool", Text: "shell"},
		ipc.Event{Kind: "compacted", Text: "summed up"}, ipc.Event{Kind: "waiting", Text: "the limit"})
	if n := d.called("get_proc_detail"); n != asked {
		t.Errorf("events have cost %d calls", n-asked)
	}
	d.seesPlan(true, "after a compaction")
	d.says("/budget lots") // a note takes the place of the line about the process
	d.seesPlan(true, "beside a note")

	stored := planned("suspended", "") // a plan is not known of one that is only stored
	d.reply["get_proc_detail"] = stored
	d.hears(ipc.Event{Kind: "paused"})
	d.seesPlan(true, "while it is suspended")
	d.reply["get_proc_detail"] = planned("running", someSteps)
	d.tells(tickMsg{})
	d.seesPlan(true, "when it is resumed")
	d.reply["get_proc_detail"] = planned("running", "(no more)\n")
	d.hears(ipc.Event{Kind: "step_ended", Step: 2})
	d.seesPlan(false, "when the agent has dropped it")
	d.reply["get_proc_detail"] = planned("running", someSteps)
	d.hears(ipc.Event{Kind: "step_ended", Step: 3})
	end := planned("dead", someSteps)
	end.Exit = &types.ExitStatus{Code: types.ExitCancelled}
	d.reply["get_proc_detail"] = end
	d.hears(ipc.Event{Kind: "exited"})
	d.seesPlan(false, "when it has ended")

	d.reply["resume"] = ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{PID: 8, UUID: someID}}
	d.reply["get_proc_detail"] = planned("running", someSteps)
	d.says("go on")
	d.seesPlan(true, "when it was interrupted and continues")
	d.does(beginAnew(d.m, "another"))
	d.seesPlan(false, "in a new conversation")
	d.says("/resume " + someID.String())
	d.seesPlan(true, "in a conversation that is come back to")
}

// What a run that has ended well had planned is not what the next one does.
func TestThePlanOfARunThatEndedWellIsNoneOfTheNext(t *testing.T) {
	for name, end := range map[string]string{"in memory": someSteps, "stored": ""} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.reply["get_proc_detail"] = planned("dead", end)
			d.says("/resume " + someID.String())
			d.reply["resume"] = ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{PID: 8, UUID: someID}}
			d.reply["get_proc_detail"] = planned("running", someSteps)
			d.says("now something else")
			d.seesPlan(false, "in the next run")
			d.hears(ipc.Event{Kind: "step_ended", Step: 4})
			d.seesPlan(false, "in its second step")
			d.reply["list_messages"] = madePlan(9, 5) // the same again
			d.hears(ipc.Event{Kind: "step_ended", Step: 5})
			d.seesPlan(true, "when it has made the same plan")
		})
	}
}

func TestAForkHasThePlanOfItsStep(t *testing.T) {
	d := begun(t)
	end := planned("dead", someSteps)
	end.Exit = &types.ExitStatus{Code: types.ExitCancelled}
	d.reply["get_proc_detail"] = end
	d.reply["list_messages"] = ipc.MessagesResponse{Messages: []ipc.ConversationMessage{{N: 1, Role: "user", Content: "do it"}, {N: 2, Role: "assistant", Step: 1, Content: "Done."}, {N: 3, Role: "user", Step: 1, Content: "and this"}}}
	d.hears(ipc.Event{Kind: "exited"})
	d.says("/undo")
	d.key("y")
	fork := ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{PID: 8, UUID: types.NewUUID()}, Mode: "fork", Step: 1}
	d.reply["resume"] = fork
	runs := detail("running") // at that step there was no plan
	runs.PID, runs.UUID = 8, fork.UUID
	d.reply["get_proc_detail"] = runs
	d.says("something else")
	d.seesPlan(false, "in a fork from before it")
	runs.Plan = "1. [x] read\n2. [ ] write it down\n"
	d.reply["get_proc_detail"] = runs
	d.hears(ipc.Event{Kind: "step_ended", Step: 2})
	if text := d.sees(); !strings.Contains(text, "plan 2/2: write it down\n") {
		t.Errorf("the plan of the fork:\n%s", text)
	}
}

// A look at the process that was begun before the end of a step does not know the plan that the step has made.
func TestAnEarlyLookDoesNotHideAPlan(t *testing.T) {
	d := begun(t)
	early := d.m.settle()() // is answered before the end of the step
	d.hears(ipc.Event{Kind: "step_ended", Step: 1})
	d.reply["get_proc_detail"] = planned("running", someSteps)
	asked := d.called("get_proc_detail")
	d.tells(early)
	d.seesPlan(true, "after a look that came too early")
	if n := d.called("get_proc_detail") - asked; n != 1 {
		t.Errorf("%d more looks", n)
	}
}

func TestThePlanGivesWayFirst(t *testing.T) {
	d := begun(t)
	d.reply["get_proc_detail"] = planned("running", "1. "+strings.Repeat("a long step ", 30)+"\n"+strings.Repeat("2. x\n", 1))
	d.hears(ipc.Event{Kind: "step_ended", Step: 1})
	for _, c := range []struct {
		w, h  int
		shown bool
	}{{80, 24, true}, {40, 14, true}, {80, 10, false}, {20, 6, false}} {
		d.tells(tea.WindowSizeMsg{Width: c.w, Height: c.h})
		lines, cursor := drawAll(d.m)
		if got := strings.Contains(strings.Join(lines, "\n"), "plan, 2 steps"); got != c.shown {
			t.Errorf("%dx%d: shown %v\n%s", c.w, c.h, got, strings.Join(lines, "\n"))
		}
		if len(lines) >= c.h || cursor == nil || cursor.Y >= len(lines) {
			t.Errorf("%dx%d: %d lines, cursor %v", c.w, c.h, len(lines), cursor)
		}
		for _, l := range lines {
			if tui.Cells(d.m.t, strip(l)) > c.w-1 {
				t.Errorf("%dx%d: %q", c.w, c.h, l)
			}
		}
	}
}
