package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// errStop is the cause of an end that is none.
var errStop = errors.New("stopping")

// fake is a host whose model is a function, and which checks that the model is never sent an illegal
// conversation.
type fake struct {
	t interface {
		Helper()
		Fatalf(string, ...any)
	}
	mgr      *rnixctx.Manager
	cid      types.CtxID
	model    func(ctx context.Context, n int, request []byte) (*Response, error)
	tool     func(ctx context.Context, a *Action) (string, error)
	wait     func(ctx context.Context) error
	aside    func(ctx context.Context, ms []rnixctx.Message) (*Response, error)
	wanted   *string
	wishes   uint64 // the number of wanted
	reports  []rnixctx.Compaction
	took     []*step.Answer
	asked    int
	intents  []string
	results  []string
	steps    []*step.StepRecord
	record   error
	undo     func(c *recovery.Call) error
	deliver  func() error
	permit   func(as []Action) []int
	replied  func(ctx context.Context, as []Action, asked []int) (int, error)
	leave    func(final bool) (bool, string)
	mu       sync.Mutex
	events   []event.Event // +checklocks:mu
	progress Progress
	purse
}

func newFake(t interface {
	Helper()
	Fatalf(string, ...any)
}) *fake {
	f := &fake{t: t, mgr: rnixctx.NewManager()}
	f.cid, _ = f.mgr.CtxAlloc(0)
	_ = f.mgr.AppendMessage(f.cid, rnixctx.RoleUser, "do it")
	return f
}

func (f *fake) Wait(ctx context.Context) error {
	if f.wait != nil {
		return f.wait(ctx)
	}
	return context.Cause(ctx)
}
func (f *fake) Prompt() (*rnixctx.PromptResult, error)       { return f.mgr.BuildPrompt(f.cid) }
func (f *fake) Append(ms ...rnixctx.Message) error           { return f.mgr.Append(f.cid, ms...) }
func (f *fake) Said(m rnixctx.Message, _ *step.Answer) error { return f.mgr.Append(f.cid, m) }
func (f *fake) Undo(_ context.Context, c *recovery.Call) error {
	return f.undo(c)
}
func (f *fake) Suspends(cause error) bool { return errors.Is(cause, errStop) }
func (f *fake) Compact(ms []rnixctx.Message, report rnixctx.Compaction, took *step.Answer, met uint64) error {
	if f.wishes <= met {
		f.wanted = nil
	}
	f.reports, f.took = append(f.reports, report), append(f.took, took)
	if ms == nil {
		return nil
	}
	return f.mgr.Replace(f.cid, ms)
}
func (f *fake) Wanted() Wish {
	if f.wanted == nil {
		return Wish{}
	}
	f.wishes = max(f.wishes, 1)
	return Wish{f.wishes, *f.wanted}
}
func (f *fake) Aside(ctx context.Context, request []byte) (*Response, error) {
	f.t.Helper()
	var doc struct {
		Aside    bool
		Messages []rnixctx.Message
	}
	if err := json.Unmarshal(request, &doc); err != nil || !doc.Aside {
		f.t.Fatalf("the question for a summary: %v %s", err, request)
	}
	if err := rnixctx.Legal(doc.Messages); err != nil {
		f.t.Fatalf("the question for a summary is illegal: %v", err)
	}
	return f.aside(ctx, doc.Messages)
}
func (f *fake) Ask(ctx context.Context, request []byte) (*Response, error) {
	f.t.Helper()
	var doc struct{ Messages []rnixctx.Message }
	if err := json.Unmarshal(request, &doc); err != nil {
		f.t.Fatalf("request %d is not JSON: %v", f.asked, err)
	}
	if err := rnixctx.Legal(doc.Messages); err != nil {
		f.t.Fatalf("request %d is illegal: %v", f.asked, err)
	}
	f.asked++
	return f.model(ctx, f.asked, request)
}
func (f *fake) Permit(_ int, as []Action) ([]int, error) {
	if f.permit == nil {
		return nil, nil
	}
	return f.permit(as), nil
}
func (f *fake) Answered(ctx context.Context, as []Action, asked []int) (int, error) {
	return f.replied(ctx, as, asked)
}
func (f *fake) Intend(_ int, as []Action) error {
	for _, a := range as {
		f.intents = append(f.intents, a.Call.ID)
	}
	return nil
}
func (f *fake) Run(ctx context.Context, a *Action) (string, error) {
	if f.tool == nil {
		return "ok", nil
	}
	return f.tool(ctx, a)
}
func (f *fake) Complete(*Action, error) {}
func (f *fake) Finish(_ int, as []Action, _ []Outcome) error {
	for i := range as {
		if !as[i].Elsewhere() {
			f.results = append(f.results, as[i].Call.ID)
		}
	}
	return nil
}
func (f *fake) Record(rec *step.StepRecord) error { f.steps = append(f.steps, rec); return f.record }
func (f *fake) Emit(e event.Event)                { f.mu.Lock(); f.events = append(f.events, e); f.mu.Unlock() }
func (f *fake) Progress(p Progress)               { f.progress = p }
func (f *fake) Deliver() error {
	if f.deliver == nil {
		return nil
	}
	return f.deliver()
}
func (f *fake) Leave(final bool) (bool, string) {
	if f.leave == nil {
		return false, ""
	}
	return f.leave(final)
}

