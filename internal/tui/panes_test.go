package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/compose"
	"rnix/internal/event"
	"rnix/internal/trace"
	"rnix/ipc"
)

// everything makes a source answer all that panes ask, with hostile text wherever an agent writes.
func everything(s *fakeSource) {
	s.answers["context_profile"] = func(any) (any, error) {
		r := ipc.ContextResponse{Profile: ipc.Profile{Tokens: 5000, Steps: 3, Shown: 12, Estimated: true, Window: ipc.ContextWindow{Tokens: 10000, From: "the driver " + hostile, Used: 500, Growth: 700, Over: 3, CompactAt: 9000, StepsLeft: new(int)},
			Sections: []ipc.ContextSection{{Section: "system", Tokens: 1000, Estimated: true}, {Section: "tool_result", Name: "read" + hostile, Tokens: 4000, Estimated: true}},
			Prompts:  []ipc.ContextPrompt{{Step: 1, Tokens: 1000}, {Step: 2, Tokens: 2500}, {Step: 3, Tokens: 5000}}, Cache: ipc.ContextCache{Stable: 50, Sent: 100, Said: true, Read: 77, Breaks: 1, BreakSteps: []int{2}}}}
		r.Largest = []ipc.ContextSegment{{N: 7, Tokens: 3000, Section: "tool_result", Name: "read", Preview: hostile}}
		return r, nil
	}
	s.answers["compose_plan"] = func(any) (any, error) {
		on := func(names ...string) *ipc.WorkflowDepends {
			d := &ipc.WorkflowDepends{On: map[string]string{}}
			for _, n := range names {
				d.On[n] = "succeeded"
			}
			return d
		}
		return ipc.ComposePlanResponse{File: &ipc.Workflow{Agents: map[string]*ipc.WorkflowNode{"plan": {}, "code": {DependsOn: on("plan")}, "test": {DependsOn: on("plan")}, "ship": {DependsOn: on("code", "test")}}}}, nil
	}
	s.answers["compose_status"] = func(any) (any, error) {
		return ipc.ComposeRun{Name: "release", Counts: map[string]int{"running": 1, "waiting": 1, "succeeded": 1, "failed": 1}, TokensUsed: 900, Nodes: []ipc.ComposeNode{
			{Name: "plan", State: "succeeded", UUID: uuid(2), PID: 2, Step: 3, TokensUsed: 100}, {Name: "code", State: "running", UUID: uuid(77), PID: 77},
			{Name: "test", State: "failed", Why: hostile, Attempt: 2}, {Name: "ship", State: "waiting", Needs: []string{"code", "test"}}}}, nil
	}
	s.answers["cost"] = func(req any) (any, error) {
		usd := 1.25
		return ipc.CostResponse{Lines: []ipc.CostLine{{Key: "by " + req.(ipc.CostRequest).By + hostile, Tokens: 1000, CostUSD: &usd, Answers: 3}}, Total: ipc.CostLine{Tokens: 1000, Unpriced: 5}}, nil
	}
	s.answers["budget"] = func(any) (any, error) {
		limit, usd := 5000, 2.0
		return ipc.BudgetResponse{Budgets: []ipc.BudgetLine{{PID: 1, Name: hostile, Tokens: ipc.TokenLine{Limit: &limit, Used: 1000}, USD: ipc.USDLine{Limit: &usd, Used: 1}}}}, nil
	}
	s.answers["list_groups"] = func(any) (any, error) {
		return ipc.GroupsResponse{Groups: []ipc.Group{{ID: 4, Name: "crew" + hostile, Members: nil}}}, nil
	}
	s.answers["lineage"] = func(any) (any, error) {
		return ipc.LineageResponse{Family: []ipc.Relative{{UUID: uuid(1), PID: 1, State: "running", Name: "lead", Intent: hostile}, {UUID: uuid(2), PID: 2, OriginUUID: uuid(1), OriginStep: 4, State: "dead", Name: "branch"}},
			Runs: []ipc.Run{{Number: 1, How: "spawn", Began: begin, End: "suspended", Reason: hostile, FirstStep: 1, LastStep: 4}, {Number: 2, How: "resume", Began: begin, FirstStep: 5, LastStep: 6}}}, nil
	}
	s.answers["trace"] = func(any) (any, error) {
		return ipc.TraceResponse{Root: uuid(1), Start: begin, End: begin.Add(10 * time.Second), Spans: []ipc.Span{
			{ID: "a", PID: 1, UUID: uuid(1), Kind: trace.Process, Name: "lead" + hostile, Start: begin, Dur: 10 * time.Second, Runs: 1, Critical: true},
			{ID: "b", Parent: "a", PID: 1, UUID: uuid(1), Kind: trace.Tool, Name: "slowtool", Start: begin, Dur: 6 * time.Second, Critical: true, CriticalNs: 6 * time.Second, Status: trace.Failed, Err: hostile},
			{ID: "c", Parent: "a", PID: 1, UUID: uuid(1), Kind: trace.Tool, Name: "beside", Start: begin, Dur: time.Second}},
			Critical: []ipc.PathPart{{Span: "b", From: begin, To: begin.Add(6 * time.Second)}}, Blame: []ipc.Blame{{Span: "b", PID: 1, Kind: trace.Tool, Name: "slowtool", Step: 2, Err: hostile}}}, nil
	}
	s.answers["mailbox"] = func(any) (any, error) {
		return ipc.MailboxResponse{Total: 3, Bytes: 1234, LastSeq: 9, Letters: []ipc.Letter{
			{Seq: 7, Kind: "message", From: 2, Name: "other" + hostile, Time: begin, Bytes: 1000, Line: "look here " + hostile}, {Seq: 8, Kind: "steer", Bytes: 4, Binary: true}}}, nil
	}
	s.events = []any{
		ipc.Event{Seq: 1, Time: begin, PID: 1, UUID: uuid(1), Kind: event.Spawned, Intent: hostile},
		ipc.Event{Seq: 2, Time: begin, PID: 1, Kind: event.LogLine, Name: "think", Text: "a thought " + hostile},
		ipc.Event{Seq: 3, Time: begin, PID: 1, Kind: event.LogLine, Name: "tool", Text: "a tool's line"},
		ipc.Missed{From: 4, To: 9},
		ipc.Event{Seq: 10, Time: begin, PID: 1, Kind: event.LogLine, Name: "output", Text: "an output"},
		ipc.Event{Seq: 11, Time: begin, PID: 1, Kind: event.LogLine, Name: "warning", Text: "a warning"},
		ipc.Event{Seq: 12, Time: begin, PID: 1, Kind: event.Messaged, Name: "steer", Args: "3", Text: "turn left " + hostile},
	}
}

