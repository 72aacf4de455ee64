package chat

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/ipc"
	"rnix/types"
)

func TestAnAgentThatAnsweredAfterARefusalHasNotFailed(t *testing.T) {
	d := begun(t)
	end := detail("dead")
	end.Exit, end.Result = &types.ExitStatus{Code: types.ExitRefused, Reason: types.ReasonRefused}, "I could not push."
	d.reply["get_proc_detail"] = end
	d.hears(ipc.Event{Kind: "exited"})
	if text := d.printed(); strings.Contains(text, "failed") || !strings.Contains(text, "I could not push.") || !strings.Contains(text, "a call was refused; say what to do instead") {
		t.Errorf("printed:\n%s", text)
	}
}

func TestTheReasonOfADenialIsShownWhole(t *testing.T) {
	const why = "not on a Friday, and never from here: open a pull request instead, and have it looked at by two of us before Monday morning"
	dense := strings.NewReplacer(" ", "", "\n", "", "│", "").Replace
	whole := func(text string) bool { return strings.Contains(dense(text), dense(why)) }
	d := begun(t)
	k := ipc.Ask{Number: 3, PID: 7, UUID: someID, Tool: "shell", Path: "/dev/shell", Text: "shell git push", Input: json.RawMessage(`{"command":"git push"}`)}
	d.m.ask = &asking{Ask: k, shown: true}
	d.key("n")
	d.types(why)
	if text := d.sees(); !whole(text) {
		t.Errorf("while it is typed:\n%s", text)
	}
	d.reply["answer"] = ipc.AnswerResponse{Ask: k}
	d.key("enter")
	if text := d.printed(); !whole(text) {
		t.Errorf("printed:\n%s", text)
	}
	call := openCall{id: "1", name: "shell", input: `{"command":"git push"}`}
	d.m.script.open = []openCall{call}
	if showResult(d.m, &ipc.ConversationMessage{Role: "tool", ToolCallID: "1", IsError: true, Content: refusal + "a person has refused this call"}); !strings.Contains(strings.Join(d.m.out.lines, "\n"), "git push  refused") {
		t.Errorf("the call: %q", d.m.out.lines)
	}
	if text := strings.Join(foldedLines(d.m, &call, "a person has refused this call: "+why, true), "\n"); !whole(text) {
		t.Errorf("the result:\n%s", text)
	}
}

func TestAfterUndoAnEnterSendsNothing(t *testing.T) {
	d := begun(t)
	d.reply["get_proc_detail"] = detail("dead")
	d.reply["list_messages"] = ipc.MessagesResponse{Messages: []ipc.ConversationMessage{{N: 1, Role: "user", Content: "do it"}, {N: 2, Role: "assistant", Step: 1, Content: "Done."}, {N: 3, Role: "user", Step: 1, Content: "and this"}}}
	d.hears(ipc.Event{Kind: "exited"})
	d.says("/undo")
	if text := d.sees(); !strings.Contains(text, "before you said: and this") {
		t.Fatalf("it does not ask:\n%s", text)
	}
	d.key("y")
	d.key("enter")
	if d.called("resume") != 0 || !d.m.ed.empty() || !strings.Contains(d.printed(), "in a fork; Up brings the last") {
		t.Fatalf("typed %q, calls %q\n%s", d.m.ed.value(), d.calls, d.printed())
	}
	d.key("up")
	if got := d.m.ed.value(); got != "and this" {
		t.Errorf("Up brings %q back", got)
	}
}

func TestAnAskThatIsAnsweredElsewhereLeavesNothingBehind(t *testing.T) {
	d := begun(t)
	d.reply["asks"] = ipc.AsksResponse{Asks: []ipc.Ask{{Number: 3, PID: 7, UUID: someID, Tool: "shell", Path: "/dev/shell", Text: "shell rm -rf x", Input: json.RawMessage(`{"command":"rm -rf x"}`)}}}
	d.hears(ipc.Event{Kind: "asked", Args: "3"})
	d.now = d.now.Add(time.Second)
	d.tells(tickMsg{})
	d.reply["asks"] = ipc.AsksResponse{}
	d.hears(ipc.Event{Kind: "answered", Args: "3"})
	d.tells(tickMsg{})
	if text := d.sees(); strings.Contains(text, "rm -rf x") || strings.Contains(text, "elsewhere") {
		t.Errorf("it stays:\n%s", text)
	}
	if text := d.printed(); !strings.Contains(text, "answered elsewhere, or not waited for any more: shell rm -rf x") {
		t.Errorf("printed:\n%s", text)
	}
}

func TestHowManyModelsAreNotNamedIsSaid(t *testing.T) {
	var known []ipc.Model
	for _, name := range []string{"a1", "b2", "c3", "d4", "e5", "f6"} {
		known = append(known, ipc.Model{Provider: "p", Model: name, Usable: true})
	}
	if got := doubt("nosuch", "p", known); !strings.Contains(got, "known are p/a1, p/b2, p/c3, p/d4 and 2 more (see: rnix models)") {
		t.Error(got)
	}
	d := begun(t)
	d.says("/model")
	if text := d.printed(); !strings.Contains(text, "(see: rnix models)") {
		t.Errorf("/model says:\n%s", text)
	}
}