// legal checks the conversation as it stands.
func (f *fake) legal() {
	f.t.Helper()
	p, _ := f.Prompt()
	if err := rnixctx.Legal(p.Messages); err != nil {
		f.t.Fatalf("the conversation is illegal: %v", err)
	}
}

var testTools = map[string]vfs.Tool{
	"read":  {Name: "read", Path: "/dev/fs", Effect: vfs.EffectNone, Independent: true},
	"shell": {Name: "shell", Path: "/dev/shell", Effect: vfs.EffectExternal},
}

var testMeta = map[string]Kind{"complete": Complete, "plan": Plan, "spawn": Spawn, "replan": Replan}

func run(t *testing.T, f *fake, ctx context.Context, cfg Config) End {
	t.Helper()
	cfg.Tools, cfg.Meta, cfg.Budget, cfg.Compactor = testTools, testMeta, fakeBudget{f}, f
	l, err := New(cfg, Progress{}, f)
	if err != nil {
		t.Fatal(err)
	}
	end := l.Run(ctx)
	if end.Wait.Waits() || errors.Is(end.Cause, errStop) {
		return end // it may leave a step open
	}
	f.legal()
	if len(f.intents) != len(f.results) && end.Exit.Err == nil {
		t.Errorf("intents %v, results %v", f.intents, f.results)
	}
	return end
}

// present is what changes of a process in a test.
type present struct {
	plan  string
	stood func() time.Duration
}

func (present) System() string { return "" }

func (present) Offer() Offered { return Offered{Tools: testTools} }

func (p present) Plan() string { return p.plan }

func (p present) Stood() time.Duration {
	if p.stood == nil {
		return 0
	}
	return p.stood()
}

func calls(cs ...string) *Response {
	r := &Response{Usage: Usage{Input: 10, Output: 5}}
	for i, c := range cs {
		name, input, _ := strings.Cut(c, " ")
		r.ToolCalls = append(r.ToolCalls, rnixctx.ToolCall{ID: fmt.Sprintf("c%d", i), Name: name, Input: json.RawMessage(input)})
	}
	return r
}

func said(text string) *Response { return &Response{Content: text, Usage: Usage{Input: 10, Output: 5}} }

// script answers with one response after the other.
func script(rs ...*Response) func(context.Context, int, []byte) (*Response, error) {
	return func(_ context.Context, n int, _ []byte) (*Response, error) {
		if n > len(rs) {
			return nil, errors.New("the script is over")
		}
		return rs[n-1], nil
	}
}