// runProcs are a run of a workflow, and a process of one of its nodes.
func runProcs() []ipc.Proc {
	run := proc(1, 0, "lead")
	run.Kind = compose.ProcessKind
	return []ipc.Proc{run, proc(2, 1, "other")}
}

func TestEachPaneKeepsToItsRoomAndShowsNothingHostile(t *testing.T) {
	want := map[string][]string{
		"Steps":   {"7 steps"},
		"Log":     {"a thought", "events 4 to 9 of the daemon are missed", "6 missed", "a warning"},
		"Talk":    {"#21 assistant", "(5,000,000 more bytes)", "40 messages"},
		"Files":   {"1 file, +1 -2", "M a.txt", "+new"},
		"Context": {"~5,000 tokens of 10,000, 50.0%", "tool result read", "GROWTH", "77 tokens read"},
		"Graph":   {"release: 1 running", " 1─ plan", " 2┌ code", "  └ test", " 3─ ship", "waiting for code, test"},
		"Cost":    {"$1.25", "of 5,000 ", "5 tokens have no known price"},
		"Mail":    {"WAITS IN ITS MAILBOX  3 messages, 1,234 bytes", "message from PID 2 other", "#8 steer from the user, 4 bytes: (no text)", "(1 newer one)", "turn left", "4 crew"},
		"Forks":   {"└ PID 2 dead from step 4, step 0  branch", "2  2026-03-01", "steps 5 to 6"},
		"Trace":   {"slowtool", "critical path 6s", "WHAT MADE IT FAIL"},
	}
	for title, texts := range want {
		t.Run(title, func(t *testing.T) {
			b := paneBench(t, title, everything)
			if title == "Graph" {
				b.frame(true, runProcs()...)
				b.settle()
			}
			b.send(tea.WindowSizeMsg{Width: 160, Height: 50})
			var seen strings.Builder
			for range 40 {
				seen.WriteString(b.screenText())
				if l := b.text(); l == nil || l.at == (place2{}) {
					break
				}
				b.does("pgup")
			}
			for range 40 {
				seen.WriteString(b.screenText())
				if l := b.text(); l == nil || l.atEnd() {
					break
				}
				b.does("pgdown")
			}
			for _, text := range texts {
				if !strings.Contains(seen.String(), text) {
					t.Errorf("the pane lacks %q:\n%s", text, b.screenText())
				}
			}
			sound(t, b)
		})
	}
}

