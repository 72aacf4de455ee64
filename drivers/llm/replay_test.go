package llm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/types"
)

func replay(t *testing.T, script string) *llm.ReplayDriver {
	t.Helper()
	d, err := llm.ParseReplay("", "script.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const aScript = `
version: "1"
responses:
  - content: Let me look.
    reasoning: First things first.
    tool_calls:
      - {name: read_file, input: {path: go.mod, lines: [1, 2], deep: {a: null}}}
      - {name: broken, input: "{not json", id: mine}
      - {name: bare}
    usage: {input_tokens: 120, output_tokens: 15, cached_input_tokens: 100}
    delay: 2s
  - error: {code: rate_limited, message: slow down, retry_after: 3s}
  - content: Done.
`

func TestReplayFollowsItsScriptInEachSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := replay(t, aScript)
		for _, session := range []string{"a", "b"} {
			start := time.Now()
			r, err := d.Call(t.Context(), llm.LLMRequest{Session: session, Intent: "go"})
			if err != nil || r.Content != "Let me look." || r.Reasoning == "" || r.StopReason != "tool_use" || time.Since(start) != 2*time.Second {
				t.Fatalf("%+v, %v", r, err)
			}
			if r.Usage != (llm.Usage{Input: 20, Output: 15, CacheRead: 100}) || r.TokensUsed != 135 {
				t.Errorf("usage is %+v", r.Usage)
			}
			c := r.ToolCalls
			if len(c) != 3 || string(c[0].Input) != `{"deep":{"a":null},"lines":[1,2],"path":"go.mod"}` || c[0].ID != "replay_1_1" ||
				c[1].ID != "mine" || c[1].ParseError == "" || string(c[2].Input) != "{}" {
				t.Errorf("calls are %+v", c)
			}
			_, err = d.Call(t.Context(), llm.LLMRequest{Session: session})
			var limit *llm.RateLimit
			if types.CodeOf(err) != types.ErrRateLimited || !errors.As(err, &limit) || limit.RetryAfter != 3*time.Second {
				t.Errorf("error is %v", err)
			}
			if r, err = d.Call(t.Context(), llm.LLMRequest{Session: session}); err != nil || r.Content != "Done." || !r.Usage.Estimated {
				t.Errorf("%+v, %v", r, err)
			}
			for range 2 {
				if _, err = d.Call(t.Context(), llm.LLMRequest{Session: session}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "script.yaml has 3 responses and was asked for response 4") {
					t.Errorf("error is %v", err)
				}
			}
		}
	})
}

func TestReplayGoesOnBehindAResumedConversation(t *testing.T) {
	d := replay(t, aScript)
	r, err := d.Call(t.Context(), llm.LLMRequest{Session: "resumed", Messages: []rnixctx.Message{
		{Role: rnixctx.RoleUser, Content: "go"}, {Role: rnixctx.RoleAssistant, Content: "Let me look."}, {Role: rnixctx.RoleUser, Content: "and?"}}})
	if types.CodeOf(err) != types.ErrRateLimited {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestMistakesInAScriptAreNamedWithTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"unknown key":   {"version: \"1\"\nresponses:\n  - content: x\n    colour: red\n", `script.yaml:4:5: unknown key "colour"; known are content, delay, error, reasoning, stop_reason, tool_calls, usage`},
		"unknown top":   {"version: \"1\"\nanswers: []\n", `script.yaml:2:1: unknown key "answers"; known are conversations, responses, version`},
		"syntax":        {"version: \"1\"\nresponses: [\n", "script.yaml:3:1: "},
		"wrong type":    {"version: \"1\"\nresponses:\n  - usage: {input_tokens: many}\n", `script.yaml:3:27: this is the text "many", but must be a whole number`},
		"near key":      {"version: \"1\"\nresponses:\n  - {contents: x}\n", `unknown key "contents"; did you mean "content"? known are content,`},
		"a list":        {"- content: x\n", `script.yaml:1:1: this is a list, but must be the script, a map that begins with version: "1"`},
		"a text":        {"version: \"1\"\nresponses: [Done.]\n", `script.yaml:2:13: this is the text "Done.", but must be a response, a map such as {content: Done.}`},
		"no list":       {"version: \"1\"\nresponses: {content: x}\n", `script.yaml:2:12: this is a map, but must be a list`},
		"a map as text": {"version: \"1\"\nresponses:\n  - content: {a: b}\n", `script.yaml:3:14: this is a map, but must be a text`},
		"call key":      {"version: \"1\"\nresponses:\n  - tool_calls: [{name: a, arguments: {}}]\n", `unknown key "arguments"; known are id, input, name`},
		"talk key":      {"version: \"1\"\nconversations:\n  - {answers: []}\n", `unknown key "answers"; known are prompt, responses, system`},
		"duration":      {"version: \"1\"\nresponses:\n  - delay: soon\n", `script.yaml:3:12: "soon" is not a duration`},
		"version":       {"responses: []\n", `write version: "1"`},
		"empty":         {"", `write version: "1"`},
		"code":          {"version: \"1\"\nresponses:\n  - error: {code: OOPS}\n", `script.yaml:3:5: response 1: invalid error code "OOPS": want one of`},
		"stop":          {"version: \"1\"\nresponses:\n  - stop_reason: tired\n", `stop_reason "tired"`},
		"usage":         {"version: \"1\"\nresponses:\n  - usage: {cached_input_tokens: 4}\n", "part of input_tokens"},
		"nameless tool": {"version: \"1\"\nresponses:\n  - tool_calls: [{input: {}}]\n", "script.yaml:3:5: response 1: tool call 1: no name"},
		"by alias":      {"version: \"1\"\nresponses:\n  - &a {content: x}\n  - *a\n  - {stop_reason: tired}\n", "script.yaml:5:5: response 3: "},
	} {
		_, err := llm.ParseReplay("", "script.yaml", []byte(c.in))
		if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := llm.NewReplay("", filepath.Join(t.TempDir(), "none.yaml")); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("missing file: %v", err)
	}
}

func TestReplayPassesTheSuite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte("version: \"1\"\nresponses: [{content: a}, {content: b}, {content: c}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	llmtest.Run(t, func(t *testing.T) llm.LLMDriver {
		d, err := llm.NewReplay("tape", path)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}, llmtest.Caps{NoEcho: true, NoTools: true, NoEndless: true, NoFailure: true})
}

// A pause cuts a call off, and the same one is made again.
func TestReplayGivesACallThatWasCutOffItsAnswerAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := replay(t, "version: \"1\"\nresponses:\n  - {content: first, delay: 1h}\n  - content: second\n")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := d.Call(ctx, llm.LLMRequest{Session: "a", Intent: "x"}); err == nil {
			t.Error("it has answered")
		}
		for _, want := range []string{"first", "second"} {
			if r, err := d.Call(t.Context(), llm.LLMRequest{Session: "a", Intent: "x"}); err != nil || r.Content != want {
				t.Errorf("%+v %v, want %s", r, err, want)
			}
		}
	})
}