func TestToolThenText(t *testing.T) {
	f := newFake(t)
	f.model = script(calls(`read {"path":"a"}`), said("done"))
	end := run(t, f, t.Context(), Config{})
	if end.Exit.Code != 0 || end.Exit.Reason != "completed" || end.Result != "done" || len(f.steps) != 2 {
		t.Fatalf("%+v", end)
	}
	if r := f.steps[0]; r.Action != "tool_call" || r.ToolPath != "/dev/fs" || r.ToolInput != `{"path":"a"}` || r.ToolResult != "ok" || r.TokensUsed != 15 || r.Summary != "read a" {
		t.Errorf("%+v", r)
	}
}

func TestCompleteEndsAndItsCallIsAnswered(t *testing.T) {
	f := newFake(t)
	f.model = script(calls(`shell {"command":"x"}`, `complete {"result":"all good"}`))
	end := run(t, f, t.Context(), Config{})
	if end.Result != "all good" || end.Exit.Code != 0 || f.steps[0].Action != "complete" {
		t.Fatalf("%+v %+v", end, f.steps[0])
	}
}

func TestCompleteBesideAFailureDoesNotCount(t *testing.T) {
	f := newFake(t)
	f.tool = func(context.Context, *Action) (string, error) {
		return "", types.Errorf(types.ErrNotFound, "Open", "x", "no such file")
	}
	f.model = script(calls(`shell {}`, `complete {"result":"all good"}`), said("it failed"))
	if end := run(t, f, t.Context(), Config{}); end.Result != "it failed" {
		t.Fatalf("%+v", end)
	}
}

func TestBadCallsAreAnsweredAndTheModelGoesOn(t *testing.T) {
	for _, c := range []struct{ call, want string }{
		{`nosuch {}`, "there is no such tool"},
		{`read [1]`, "must be a JSON object"},
		{`read `, "ok"},     // no arguments at all
		{`read null`, "ok"}, // likewise
	} {
		f := newFake(t)
		f.model = func(_ context.Context, n int, req []byte) (*Response, error) {
			if n == 1 {
				return calls(c.call), nil
			}
			if !strings.Contains(string(req), c.want) {
				t.Errorf("%s: the model was not told %q: %s", c.call, c.want, req)
			}
			return said("ok then"), nil
		}
		if end := run(t, f, t.Context(), Config{}); end.Result != "ok then" {
			t.Errorf("%s: %+v", c.call, end)
		}
	}
}

func TestUnreadableArgumentsAreAnErrorResult(t *testing.T) {
	f := newFake(t)
	r := calls(`read {}`)
	r.ToolCalls[0].ParseError = "unexpected end"
	r.ToolCalls[0].Input = json.RawMessage(`"{\"path"`)
	f.model = script(r, said("sorry"))
	if end := run(t, f, t.Context(), Config{}); end.Result != "sorry" || f.steps[0].ToolError == "" {
		t.Fatalf("%+v", end)
	}
}

func TestPanickingDeviceIsAnErrorResult(t *testing.T) {
	f := newFake(t)
	f.tool = func(context.Context, *Action) (string, error) { panic("oh") }
	f.model = script(calls(`read {}`, `read {}`), said("fine"))
	if end := run(t, f, t.Context(), Config{}); end.Result != "fine" || !strings.Contains(f.steps[0].ToolError, "panic") {
		t.Fatalf("%+v", end)
	}
}

func TestRepeatedAndEmptyIDsAreMadeUnique(t *testing.T) {
	f := newFake(t)
	r := calls(`read {}`, `read {}`, `read {}`)
	r.ToolCalls[0].ID, r.ToolCalls[1].ID, r.ToolCalls[2].ID = "x", "x", ""
	f.model = script(r, said("ok"))
	run(t, f, t.Context(), Config{})
}

