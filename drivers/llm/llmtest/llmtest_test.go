package llmtest_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestScriptedModelPassesTheSuite(t *testing.T) {
	llmtest.Run(t, func(*testing.T) llm.LLMDriver { return llmtest.NewScriptedFunc(llmtest.SuiteTurn) }, llmtest.Caps{})
}

func TestScriptThatRunsOutSaysSo(t *testing.T) {
	m := llmtest.NewScripted(llmtest.Say("one"))
	for _, session := range []string{"a", "b"} {
		if r, err := m.Call(t.Context(), llm.LLMRequest{Session: session}); err != nil || r.Content != "one" {
			t.Fatalf("session %s: %+v, %v", session, r, err)
		}
	}
	_, err := m.Call(t.Context(), llm.LLMRequest{Session: "a"})
	if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "has 1 turns and was asked for turn 2") {
		t.Errorf("error is %v", err)
	}
	if n := len(m.Requests()); n != 3 {
		t.Errorf("%d requests remembered, want 3", n)
	}
}
