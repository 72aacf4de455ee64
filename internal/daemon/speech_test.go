package daemon_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// heardText puts together what a client has heard of a category: pieces, and lines that it has not heard as such.
func heardText(list []ipc.Event, category string) string {
	var b strings.Builder
	for i := range list {
		e := &list[i]
		switch {
		case e.Name != category:
		case e.Kind == event.Piece:
			b.WriteString(e.Text)
		case e.Kind == event.LogLine:
			b.WriteString(e.Text)
			if len(e.Text) < e.Total {
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

func TestWhatAModelSaysIsHeardWhileItSaysIt(t *testing.T) {
	const text = "First line.\nSecond line, with a € in it.\nThe last one has no end"
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if _, told := r.LastResult(); told {
			return llmtest.Reply{Text: text, Chunks: 24, Pause: 5 * time.Millisecond}
		}
		call := tool("shell", `{"command":"echo hi"}`)
		call.Text, call.Reasoning, call.Chunks = "I look first.", "Hm.\nLet me see", 3
		return call
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "speak", ProcSpec: types.ProcSpec{Model: "fake"}})
	for _, c := range []struct {
		name string
		req  ipc.EventsRequest
	}{
		{"from its birth", ipc.EventsRequest{From: p.Seq + 1}},
		{"with its past", ipc.EventsRequest{History: true}},
		{"only what it says", ipc.EventsRequest{History: true, Kinds: []event.Kind{event.LogLine}, Filter: &ipc.EventFilter{Log: true, Categories: []string{"output"}}}},
	} {
		name, req := c.name, c.req
		req.Target, req.Follow, req.UntilEnd, req.Speech = p.UUID.String(), true, true, true
		list, missed := seen(t, s, req)
		if got := heardText(list, "output"); got != "I look first."+text || missed != 0 {
			t.Errorf("%s: heard %q, missed %d", name, got, missed)
		}
		if got := heardText(list, "think"); got != "Hm.\nLet me see" && len(req.Kinds) == 0 || got != "" && len(req.Kinds) > 0 {
			t.Errorf("%s: its thoughts: %q", name, got)
		}
		pieces := 0
		for i := range list {
			if list[i].Kind == event.Piece {
				pieces++
				if list[i].Seq != 0 || list[i].Answer == 0 {
					t.Errorf("%s: a piece that claims to be in the log: %+v", name, list[i])
				}
			}
		}
		if pieces == 0 && name == "from its birth" {
			t.Errorf("%s: nothing came in pieces", name)
		}
	}
	if list, _ := seen(t, s, ipc.EventsRequest{Target: p.UUID.String(), History: true}); of(list, event.Piece)[p.PID] != 0 {
		t.Error("pieces are in the record")
	}
}

// The ends of steps that are to come are sent beside what a filter picks, and those of the past are not.
func TestTheEndsOfStepsAreHeardBesideALog(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	resume := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(resume)
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if _, told := r.LastResult(); told {
			close(asked)
			<-goOn
			return llmtest.Reply{Text: "Done."}
		}
		return tool("shell", `{"command":"echo hi"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	<-asked
	feed, err := ipc.Open(t.Context(), s.Client, ipc.Events, ipc.EventsRequest{Target: p.UUID.String(), History: true, Tail: 1, Follow: true, UntilEnd: true, Steps: true,
		Kinds: []event.Kind{event.LogLine}, Filter: &ipc.EventFilter{Log: true, Categories: []string{"tool"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	var got []string
	for f, err := range feed.All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(f.Data.Kind, f.Data.Step))
		resume()
	}
	if text := strings.Join(got, " "); text != "log0 step_ended2" {
		t.Errorf("heard: %s", text)
	}
}

// Who comes late hears the answer under way from its beginning, as far as its past does not have it.
func TestWhoComesLateHearsTheAnswerUnderWay(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "A line.\nAnd a half", Hang: true}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "speak", ProcSpec: types.ProcSpec{Model: "fake"}})
	first := func(req ipc.EventsRequest, until string) string {
		req.Target, req.Follow, req.Speech, req.Kinds = p.UUID.String(), true, true, []event.Kind{event.LogLine}
		feed, err := ipc.Open(t.Context(), s.Client, ipc.Events, req)
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		var list []ipc.Event
		for f, err := range feed.All() {
			if err != nil {
				t.Fatal(err)
			}
			if list = append(list, f.Data); strings.Contains(heardText(list, "output"), until) {
				break
			}
		}
		return heardText(list, "output")
	}
	if got := first(ipc.EventsRequest{}, "half"); got != "A line.\nAnd a half" {
		t.Errorf("from now on: %q", got)
	}
	for range 2 {
		if got := first(ipc.EventsRequest{History: true}, "half"); got != "A line.\nAnd a half" {
			t.Errorf("with its past: %q", got)
		}
	}
	signal(t, s, p.PID, types.SIGKILL)
	s.Wait(p.PID)
}
