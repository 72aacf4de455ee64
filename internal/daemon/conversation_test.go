package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

func messages(t *testing.T, s *testenv.System, req ipc.MessagesRequest) ipc.MessagesResponse {
	t.Helper()
	r, err := ipc.Call(t.Context(), s.Client, ipc.ListMessages, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// said is a conversation in short.
func said(ms []ipc.ConversationMessage) (out []string) {
	for _, m := range ms {
		text := fmt.Sprintf("%d/%d %s %s %.20q", m.N, m.Step, m.Role, m.From, m.Content)
		for _, c := range m.ToolCalls {
			text += " " + c.Name + c.Input
		}
		out = append(out, strings.ReplaceAll(text, "  ", " "))
	}
	return out
}

// A conversation is read page by page, of those who live and those who have ended, as it is and as a step had it; a text that is too long
// for an answer, part by part.
func TestConversationIsReadPageByPage(t *testing.T) {
	long := strings.Repeat("äöü ", 400_000) + "end" // 2.8 MB, each character two bytes
	asked := make(chan struct{}, 10)
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if r.LastUser() == "enough" {
			return llmtest.Reply{Text: long}
		}
		if _, told := r.LastResult(); told {
			asked <- struct{}{}
			return llmtest.Reply{Hang: true}
		}
		return tool("shell", `{"command":"echo hello"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "begin", ProcSpec: types.ProcSpec{Model: "fake"}})
	<-asked
	target := p.UUID.String()
	live := messages(t, s, ipc.MessagesRequest{Target: target})
	want := []string{`1/0 user user "begin"`, `2/1 assistant "" shell{"command":"echo hello"}`}
	if got := said(live.Messages); len(got) != 3 || got[0] != want[0] || got[1] != want[1] || live.Total != 3 || live.Messages[2].Role != "tool" || live.Messages[2].Step != 1 ||
		live.Messages[2].ToolCallID != live.Messages[1].ToolCalls[0].ID || live.Messages[0].Time.IsZero() {
		t.Errorf("%d: %q", live.Total, got)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Steer, ipc.SendRequest{Target: target, Text: "enough"}); err != nil {
		t.Fatal(err)
	}
	signal(t, s, p.PID, types.SIGPAUSE) // it is asked again, with what was said
	signal(t, s, p.PID, types.SIGRESUME)
	s.Wait(p.PID)
	all := messages(t, s, ipc.MessagesRequest{Target: target})
	last := all.Messages[len(all.Messages)-1]
	if got := said(all.Messages); all.Total != 5 || got[3] != `4/1 user steer "enough"` || last.Step != 2 || last.Bytes != len(long) || last.Cut != len(long)-len(last.Content) || len(last.Content) > ipc.TextBytes {
		t.Errorf("%d: %q", all.Total, got)
	}
	if one := messages(t, s, ipc.MessagesRequest{Target: target, Step: 1}); one.Total != 1 || one.Messages[0].Content != "begin" {
		t.Errorf("%+v", one)
	}
	if two := messages(t, s, ipc.MessagesRequest{Target: target, Step: 2}); two.Total != 4 {
		t.Errorf("%+v", two)
	}
	var b strings.Builder
	for skip := 0; ; {
		r := messages(t, s, ipc.MessagesRequest{Target: target, From: last.N, Limit: 1, MaxBytes: 1<<20 - 1, Skip: skip})
		m := r.Messages[0]
		if b.WriteString(m.Content); m.Skipped != skip || len(r.Messages) != 1 {
			t.Fatalf("%d, and %d was asked for", m.Skipped, skip)
		}
		if skip = m.Bytes - m.Cut; m.Cut == 0 {
			break
		}
	}
	if b.String() != long {
		t.Error("the parts are not the whole")
	}
	var numbers []int
	for from, end := 1, false; !end; {
		r := messages(t, s, ipc.MessagesRequest{Target: target, From: from, Limit: 2})
		for _, m := range r.Messages {
			numbers = append(numbers, m.N)
		}
		from, end = r.Next, r.Next == 0
	}
	if fmt.Sprint(numbers) != "[1 2 3 4 5]" {
		t.Errorf("%v", numbers)
	}
	if r := messages(t, s, ipc.MessagesRequest{Target: target, From: -2, Limit: 2}); len(r.Messages) != 2 || r.Messages[0].N != 4 || r.Prev != 2 || r.Next != 0 {
		t.Errorf("%+v", r)
	}
	if r := messages(t, s, ipc.MessagesRequest{Target: target, From: 99}); len(r.Messages) != 0 || r.Total != 5 || r.Prev == 0 {
		t.Errorf("%+v", r)
	}
	for _, req := range []ipc.MessagesRequest{{Target: target, Limit: 1001}, {Target: target, MaxBytes: 1<<20 + 1}, {Target: target, Skip: -1}, {Target: target, Step: -1}, {}} {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.ListMessages, req); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", req, err)
		}
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.ListMessages, ipc.MessagesRequest{Target: target, Step: 9}); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "steps 1 to 2") {
		t.Errorf("%v", err)
	}
}
