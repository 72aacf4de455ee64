package daemon_test

import (
	"strconv"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// A list that allows nothing is not the absence of a list, on the wire either.
func TestEmptyListAllowsNothing(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", `{"command":"echo ran"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	for name, c := range map[string]struct {
		allow []string
		want  string
	}{
		"no list": {nil, "ran\n"}, "empty": {[]string{}, "there is no such tool"}, "shell": {[]string{"/dev/shell"}, "ran\n"}, "other": {[]string{"/dev/fs"}, "there is no such tool"},
	} {
		w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "run it", ProcSpec: types.ProcSpec{Model: "fake", AllowedDevices: c.allow}}).PID)
		if !strings.Contains(w.Result, c.want) {
			t.Errorf("%s: %+v, want %q", name, w, c.want)
		}
	}
}

// A client that comes too late for the first events is told how many it will not get.
func TestClientIsToldWhichEventsItMissed(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Hang: true} })
	const kept = 128
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, testenv.EventsEnv+"="+strconv.Itoa(kept))
	p := s.Spawn(ipc.SpawnRequest{Intent: "think", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(p.PID, event.StepStarted, nil)
	for range kept { // each signal is an event, and what it does is another one
		signal(t, s, p.PID, types.SIGPAUSE)
		signal(t, s, p.PID, types.SIGRESUME)
	}
	feed, err := ipc.Open(t.Context(), s.Client, ipc.Events, ipc.EventsRequest{From: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	var next uint64 = 1
	missed := uint64(0)
	for f, err := range feed.All() {
		switch {
		case err != nil:
			t.Fatal(err)
		case f.Missed != nil:
			if f.Missed.From != next {
				t.Errorf("missed from %d on, but %d was due", f.Missed.From, next)
			}
			missed += f.Missed.To - f.Missed.From + 1
			next = f.Missed.To + 1
		default:
			if f.Data.Seq != next {
				t.Fatalf("event %d, but %d was due and nobody said why", f.Data.Seq, next)
			}
			next++
		}
	}
	if missed < kept {
		t.Errorf("told of %d missed events", missed)
	}
}
