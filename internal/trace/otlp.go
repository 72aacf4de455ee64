package trace

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"rnix/internal/step"
	"rnix/types"
)

// The kinds and status codes of OpenTelemetry. In its JSON, enumerations are numbers, 64-bit integers are
// strings, and ids are hexadecimal.
const (
	otlpInternal = 1
	otlpClient   = 3

	otlpError = 2 // what went well, or has no end, has no status
)

type otlpTraces struct {
	ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
}

type otlpResourceSpans struct {
	Resource   otlpResource     `json:"resource"`
	ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
}

type otlpResource struct {
	Attributes []otlpAttribute `json:"attributes"`
}

type otlpScopeSpans struct {
	Scope otlpScope  `json:"scope"`
	Spans []otlpSpan `json:"spans"`
}

type otlpScope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type otlpSpan struct {
	TraceID      string          `json:"traceId"`
	SpanID       string          `json:"spanId"`
	ParentSpanID string          `json:"parentSpanId,omitempty"`
	Name         string          `json:"name"`
	Kind         int             `json:"kind"`
	Start        string          `json:"startTimeUnixNano"`
	End          string          `json:"endTimeUnixNano"`
	Attributes   []otlpAttribute `json:"attributes"`
	Status       otlpStatus      `json:"status"`
}

type otlpStatus struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

// otlpValue has exactly one field set.
type otlpValue struct {
	String *string    `json:"stringValue,omitempty"`
	Bool   *bool      `json:"boolValue,omitempty"`
	Int    *string    `json:"intValue,omitempty"`
	Double *float64   `json:"doubleValue,omitempty"`
	Array  *otlpArray `json:"arrayValue,omitempty"`
}

type otlpArray struct {
	Values []otlpValue `json:"values"`
}

// WriteOTLP writes spans as one request of OTLP/JSON, in one line. root gives the id of the trace. Inputs and
// outputs are written if the spans have them. service is what writes it, with its version.
func WriteOTLP(w io.Writer, root types.UUID, spans []Span, service, version string) error {
	list := make([]otlpSpan, 0, len(spans))
	for i := range spans {
		list = append(list, otlp(root, &spans[i]))
	}
	var about attributes
	about.text(attrService, service)
	about.text(attrVersion, version)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(otlpTraces{[]otlpResourceSpans{{
		Resource:   otlpResource{about},
		ScopeSpans: []otlpScopeSpans{{Scope: otlpScope{service, version}, Spans: list}},
	}}})
}

// otlp returns a span as OpenTelemetry has it. One that is open ends where it is known last, and says that
// it is open.
func otlp(root types.UUID, s *Span) otlpSpan {
	o := otlpSpan{TraceID: hex.EncodeToString(root[:]), SpanID: s.ID, ParentSpanID: s.Parent, Kind: otlpInternal, Start: nanos(s.Start), End: nanos(s.End())}
	a := attributes{}
	a.text(attrKind, string(s.Kind))
	a.number(attrPID, int(s.PID))
	a.text(attrConversation, s.UUID.String())
	switch s.Kind {
	case Process:
		o.Name = a.process(s)
	case Model:
		o.Name, o.Kind = a.model(s), otlpClient
	case Tool:
		o.Name = a.tool(s)
	case Step:
		o.Name = opStep + " " + strconv.Itoa(s.Step)
	default:
		o.Name = opWait + " " + s.Name
	}
	a.number(attrStep, s.Step)
	a.number(attrRun, s.Run)
	a.yes(attrOpen, s.Open)
	a.long(attrIdle, int64(s.IdleNs))
	a.long(attrCritical, int64(s.CriticalNs))
	if s.Status == Failed {
		o.Status = otlpStatus{otlpError, s.Err}
		a.text(attrError, errorType(s))
	}
	o.Attributes = a
	return o
}

// errorType names what made a span fail by one of few words: a code, or a kind of failure that says more than its code.
func errorType(s *Span) string {
	switch {
	case s.Failure == step.FailedTool || s.Failure != "" && s.Code == "" && s.Failure != step.FailedCall:
		return string(s.Failure)
	case s.Code == types.ErrTimeout:
		return errorTimeout
	case s.Code != "":
		return string(s.Code)
	case s.Exit == nil:
		return errorOther
	}
	if s.Exit.MaxSteps() {
		return "max_steps"
	}
	return cmp.Or(exitTypes[s.Exit.Code], errorOther)
}

// exitTypes are the types of ends that no error has caused.
var exitTypes = map[int]string{types.ExitBudget: "budget_exceeded", types.ExitLostOwnership: "lost_ownership", types.ExitCancelled: "cancelled", types.ExitNoProgress: "no_progress",
	types.ExitRefused: "refused"}

