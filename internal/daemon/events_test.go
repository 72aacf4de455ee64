package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// seen reads a stream of events to its end.
func seen(t *testing.T, s *testenv.System, req ipc.EventsRequest) (list []ipc.Event, missed uint64) {
	t.Helper()
	feed, err := ipc.Open(t.Context(), s.Client, ipc.Events, req)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	for f, err := range feed.All() {
		switch {
		case err != nil:
			t.Fatal(err)
		case f.Missed != nil:
			missed += f.Missed.To - f.Missed.From + 1
		default:
			list = append(list, f.Data)
		}
	}
	return list, missed
}

// family runs a parent with a child that calls the shell, and another process, and waits for all of them.
func eventFamily(t *testing.T) (s *testenv.System, parent, other ipc.SpawnResponse) {
	t.Helper()
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		result, told := r.LastResult()
		switch {
		case told:
			return llmtest.Reply{Text: "got " + result.Text}
		case r.LastUser() == "parent":
			return tool("spawn", `{"intent":"child"}`)
		}
		return tool("shell", `{"command":"echo from `+r.LastUser()+`"}`)
	})
	s = testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	parent = s.Spawn(ipc.SpawnRequest{Intent: "parent", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(parent.PID)
	other = s.Spawn(ipc.SpawnRequest{Intent: "other", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(other.PID)
	return s, parent, other
}

// of counts events by PID and kind.
func of(list []ipc.Event, k event.Kind) map[types.PID]int {
	out := map[types.PID]int{}
	for i := range list {
		if list[i].Kind == k {
			out[list[i].PID]++
		}
	}
	return out
}

func TestEventsOfSeveralAndOfATreeComeInTheOrderOfTimeAlsoFromTheDead(t *testing.T) {
	s, parent, other := eventFamily(t)
	for range 2 {
		both, _ := seen(t, s, ipc.EventsRequest{Target: other.UUID.String(), Targets: []string{parent.UUID.String()}, History: true})
		if got := of(both, event.Exited); len(got) != 2 || got[parent.PID] != 1 || got[other.PID] != 1 {
			t.Errorf("of two: %v", got)
		}
		tree, missed := seen(t, s, ipc.EventsRequest{Target: parent.UUID.String(), Tree: true, History: true})
		if got := of(tree, event.Exited); len(got) != 2 || got[other.PID] != 0 || missed != 0 {
			t.Errorf("of a tree: %v, missed %d", got, missed)
		}
		all := append(slices.Clip(both), tree...)
		for _, list := range [][]ipc.Event{both, tree} {
			if !slices.IsSortedFunc(list, func(a, b ipc.Event) int { return a.Time.Compare(b.Time) }) {
				t.Error("not in the order of time")
			}
		}
		if len(all) == 0 {
			t.Error("nothing")
		}
		ended, _ := seen(t, s, ipc.EventsRequest{Target: parent.UUID.String(), Targets: []string{other.UUID.String()}, Tree: true, History: true, Follow: true, UntilEnd: true})
		if got := of(ended, event.Exited); len(got) != 3 {
			t.Errorf("followed to the end: %v", got)
		}
		s.Stop()
		s.Start() // the same from the files alone
	}
}

func TestEventsAreFilteredCutAndCountedBackBeforeTheyAreSent(t *testing.T) {
	s, parent, other := eventFamily(t)
	req := ipc.EventsRequest{Target: parent.UUID.String(), Targets: []string{other.UUID.String()}, Tree: true, History: true, Filter: &ipc.EventFilter{Classes: []string{"shell"}}}
	all, _ := seen(t, s, req)
	for i := range all {
		if all[i].Path != "/dev/shell" {
			t.Errorf("%+v", all[i])
		}
	}
	if len(all) < 6 {
		t.Fatalf("%d calls of the shell", len(all))
	}
	req.Tail = 3
	if last, _ := seen(t, s, req); fmt.Sprint(last) != fmt.Sprint(all[len(all)-3:]) {
		t.Errorf("the last three: %v", last)
	}
	req.Tail, req.Since = 0, all[2].Time
	if since, _ := seen(t, s, req); fmt.Sprint(since) != fmt.Sprint(all[2:]) {
		t.Errorf("since the third: %d of %d", len(since), len(all))
	}
	req.Kinds = []event.Kind{event.Exited}
	if none, _ := seen(t, s, req); len(none) != 0 {
		t.Errorf("ends are no calls of the shell: %v", none)
	}
	for _, bad := range []ipc.EventsRequest{{Tail: -1}, {Tail: 10001}, {Filter: &ipc.EventFilter{Level: "high"}}, {Filter: &ipc.EventFilter{Path: "["}}, {Targets: make([]string, 1001)},
		{Target: parent.UUID.String(), Targets: []string{"nobody"}}} {
		feed, err := ipc.Open(t.Context(), s.Client, ipc.Events, bad)
		if err == nil {
			_ = feed.Close()
		}
		if code := types.CodeOf(err); code != types.ErrInvalid && code != types.ErrNotFound {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestOfAQuietProcessNothingIsMissedWhateverOthersDo(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Hang: true} })
	const kept = 512
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, testenv.EventsEnv+"="+strconv.Itoa(kept))
	quiet := s.Spawn(ipc.SpawnRequest{Intent: "think", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(quiet.PID, event.StepStarted, nil)
	loud := s.Spawn(ipc.SpawnRequest{Intent: "think", ProcSpec: types.ProcSpec{Model: "fake"}})
	for range kept + 100 { // each is an event, and changes nothing
		signal(t, s, loud.PID, types.SIGRESUME)
	}
	list, missed := seen(t, s, ipc.EventsRequest{Target: quiet.UUID.String(), History: true})
	if missed != 0 || of(list, event.StepStarted)[quiet.PID] != 1 {
		t.Errorf("%d events, %d missed", len(list), missed)
	}
}

func TestALineOfEventsThatCannotBeReadIsToldOf(t *testing.T) {
	s, _, other := eventFamily(t)
	s.Stop()
	name := filepath.Join(s.Data, "steps", other.UUID.String(), "events.jsonl")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	l := strings.SplitAfter(string(b), "\n")
	l[3], l[4], l[len(l)-2] = "broken\n", "\x00\n", "{\n"
	if err := os.WriteFile(name, []byte(strings.Join(l, "")+`{"seq":`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Start()
	list, _ := seen(t, s, ipc.EventsRequest{Target: other.UUID.String(), History: true})
	var told []string
	for i := range list {
		if list[i].Kind == event.Lag {
			told = append(told, fmt.Sprintf("%d: %s", i, list[i].Text))
		}
		if list[i].Time.Before(time.Now().Add(-time.Hour)) {
			t.Errorf("%+v", list[i])
		}
	}
	want := fmt.Sprintf("3: 2 lines of its events cannot be read: not shown, %d: 1 line of its events cannot be read: not shown", len(list)-1)
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
