package llm_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/proc"
	"rnix/internal/soak"
	"rnix/types"
	"rnix/vfs"
)

// These tests run the real claude against a loopback stand-in of its provider. They need
// @anthropic-ai/claude-code in $RNIX_TEST_NPM/node_modules (default: rnix-test/npm in the user's cache
// directory) or in PATH.

// realClaude returns the real program, or skips.
func realClaude(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("RNIX_TEST_NPM")
	if dir == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			dir = filepath.Join(cache, "rnix-test", "npm")
		}
	}
	path := filepath.Join(dir, "node_modules", ".bin", "claude")
	if _, err := os.Stat(path); err == nil {
		soak.Turn(t)
		return path
	}
	if path, err := proc.LookPath("claude", os.Environ()); err == nil {
		soak.Turn(t)
		return path
	}
	t.Skip("needs claude: npm install --prefix " + dir + " @anthropic-ai/claude-code@2.1.329")
	return ""
}

// realDriver is the real program below a caller of its own, and the API that it talks to.
func realDriver(t *testing.T, script func(llmtest.Request) llmtest.Reply, change func(*llm.ClaudeConfig)) (context.Context, *llm.ClaudeCliDriver, *children, *llmtest.API) {
	t.Helper()
	path := realClaude(t)
	if testing.Short() {
		t.Skip("needs more time than -short allows")
	}
	noPromptLeft(t)
	api, url := llmtest.NewMessagesAPI(t, script)
	start := newChildren(t)
	work := t.TempDir()
	for _, f := range []string{"CLAUDE.md", "AGENTS.md"} { // nothing of this may reach the model
		if err := os.WriteFile(filepath.Join(work, f), []byte("INSTRUCTIONS-OF-ITS-OWN"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx := llm.WithCaller(t.Context(), vfs.Caller{
		PID: 3, WorkDir: work, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "TMPDIR=" + os.Getenv("TMPDIR")},
		Secret: func(name string) (string, bool) {
			v, ok := map[string]string{"ANTHROPIC_API_KEY": "sk-ant-dummy-000", "ANTHROPIC_BASE_URL": url}[name]
			return v, ok
		},
	})
	d := claude(t, start, func(c *llm.ClaudeConfig) {
		c.Command, c.MaxRetries = path, -1
		if change != nil {
			change(c)
		}
	})
	return ctx, d, start, api
}

func say(r llmtest.Reply) func(llmtest.Request) llmtest.Reply {
	return func(llmtest.Request) llmtest.Reply { return r }
}

// act answers with an action in the way that the model is asked to.
func act(t *testing.T, action string) func(llmtest.Request) llmtest.Reply {
	return func(r llmtest.Request) llmtest.Reply {
		if !slices.Contains(r.Tools, "StructuredOutput") {
			return llmtest.Reply{Text: "no schema was given"}
		}
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "StructuredOutput", Input: action}}}
	}
}

func TestRealClaudeAnswersWithTheKernelsPromptOnly(t *testing.T) {
	ctx, d, _, api := realDriver(t, say(llmtest.Reply{Text: "hello there", Chunks: 3, Usage: &llmtest.Usage{Input: 100, Output: 7, CacheRead: 20}}), nil)
	events, err := d.Stream(ctx, llm.LLMRequest{Intent: "hi", SystemPrompt: "KERNEL-PROMPT"})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	var last llm.StreamEvent
	for last = range events {
		if last.Type == llm.EventText {
			text.WriteString(last.Text)
		}
	}
	if last.Type != llm.EventDone {
		t.Fatal(last.Err)
	}
	r := last.Response
	if r.Content != "hello there" || text.String() != r.Content || r.Model == "" || r.StopReason != "end_turn" || r.Provider != "claude" {
		t.Errorf("%+v, streamed %q", r, text.String())
	}
	if r.Usage != (llm.Usage{Input: 100, Output: 7, CacheRead: 20}) {
		t.Errorf("usage %+v", r.Usage)
	}
	asked := api.Requests()
	if len(asked) != 1 {
		t.Fatalf("%d requests", len(asked))
	}
	body := string(asked[0].Body)
	if !strings.Contains(asked[0].System, "KERNEL-PROMPT") || len(asked[0].Tools) > 0 || strings.Contains(body, "INSTRUCTIONS-OF-ITS-OWN") || len(body) > 6000 {
		t.Errorf("request of %d bytes, tools %v:\n%s", len(body), asked[0].Tools, asked[0].System)
	}
}

