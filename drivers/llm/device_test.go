package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/types"
	"rnix/vfs"
	"rnix/vfs/vfstest"
)

func TestDeviceKeepsTheContract(t *testing.T) {
	vfstest.Run(t, vfstest.Device{
		Path: "/dev/llm/scripted",
		Open: func(testing.TB) (vfs.VFSFileFactory, vfs.Caller) {
			return llm.NewDevice(llmtest.NewScriptedFunc(llmtest.SuiteTurn)), vfs.Caller{PID: 1}
		},
		Samples: []vfstest.Sample{
			{Name: "json", Input: `{"messages":[{"role":"user","content":"say: hello"}]}`, Want: `"content":"hello"`},
			{Name: "intent", Input: `{"intent":"say: hi","timeout_ms":60000}`, Want: `"content":"hi"`},
			{Name: "text", Input: "say: plain", Want: `"content":"plain"`},
			{Name: "nothing", Input: `{}`, WantCode: types.ErrInvalid},
			{Name: "unknown key", Input: `{"prompt":"x"}`, WantCode: types.ErrInvalid},
			{Name: "below", Subpath: "/x", Input: "hi", WantCode: types.ErrNotFound},
			{Name: "fails", Input: "fail", WantCode: types.ErrInvalid},
		},
		Slow:     &vfstest.Sample{Input: "endless"},
		RawWrite: true,
	})
}

func open(t *testing.T, d llm.LLMDriver, c vfs.Caller) vfs.VFSFile {
	t.Helper()
	f, err := llm.NewDevice(d)("", vfs.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := f.(vfs.CallerBinder).BindCaller(c); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestPiecesReachTheStreamHandlerWhileTheyCome(t *testing.T) {
	turn := llmtest.Turn{Text: "one two", Pieces: 2, Reasoning: "hm"}
	f := open(t, llm.NewGate(llmtest.NewScripted(turn), 1), vfs.Caller{})
	var mu sync.Mutex
	var got []string
	f.(vfs.StreamNotifier).NotifyStream(func(p vfs.StreamPart) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, p.Kind+":"+p.Text)
	})
	if err := f.Write(t.Context(), []byte("go")); err != nil {
		t.Fatal(err)
	}
	if s := strings.Join(got, ","); s != "reasoning:hm,text:one,text: two" {
		t.Errorf("pieces are %s", s)
	}
	b, err := f.Read(0)
	var resp llm.LLMResponse
	if err != nil || json.Unmarshal(b, &resp) != nil || resp.Content != "one two" || resp.Reasoning != "hm" {
		t.Errorf("answer is %s, %v", b, err)
	}
}

func TestDeviceSaysWhatTheModelIs(t *testing.T) {
	f := open(t, llmtest.NewScripted(), vfs.Caller{})
	if info := f.(llm.ModelInfo).Info(); info.Model != "scripted-1" {
		t.Errorf("info is %+v", info)
	}
	if card := f.(vfs.Modeler).ModelCard(); card.Provider != "scripted" || card.ContextWindow != 200_000 {
		t.Errorf("card is %+v", card)
	}
}

// secretDriver tells which key it would use.
type secretDriver struct{ llm.LLMDriver }

func (secretDriver) Stream(ctx context.Context, _ llm.LLMRequest) (<-chan llm.StreamEvent, error) {
	return llm.Produce(ctx, func(ctx context.Context, _ func(llm.StreamEvent)) (*llm.LLMResponse, error) {
		key, ok := llm.SecretFrom(ctx, "TEST_LLM_KEY")
		if !ok {
			return nil, errors.New("no key")
		}
		return &llm.LLMResponse{Content: key + " for " + llm.CallerFrom(ctx).WorkDir}, nil
	}), nil
}

func TestKeysComeFromTheCallerFirst(t *testing.T) {
	d := secretDriver{llmtest.NewScripted()}
	ask := func(c vfs.Caller) string {
		f := open(t, d, c)
		if err := f.Write(t.Context(), []byte("x")); err != nil {
			if types.CodeOf(err) != types.ErrDriver {
				t.Errorf("an error without code became %v", err)
			}
			return "none"
		}
		b, _ := f.Read(0)
		return string(b)
	}
	if got := ask(vfs.Caller{}); got != "none" {
		t.Errorf("without any: %s", got)
	}
	t.Setenv("TEST_LLM_KEY", "ours")
	theirs := vfs.Caller{WorkDir: "/w", Secret: func(name string) (string, bool) { return "theirs", name == "TEST_LLM_KEY" }}
	if got := ask(theirs); !strings.Contains(got, "theirs for /w") {
		t.Errorf("the caller's: %s", got)
	}
	if got := ask(vfs.Caller{Secret: func(string) (string, bool) { return "", false }}); !strings.Contains(got, "ours") {
		t.Errorf("our own: %s", got)
	}
}

func TestLastEventIsNotLostWhenNobodyReads(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := llmtest.NewScripted(llmtest.Endless("x")).Stream(ctx, llm.LLMRequest{})
	if err != nil {
		t.Fatal(err)
	}
	<-ch
	cancel()
	var last llm.StreamEvent
	for ev := range ch {
		last = ev
	}
	if last.Type != llm.EventError || types.CodeOf(last.Err) != types.ErrCancelled {
		t.Errorf("last event is %+v", last)
	}
}

func TestPanicOfADriverIsAnErrorOfItsCall(t *testing.T) {
	events := llm.Produce(t.Context(), func(_ context.Context, emit func(llm.StreamEvent)) (*llm.LLMResponse, error) {
		emit(llm.StreamEvent{Type: llm.EventText, Text: "so far"})
		panic("unexpected")
	})
	if _, err := llm.Collect(events); types.CodeOf(err) != types.ErrInternal || !strings.Contains(err.Error(), "panic") {
		t.Errorf("got %v", err)
	}
}
