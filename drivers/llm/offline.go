package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	rnixctx "rnix/context"
	"rnix/types"
)

// OfflineDriver is what answers when no model is connected. It is not a language model and says so: a
// planner with fixed rules that does a few useful jobs with the tools that it is offered. It reports
// on a directory, finds text, runs a command or the tests, and reports what came of it.
//
// It keeps nothing: each answer follows from the request alone, so the same conversation always gets
// the same answer, also after a restart. Its tokens are zero because there are none.
type OfflineDriver struct{ name string }

// NewOfflineDriver returns the planner under a provider's name; "" means "offline".
func NewOfflineDriver(name string) *OfflineDriver {
	if name == "" {
		name = "offline"
	}
	return &OfflineDriver{name}
}

// Info describes the planner.
func (d *OfflineDriver) Info() DriverInfo {
	return DriverInfo{Name: d.name, Driver: "offline", Model: "rules", NativeTools: true, Free: true, Abilities: Abilities{Tools: ToolsNative}}
}

// offlineRounds bounds how often the planner calls tools for one task. A job needs four rounds; more
// means that the conversation lost results, and then the report is made of what is left.
const offlineRounds = 10

// Call answers with the next tool calls of the job, or with its report. A task that needs a language
// model is an error INVALID that says how to connect one: to answer it would be to pretend.
func (d *OfflineDriver) Call(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, types.Errorf(types.ErrCancelled, "Call", "/dev/llm/"+d.name, "%w", context.Cause(ctx))
	}
	t := readTurn(&req)
	job := t.job()
	resp := &LLMResponse{Provider: d.name, Model: "rules", StopReason: "end_turn"}
	if t.rounds < offlineRounds {
		for _, s := range job.stages(t) {
			if calls := t.missing(s.calls); len(calls) > 0 {
				numberCalls(calls, req.Messages)
				resp.Content, resp.ToolCalls, resp.StopReason = s.say, calls, "tool_use"
				return resp, nil
			}
		}
	}
	answer, err := job.report(t)
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Call", "/dev/llm/"+d.name, "%w", err)
	}
	if job.failed != nil && job.failed(t) {
		resp.StopReason = StopFailed
	}
	resp.Content = strings.TrimRight(answer, "\n") + "\n\n---\n" + offlineFooter
	return resp, nil
}

// offlineFooter ends every answer.
const offlineFooter = "Written by the offline planner: fixed rules, not a language model. `rnix doctor` shows how to connect one."

// Stream delivers what Call returns: the text as one piece, then the whole.
func (d *OfflineDriver) Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error) {
	events := make(chan StreamEvent, 2) // both fit: nobody has to wait
	defer close(events)
	resp, err := d.Call(ctx, req)
	if err != nil {
		events <- StreamEvent{Type: EventError, Err: err}
		return events, nil
	}
	if resp.Content != "" {
		events <- StreamEvent{Type: EventText, Text: resp.Content}
	}
	events <- StreamEvent{Type: EventDone, Response: resp}
	return events, nil
}

// offlineJob is one kind of work.
type offlineJob struct {
	// stages are the calls to make, in order. They are worked out anew from what is known so far: a
	// later stage may follow from the results of an earlier one.
	stages func(*offlineTurn) []offlineStage
	// report writes the answer once nothing is left to call, or says why there is none.
	report func(*offlineTurn) (string, error)
	// failed reports whether what was asked for has failed, as the report says too; nil = it cannot.
	failed func(*offlineTurn) bool
}

// offlineStage is a set of calls that do not need each other's results.
type offlineStage struct {
	say   string
	calls []offlineWant
}

// offlineWant is a tool that a job wants to call. It is left out where the tool is not offered.
type offlineWant struct {
	tool  string
	input map[string]any
}

// offlineTurn is what can be read from a request: the task, and what was done for it so far.
type offlineTurn struct {
	req    *LLMRequest
	task   string
	done   []offlineDone
	rounds int
}

// offlineDone is a call with its answer.
type offlineDone struct {
	tool, input string // input is canonical JSON
	text        string
	failed      bool
}

// readTurn finds the task, which is the last thing that a person said, and the calls since.
func readTurn(req *LLMRequest) *offlineTurn {
	t := &offlineTurn{req: req, task: req.Intent}
	from := 0
	for i := range req.Messages {
		m := &req.Messages[i]
		// Notes of the kernel stand in brackets.
		if m.Role == rnixctx.RoleUser && strings.TrimSpace(m.Content) != "" && !strings.HasPrefix(m.Content, "[") {
			t.task, from = m.Content, i+1
		}
	}
	t.task = strings.TrimSpace(withoutInputs(t.task, req.Intent))
	answers := map[string]*rnixctx.Message{}
	for i := from; i < len(req.Messages); i++ {
		if m := &req.Messages[i]; m.Role == rnixctx.RoleTool {
			answers[m.ToolCallID] = m
		}
	}
	for i := from; i < len(req.Messages); i++ {
		m := &req.Messages[i]
		if len(m.ToolCalls) > 0 {
			t.rounds++
		}
		for _, c := range m.ToolCalls {
			d := offlineDone{tool: c.Name, input: canonical(c.Input), failed: true}
			if a := answers[c.ID]; a != nil {
				d.text, d.failed = a.Content, a.IsError
			}
			t.done = append(t.done, d)
		}
	}
	return t
}

// withoutInputs returns the task that a message gives, which is the intent alone where data were handed over
// with it: a command or a text to find that stands in data is nobody's wish.
func withoutInputs(content, intent string) string {
	if intent != "" && strings.HasPrefix(content, intent+"\n\n") {
		return intent
	}
	return content
}

// missing returns the calls that are wanted, possible, and not made yet.
func (t *offlineTurn) missing(wants []offlineWant) (calls []rnixctx.ToolCall) {
	for _, w := range wants {
		if in, ok := t.encode(w); ok && t.find(w.tool, in) == nil {
			calls = append(calls, rnixctx.ToolCall{Name: w.tool, Input: json.RawMessage(in)})
		}
	}
	return calls
}

// result returns the answer to a call that was wanted; ok is false if there is none or it failed.
func (t *offlineTurn) result(w offlineWant) (text string, ok bool) {
	if in, offered := t.encode(w); offered {
		if d := t.find(w.tool, in); d != nil {
			return d.text, !d.failed
		}
	}
	return "", false
}

func (t *offlineTurn) find(tool, input string) *offlineDone {
	for i := range t.done {
		if t.done[i].tool == tool && t.done[i].input == input {
			return &t.done[i]
		}
	}
	return nil
}

func (t *offlineTurn) offers(tool string) bool {
	return slices.ContainsFunc(t.req.Tools, func(s ToolSpec) bool { return s.Name == tool })
}

// encode writes the input of a call with the fields that the tool has. It reports whether the tool is
// offered.
func (t *offlineTurn) encode(w offlineWant) (string, bool) {
	i := slices.IndexFunc(t.req.Tools, func(s ToolSpec) bool { return s.Name == w.tool })
	if i < 0 {
		return "", false
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	in := map[string]any{}
	known := json.Unmarshal(t.req.Tools[i].Schema, &schema) == nil && len(schema.Properties) > 0
	for k, v := range w.input {
		if _, has := schema.Properties[k]; has || !known {
			in[k] = v
		}
	}
	return jsonText(in), true
}

// canonical is JSON with sorted keys and without spaces, or the text itself if it is not JSON.
func canonical(in json.RawMessage) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(in))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return string(in)
	}
	return jsonText(v)
}

func jsonText(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "{}" // not reached: v is made of strings, numbers and bools
	}
	return strings.TrimSpace(b.String())
}