func TestRealClaudeAnswersWithAnAction(t *testing.T) {
	ctx, d, _, api := realDriver(t, act(t, `{"action":"tool_call","tool":"shell","input":{"command":"ls -l"},"thought":"look"}`), nil)
	r, err := d.Call(ctx, llm.LLMRequest{Intent: "list the files", SystemPrompt: "s", Tools: shellTool})
	if err != nil {
		t.Fatal(err)
	}
	if r.Content != "look" || len(r.ToolCalls) != 1 || r.ToolCalls[0].ID != "call-1" || r.ToolCalls[0].Name != "shell" || string(r.ToolCalls[0].Input) != `{"command":"ls -l"}` || r.StopReason != "tool_use" {
		t.Errorf("%+v", r)
	}
	if asked := api.Requests(); len(asked) != 1 || !strings.Contains(asked[0].System, "## shell") {
		t.Errorf("%d requests", len(asked))
	}
}

// A model that does not keep to the schema and writes its action as text is understood too.
func TestRealClaudeAnswersWithAnActionAsText(t *testing.T) {
	ctx, d, _, api := realDriver(t, say(llmtest.Reply{Text: "```json\n" + `{"action":"complete","result":"done"}` + "\n```"}), nil)
	r, err := d.Call(ctx, llm.LLMRequest{Intent: "x", Tools: shellTool})
	if err != nil || len(r.ToolCalls) != 1 || r.ToolCalls[0].Name != "complete" {
		t.Errorf("%+v %v", r, err)
	}
	t.Logf("%d requests, %+v", len(api.Requests()), r)
}