func TestALogThatIsTooLongIsKeptToABoundAndSaysSo(t *testing.T) {
	b := paneBench(t, "Log", func(s *fakeSource) {
		for i := range 3 * logLines {
			s.events = append(s.events, ipc.Event{Seq: uint64(i + 1), Time: begin, PID: 1, Kind: event.LogLine, Name: "output", Text: fmt.Sprintf("line %d", i)})
		}
	})
	b.sees(fmt.Sprintf("line %d", 3*logLines-1))
	b.sees("of 15,000 lines")
	p := b.pane().(*logPane)
	if len(p.lines) > logLines || p.gone+len(p.lines) != 3*logLines {
		t.Errorf("%d lines are kept, %d are gone", len(p.lines), p.gone)
	}
}

func TestAMessageOfFiveMegabytesCostsAPage(t *testing.T) {
	whole := strings.Repeat("0123456789abcde\n", 5<<20/16)
	var largest int
	b := paneBench(t, "Talk", func(s *fakeSource) {
		s.answers["list_messages"] = func(req any) (any, error) {
			r := req.(ipc.MessagesRequest)
			largest = max(largest, r.MaxBytes)
			end := min(r.Skip+r.MaxBytes, len(whole))
			return ipc.MessagesResponse{Total: 1, Messages: []ipc.ConversationMessage{{N: 1, Role: "assistant", Content: whole[r.Skip:end], Bytes: len(whole), Cut: len(whole) - end, Skipped: r.Skip}}}, nil
		}
	})
	b.sees("more bytes")
	b.does("x")
	p := b.pane().(*talkPane)
	if n := len(p.messages[0].Content); n != talkBytes+talkMore || p.messages[0].Cut != len(whole)-n {
		t.Errorf("%d bytes are there, %d are not", n, p.messages[0].Cut)
	}
	if largest > talkMore {
		t.Errorf("%d bytes were asked for", largest)
	}
}

func TestEarlierMessagesStandBeforeWhatIsInSight(t *testing.T) {
	b := paneBench(t, "Talk", func(s *fakeSource) {
		s.answers["list_messages"] = func(req any) (any, error) {
			r := req.(ipc.MessagesRequest)
			from := r.From
			if from < 0 {
				from = 101 + r.From
			}
			out := ipc.MessagesResponse{Total: 100}
			for n := from; n <= min(100, from+r.Limit-1); n++ {
				out.Messages = append(out.Messages, ipc.ConversationMessage{N: n, Role: "user", Content: fmt.Sprintf("words %d\nmore", n)})
			}
			if from > 1 {
				out.Prev = max(from-r.Limit, 1)
			}
			return out, nil
		}
	})
	b.sees("words 100")
	b.does("home")
	b.sees("words 51")
	b.does("e")
	b.sees("words 51")
	b.does("pgup")
	b.sees("words 49")
	b.does("home", "e")
	b.sees("this is the beginning")
}

func TestALayerStandsBelowAllThatItWaitsFor(t *testing.T) {
	file := &ipc.Workflow{Agents: map[string]*ipc.WorkflowNode{
		"a": {}, "b": {DependsOn: &ipc.WorkflowDepends{On: map[string]string{"a": "succeeded"}}}, "c": {DependsOn: &ipc.WorkflowDepends{On: map[string]string{"a": "", "b": ""}}},
		"each": {ForEach: &ipc.WorkflowForEach{From: "c"}}, "loop": {DependsOn: &ipc.WorkflowDepends{On: map[string]string{"loop": ""}}}}}
	nodes := []ipc.ComposeNode{{Name: "each[2]"}, {Name: "c"}, {Name: "b"}, {Name: "a"}, {Name: "loop"}, {Name: "unknown"}}
	var got []string
	for _, l := range graph(file, nodes) {
		got = append(got, fmt.Sprintf("%d%s", l.layer, l.node.Name))
	}
	if want := "0a 0unknown 1b 1loop 2c 3each[2]"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if lines := graph(nil, nodes); len(lines) != len(nodes) || lines[5].layer != 0 {
		t.Errorf("without a file: %v", lines)
	}
}

