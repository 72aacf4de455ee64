package harness

import (
	"strings"

	rnixctx "rnix/context"

	"rnix/agent"
	"rnix/drivers/llm"
	"rnix/internal/harness"
	"rnix/types"
)

// failure is the error of a turn that has come to a bad end. began says that the session had begun before.
func (c *Config) failure(end *agent.ResultEvent, began bool) error {
	text := strings.TrimSpace(strings.Join(end.Errors, "; "))
	if text == "" {
		text = strings.TrimSpace(end.Message)
	}
	if text == "" {
		text = c.CLI.Name() + " reports " + end.Subtype
	}
	text = rnixctx.Elide(text, 2000)
	code := harness.CodeOf(*end)
	switch {
	case end.Subtype == harness.WhyNoResult && began, end.Subtype == harness.WhyNoSession: // a crash: its session goes on, or the conversation does
		code = types.ErrUnavailable
	case code == types.ErrRateLimited:
		return types.Errorf(code, "Call", c.Name, "%w", &llm.RateLimit{Message: text})
	}
	return types.Errorf(code, "Call", c.Name, "%s", text)
}
