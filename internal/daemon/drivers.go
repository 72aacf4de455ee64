package daemon

import (
	"rnix/drivers/llm"
	"rnix/internal/config"
	"rnix/internal/proc"
	"rnix/types"
)

// makeDriver makes the driver of a provider.
func makeDriver(pr config.Provider, procs *proc.Manager) (llm.LLMDriver, error) {
	if pr.Problem != "" {
		return nil, types.Errorf(types.ErrInvalid, "Open", pr.Name, "%s", pr.Problem)
	}
	window := pr.Window(pr.DefaultModel)
	switch pr.Driver {
	case config.DriverOffline:
		return llm.NewOfflineDriver(pr.Name), nil
	case config.DriverReplay:
		return llm.NewReplay(pr.Name, pr.Script)
	case config.DriverClaude:
		return llm.NewClaudeCliDriver(llm.ClaudeConfig{Name: pr.Name, Command: pr.Command, Model: pr.DefaultModel, Effort: pr.ReasoningEffort,
			ExtraArgs: pr.ExtraArgs, ContextWindow: window, Start: procs, Total: pr.Timeout}), nil
	case config.DriverCursor:
		return llm.NewCursorCliDriver(llm.CursorConfig{Name: pr.Name, Command: pr.Command, Model: pr.DefaultModel,
			ExtraArgs: pr.ExtraArgs, ContextWindow: window, Start: procs, Total: pr.Timeout}), nil
	}
	http := llm.HTTPConfig{Name: pr.Name, BaseURL: pr.BaseURL, APIKeyEnv: pr.APIKeyEnv, Model: pr.DefaultModel, MaxTokens: pr.MaxTokens,
		ContextWindow: window, Effort: pr.ReasoningEffort, Headers: pr.Headers, CallTimeout: pr.Timeout}
	switch pr.Driver {
	case config.DriverAnthropic:
		return llm.NewAnthropic(http)
	case config.DriverOpenAI, config.DriverOpenAICompat:
		return llm.NewOpenAI(http)
	}
	return nil, types.Errorf(types.ErrInvalid, "Open", pr.Name, "no driver %s", pr.Driver)
}