func TestIndependentCallsRunSideBySideAndAnswerInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.tool = func(_ context.Context, a *Action) (string, error) {
			d := time.Hour
			if a.Call.ID == "c0" {
				d *= 2
			}
			time.Sleep(d)
			return a.Call.ID, nil
		}
		f.model = script(calls(`read {}`, `spawn {"intent":"x"}`, `read {}`), said("ok"))
		start := time.Now()
		run(t, f, t.Context(), Config{})
		if took := time.Since(start); took != 2*time.Hour {
			t.Errorf("took %v", took)
		}
		for i, c := range f.steps[0].ToolCalls {
			if c.Result != fmt.Sprintf("c%d", i) {
				t.Errorf("answer %d is %q", i, c.Result)
			}
		}
	})
}

func TestDependentCallsKeepTheirOrder(t *testing.T) {
	f := newFake(t)
	var order []string
	f.tool = func(_ context.Context, a *Action) (string, error) { order = append(order, a.Call.ID); return "", nil }
	f.model = script(calls(`shell {}`, `shell {}`, `read {}`, `shell {}`), said("ok"))
	run(t, f, t.Context(), Config{})
	if got := strings.Join(order, " "); got != "c0 c1 c2 c3" {
		t.Error(got)
	}
}

var errKilled = errors.New("killed")

func TestKillDuringACallAnswersEveryCall(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	f.tool = func(ctx context.Context, a *Action) (string, error) {
		cancel(errKilled)
		<-ctx.Done()
		return "half", types.Errorf(types.ErrCancelled, "Write", "", "%w", context.Cause(ctx))
	}
	f.model = script(calls(`shell {}`, `shell {}`, `read {}`))
	end := run(t, f, ctx, Config{})
	if end.Cause != errKilled {
		t.Fatalf("%+v", end)
	}
	if c := f.steps[0].ToolCalls; len(c) != 3 || c[1].Code != types.ErrCancelled || c[2].Code != types.ErrCancelled {
		t.Errorf("%+v", c)
	}
	if strings.Join(f.intents, " ") != "c0" {
		t.Errorf("intents for calls that never ran: %v", f.intents)
	}
}

func TestAStopDuringCallsLeavesThoseOpenThatItCutOff(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ran := 0
	f.tool = func(ctx context.Context, a *Action) (string, error) {
		if ran++; ran == 1 {
			return "done", nil
		}
		cancel(errStop)
		<-ctx.Done()
		return "half", types.Errorf(types.ErrCancelled, "Write", "", "%w", context.Cause(ctx))
	}
	f.model = script(calls(`shell {}`, `shell {}`, `read {}`))
	end := run(t, f, ctx, Config{})
	if end.Cause != errStop || len(f.steps) != 0 || ran != 2 {
		t.Fatalf("%+v %+v, %d calls", end, f.steps, ran)
	}
	p, err := f.Prompt()
	if err != nil {
		t.Fatal(err)
	}
	var answered []string
	for _, m := range p.Messages {
		if m.ToolCallID != "" {
			answered = append(answered, m.ToolCallID)
		}
	}
	if strings.Join(answered, " ") != "c0" || strings.Join(f.intents, " ") != "c0 c1" {
		t.Errorf("answers for %v, intents for %v", answered, f.intents)
	}
}

func TestKillDuringTheModelCall(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	f.model = func(context.Context, int, []byte) (*Response, error) { cancel(errKilled); return nil, context.Canceled }
	if end := run(t, f, ctx, Config{}); end.Cause != errKilled || len(f.steps) != 0 {
		t.Fatalf("%+v", end)
	}
}

func TestPauseTakesEffectBetweenModelAndAction(t *testing.T) {
	f := newFake(t)
	n := 0
	f.wait = func(context.Context) error {
		if n++; n == 2 {
			return errKilled
		}
		return nil
	}
	f.tool = func(context.Context, *Action) (string, error) { t.Error("ran behind a shut gate"); return "", nil }
	f.model = script(calls(`shell {}`, `shell {}`))
	if end := run(t, f, t.Context(), Config{}); end.Cause != errKilled || len(f.steps) != 1 {
		t.Fatalf("%+v", end)
	}
}