// paneKeys press each key of a pane: pane, keys before, the key, what is seen or was asked last then.
var paneKeys = []struct{ pane, before, key, sees, asked string }{
	{"Steps", "", "enter", "step 7 of 7", ""},
	{"Steps", "", "right", "step 7 of 7", ""},
	{"Steps", "", "l", "step 7 of 7", ""},
	{"Steps", "", "d", "step 7 is marked", ""},
	{"Steps", "enter", "esc", "7 steps", ""},
	{"Steps", "enter", "d", "step 7 is marked", ""},
	{"Steps", "enter", "h", "step 6 of 7", ""},
	{"Steps", "enter", "left", "step 6 of 7", ""},
	{"Steps", "enter h h", "l", "step 6 of 7", ""},
	{"Steps", "enter h h", "right", "step 6 of 7", ""},
	{"Steps", "enter", "H", "step 1 of 7", ""},
	{"Steps", "enter h", "L", "step 7 of 7", ""},
	{"Steps", "enter", "e", "", `list_messages {"target":"` + uuid(1).String() + `","from":-100,`},
	{"Log", "", "f", "does not follow", ""},
	{"Log", "", "t", "thoughts are hidden", ""},
	{"Log", "", "c", "tools are hidden", ""},
	{"Log", "", "o", "outputs are hidden", ""},
	{"Log", "", "w", "without warning", ""},
	{"Log", "", "e", "steps and states are hidden", ""},
	{"Log", "", "y", "", `"syscall","syscall_begin"]`},
	{"Log", "", "T", "all below it", `"tree":true`},
	{"Talk", "", "e", "", `"from":5,`},
	{"Talk", "", "x", "", `"skip":6`},
	{"Talk", "", "f", "does not follow", ""},
	{"Files", "", "h", "changed by step 1 of 1", `"to":1`},
	{"Files", "", "left", "changed by step 1 of 1", `"to":1`},
	{"Files", "", "l", "changed by step 1 of 1", `"to":1`},
	{"Files", "", "right", "changed by step 1 of 1", `"to":1`},
	{"Files", "", "L", "changed by step 1 of 1", `"to":1`},
	{"Files", "l", "a", "changed since the beginning", `diff_files {"target":"` + uuid(1).String() + `"}`},
	{"Graph", "", "enter", "uuid", ""},
	{"Graph", "", "right", "uuid", ""},
	{"Graph", "", "l", "uuid", ""},
	{"Cost", "", "v", "COST BY AGENT", `"by":"agent"`},
	{"Cost", "", "a", "of all histories", `cost {"by":"model"}`},
	{"Forks", "down", "enter", "uuid", ""},
	{"Forks", "down", "right", "uuid", ""},
	{"Forks", "down", "l", "uuid", ""},
	{"Trace", "", "c", "slowtool", ""},
	{"Trace", "", "a", "", `"children":false`},
}

