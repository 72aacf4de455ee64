package step

import (
	"encoding/json"
	"time"

	rnixctx "rnix/context"
	"rnix/types"
)

// scanner reads records and checkpoints. It may be used again for the next one.
type scanner struct {
	lexer
	messages slab[rnixctx.Message]
	answers  slab[Answer]
	intents  slab[Intent]
	results  slab[Result]
	steps    slab[StepRecord]
}

// slab allocates values some at a time: one at first, then more.
type slab[T any] struct {
	free []T
	size int
}

func (l *slab[T]) next() *T {
	if len(l.free) == 0 {
		l.size = min(2*l.size+1, 15)
		l.free = make([]T, l.size)
	}
	v := &l.free[0]
	l.free = l.free[1:]
	return v
}

// decode reads the record of a line, of which body is all before its checksum, into r. What scanner
// refuses is read by encoding/json: the results are the same, and lines that this program has written
// are not refused.
func (s *scanner) decode(line []byte, body int, r *Record) error {
	s.text, s.at, s.bad = string(line[:body]), 0, false
	*r = Record{}
	if s.record(r); s.done() {
		return nil
	}
	*r = Record{}
	return json.Unmarshal(line, r)
}

// record reads a record without its end, where the checksum stands.
func (s *scanner) record(r *Record) {
	f := s.object()
	if f.has("v") {
		r.V = s.count()
	}
	if f.has("kind") {
		r.Kind = kindOf(s.string())
	}
	if f.has("seq") {
		r.Seq = s.uint()
	}
	if f.has("time") {
		r.Time = s.time()
	}
	if f.has("joined") {
		r.Joined = s.bool()
	}
	if f.has("message") {
		r.Message = s.messages.next()
		s.message(r.Message)
	}
	if f.has("answer") {
		r.Answer = s.answers.next()
		s.answer(r.Answer)
	}
	if f.has("delivered") {
		r.Delivered = []uint64{}
		s.list(func() { r.Delivered = append(r.Delivered, s.uint()) })
	}
	if f.has("intent") {
		r.Intent = s.intents.next()
		s.intent(r.Intent)
	}
	if f.has("result") {
		r.Result = s.results.next()
		s.result(r.Result)
	}
	if f.has("step") {
		r.Step = s.steps.next()
		s.step(r.Step)
	}
	if f.has("marker") {
		r.Marker = new(Marker)
		s.marker(r.Marker)
	}
	if f.first { // then the checksum would begin with a comma
		s.refuse()
	}
}

// kindOf returns a kind that does not keep the text of its line.
func kindOf(text string) Kind {
	for _, k := range [...]Kind{KindMessage, KindIntent, KindResult, KindStep, KindMarker} {
		if string(k) == text {
			return k
		}
	}
	return Kind(text)
}

func roleOf(text string) rnixctx.Role {
	for _, r := range [...]rnixctx.Role{rnixctx.RoleAssistant, rnixctx.RoleTool, rnixctx.RoleUser, rnixctx.RoleSystem} {
		if string(r) == text {
			return r
		}
	}
	return rnixctx.Role(text)
}

func (s *scanner) message(m *rnixctx.Message) {
	f := s.object()
	if f.has("role") {
		m.Role = roleOf(s.string())
	}
	if f.has("content") {
		m.Content = s.string()
	}
	if f.has("tool_call_id") {
		m.ToolCallID = s.string()
	}
	if f.has("is_error") {
		m.IsError = s.bool()
	}
	if f.has("tool_calls") {
		m.ToolCalls = []rnixctx.ToolCall{}
		s.list(func() { m.ToolCalls = append(m.ToolCalls, s.toolCall()) })
	}
	if f.has("reasoning") {
		m.Reasoning = []rnixctx.Block{}
		s.list(func() { m.Reasoning = append(m.Reasoning, s.block()) })
	}
	if f.has("attachments") {
		m.Attachments = []rnixctx.Attachment{}
		s.list(func() { m.Attachments = append(m.Attachments, s.attachment()) })
	}
	f.end()
}

func (s *scanner) attachment() (a rnixctx.Attachment) {
	f := s.object()
	if f.has("name") {
		a.Name = s.string()
	}
	if f.has("media") {
		a.Media = s.string()
	}
	if f.has("sha256") {
		a.SHA256 = s.string()
	}
	if f.has("bytes") {
		a.Bytes = s.int()
	}
	if f.has("width") {
		a.Width = s.count()
	}
	if f.has("height") {
		a.Height = s.count()
	}
	if f.has("pages") {
		a.Pages = s.count()
	}
	f.end()
	return a
}

func (s *scanner) toolCall() (c rnixctx.ToolCall) {
	f := s.object()
	if f.has("id") {
		c.ID = s.string()
	}
	if f.has("name") {
		c.Name = s.string()
	}
	if f.has("input") {
		c.Input = s.raw()
	}
	if f.has("parse_error") {
		c.ParseError = s.string()
	}
	f.end()
	return c
}

func (s *scanner) block() (b rnixctx.Block) {
	f := s.object()
	if f.has("provider") {
		b.Provider = s.string()
	}
	if f.has("data") {
		b.Data = s.raw()
	}
	f.end()
	return b
}

func (s *scanner) intent(i *Intent) {
	f := s.object()
	if f.has("step") {
		i.Step = s.count()
	}
	if f.has("call_id") {
		i.CallID = s.string()
	}
	if f.has("tool") {
		i.Tool = s.string()
	}
	if f.has("path") {
		i.Path = s.string()
	}
	if f.has("input") {
		i.Input = s.raw()
	}
	if f.has("effect") {
		i.Effect = s.string()
	}
	if f.has("child") {
		i.Child = new(types.UUID)
		s.into(i.Child)
	}
	if f.has("background") {
		i.Background = s.bool()
	}
	if f.has("key") {
		i.Key = s.string()
	}
	if f.has("before") {
		i.Before = s.snapshot()
	}
	f.end()
}

func (s *scanner) snapshot() *Snapshot {
	p := new(Snapshot)
	f := s.object()
	if f.has("step") {
		p.Step = s.count()
	}
	if f.has("kind") {
		p.Kind = s.string()
	}
	if f.has("id") {
		p.ID = s.string()
	}
	if f.has("root") {
		p.Root = s.string()
	}
	if f.has("limited") {
		p.Limited = s.string()
	}
	f.end()
	return p
}

func (s *scanner) result(r *Result) {
	f := s.object()
	if f.has("step") {
		r.Step = s.count()
	}
	if f.has("call_id") {
		r.CallID = s.string()
	}
	if f.has("tool") {
		r.Tool = s.string()
	}
	if f.has("output") {
		r.Output = s.string()
	}
	if f.has("error") {
		r.Error = s.string()
	}
	if f.has("code") {
		r.Code = types.ErrCode(s.string())
	}
	if f.has("duration_ns") {
		r.Duration = time.Duration(s.int())
	}
	f.end()
}

func (s *scanner) marker(m *Marker) {
	f := s.object()
	if f.has("name") {
		m.Name = s.string()
	}
	if f.has("pid") {
		m.PID = types.PID(s.uint())
	}
	if f.has("text") {
		m.Text = s.string()
	}
	if f.has("exit") {
		m.Exit = new(types.ExitStatus)
		s.into(m.Exit)
	}
	if f.has("detail") {
		m.Detail = s.raw()
	}
	f.end()
}
