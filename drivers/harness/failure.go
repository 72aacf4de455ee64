package harness

import (
	"strings"

	rnixctx "rnix/context"

	"rnix/agent"
	"rnix/drivers/llm"
	"rnix/internal/harness"
	"rnix/types"
)

// failure is the error of a turn that has come to a bad end.
func (s *session) failure(end *agent.ResultEvent) error {
	text := strings.TrimSpace(strings.Join(end.Errors, "; "))
	if text == "" {
		text = strings.TrimSpace(end.Message)
	}
	if text == "" {
		text = s.cfg.CLI.Name() + " reports " + end.Subtype
	}
	text = rnixctx.Elide(text, 2000)
	code := harness.CodeOf(*end)
	switch {
	case end.Subtype == harness.WhyNoResult && s.began, end.Subtype == harness.WhyNoSession: // a crash: its session goes on, or the conversation does
		code = types.ErrUnavailable
	case code == types.ErrRateLimited:
		return types.Errorf(code, "Call", s.cfg.Name, "%w", &llm.RateLimit{Message: text})
	}
	return types.Errorf(code, "Call", s.cfg.Name, "%s", text)
}