func TestLimits(t *testing.T) {
	forever := func(context.Context, int, []byte) (*Response, error) { return calls(`read {}`), nil }
	for name, c := range map[string]struct {
		cfg    Config
		budget purse
		model  func(context.Context, int, []byte) (*Response, error)
		code   int
		reason string
		steps  int
	}{
		"steps":         {Config{MaxSteps: 3}, purse{}, forever, 1, "max steps exceeded", 3},
		"budget":        {Config{}, purse{limit: 31}, forever, 2, "budget_exceeded", 2},
		"spent before":  {Config{}, purse{limit: 30, used: 30}, forever, 2, "budget_exceeded", 0},
		"no progress":   {Config{}, purse{}, forever, 6, "no progress: the same calls gave the same answers 60 times in a row", 60},
		"model error":   {Config{}, purse{}, script(), 1, "the script is over", 1},
		"empty twice":   {Config{}, purse{}, script(said(""), said(" \n")), 1, "the model gave an empty answer twice", 2},
		"empty once":    {Config{}, purse{}, script(said(""), said("here")), 0, "completed", 2},
		"refusal":       {Config{}, purse{}, script(&Response{StopReason: "refusal"}), 1, "the model refused to answer", 1},
		"negative use":  {Config{}, purse{limit: 5}, script(&Response{Content: strings.Repeat("word ", 20), StopReason: "max_tokens", Usage: Usage{Input: -5}}), 2, "budget_exceeded", 0},
		"last answer":   {Config{}, purse{limit: 5}, script(said("done")), 2, "budget_exceeded", 0},
		"last call":     {Config{}, purse{limit: 5}, script(calls(`complete {"result":"done"}`)), 2, "budget_exceeded", 0},
		"explicit zero": {Config{MaxSteps: 0}, purse{}, script(said("x")), 0, "completed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.model, f.purse = c.model, c.budget
			end := run(t, f, t.Context(), c.cfg)
			if end.Exit.Code != c.code || end.Exit.Reason != c.reason || len(f.steps) != c.steps {
				t.Errorf("%+v after %d steps", end, len(f.steps))
			}
		})
	}
}

func TestBudgetLeavesThePaidAnswerForLater(t *testing.T) {
	f := newFake(t)
	f.limit = 15
	f.tool = func(context.Context, *Action) (string, error) { t.Error("ran beyond the budget"); return "", nil }
	r := calls(`shell {}`)
	r.Content = "I found it"
	f.model = script(r)
	if end := run(t, f, t.Context(), Config{}); end.Exit.Code != 2 || end.Result != "I found it" || !strings.Contains(end.Wait.SuspendReason, "of 15 tokens") {
		t.Fatalf("%+v", end)
	}
}

func TestHonestPollingIsNotALoop(t *testing.T) {
	polls := soak.Pick(t, "polls", 200, 500)
	f := newFake(t)
	n := 0
	f.tool = func(context.Context, *Action) (string, error) {
		n++
		return fmt.Sprint("still running, ", n, " s"), nil
	}
	f.model = func(_ context.Context, n int, _ []byte) (*Response, error) {
		if n > polls {
			return said("it is up"), nil
		}
		return calls(`shell {"command":"poll"}`), nil
	}
	if end := run(t, f, t.Context(), Config{}); end.Result != "it is up" {
		t.Fatalf("%+v", end)
	}
}

func TestRefusalsAreCounted(t *testing.T) {
	f := newFake(t)
	f.tool = func(context.Context, *Action) (string, error) {
		return "", types.Errorf(types.ErrPermission, "Open", "/dev/shell", "not allowed")
	}
	f.model = func(_ context.Context, n int, _ []byte) (*Response, error) {
		return calls(fmt.Sprintf(`shell {"command":"%d"}`, n)), nil
	}
	if end := run(t, f, t.Context(), Config{MaxSteps: 10 * failStop}); end.Exit.Code != types.ExitNoProgress || len(f.steps) != failStop {
		t.Fatalf("%+v after %d", end, len(f.steps))
	}
}

