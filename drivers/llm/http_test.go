package llm_test

import (
	"testing"

	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
)

func anthropic(t *testing.T, script func(llmtest.Request) llmtest.Reply, change ...func(*llm.HTTPConfig)) (*llm.AnthropicDriver, *llmtest.API) {
	t.Helper()
	api, url := llmtest.NewMessagesAPI(t, script)
	cfg := llm.HTTPConfig{BaseURL: url, Model: "fake-1"}
	for _, f := range change {
		f(&cfg)
	}
	d, err := llm.NewAnthropic(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, api
}

func openai(t *testing.T, script func(llmtest.Request) llmtest.Reply, change ...func(*llm.HTTPConfig)) (*llm.OpenAIDriver, *llmtest.API) {
	t.Helper()
	api, url := llmtest.NewChatAPI(t, script)
	cfg := llm.HTTPConfig{BaseURL: url, Model: "fake-1"}
	for _, f := range change {
		f(&cfg)
	}
	d, err := llm.NewOpenAI(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, api
}

func TestAnthropicPassesTheSuite(t *testing.T) {
	llmtest.Run(t, func(t *testing.T) llm.LLMDriver { d, _ := anthropic(t, llmtest.SuiteScript); return d }, llmtest.Caps{})
}

func TestOpenAIPassesTheSuite(t *testing.T) {
	llmtest.Run(t, func(t *testing.T) llm.LLMDriver { d, _ := openai(t, llmtest.SuiteScript); return d }, llmtest.Caps{})
}

func TestDecoratorsPassTheSuite(t *testing.T) {
	llmtest.Run(t, func(t *testing.T) llm.LLMDriver {
		retry := llm.NewRetry(llm.NewGate(llmtest.NewScriptedFunc(llmtest.SuiteTurn), 2), llm.RetryConfig{Tries: 1})
		f := llm.NewFallback(retry, llmtest.NewScriptedFunc(llmtest.SuiteTurn), "")
		return llm.NewRecord(f, func(llm.Exchange) {})
	}, llmtest.Caps{})
}
