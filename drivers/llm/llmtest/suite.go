package llmtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/types"
)

// Caps says what the model behind a driver under test can be made to do. It must understand the words
// of SuiteTurn (in SuiteScript for a model behind an API): "say: X", "tool: NAME JSON", "endless",
// "cut" and "fail".
type Caps struct {
	NoEcho    bool // it does not understand "say: X", and answers with something
	NoTools   bool // it has no tool calls of its own
	NoEndless bool // it cannot be made to answer without end
	NoFailure bool // it cannot be made to fail
	NoPieces  bool // it delivers no EventText before the end
	Free      bool // it uses no tokens, and says so
}

// SuiteTurn is the script of a Scripted model that the suite can drive.
func SuiteTurn(_ int, req llm.LLMRequest) Turn {
	text := LastText(req)
	if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == rnixctx.RoleTool {
		return Say("got: " + text)
	}
	if name, input, ok := suiteTool(text); ok {
		return Call(name, input)
	}
	switch text {
	case "endless":
		return Endless("more ")
	case "cut":
		return CutOff("half an ")
	case "fail":
		return Fail(types.ErrInvalid, "told to fail")
	}
	said, _ := strings.CutPrefix(text, "say: ")
	return Turn{Text: said, Pieces: 2}
}

// SuiteScript is SuiteTurn for an API.
func SuiteScript(r Request) Reply {
	if res, ok := r.LastResult(); ok {
		return Reply{Text: "got: " + res.Text}
	}
	text := r.LastUser()
	if name, input, ok := suiteTool(text); ok {
		return Reply{ToolCalls: []ToolCall{{Name: name, Input: input}}}
	}
	switch text {
	case "endless":
		return Reply{Text: "more ", Endless: true, Pause: time.Millisecond}
	case "cut":
		return Reply{Text: "half an ", Cut: true}
	case "fail":
		return Reply{Status: 400, Text: "told to fail"}
	}
	said, _ := strings.CutPrefix(text, "say: ")
	return Reply{Text: said, Chunks: 2}
}

// patience bounds what must not last; only a driver that hangs reaches it.
const patience = 2 * time.Minute

// Run checks the contract of LLMDriver. open makes a fresh driver, and closes it with t.Cleanup if
// that is needed.
func Run(t *testing.T, open func(t *testing.T) llm.LLMDriver, caps Caps) {
	t.Helper()
	s := suite{open, caps}
	t.Run("InfoNamesTheDriver", s.testInfo)
	t.Run("CallAnswers", s.testCall)
	t.Run("StreamEndsWithOneLastEvent", s.testStream)
	t.Run("PiecesMakeTheAnswer", s.testPieces)
	t.Run("UsageIsCounted", s.testUsage)
	t.Run("EndedContextIsHonoured", s.testEnded)
	t.Run("CallsRunSideBySide", s.testConcurrent)
	t.Run("ConversationGoesOn", s.testConversation)
	if !caps.NoTools {
		t.Run("ToolCallRoundTrip", s.testTools)
	}
	if !caps.NoEndless {
		t.Run("CancelEndsAnAnswer", s.testCancel)
		t.Run("AbandonedStreamLeavesNothing", s.testAbandon)
		t.Run("TimeoutEndsAnAnswer", s.testTimeout)
	}
	if !caps.NoFailure {
		t.Run("FailureHasACode", s.testFailure)
	}
}

type suite struct {
	open func(t *testing.T) llm.LLMDriver
	caps Caps
}

func ask(text string) llm.LLMRequest {
	return llm.LLMRequest{Model: "fake-1", SystemPrompt: "You are a test.", Session: "suite",
		Messages: []rnixctx.Message{{Role: rnixctx.RoleUser, Content: text}}}
}