func TestCutAnswerIsContinued(t *testing.T) {
	f := newFake(t)
	cut := said("first ")
	cut.StopReason = "max_tokens"
	f.model = script(cut, said("second"))
	if end := run(t, f, t.Context(), Config{}); end.Result != "first second" {
		t.Fatalf("%+v", end)
	}
}

func TestTooLongPromptIsCompactedAndTriedAgain(t *testing.T) {
	f := newFake(t)
	for i := range 50 {
		id := fmt.Sprint(i)
		_ = f.mgr.Append(f.cid, rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{{ID: id, Name: "read", Input: json.RawMessage("{}")}}},
			rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: id, Content: strings.Repeat("text ", 2000)})
	}
	var sizes []int
	f.model = func(_ context.Context, n int, req []byte) (*Response, error) {
		sizes = append(sizes, len(req))
		if n == 1 {
			return nil, types.Errorf(types.ErrInvalid, "Write", "/dev/llm/x", "prompt is too long: 200000 tokens")
		}
		return said("ok"), nil
	}
	end := run(t, f, t.Context(), Config{})
	if end.Result != "ok" || len(sizes) != 2 || sizes[1] > sizes[0]*6/10 {
		t.Fatalf("%+v %v", end, sizes)
	}
}

func TestConversationNearItsWindowIsCompactedBeforeTheCall(t *testing.T) {
	f := newFake(t)
	f.tool = func(context.Context, *Action) (string, error) { return strings.Repeat("line\n", 2000), nil }
	f.model = func(_ context.Context, n int, req []byte) (*Response, error) {
		if len(req)/4 > 20000 {
			t.Fatalf("request %d has %d bytes", n, len(req))
		}
		if n == 200 {
			return said("ok"), nil
		}
		r := calls(fmt.Sprintf(`read {"path":"%d"}`, n))
		r.Usage.Input = len(req) / 4
		return r, nil
	}
	if end := run(t, f, t.Context(), Config{Window: 20000}); end.Result != "ok" {
		t.Fatalf("%+v", end)
	}
}

func TestUnwritableRecordStopsTheProcess(t *testing.T) {
	f := newFake(t)
	f.record = types.Errorf(types.ErrStorage, "Commit", "steps.jsonl", "no space left")
	f.model = script(calls(`shell {}`), said("never"))
	if end := run(t, f, t.Context(), Config{}); end.Exit.Code != 1 || types.CodeOf(end.Exit.Err) != types.ErrStorage || f.asked != 1 {
		t.Fatalf("%+v", end)
	}
}

// Whatever a model does, and whenever the process is killed: the conversation stays legal and every
// call has one answer. fake checks each request; run checks the end.
func TestAnyModelLeavesALegalConversation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFake(rt)
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		killAt := rapid.IntRange(0, 30).Draw(rt, "kill")
		var ops atomic.Int32
		tick := func() int32 {
			n := ops.Add(1)
			if int(n) == killAt {
				cancel(errKilled)
			}
			return n
		}
		name := rapid.SampledFrom([]string{"read", "shell", "plan", "complete", "spawn", "nosuch", ""})
		input := rapid.SampledFrom([]string{`{}`, ``, `null`, `[]`, `{"result":"r"}`, `{"steps":["a"]}`})
		id := rapid.SampledFrom([]string{"", "a", "b", "c"})
		f.tool = func(context.Context, *Action) (string, error) {
			if tick()%3 == 0 {
				return "", errors.New("bad")
			}
			return "fine", nil
		}
		f.model = func(ctx context.Context, n int, _ []byte) (*Response, error) {
			tick()
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			r := &Response{Content: rapid.SampledFrom([]string{"", "text"}).Draw(rt, "content")}
			for range rapid.IntRange(0, 4).Draw(rt, "calls") {
				r.ToolCalls = append(r.ToolCalls, rnixctx.ToolCall{ID: id.Draw(rt, "id"), Name: name.Draw(rt, "name"), Input: json.RawMessage(input.Draw(rt, "in"))})
			}
			return r, nil
		}
		l, err := New(Config{Budget: fakeBudget{f}, Compactor: f, Tools: testTools, Meta: testMeta, MaxSteps: 12}, Progress{}, f)
		if err != nil {
			rt.Fatal(err)
		}
		l.Run(ctx)
		f.legal()
	})
}

