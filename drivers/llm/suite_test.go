package llm_test

import (
	"context"
	"slices"
	"testing"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
)

// The other drivers run the suite beside their own tests.

// cursorAnswers is NOT Cursor's agent: a stand-in that thinks for ever when it is asked to, and else
// gives one answer.
const cursorAnswers = `p=$(cat)
echo '{"type":"system","subtype":"init","model":"Auto"}'
case "$p" in *endless*) while :; do echo '{"type":"thinking","subtype":"delta","text":"more "}'; sleep 0.05; done ;; esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"an answer","usage":{"inputTokens":4,"outputTokens":2}}'
`

func TestCursorDriverPassesTheSuiteWithAStandIn(t *testing.T) {
	llmtest.Run(t, func(t *testing.T) llm.LLMDriver {
		ctx := asCaller(t, standIn(t, "agent", cursorAnswers), map[string]string{"CURSOR_API_KEY": "k"})
		return asked{llm.NewCursorCliDriver(llm.CursorConfig{Start: newChildren(t)}), llm.CallerFrom(ctx)}
	}, llmtest.Caps{NoEcho: true, NoTools: true, NoFailure: true, NoPieces: true})
}

// helped asks a planner that knows a few jobs only for one that it knows.
type helped struct{ llm.LLMDriver }

func forHelp(req llm.LLMRequest) llm.LLMRequest {
	req.Messages = slices.Clone(req.Messages)
	req.Messages[len(req.Messages)-1] = rnixctx.Message{Role: rnixctx.RoleUser, Content: "help"}
	return req
}

func (h helped) Call(ctx context.Context, req llm.LLMRequest) (*llm.LLMResponse, error) {
	return h.LLMDriver.Call(ctx, forHelp(req))
}

func (h helped) Stream(ctx context.Context, req llm.LLMRequest) (<-chan llm.StreamEvent, error) {
	return h.LLMDriver.Stream(ctx, forHelp(req))
}

func TestOfflinePlannerPassesTheSuite(t *testing.T) {
	llmtest.Run(t, func(*testing.T) llm.LLMDriver { return helped{llm.NewOfflineDriver("offline")} },
		llmtest.Caps{NoEcho: true, NoTools: true, NoEndless: true, NoFailure: true, Free: true})
}