// attributes collects attributes. What is empty or zero is left out.
type attributes []otlpAttribute

func (a *attributes) text(key, v string) {
	if v != "" {
		*a = append(*a, otlpAttribute{key, otlpValue{String: &v}})
	}
}

func (a *attributes) number(key string, n int) { a.long(key, int64(n)) }

func (a *attributes) long(key string, n int64) {
	if n != 0 {
		v := strconv.FormatInt(n, 10)
		*a = append(*a, otlpAttribute{key, otlpValue{Int: &v}})
	}
}

func (a *attributes) yes(key string, v bool) {
	if v {
		*a = append(*a, otlpAttribute{key, otlpValue{Bool: &v}})
	}
}

func (a *attributes) float(key string, v float64) {
	if v != 0 {
		*a = append(*a, otlpAttribute{key, otlpValue{Double: &v}})
	}
}

func (a *attributes) texts(key string, list ...string) {
	arr := &otlpArray{}
	for _, s := range list {
		if s != "" {
			arr.Values = append(arr.Values, otlpValue{String: &s})
		}
	}
	if len(arr.Values) > 0 {
		*a = append(*a, otlpAttribute{key, otlpValue{Array: arr}})
	}
}

func (a *attributes) process(s *Span) (name string) {
	op := opAgent
	if s.Body != "" {
		op = opWorkflow
	}
	a.text(attrOperation, op)
	label := s.Name
	if s.Agent == "" && s.Intent != "" && label == line(s.Intent, nameLength) && s.Input == "" {
		label = "agent" // its intent is content
	}
	agent := cmp.Or(s.Agent, label)
	a.text(attrName, label)
	if s.Body == "" {
		a.text(attrAgentName, agent)
		a.text(attrAgentID, s.UUID.String())
	} else {
		a.text(attrWorkflow, label)
	}
	a.text(attrProvider, s.Provider)
	a.text(attrRequestModel, s.Model)
	a.text(attrBody, s.Body)
	a.usage(s)
	a.number(attrRuns, s.Runs)
	if s.Exit != nil {
		code := strconv.Itoa(s.Exit.Code)
		*a = append(*a, otlpAttribute{attrExitCode, otlpValue{Int: &code}})
		a.text(attrExitReason, s.Exit.Reason)
	}
	a.text(attrIntent, s.Input)
	a.text(attrResult, s.Output)
	if s.Body != "" {
		return op + " " + label
	}
	return op + " " + agent
}

func (a *attributes) model(s *Span) (name string) {
	a.text(attrOperation, opChat)
	a.text(attrProvider, s.Provider)
	a.text(attrRequestModel, s.Name)
	a.text(attrReplyModel, s.Model)
	a.texts(attrFinish, s.StopReason)
	a.usage(s)
	a.text(attrPrompt, message("user", s.Input))
	a.text(attrAnswer, message("assistant", s.Output))
	return opChat + " " + s.Name
}

// message returns a text in the form that the conventions have for conversations; empty if there is none.
func message(role, text string) string {
	if text == "" {
		return ""
	}
	type piece struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	b, _ := json.Marshal([]struct { // strings always marshal
		Role  string  `json:"role"`
		Parts []piece `json:"parts"`
	}{{role, []piece{{"text", text}}}})
	return string(b)
}

func (a *attributes) usage(s *Span) {
	a.number(attrInputTokens, s.PromptTokens+s.CacheRead+s.CacheWrite)
	a.number(attrOutputTokens, s.OutputTokens)
	a.number(attrCacheRead, s.CacheRead)
	a.number(attrCacheWrite, s.CacheWrite)
	a.yes(attrEstimated, s.Estimated)
	a.float(attrCost, s.CostUSD)
}

func (a *attributes) tool(s *Span) (name string) {
	a.text(attrOperation, opTool)
	a.text(attrToolName, s.Name)
	a.text(attrToolCall, s.CallID)
	a.text(attrPath, s.Path)
	a.text(attrEffect, s.Effect)
	a.text(attrVerdict, string(s.Verdict))
	a.number(attrAttempt, s.Attempt)
	a.yes(attrBackground, s.Background)
	if s.ExitCode != nil {
		a.number(attrProcessExit, *s.ExitCode)
	}
	a.text(attrToolInput, s.Input)
	a.text(attrToolOutput, s.Output)
	return opTool + " " + s.Name
}

// nanos returns a time in nanoseconds since 1970, as text.
func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