func TestEachKeyOfAPaneDoesWhatItSays(t *testing.T) {
	bench := func(t *testing.T, pane, before string) *bench {
		b := paneBench(t, pane, everything)
		if pane == "Graph" {
			b.frame(true, runProcs()...)
			b.settle()
		}
		b.does(strings.Fields(before)...)
		return b
	}
	proven := map[string]bool{}
	for _, k := range paneKeys {
		t.Run(k.pane+"/"+k.before+"/"+k.key, func(t *testing.T) {
			b := bench(t, k.pane, k.before)
			old := len(b.src.all())
			i := slices.IndexFunc(b.pane().keys(), func(n binding) bool { return slices.Contains(n.keys, k.key) })
			if i < 0 {
				t.Fatal("the pane has no such key")
			}
			proven[k.pane+"/"+k.key] = true
			b.does(k.key)
			switch {
			case k.sees == "uuid":
				if b.chosen() == nil || b.chosen().UUID != uuid(2) {
					t.Errorf("%v is chosen", b.list.sel)
				}
			case k.sees != "":
				b.sees(k.sees)
			}
			if k.asked != "" && !strings.Contains(strings.Join(b.src.all()[old:], "\n"), k.asked) {
				t.Errorf("asked %q, and not for %s", b.src.all()[old:], k.asked)
			}
		})
	}
	reference := KeyReference()
	for _, pane := range []struct{ title, before string }{{"Detail", ""}, {"Steps", ""}, {"Steps", "enter"}, {"Log", ""}, {"Talk", ""}, {"Files", ""}, {"Context", ""}, {"Graph", ""}, {"Cost", ""}, {"Mail", ""}, {"Forks", ""}, {"Trace", ""}} {
		b := bench(t, pane.title, pane.before)
		list := b.picks()
		for _, n := range b.pane().keys() {
			if !strings.Contains(reference, n.what) {
				t.Errorf("%s: the reference lacks %q", pane.title, n.what)
			}
			for _, name := range n.keys {
				if to, ok := map[string]int{"down": 1, "j": 1, "up": -1, "k": -1, "pgdown": 99, "space": 99, "pgup": -99, "home": -99, "g": -99, "end": 99, "G": 99}[name]; ok && list != nil {
					list.choose(1)
					b.does(name)
					if want := max(min(1+to, list.n-1), 0); list.at != want {
						t.Errorf("%s/%s: entry %d is chosen, want %d", pane.title, name, list.at, want)
					}
				} else if !proven[pane.title+"/"+name] {
					t.Errorf("%s/%s: nothing proves %q", pane.title, name, n.what)
				}
			}
		}
	}
}

func TestAListInAPaneIsSearched(t *testing.T) {
	b := paneBench(t, "Steps", everything)
	b.does("g", "/", "d", "i", "d", "space", "4", "enter")
	if p := b.pane().(*stepsPane); p.shownStep() != 4 {
		t.Errorf("step %d is chosen", p.shownStep())
	}
	b.does("/", "a", "b", "s", "e", "n", "t", "enter")
	b.sees("no step has absent")
}

func TestTheMouseChoosesInAListOfAPane(t *testing.T) {
	b := paneBench(t, "Steps", everything)
	x := b.boxes().pane
	b.send(tea.MouseClickMsg{X: x.x + 3, Y: x.y + 1 + 2, Button: tea.MouseLeft}) // below the line above the list
	p := b.pane().(*stepsPane)
	if p.shownStep() != 3 {
		t.Errorf("step %d is chosen", p.shownStep())
	}
	b.send(tea.MouseWheelMsg{X: x.x + 3, Y: x.y + 3, Button: tea.MouseWheelDown})
	if p.shownStep() != 6 {
		t.Errorf("step %d is chosen", p.shownStep())
	}
}

func TestAStreamOfEventsEndsWhenItsPaneIsOutOfSight(t *testing.T) {
	b := paneBench(t, "Log", everything)
	p := b.pane().(*logPane)
	p.ear.done = false
	b.settle()
	if n := len(b.src.opened()); n != 1 || p.ear.open {
		t.Errorf("%d streams were opened, one is open: %v", n, p.ear.open)
	}
	b.showPane("Detail")
	p.ear.done = false // as if the daemon had been cut off
	b.showPane("Log")
	if got := b.src.last("events"); !strings.Contains(got, `"from":13`) || strings.Contains(got, `"history":true`) {
		t.Errorf("it goes on with %s, and the last event that was heard is 12", got)
	}
}

func BenchmarkLogBatch(b *testing.B) {
	t := &Theme{}
	p := &logPane{e: &env{t: t}, off: map[category]bool{}, long: newLong(t)}
	p.long.tail = true
	var got []heard
	for i := range 500 {
		got = append(got, heard{ev: ipc.Event{Seq: uint64(i), Time: begin, PID: 1, Kind: event.LogLine, Name: "output", Text: "an output of one line that is about as long as lines are"}})
	}
	for b.Loop() {
		p.hear(got)
		p.view(100, 40)
	}
}
