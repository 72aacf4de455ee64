package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
)

// maxEvent bounds one event of a stream, and maxWhole an answer that is not streamed, beyond which they are not looked at, in bytes.
const (
	maxEvent = 16 << 20
	maxWhole = 64 << 20
)

// answer counts an answer while it passes. It keeps no more of it than the event under way.
type answer struct {
	call   call
	stream bool
	line   []byte // of the stream, so far; all of an answer that is not streamed
	data   []byte // of the event, so far
	lost   bool   // a part of it was too long to be looked at

	model string
	tier  string
	usage counts
	final bool // the vendor has said what was used in all
	said  int  // bytes of what was answered, for an estimate
}

// Write takes a part of the answer. It never fails.
func (a *answer) Write(p []byte) (int, error) {
	if !a.stream {
		if a.lost = a.lost || len(a.line)+len(p) > maxWhole; !a.lost {
			a.line = append(a.line, p...)
		}
		a.said += len(p)
		return len(p), nil
	}
	for rest := p; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			a.keep(rest)
			break
		}
		a.keep(rest[:i])
		a.ends()
		rest = rest[i+1:]
	}
	return len(p), nil
}

func (a *answer) keep(p []byte) {
	if len(a.line)+len(a.data)+len(p) > maxEvent {
		a.lost = true
		return
	}
	a.line = append(a.line, p...)
}

// ends takes a line of the stream.
func (a *answer) ends() {
	line := bytes.TrimSuffix(a.line, []byte("\r"))
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		a.data = append(append(a.data, bytes.TrimPrefix(data, []byte(" "))...), '\n')
	}
	if len(line) == 0 && len(a.data) > 0 {
		a.event(a.data)
		a.data = a.data[:0]
	}
	a.line = a.line[:0]
	if cap(a.data)+cap(a.line) > 1<<20 { // such events are rare
		a.data, a.line = nil, nil
	}
}

// told is what an event, or a whole answer, says that is counted, with the fields of all vendors.
type told struct {
	Type  string `json:"type"`
	Model string `json:"model"`
	Usage counts `json:"usage"`
	// Of Messages, at the beginning.
	Message struct {
		Model string `json:"model"`
		Usage counts `json:"usage"`
	} `json:"message"`
	// Of Responses, at the end.
	Response struct {
		Model string `json:"model"`
		Tier  string `json:"service_tier"`
		Usage counts `json:"usage"`
	} `json:"response"`
	Tier    string          `json:"service_tier"` // of OpenAI
	Delta   json.RawMessage `json:"delta"`
	Choices []struct {
		Delta json.RawMessage `json:"delta"`
	} `json:"choices"`
}

func (a *answer) event(data []byte) {
	if !bytes.Contains(data, []byte(`_tokens"`)) { // nothing is counted in it
		if i := bytes.Index(data, []byte(`"delta"`)); i >= 0 {
			a.said += len(data) - i
		}
		return
	}
	var t told
	if json.Unmarshal(data, &t) != nil { // the end mark of a chat
		return
	}
	a.take(&t)
	switch a.call {
	case messages:
		a.final = a.final || t.Type == "message_delta" && t.Usage.Output.said
	case chat:
		a.final = a.final || t.Usage.Prompt.said
	case responses:
		a.final = a.final || t.Response.Usage.Output.said
	}
	a.said += len(t.Delta)
	for i := range t.Choices {
		a.said += len(t.Choices[i].Delta)
	}
}

func (a *answer) take(t *told) {
	for _, m := range []string{t.Model, t.Message.Model, t.Response.Model} {
		if m != "" {
			a.model = m
		}
	}
	a.tier = cmp.Or(t.Tier, t.Response.Tier, a.tier)
	for _, u := range []*counts{&t.Message.Usage, &t.Response.Usage, &t.Usage} {
		a.usage.update(u)
	}
}

// took returns what the answer has taken. q is what was asked; what the vendor has not counted is estimated: of the prompt no more than was reserved.
func (a *answer) took(q *Question) Usage {
	if !a.stream && !a.lost {
		var t told
		if json.Unmarshal(a.line, &t) == nil {
			a.take(&t)
			a.final = a.usage.Output.said || a.usage.Completion.said
		}
	}
	u, ok := a.usage.of(a.call)
	if u.Model, u.Dear = a.model, a.usage.dear(a.tier); ok && a.final && u.Input+u.Output+u.CacheRead+u.CacheWrite > 0 {
		return u
	}
	u.Estimated = true
	if u.Input+u.CacheRead+u.CacheWrite == 0 {
		u.Input = guess(q)
	}
	if u.Output = max(u.Output, (a.said+3)/4); q.Answer > 0 {
		u.Output = min(u.Output, q.Answer)
	}
	return u
}

