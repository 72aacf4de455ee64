package harness

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/types"
	"rnix/vfs"
)

// shown is a message of the user with an image.
func shown(text, name string) rnixctx.Message {
	a := rnixctx.Attachment{Name: name, Media: "image/png", SHA256: name, Bytes: 70, Width: 1, Height: 1}
	return rnixctx.Message{Role: rnixctx.RoleUser, Content: rnixctx.WithLabels(text, []rnixctx.Attachment{a}), Attachments: []rnixctx.Attachment{a}}
}

// asked is ask with a history that has the bytes of each image but gone.png: its name.
func (b *bench) asked() *llm.LLMResponse {
	b.t.Helper()
	r, err := b.attempt()
	if err != nil {
		b.t.Fatal(err)
	}
	b.ms = append(b.ms, rnixctx.Message{Role: rnixctx.RoleAssistant, Content: r.Content, ToolCalls: r.ToolCalls, Reasoning: r.Blocks})
	for _, d := range r.Done {
		b.answer(d.ID, d.Output)
	}
	return r
}

// attempt is asked for a request that may fail.
func (b *bench) attempt() (*llm.LLMResponse, error) {
	ctx := llm.WithCaller(b.t.Context(), vfs.Caller{PID: 7, UUID: sessionUUID(b.t)})
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	return b.Call(ctx, llm.LLMRequest{Session: sessionID, WorkDir: b.dir, Messages: b.ms, Attachment: func(a rnixctx.Attachment) ([]byte, error) {
		if a.Name == "gone.png" {
			return nil, types.Errorf(types.ErrNotFound, "Read", a.Name, "it is not there")
		}
		return []byte(a.Name), nil
	}})
}

// names are those of what a start shows.
func names(s *agent.Spec) string {
	var out []string
	for i := range s.Attachments {
		out = append(out, s.Attachments[i].Name+"="+string(s.Attachments[i].Data))
	}
	return strings.Join(out, " ")
}

// An agent CLI that takes none hears that it is not shown what a person attaches: with the task, while it works, and when it is started again.
func TestACommandLineHearsWhatItIsNotShown(t *testing.T) {
	again := begun + heard + shell + `read L; case $L in *"faster"*"b.png is not shown: sheet takes no images"*) ;; *) exit 3;; esac; echo '{"kind":"system","subtype":"heard"}'` + "\n" + finish + hang
	b := newBench(t, false, again)
	b.ms = []rnixctx.Message{shown("the task", "a.png")}
	b.ask()
	if p := b.starts[0].Prompt; !strings.Contains(p, "[image a.png 1×1, 70 bytes]\n[a.png is not shown: sheet takes no images]") {
		t.Errorf("%q", p)
	}
	b.ms = append(b.ms, shown("go faster", "b.png"))
	if r := b.ask(); r.Content != "all done" {
		t.Errorf("%+v", r)
	}
	mute := newBench(t, true, begun+shell+finish, begun+finish)
	mute.ask()
	mute.ms = append(mute.ms, shown("go faster", "b.png"))
	if r := mute.ask(); r.Content != "all done" || len(mute.starts) != 2 || !strings.Contains(mute.starts[1].Prompt, "[b.png is not shown: sheet takes no images]") {
		t.Errorf("%+v, started with %+v", r, mute.starts)
	}
}

// One that takes images gets each once: with the task, while it works, and, if it cannot hear then, when it is started again.
func TestACommandLineIsShownWhatAPersonAttaches(t *testing.T) {
	again := begun + heard + shell + `read L; case $L in *"faster"*"<image/png b.png>"*) ;; *) exit 3;; esac; echo '{"kind":"system","subtype":"heard"}'` + "\n" + finish + hang
	b := newImageBench(t, false, again)
	b.ms = []rnixctx.Message{shown("the task", "a.png")}
	b.asked()
	if s := &b.starts[0]; s.Prompt != "the task\n\n[image a.png 1×1, 70 bytes]" && s.Prompt != "the task\n[image a.png 1×1, 70 bytes]" || names(s) != "a.png=a.png" {
		t.Errorf("%q, %s", s.Prompt, names(s))
	}
	b.ms = append(b.ms, shown("go faster", "b.png"))
	if r := b.asked(); r.Content != "all done" || len(b.starts) != 1 {
		t.Errorf("%+v", r)
	}

	mute := newImageBench(t, true, begun+shell+finish, begun+finish)
	mute.ms = []rnixctx.Message{shown("the task", "a.png")}
	mute.asked()
	mute.ms = append(mute.ms, shown("go faster", "b.png"), shown("and better", "gone.png"))
	if r := mute.asked(); r.Content != "all done" || len(mute.starts) != 2 {
		t.Fatalf("%+v, started with %+v", r, mute.starts)
	}
	if s := &mute.starts[1]; names(s) != "b.png=b.png" || !strings.Contains(s.Prompt, "[gone.png is not shown: its file is missing from the history]") || strings.Contains(s.Prompt, "b.png is not shown") {
		t.Errorf("%q, %s", s.Prompt, names(s))
	}
}

// What it was told and has not heard when it was killed is told, and shown, to the next one. A new session is shown all of the conversation.
func TestWhatWasNotHeardIsShownAgain(t *testing.T) {
	b := newImageBench(t, false, begun+heard+shell+"read L; kill -9 $$\n", begun+heard+finish+hang)
	b.ms = []rnixctx.Message{shown("the task", "a.png")}
	b.asked()
	b.ms = append(b.ms, shown("go faster", "b.png"))
	if _, err := b.attempt(); err == nil {
		t.Fatal("who was killed has answered")
	}
	if r := b.asked(); r.Content != "all done" || len(b.starts) != 2 || b.starts[1].Resume != "s-1" || names(&b.starts[1]) != "b.png=b.png" {
		t.Errorf("%+v, started with %+v", r, b.starts)
	}
	b.CloseSession(sessionID)
	b.ms = append(b.ms, shown("once more", "a.png"))
	for i := range b.ms { // as a fork has it
		b.ms[i].Reasoning = nil
	}
	b.dir = t.TempDir()
	if b.asked(); len(b.starts) != 3 || b.starts[2].Resume != "" || names(&b.starts[2]) != "a.png=a.png b.png=b.png" || strings.Contains(b.starts[2].Prompt, "not shown") {
		t.Errorf("started with %+v", b.starts)
	}
}

func TestWhatWaitsInARecordWasNotHeard(t *testing.T) {
	code := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("an image ", 20_000)))
	for record, want := range map[string]int{
		"": 0,
		`{"type":"queue-operation","operation":"enqueue","content":[{"data":"` + code + `"}]}` + "\n":                          0,
		`{"type":"user","message":{"content":[{"data":"` + code + `"}]}}` + "\n":                                               1,
		`{"type":"queue-operation","content":"` + code + `"}` + "\n" + `{"type":"attachment","attachment":["` + code + `"]}`:   1,
		`{"type":"user","message":{"content":[{"data":"` + code[:len(code)-9] + `"}]}}` + "\n" + `{"type":"user","x":"cut off`: 0,
	} {
		if got := codesIn(strings.NewReader(record), []string{code}); len(got) != want {
			t.Errorf("%.60s: %d", record, len(got))
		}
	}
}
