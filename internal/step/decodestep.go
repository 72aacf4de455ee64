package step

import (
	"time"

	rnixctx "rnix/context"
	"rnix/types"
)

func (s *scanner) answer(a *Answer) {
	f := s.object()
	if f.has("step") {
		a.Step = s.count()
	}
	if f.has("prompt") {
		a.Prompt = s.count()
	}
	if f.has("started") {
		a.Started = s.time()
	}
	if f.has("model_ns") {
		a.ModelTime = time.Duration(s.int())
	}
	if f.has("provider") {
		a.Provider = s.string()
	}
	if f.has("model") {
		a.Model = s.string()
	}
	if f.has("stop_reason") {
		a.StopReason = s.string()
	}
	if f.has("tokens_used") {
		a.TokensUsed = s.count()
	}
	s.usage(&f, &a.Input, &a.Output, &a.CacheRead, &a.CacheWrite, &a.Estimated, &a.CostUSD, &a.CostFrom, &a.Metered)
	f.end()
}

// usage reads the members that an answer and a step have in common.
func (s *scanner) usage(f *fields, input, output, cacheRead, cacheWrite *int, estimated *bool, cost *float64, costFrom *string, metered *bool) {
	if f.has("input_tokens") {
		*input = s.count()
	}
	if f.has("output_tokens") {
		*output = s.count()
	}
	if f.has("cache_read_tokens") {
		*cacheRead = s.count()
	}
	if f.has("cache_write_tokens") {
		*cacheWrite = s.count()
	}
	if f.has("estimated") {
		*estimated = s.bool()
	}
	if f.has("cost_usd") {
		*cost = s.float()
	}
	if f.has("cost_from") {
		*costFrom = s.string()
	}
	if f.has("metered") {
		*metered = s.bool()
	}
}

// step reads a step without what readers fill in: a line that has it was not written by this program.
func (s *scanner) step(r *StepRecord) {
	f := s.object()
	if f.has("step_number") {
		r.StepNumber = s.count()
	}
	if f.has("timestamp") {
		r.Timestamp = s.time()
	}
	if f.has("message_count") {
		r.MessageCount = s.count()
	}
	if f.has("tokens_used") {
		r.TokensUsed = s.count()
	}
	if f.has("raw_response") {
		r.RawResponse = s.string()
	}
	if f.has("action") {
		r.Action = s.string()
	}
	if f.has("summary") {
		r.Summary = s.string()
	}
	if f.has("tool_path") {
		r.ToolPath = s.string()
	}
	if f.has("tool_calls") {
		r.ToolCalls = []Call{}
		s.list(func() { r.ToolCalls = append(r.ToolCalls, s.callDone()) })
	}
	if f.has("failed_calls") {
		r.FailedCalls = s.count()
	}
	if f.has("duration_ns") {
		r.Duration = time.Duration(s.int())
	}
	if f.has("model_ns") {
		r.ModelTime = time.Duration(s.int())
	}
	if f.has("provider") {
		r.Provider = s.string()
	}
	if f.has("model") {
		r.Model = s.string()
	}
	if f.has("stop_reason") {
		r.StopReason = s.string()
	}
	s.usage(&f, &r.Input, &r.Output, &r.CacheRead, &r.CacheWrite, &r.Estimated, &r.CostUSD, &r.CostFrom, &r.Metered)
	if f.has("error") {
		r.Error = s.string()
	}
	if f.has("files") {
		r.Files = s.snapshot()
	}
	if f.has("end") {
		r.End = s.ending()
	}
	f.end()
}

func (s *scanner) ending() *Ending {
	e := new(Ending)
	f := s.object()
	if f.has("exit") {
		s.into(&e.Exit)
	}
	if f.has("result") {
		e.Result = s.string()
	}
	f.end()
	return e
}

func (s *scanner) callDone() (c Call) {
	f := s.object()
	if f.has("id") {
		c.ID = s.string()
	}
	if f.has("name") {
		c.Name = s.string()
	}
	if f.has("path") {
		c.Path = s.string()
	}
	if f.has("input") {
		c.Input = s.string()
	}
	if f.has("result") {
		c.Result = s.string()
	}
	if f.has("error") {
		c.Error = s.string()
	}
	if f.has("code") {
		c.Code = types.ErrCode(s.string())
	}
	if f.has("duration_ns") {
		c.Duration = time.Duration(s.int())
	}
	f.end()
	return c
}

// checkpoint reads the text of checkpoint.json without its line end.
func (s *scanner) checkpoint(text string, c *Checkpoint) bool {
	s.text, s.at, s.bad = text, 0, false
	f := s.object()
	s.checkpointHead(&f, c)
	if f.has("step") {
		c.Step = s.count()
	}
	if f.has("messages") && !s.skip("null") {
		c.Messages = []rnixctx.Message{}
		s.list(func() {
			c.Messages = append(c.Messages, rnixctx.Message{})
			s.message(&c.Messages[len(c.Messages)-1])
		})
	}
	if f.has("tokens_used") {
		c.Tokens = s.count()
	}
	if f.has("cost_usd") {
		c.CostUSD = s.float()
	}
	if f.has("began") {
		c.Began = s.time()
	}
	if f.has("state") {
		c.State = s.raw()
	}
	f.end()
	return s.done()
}

// checkpointHead reads the first members of a checkpoint, and reports whether they are all there.
func (s *scanner) checkpointHead(f *fields, c *Checkpoint) bool {
	if f.has("v") {
		c.V = s.count()
	}
	if f.has("uuid") {
		s.into(&c.UUID)
	}
	if f.has("time") {
		c.Time = s.time()
	}
	if !f.has("seq") {
		return false
	}
	c.Seq = s.uint()
	return !s.bad && s.at < len(s.text)
}
