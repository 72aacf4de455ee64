package llm

import (
	"bytes"
	"strconv"

	rnixctx "rnix/context"
)

// maxCount is the largest number of tokens that is believed.
const maxCount = 100_000_000

// count is a number of tokens as a provider wrote it. Reading it never fails, because a wrong count is
// no reason to lose an answer; it is then not ok, and the usage is estimated.
type count struct {
	n         int
	said, bad bool
}

// UnmarshalJSON reads a whole number from 0 to maxCount.
func (c *count) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f < 0 || f > maxCount || f != float64(int(f)) {
		*c = count{said: true, bad: true}
		return nil
	}
	*c = count{n: int(f), said: true}
	return nil
}

// update takes over what a later report says.
func (c *count) update(later count) {
	if later.said {
		*c = later
	}
}

// estimate is the usage when the provider does not tell, or tells nonsense: a quarter of the bytes
// that were sent and received.
func estimate(sent int, r *LLMResponse) Usage {
	got := len(r.Content) + len(r.Reasoning)
	for _, c := range r.ToolCalls {
		got += len(c.Name) + len(c.Input)
	}
	return Usage{Input: (sent + 3) / 4, Output: (got + 3) / 4, Estimated: true}
}

// sentBytes is how many bytes of a request's body count where the provider does not tell its tokens: pictures do by what they show.
func sentBytes(body []byte, req LLMRequest) int {
	if len(rnixctx.AttachmentsIn(req.Messages)) == 0 {
		return len(body)
	}
	n := len(req.SystemPrompt)
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for i := range req.Messages {
		content, calls, reasoning := req.Messages[i].Parts()
		n += 4 * (content + calls + reasoning)
	}
	return n
}

// settle gives a response its usage.
func (r *LLMResponse) settle(u Usage, known bool, sent int) {
	if !known || u.Total() == 0 {
		u = estimate(sent, r)
	}
	r.Usage, r.TokensUsed = u, u.Total()
}
