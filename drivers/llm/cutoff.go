package llm

import (
	"cmp"
	"context"
	"strings"

	rnixctx "rnix/context"
	"rnix/types"
	"rnix/vfs"
)

// counted is attempt whose error is a vfs.CutOff if the driver had the request and the answer broke off.
func counted(ctx context.Context, d LLMDriver, req LLMRequest, emit func(StreamEvent)) (*LLMResponse, error) {
	var s said
	resp, err := attempt(ctx, d, req, func(ev StreamEvent) {
		if ev.Type == EventText || ev.Type == EventReasoning {
			s.add(ev.Text)
		}
		emit(ev)
	})
	info := d.Info()
	if err == nil || info.Free || info.CountsOn || !sent(err, s.tokens()) {
		return resp, err
	}
	return nil, &vfs.CutOff{Err: ended(ctx, err), Provider: info.Name, Model: cmp.Or(req.Model, info.Model), Answer: s.tokens()}
}

// sent reports whether a call that has failed was under way, so that it may be billed. What was refused is not, though
// some programs say why as if it were an answer.
func sent(err error, came int) bool {
	switch types.CodeOf(err) {
	case types.ErrCancelled, types.ErrTimeout:
		return true
	case types.ErrAuth, types.ErrInvalid, types.ErrNotFound, types.ErrPermission, types.ErrRateLimited:
		return false
	}
	return came > 0
}

// said estimates the tokens of a text that comes in pieces.
type said struct {
	text    strings.Builder // the end of it
	counted int             // tokens of what stood before
}

// saidRoom is how many bytes of a text are estimated at once. More are not kept.
const saidRoom = 4 << 10

func (s *said) add(text string) {
	if s.text.WriteString(text); s.text.Len() >= saidRoom {
		s.counted = s.tokens()
		s.text.Reset()
	}
}

func (s *said) tokens() int { return s.counted + rnixctx.EstimateTokens(s.text.String()) }