// A model that first answers in words is asked for its action.
func TestRealClaudeIsAskedAgainForItsAction(t *testing.T) {
	ctx, d, _, _ := realDriver(t, func(r llmtest.Request) llmtest.Reply {
		if r.N == 0 {
			return llmtest.Reply{Text: "I will look at the files."}
		}
		return act(t, `{"action":"tool_call","tool":"shell","input":{"command":"ls"}}`)(r)
	}, nil)
	r, err := d.Call(ctx, llm.LLMRequest{Intent: "x", Tools: shellTool})
	if err != nil || len(r.ToolCalls) != 1 || r.ToolCalls[0].Name != "shell" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestRealClaudeFailuresAreClassified(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply llmtest.Reply
		code  types.ErrCode
	}{
		{"401", llmtest.Reply{Status: http.StatusUnauthorized, Text: "invalid x-api-key sk-ant-dummy-000"}, types.ErrAuth},
		{"429", llmtest.Reply{Status: http.StatusTooManyRequests, Text: "slow down"}, types.ErrRateLimited},
		{"500", llmtest.Reply{Status: http.StatusInternalServerError, Text: "oops"}, types.ErrUnavailable},
		{"529", llmtest.Reply{Status: 529, Text: "overloaded"}, types.ErrUnavailable},
		{"400", llmtest.Reply{Status: http.StatusBadRequest, Text: "prompt is too long: 300000 tokens > 200000 maximum"}, types.ErrInvalid},
		{"cut", llmtest.Reply{Text: "half an ans", Reset: true}, types.ErrUnavailable},
		{"error in the stream", llmtest.Reply{Text: "half an ans", MidError: "overloaded_error"}, types.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, d, start, _ := realDriver(t, say(c.reply), nil)
			r, err := d.Call(ctx, llm.LLMRequest{Intent: "hi", SystemPrompt: "s"})
			if types.CodeOf(err) != c.code || strings.Contains(err.Error(), "sk-ant-dummy") {
				t.Errorf("%+v %v: %v", r, types.CodeOf(err), err)
			}
			t.Log(err)
			if left := start.All(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestRealClaudeWithoutLoginSaysSo(t *testing.T) {
	ctx, d, _, api := realDriver(t, say(llmtest.Reply{Text: "x"}), nil)
	caller := llm.CallerFrom(ctx)
	caller.Secret = func(string) (string, bool) { return "", false }
	for _, n := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"} {
		t.Setenv(n, "")
	}
	_, err := d.Call(llm.WithCaller(ctx, caller), llm.LLMRequest{Intent: "hi", SystemPrompt: "s"})
	if types.CodeOf(err) != types.ErrAuth || len(api.Requests()) > 0 {
		t.Error(err)
	}
}

func TestRealClaudeThatStallsIsEndedByOurOwnDeadline(t *testing.T) {
	ctx, d, start, _ := realDriver(t, say(llmtest.Reply{Text: "a b c", Chunks: 2, Hang: true}), func(c *llm.ClaudeConfig) { c.Idle = 500 * time.Millisecond })
	began := time.Now()
	_, err := d.Call(ctx, llm.LLMRequest{Intent: "hi", SystemPrompt: "s"})
	if types.CodeOf(err) != types.ErrUnavailable || time.Since(began) > 2*time.Minute {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	if left := start.All(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestRealClaudeLeavesNoProcessWhenItIsCancelled(t *testing.T) {
	ctx, d, start, _ := realDriver(t, say(llmtest.Reply{Text: "a", Hang: true}), nil)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := d.Stream(ctx, llm.LLMRequest{Intent: "hi", SystemPrompt: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var last llm.StreamEvent
	for last = range events {
		if last.Type == llm.EventText {
			cancel()
		}
	}
	if types.CodeOf(last.Err) != types.ErrCancelled || len(start.All()) > 0 {
		t.Errorf("%v, left: %v", last.Err, start.All())
	}
}

func TestRealClaudeKeepsItsConversation(t *testing.T) {
	ctx, d, start, api := realDriver(t, func(r llmtest.Request) llmtest.Reply {
		if r.N == 0 {
			return act(t, `{"action":"tool_call","tool":"shell","input":{"command":"ls"}}`)(r)
		}
		return act(t, `{"action":"complete","result":"two files"}`)(r)
	}, func(c *llm.ClaudeConfig) { c.Keep = 2 })
	req := llm.LLMRequest{Session: "s1", SystemPrompt: "s", Tools: shellTool, Messages: []rnixctx.Message{user("list the files")}}
	one, err := d.Call(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages,
		rnixctx.Message{Role: rnixctx.RoleAssistant, Content: one.Content, ToolCalls: one.ToolCalls},
		rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: one.ToolCalls[0].ID, Content: "a.go\nb.go"})
	began := time.Now()
	two, err := d.Call(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the second turn took %v", time.Since(began))
	if len(two.ToolCalls) != 1 || string(two.ToolCalls[0].Input) != `{"result":"two files"}` || start.count() != 1 {
		t.Errorf("%d children, %+v", start.count(), two)
	}
	asked := api.Requests()
	if len(asked) != 2 || len(asked[1].Messages) <= len(asked[0].Messages) {
		t.Fatalf("%d requests", len(asked))
	}
	if body, _ := json.Marshal(asked[1].Messages); strings.Count(string(body), "list the files") != 1 || !strings.Contains(string(body), "[[result call-1 shell]]") {
		t.Errorf("%s", body)
	}
	if left := start.All(); len(left) != 1 {
		t.Errorf("kept: %v", left)
	}
}

func TestRealClaudeTakesALongConversation(t *testing.T) {
	ctx, d, _, _ := realDriver(t, say(llmtest.Reply{Text: "read"}), nil)
	long := strings.Repeat("a line of text that fills the pipe more than once\n", 20_000) // 1 MB
	r, err := d.Call(ctx, llm.LLMRequest{Intent: long, SystemPrompt: strings.Repeat("rule\n", 40_000)})
	if err != nil || r.Content != "read" {
		t.Errorf("%+v %v", r, err)
	}
}

// suiteScript is llmtest.SuiteScript for a model that sees a conversation as text and answers with
// actions through a tool.
func suiteScript(r llmtest.Request) llmtest.Reply {
	last := r.LastUser()
	if i := strings.LastIndex(last, "\n[["); i >= 0 {
		last = last[i+1:]
	}
	if mark, rest, ok := strings.Cut(last, "]]\n"); ok && strings.HasPrefix(mark, "[[") {
		if last = rest; strings.HasPrefix(mark, "[[result ") {
			last = "say: got: " + rest
		}
	}
	reply := llmtest.SuiteScript(llmtest.Request{N: r.N, Messages: []llmtest.Message{{Role: "user", Text: last}}})
	if !slices.Contains(r.Tools, "StructuredOutput") {
		return reply
	}
	action := map[string]any{"action": "text", "content": reply.Text}
	if len(reply.ToolCalls) > 0 {
		action = map[string]any{"action": "tool_call", "tool": reply.ToolCalls[0].Name, "input": json.RawMessage(reply.ToolCalls[0].Input)}
	}
	text, _ := json.Marshal(action) // strings and JSON
	return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "StructuredOutput", Input: string(text)}}}
}

func TestRealClaudePassesTheSuite(t *testing.T) {
	llmtest.Run(t, func(t *testing.T) llm.LLMDriver {
		ctx, d, _, _ := realDriver(t, suiteScript, func(c *llm.ClaudeConfig) { c.Keep = 4 })
		return asked{d, llm.CallerFrom(ctx)}
	}, llmtest.Caps{})
}

// asked is a driver that is always asked by one caller.
type asked struct {
	llm.LLMDriver
	caller vfs.Caller
}

func (a asked) Call(ctx context.Context, req llm.LLMRequest) (*llm.LLMResponse, error) {
	return a.LLMDriver.Call(llm.WithCaller(ctx, a.caller), req)
}

func (a asked) Stream(ctx context.Context, req llm.LLMRequest) (<-chan llm.StreamEvent, error) {
	return a.LLMDriver.Stream(llm.WithCaller(ctx, a.caller), req)
}

// TestRealClaudeIsAskedAsideOfItsConversation says that a question that is no part of the conversation, such as for a summary, goes to a child of its own, and the conversation continues in its own as if nothing had been asked.
func TestRealClaudeIsAskedAsideOfItsConversation(t *testing.T) {
	ctx, d, start, api := realDriver(t, func(r llmtest.Request) llmtest.Reply {
		switch {
		case strings.Contains(string(r.Body), "Write a summary"):
			return act(t, `{"action":"complete","result":"it is about files"}`)(r)
		case r.N == 0:
			return act(t, `{"action":"tool_call","tool":"shell","input":{"command":"ls"}}`)(r)
		}
		return act(t, `{"action":"complete","result":"two files"}`)(r)
	}, func(c *llm.ClaudeConfig) { c.Keep = 2 })
	req := llm.LLMRequest{Session: "s1", SystemPrompt: "s", Tools: shellTool, Messages: []rnixctx.Message{user("list the files")}}
	one, err := d.Call(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages,
		rnixctx.Message{Role: rnixctx.RoleAssistant, Content: one.Content, ToolCalls: one.ToolCalls},
		rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: one.ToolCalls[0].ID, Content: "a.go\nb.go"})
	aside := req
	aside.Aside, aside.Messages = true, append(slices.Clone(req.Messages), rnixctx.SummaryQuestion(""))
	r, err := d.Call(ctx, aside)
	if err != nil || len(r.ToolCalls) != 1 || string(r.ToolCalls[0].Input) != `{"result":"it is about files"}` || start.count() != 2 {
		t.Fatalf("%+v %v, %d children", r, err, start.count())
	}
	two, err := d.Call(ctx, req)
	if err != nil || string(two.ToolCalls[0].Input) != `{"result":"two files"}` || start.count() != 2 {
		t.Fatalf("%+v %v, %d children", two, err, start.count())
	}
	asked := api.Requests()
	if last := string(asked[len(asked)-1].Body); strings.Contains(last, "Write a summary") || strings.Count(last, "list the files") != 1 {
		t.Errorf("%s", last)
	}
	if left := start.All(); len(left) != 1 {
		t.Errorf("kept: %v", left)
	}
}