// hungUp returns what an answer has taken for which its client did not wait: all that was reserved for it, unless the vendor has counted. What it would have said, or has
// thought already, cannot be seen, and who hangs up at will must not have it for nothing.
func (a *answer) hungUp(q *Question) Usage {
	u := a.took(q)
	if u.Estimated {
		u.Output = max(u.Output, q.Answer)
	}
	return u
}

// guess estimates the tokens of a prompt.
func guess(q *Question) int { return (q.Bytes+3)/4 + q.Extra }

// counts are the tokens as vendors say them: Input to CacheWrite by Messages, Input, Output and Details by Responses, Prompt and Completion by Chat.
type counts struct {
	Input      count   `json:"input_tokens"`
	Output     count   `json:"output_tokens"`
	CacheRead  count   `json:"cache_read_input_tokens"`
	CacheWrite count   `json:"cache_creation_input_tokens"`
	Prompt     count   `json:"prompt_tokens"`
	Completion count   `json:"completion_tokens"`
	InDetails  details `json:"input_tokens_details"`
	PrDetails  details `json:"prompt_tokens_details"`
	Creation   struct {
		Hour count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	// How Messages were served.
	Tier  string `json:"service_tier"`
	Speed string `json:"speed"`
	Geo   string `json:"inference_geo"`
}

// details are parts of the prompt.
type details struct {
	Cached     count `json:"cached_tokens"`
	CacheWrite count `json:"cache_write_tokens"`
}

func (c *counts) update(later *counts) {
	for _, n := range []struct{ to, from *count }{
		{&c.Input, &later.Input}, {&c.Output, &later.Output}, {&c.CacheRead, &later.CacheRead}, {&c.CacheWrite, &later.CacheWrite},
		{&c.Prompt, &later.Prompt}, {&c.Completion, &later.Completion},
		{&c.InDetails.Cached, &later.InDetails.Cached}, {&c.InDetails.CacheWrite, &later.InDetails.CacheWrite},
		{&c.PrDetails.Cached, &later.PrDetails.Cached}, {&c.PrDetails.CacheWrite, &later.PrDetails.CacheWrite}, {&c.Creation.Hour, &later.Creation.Hour},
	} {
		if n.from.said {
			*n.to = *n.from
		}
	}
	c.Tier, c.Speed, c.Geo = cmp.Or(later.Tier, c.Tier), cmp.Or(later.Speed, c.Speed), cmp.Or(later.Geo, c.Geo)
}

// dear reports whether an answer has cost more than its model's price, by the tier of the whole answer or by how Messages were served.
func (c *counts) dear(tier string) bool {
	return !slices.Contains(tiers, cmp.Or(tier, c.Tier)) && cmp.Or(tier, c.Tier) != "batch" || c.Speed != "" && c.Speed != "standard" || c.Geo == "us"
}

// of returns the counts of a call, whose parts do not overlap; false if they are none that can be true.
func (c *counts) of(what call) (Usage, bool) {
	u := Usage{Input: c.Input.n, Output: c.Output.n}
	switch what {
	case messages:
		u.CacheRead, u.CacheWrite, u.CacheHour = c.CacheRead.n, c.CacheWrite.n, min(c.Creation.Hour.n, c.CacheWrite.n)
		return u, !c.bad()
	case chat:
		u = Usage{Input: c.Prompt.n, Output: c.Completion.n, CacheRead: c.PrDetails.Cached.n, CacheWrite: c.PrDetails.CacheWrite.n}
	default:
		u.CacheRead, u.CacheWrite = c.InDetails.Cached.n, c.InDetails.CacheWrite.n
	}
	if u.Input < u.CacheRead+u.CacheWrite {
		u.CacheRead, u.CacheWrite = 0, 0
		return u, false
	}
	u.Input -= u.CacheRead + u.CacheWrite
	return u, !c.bad()
}

func (c *counts) bad() bool {
	for _, n := range []count{c.Input, c.Output, c.CacheRead, c.CacheWrite, c.Prompt, c.Completion, c.InDetails.Cached, c.PrDetails.Cached, c.Creation.Hour} {
		if n.bad {
			return true
		}
	}
	return false
}

// count is a number of tokens as a vendor says it. A wrong one is no reason to read nothing: then what was used is estimated.
type count struct {
	n         int
	said, bad bool
}

// maxCount is the largest number of tokens that is believed.
const maxCount = 100_000_000

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