func TestRequestGrowsWithoutChangingWhatWasSent(t *testing.T) {
	f := newFake(t)
	req, err := newRequest(Head{SystemPrompt: "s", Model: "m"}, []byte(`[{"name":"t"}]`))
	if err != nil {
		t.Fatal(err)
	}
	var last string
	for i := range 300 {
		_ = f.mgr.AppendMessage(f.cid, rnixctx.RoleUser, strings.Repeat("x", i*7))
		if i == 200 {
			_ = f.mgr.Replace(f.cid, []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "short"}})
		}
		p, _ := f.Prompt()
		doc := string(req.bytes(p, 0))
		var got struct {
			SystemPrompt string            `json:"system_prompt"`
			Messages     []rnixctx.Message `json:"messages"`
		}
		if err := json.Unmarshal([]byte(doc), &got); err != nil || got.SystemPrompt != "s" || len(got.Messages) != len(p.Messages) {
			t.Fatalf("request %d: %v", i, err)
		}
		if body := strings.TrimSuffix(last, "]}"); i != 200 && !strings.HasPrefix(doc, body) {
			t.Fatalf("request %d changed what was sent", i)
		}
		last = strings.Clone(doc)
	}
}

func TestStepTimeoutEndsCallsButNotTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.tool = func(ctx context.Context, _ *Action) (string, error) {
			<-ctx.Done()
			return "", types.Errorf(types.ErrCancelled, "Write", "", "%w", context.Cause(ctx))
		}
		f.model = func(ctx context.Context, n int, _ []byte) (*Response, error) {
			if n == 1 {
				return calls(`shell {}`), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		end := run(t, f, t.Context(), Config{StepTimeout: time.Minute})
		if !strings.Contains(f.steps[0].ToolError, "limit of 1m0s") || types.CodeOf(end.Exit.Err) != types.ErrTimeout || len(f.steps) != 2 {
			t.Errorf("%+v %+v", end, f.steps[0])
		}
	})
}

// Of the time in which a person is asked nothing counts, also while the model is asked: its calls may be those of an agent CLI.
func TestAStepHasNoLessTimeBecauseAPersonIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		began := time.Now()
		f.model = func(ctx context.Context, _ int, _ []byte) (*Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		end := run(t, f, t.Context(), Config{StepTimeout: time.Minute, Now: present{stood: func() time.Duration { return min(time.Since(began), time.Hour) }}})
		if took := time.Since(began); types.CodeOf(end.Exit.Err) != types.ErrTimeout || took < time.Hour+time.Minute || took > time.Hour+time.Minute+time.Second {
			t.Errorf("%v after %v", end, took)
		}
	})
}

func TestPauseTakesEffectBetweenTheCallsOfOneAnswer(t *testing.T) {
	f := newFake(t)
	ran := 0
	f.tool = func(context.Context, *Action) (string, error) { ran++; return "ok", nil }
	f.wait = func(context.Context) error {
		if ran == 1 {
			return errKilled // paused behind the first call, and ended there
		}
		return nil
	}
	f.model = script(calls(`shell {}`, `shell {}`, `shell {}`))
	end := run(t, f, t.Context(), Config{})
	if end.Cause != errKilled || !end.Paused || ran != 1 || len(f.steps) != 1 {
		t.Fatalf("%+v after %d calls", end, ran)
	}
	if c := f.steps[0].ToolCalls; len(c) != 3 || c[0].Error != "" || c[1].Code != types.ErrCancelled || c[2].Code != types.ErrCancelled {
		t.Errorf("%+v", c)
	}
}

// Run runs steps until the process is done, a limit is reached or ctx ends.
func (l *Loop) Run(ctx context.Context) End { return *Steps(ctx, l) }
