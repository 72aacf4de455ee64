package daemon_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

func pictureOf(t *testing.T, name string, w int) ipc.Attachment {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, 2))); err != nil {
		t.Fatal(err)
	}
	return ipc.Attachment{Name: name, Data: b.Bytes()}
}

// watcher is a model that hangs until it is let go, and then says what it was shown last, by name.
type watcher struct {
	free     atomic.Bool
	pictures []ipc.Attachment
}

func (w *watcher) answer(r llmtest.Request) llmtest.Reply {
	if !w.free.Load() {
		return llmtest.Reply{Hang: true}
	}
	var seen []string
	for _, p := range w.pictures {
		n := bytes.Count(r.Body, []byte(base64.StdEncoding.EncodeToString(p.Data)))
		if labels := bytes.Count(r.Body, []byte("[image "+p.Name+" ")); n != labels {
			seen = append(seen, "lost:"+p.Name)
		}
		seen = append(seen, strings.Repeat(p.Name+";", n))
	}
	return llmtest.Reply{Text: "shown: " + strings.Join(seen, "")}
}

// What a person shows to an agent that works, to one that is suspended, and to one that has ended, is there after kill -9 as soon as it is acknowledged; a fork
// has what was shown before the step from which it begins.
func TestWhatIsShownLaterStaysOverKillsAndForks(t *testing.T) {
	a, b, c := pictureOf(t, "a.png", 3), pictureOf(t, "b.png", 4), pictureOf(t, "c.png", 5)
	model := &watcher{pictures: []ipc.Attachment{a, b, c}}
	_, url := llmtest.NewAPI(t, model.answer)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	p := s.Spawn(ipc.SpawnRequest{Intent: "look", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(p.PID, event.StepStarted, nil)
	id := p.UUID.String()
	again := func() { s.Kill(); s.Start(); s.Settle() }
	steer := func(want string, as ...ipc.Attachment) {
		t.Helper()
		if r, err := ipc.Call(t.Context(), s.Client, ipc.Steer, ipc.SendRequest{Target: id, Text: "see this", Attachments: as}); err != nil || r.State != want {
			t.Fatalf("%+v, %v; want %s", r, err, want)
		}
	}
	refused := func(text, want string, as ...ipc.Attachment) {
		t.Helper()
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Steer, ipc.SendRequest{Target: id, Text: text, Attachments: as}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	cut := ipc.Attachment{Name: "cut.png", Data: a.Data[:len(a.Data)-3]}
	refused("see this", "cut.png: cannot be attached: the PNG image is cut off", a, cut)
	steer("running", a)
	again()
	refused("see this", "cut.png: cannot be attached: the PNG image is cut off", b, cut)
	refused("see this", "21 files are attached and at most 20 are taken", make([]ipc.Attachment, 21)...)
	refused(" ", "the message is empty", a)
	steer("suspended", b)
	again()
	if box, err := ipc.Call(t.Context(), s.Client, ipc.Mailbox, ipc.MailboxRequest{Target: id}); err != nil || box.Total != 2 {
		t.Errorf("%+v, %v", box, err)
	}
	model.free.Store(true)
	resumed := func(want string, req ipc.ResumeRequest) types.UUID {
		t.Helper()
		req.Target, req.Env = id, s.Env
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, req)
		if err != nil {
			t.Fatal(err)
		}
		if w := s.Wait(r.PID); w.Result != "shown: "+want {
			t.Errorf("%+v: %q, want %q", req, w.Result, want)
		}
		return r.UUID
	}
	resumed("a.png;b.png;", ipc.ResumeRequest{})
	resumed("a.png;b.png;c.png;", ipc.ResumeRequest{NewInput: "and this", Attachments: []ipc.Attachment{c}})
	again()
	resumed("a.png;b.png;c.png;", ipc.ResumeRequest{NewInput: "again"})
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id, Env: s.Env, Attachments: []ipc.Attachment{c}}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "say what the agent should do with them") {
		t.Error(err)
	}

	// Who reads the conversation is shown them, and nothing else of the history's directory.
	for _, m := range messages(t, s, ipc.MessagesRequest{Target: id}).Messages {
		for i, shown := range m.Attachments {
			r, err := ipc.Call(t.Context(), s.Client, ipc.ReadAttachment, ipc.AttachmentRequest{Target: id, SHA256: shown.SHA256})
			if err != nil || r.Media != "image/png" || int64(len(r.Data)) != shown.Bytes {
				t.Errorf("%d of message %d: %s of %d bytes, %v", i, m.N, r.Media, len(r.Data), err)
			}
		}
	}
	for sum, want := range map[string]types.ErrCode{strings.Repeat("0", 64): types.ErrNotFound, "../steps.jsonl": types.ErrInvalid, "": types.ErrInvalid} {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.ReadAttachment, ipc.AttachmentRequest{Target: id, SHA256: sum}); types.CodeOf(err) != want {
			t.Errorf("%q: %v", sum, err)
		}
	}

	for from, want := range map[int]string{0: "", 1: "a.png;b.png;", 2: "a.png;b.png;c.png;"} {
		fork := resumed(want, ipc.ResumeRequest{Fork: true, FromStep: &from, Cwd: s.Work})
		files, _ := os.ReadDir(filepath.Join(s.Data, "steps", fork.String(), "attachments")) // there may be none
		if len(files) != strings.Count(want, ";") {
			t.Errorf("from step %d: %d files", from, len(files))
		}
	}
	one := 1
	resumed("a.png;b.png;c.png;", ipc.ResumeRequest{Fork: true, FromStep: &one, Cwd: s.Work, NewInput: "this one", Attachments: []ipc.Attachment{c}})
}

// A fork of a process whose step has not ended is told again what a person has said meanwhile, and shown what was shown with it.
func TestAForkIsShownWhatWasShownInTheStepThatIsLeftOut(t *testing.T) {
	a := pictureOf(t, "a.png", 3)
	model := &watcher{pictures: []ipc.Attachment{a}}
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if !model.free.Load() {
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "shell", Input: `{"command":"sleep 100"}`}}}
		}
		return model.answer(r)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(p.PID, event.SyscallBegun, func(e *event.Event) bool { return e.Path == "/dev/shell" })
	s.Kill()
	s.Start()
	s.Settle()
	// Its step is open: what is said at the resume waits for its end.
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, NewInput: "see this", Attachments: []ipc.Attachment{a}, OnInDoubt: "retry"})
	if err != nil {
		t.Fatal(err)
	}
	s.Await(r.PID, event.SyscallBegun, func(e *event.Event) bool { return e.Path == "/dev/shell" })
	model.free.Store(true)
	f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true, Cwd: s.Work})
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Wait(f.PID); w.Result != "shown: a.png;" {
		t.Errorf("%q", w.Result)
	}
}