// run runs a stream to its end, checks its form and returns the pieces and the last event.
func run(t *testing.T, ctx context.Context, d llm.LLMDriver, req llm.LLMRequest) (text string, last llm.StreamEvent) {
	t.Helper()
	ch, err := d.Stream(ctx, req)
	if err != nil {
		return "", llm.StreamEvent{Type: llm.EventError, Err: err}
	}
	alarm := time.NewTimer(patience)
	defer alarm.Stop()
	ends := 0
	for {
		select {
		case ev, ok := <-ch:
			if !ok {
				if ends != 1 {
					t.Errorf("the stream had %d last events, want 1", ends)
				}
				return text, last
			}
			switch last = ev; ev.Type {
			case llm.EventDone:
				if ends++; ev.Response == nil {
					t.Error("EventDone without a response")
				}
			case llm.EventError:
				if ends++; ev.Err == nil {
					t.Error("EventError without an error")
				}
			case llm.EventText:
				text += ev.Text
			case llm.EventReasoning, llm.EventWait, llm.EventWarning:
			default:
				t.Errorf("unknown event type %q", ev.Type)
			}
			if ends > 0 && ev.Type != llm.EventDone && ev.Type != llm.EventError {
				t.Errorf("%s after the last event", ev.Type)
			}
		case <-alarm.C:
			t.Fatalf("the stream is still open after %v", patience)
		}
	}
}

func (s suite) testInfo(t *testing.T) {
	if info := s.open(t).Info(); info.Name == "" || info.Driver == "" {
		t.Errorf("Info is %+v: Name and Driver are needed", info)
	}
}

func (s suite) check(t *testing.T, resp *llm.LLMResponse, err error, want string) {
	t.Helper()
	switch {
	case err != nil:
		t.Errorf("call: %v", err)
	case resp == nil:
		t.Error("call: neither answer nor error")
	case s.caps.NoEcho && resp.Content == "" && len(resp.ToolCalls) == 0:
		t.Error("the answer is empty")
	case !s.caps.NoEcho && resp.Content != want:
		t.Errorf("the answer is %q, want %q", resp.Content, want)
	}
}

func (s suite) testCall(t *testing.T) {
	for _, text := range []string{"hello", "ünï <b>&amp; \"quoted\" \\ 日本 \U0001f600", "line 1\nline 2"} {
		resp, err := s.open(t).Call(t.Context(), ask("say: "+text))
		s.check(t, resp, err, text)
	}
}

func (s suite) testStream(t *testing.T) {
	_, last := run(t, t.Context(), s.open(t), ask("say: hello"))
	s.check(t, last.Response, last.Err, "hello")
}

func (s suite) testPieces(t *testing.T) {
	text, last := run(t, t.Context(), s.open(t), ask("say: one two three"))
	if last.Response == nil {
		t.Fatalf("no answer: %v", last.Err)
	}
	if (!s.caps.NoPieces || text != "") && text != last.Response.Content {
		t.Errorf("the pieces make %q, the answer is %q", text, last.Response.Content)
	}
}

func (s suite) testUsage(t *testing.T) {
	resp, err := s.open(t).Call(t.Context(), ask("say: count me"))
	s.check(t, resp, err, "count me")
	if resp == nil {
		return
	}
	u := resp.Usage
	if in := u.Input + u.CacheRead + u.CacheWrite; in < 0 || (in == 0) != s.caps.Free || u.Output < 0 || resp.TokensUsed != u.Total() {
		t.Errorf("usage %+v, tokens used %d", u, resp.TokensUsed)
	}
	if resp.StopReason == "" || resp.Provider == "" {
		t.Errorf("stop reason %q, provider %q: both are needed", resp.StopReason, resp.Provider)
	}
}

func wantCode(t *testing.T, err error, codes ...types.ErrCode) {
	t.Helper()
	for _, c := range codes {
		if types.CodeOf(err) == c {
			return
		}
	}
	t.Errorf("error %v has code %q, want one of %v", err, types.CodeOf(err), codes)
}

func (s suite) testEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, last := run(t, ctx, s.open(t), ask("say: too late"))
	wantCode(t, last.Err, types.ErrCancelled)
	_, err := s.open(t).Call(ctx, ask("say: too late"))
	wantCode(t, err, types.ErrCancelled)
}