func TestAModelThatIsNotKnownIsDoubtedOnce(t *testing.T) {
	d := begun(t)
	d.reply["models"] = ipc.ModelsResponse{Models: []ipc.Model{{Provider: "p", Model: "small-1", Usable: true}, {Provider: "q", Model: "large-2", Usable: true}, {Provider: "r", Model: "other"}}}
	for _, c := range []struct{ name, want string }{
		{"smal-1", "unknown model smal-1; did you mean p/small-1?"}, {"large-2", "did you mean q/large-2?"}, {"zzz", "known are p/small-1, q/large-2 (see: rnix models)"},
		{"r/other", "the provider r cannot be used now"},
	} {
		d.says("/model " + c.name)
		if text := d.sees(); !strings.Contains(strings.Join(strings.Fields(text), " "), c.want) || d.m.next.model != "" {
			t.Errorf("%s: next %q\n%s", c.name, d.m.next.model, text)
		}
	}
	for _, name := range []string{"small-1", "q/large-2"} {
		if d.says("/model " + name); d.m.next.model != name {
			t.Errorf("%s is not taken: %s", name, d.sees())
		}
	}
	d.says("/model new-3")
	if d.says("/model new-3"); d.m.next.model != "new-3" {
		t.Errorf("it is not taken when it is said again: %s", d.sees())
	}
}

func TestTheTimesOfACallAndOfTheTurnAreToldApart(t *testing.T) {
	d := begun(t)
	d.now = d.now.Add(4 * time.Second)
	d.m.script.open = []openCall{{id: "1", name: "shell", input: `{"command":"make"}`, since: d.now}}
	d.now = d.now.Add(3 * time.Second)
	if text := d.sees(); !strings.Contains(text, "shell make  3s") || !strings.Contains(text, "7s in all") {
		t.Errorf("\n%s", text)
	}
}

func TestACommandThatIsTypedStandsAboveItsAnswer(t *testing.T) {
	d := begun(t)
	d.reply["show_budget"] = ipc.BudgetResponse{}
	for line, want := range map[string]string{"/model": "the model is p/m", "/budget": "  no limit", "/compact tests": "the conversation is summed up"} {
		d.put = nil
		d.says(line)
		if got := d.printed(); !strings.Contains(got, "› "+line+"\n"+want) {
			t.Errorf("%s:\n%s", line, got)
		}
	}
}

func TestTheHelpIsSeenWholeInAUsualTerminal(t *testing.T) {
	d := newDesk(t)
	d.says("/help")
	lines := append(strings.Split(d.printed(), "\n"), strings.Split(d.sees(), "\n")...)
	i := slices.Index(lines, "› /help")
	if i < 0 || len(lines)-i > 24 {
		t.Errorf("%d lines:\n%s", len(lines)-i, strings.Join(lines, "\n"))
	}
	for _, c := range commands() {
		if c.name != "help" && !strings.Contains(strings.Join(lines, "\n"), "  /"+c.name) {
			t.Errorf("no /%s", c.name)
		}
	}
	for _, l := range lines {
		if len([]rune(l)) > 79 {
			t.Errorf("%d characters: %s", len(l), l)
		}
	}
}

func TestAfterUndoTheNumbersAreThoseOfTheFork(t *testing.T) {
	d := begun(t)
	dead := detail("dead")
	dead.TokensUsed = 9000
	d.reply["get_proc_detail"] = dead
	d.reply["list_messages"] = ipc.MessagesResponse{Messages: []ipc.ConversationMessage{{N: 1, Role: "user", Content: "do it"}, {N: 2, Role: "assistant", Step: 1, Content: "Done."}, {N: 3, Role: "user", Step: 1, Content: "and this"}}}
	d.hears(ipc.Event{Kind: "exited"})
	if text := d.sees(); !strings.Contains(text, "9,000 tokens") || !strings.Contains(text, "PID 7") {
		t.Fatalf("before:\n%s", text)
	}
	d.says("/undo")
	d.key("y")
	if text := d.sees(); strings.Contains(text, "9,000") || !strings.Contains(text, "next: a fork of PID 7") {
		t.Errorf("after it was undone:\n%s", text)
	}
	fork := ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{PID: 8, UUID: types.NewUUID(), Provider: "p", Model: "m"}, Mode: "fork", Step: 1}
	d.reply["resume"] = fork
	runs := detail("running")
	runs.PID, runs.UUID, runs.TokensUsed = 8, fork.UUID, 1200
	d.reply["get_proc_detail"] = runs
	d.says("something else")
	if text := d.sees(); strings.Contains(text, "9,000") || !strings.Contains(text, "1,200 tokens") || !strings.Contains(text, "PID 8") {
		t.Errorf("in the fork:\n%s", text)
	}
}