func (s suite) testConcurrent(t *testing.T) {
	d := s.open(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range 6 {
		wg.Go(func() {
			want := fmt.Sprintf("number %d", i)
			req := ask("say: " + want)
			req.Session = want
			resp, err := d.Call(t.Context(), req)
			s.check(t, resp, err, want)
		})
	}
}

// testConversation: a long conversation with everything that makes providers refuse.
func (s suite) testConversation(t *testing.T) {
	req := ask("say: first")
	req.Messages = append(req.Messages,
		rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{
			{ID: "a:1", Name: "look.up", Input: []byte(`{"q":1}`)},
			{ID: "b", Name: "broken", Input: []byte(`"{not json"`), ParseError: "not JSON"}}},
		rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: "a:1"},
		rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: "b", Content: "no", IsError: true},
		rnixctx.Message{Role: rnixctx.RoleAssistant, Content: "Well."},
		rnixctx.Message{Role: rnixctx.RoleUser, Content: "say: go on"})
	resp, err := s.open(t).Call(t.Context(), req)
	s.check(t, resp, err, "go on")
}

func (s suite) testTools(t *testing.T) {
	d := s.open(t)
	req := ask(`tool: look {"path":"a/b","n":[1,2]}`)
	req.Tools = []llm.ToolSpec{{Name: "look", Description: "Looks.", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)}}
	resp, err := d.Call(t.Context(), req)
	if err != nil || len(resp.ToolCalls) != 1 {
		t.Fatalf("one call expected: %+v, %v", resp, err)
	}
	c := resp.ToolCalls[0]
	if c.ID == "" || c.Name != "look" || c.ParseError != "" || string(c.Input) != `{"path":"a/b","n":[1,2]}` {
		t.Errorf("call is %+v with input %s", c, c.Input)
	}
	if resp.StopReason != "tool_use" {
		t.Errorf("stop reason is %q, want tool_use", resp.StopReason)
	}
	req.Messages = append(req.Messages,
		rnixctx.Message{Role: rnixctx.RoleAssistant, Content: resp.Content, ToolCalls: resp.ToolCalls, Reasoning: resp.Blocks},
		rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: c.ID, Content: "it is there"})
	resp, err = d.Call(t.Context(), req)
	s.check(t, resp, err, "got: it is there")
}

// begun starts an endless answer and waits for its first piece.
func (s suite) begun(t *testing.T, ctx context.Context) <-chan llm.StreamEvent {
	t.Helper()
	ch, err := s.open(t).Stream(ctx, ask("endless"))
	if err != nil {
		t.Fatalf("stream: %v", err)
	}
	if !s.caps.NoPieces {
		if ev := <-ch; ev.Type == llm.EventError || ev.Type == llm.EventDone {
			t.Fatalf("an endless answer ended at once: %+v", ev)
		}
	}
	return ch
}

// drained reads a stream to its end and returns its last event.
func drained(t *testing.T, ch <-chan llm.StreamEvent) (last llm.StreamEvent) {
	t.Helper()
	alarm := time.NewTimer(patience)
	defer alarm.Stop()
	for {
		select {
		case ev, ok := <-ch:
			if !ok {
				return last
			}
			last = ev
		case <-alarm.C:
			t.Fatalf("the stream is still open after %v", patience)
		}
	}
}

func (s suite) testCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ch := s.begun(t, ctx)
	cancel()
	wantCode(t, drained(t, ch).Err, types.ErrCancelled)
}

// testAbandon: who ends ctx need not read on.
func (s suite) testAbandon(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("abandoned", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s.begun(t, ctx)
		cancel()
	})
	err := goleak.Find(before)
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); { // a child may take a while to end
		err = goleak.Find(before)
	}
	if err != nil {
		t.Errorf("left behind: %v", err)
	}
}

func (s suite) testTimeout(t *testing.T) {
	req := ask("endless")
	req.TimeoutMs = 300
	_, last := run(t, t.Context(), s.open(t), req)
	wantCode(t, last.Err, types.ErrTimeout)
}

func (s suite) testFailure(t *testing.T) {
	_, last := run(t, t.Context(), s.open(t), ask("fail"))
	wantCode(t, last.Err, types.ErrInvalid)
	_, last = run(t, t.Context(), s.open(t), ask("cut"))
	wantCode(t, last.Err, types.ErrUnavailable)
}
