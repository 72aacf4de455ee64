package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"rnix/types"
	"rnix/vfs"
)

// CursorConfig configures a CursorCliDriver. Zero values mean the default.
type CursorConfig struct {
	Name          string   // of the provider; "cursor"
	Command       string   // the program, looked up in the caller's PATH; "agent"
	Model         string   // used when a request names none; the CLI's own choice if empty
	ExtraArgs     []string // more arguments, behind ours
	Credentials   []string // more variables that the CLI may have
	ContextWindow int      // in tokens; 0 = unknown
	Start         Starter  // starts the children; required
	// Confine says how a child is confined whose program has a path or a name; nil = as proc.Confine says.
	Confine func(c vfs.Caller, command string) (Confined, error)

	FirstByte time.Duration // from the question to the first sign of an answer; 120 s
	Idle      time.Duration // between two signs; 180 s
	Total     time.Duration // of a call whose request has no TimeoutMs; 30 min
}

// CursorCliDriver is `agent --print`, Cursor's command. It has no option for a system prompt, so that
// stands before the prompt, and none to take its own tools away: it is started in the mode that only
// reads. The kernel's tools are offered as text. Each call is a child of its own.
//
// Not tested against the real program, which cannot be had without an account: it follows the
// documentation and what others have recorded, and its tests use a stand-in.
type CursorCliDriver struct{ cfg CursorConfig }

// NewCursorCliDriver returns a driver. Nothing is started before the first call.
func NewCursorCliDriver(cfg CursorConfig) *CursorCliDriver {
	cfg.Name, cfg.Command = cmp.Or(cfg.Name, "cursor"), cmp.Or(cfg.Command, CommandOf("cursor"))
	cfg.FirstByte, cfg.Idle = cmp.Or(cfg.FirstByte, 120*time.Second), cmp.Or(cfg.Idle, 180*time.Second)
	cfg.Total = cmp.Or(cfg.Total, 30*time.Minute)
	return &CursorCliDriver{cfg}
}

// Info describes the driver.
func (d *CursorCliDriver) Info() DriverInfo {
	return DriverInfo{Name: d.cfg.Name, Driver: "cursor-cli", Model: d.cfg.Model, ContextWindow: d.cfg.ContextWindow, Aside: true, Abilities: Abilities{Tools: ToolsText}}
}

// Call performs one completion.
func (d *CursorCliDriver) Call(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	return Collect(Produce(ctx, func(ctx context.Context, emit func(StreamEvent)) (*LLMResponse, error) {
		return d.perform(ctx, req, emit)
	}))
}

// Stream performs one completion. The text comes as one piece, the reasoning while it is made.
func (d *CursorCliDriver) Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error) {
	return Produce(ctx, func(ctx context.Context, emit func(StreamEvent)) (*LLMResponse, error) {
		return d.perform(ctx, req, emit)
	}), nil
}

func (d *CursorCliDriver) perform(ctx context.Context, req LLMRequest, emit func(StreamEvent)) (*LLMResponse, error) {
	total := d.cfg.Total
	if req.TimeoutMs > 0 {
		total = time.Duration(req.TimeoutMs) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, total)
	defer cancel()
	prompt := systemText(&req) + "\n\n" + Transcript(conversation(req))
	args := []string{"--print", "--output-format", "stream-json", "--trust", "--mode", "ask"}
	if m := cmp.Or(req.Model, d.cfg.Model); m != "" {
		args = append(args, "--model", m)
	}
	confined, err := confine(ctx, d.cfg.Confine, d.cfg.Command)
	if err != nil {
		return nil, err
	}
	c, err := startCLI(ctx, d.cfg.Start, cliLaunch{
		confined: confined, provider: d.cfg.Name, command: d.cfg.Command, args: append(args, d.cfg.ExtraArgs...), dir: cliDir(ctx, &req),
		credentials: cliCredentials(ctx, append([]string{"CURSOR_API_KEY"}, d.cfg.Credentials...)), input: []byte(prompt),
	})
	if types.CodeOf(err) == types.ErrNotFound {
		return nil, types.Errorf(types.ErrNotFound, "Call", d.cfg.Name, "%w; install the Cursor CLI and log in once with it, or name the program in providers.yaml", err)
	}
	if err != nil {
		return nil, err
	}
	defer c.stop(cliGrace)
	t := cursorTurn{emit: emit}
	if err := d.read(ctx, c, &t); err != nil {
		return nil, err
	}
	// The result counts only together with a good end.
	if end := c.Wait(); end.Code != 0 || t.result == nil || t.result.IsError {
		return nil, c.refusal(t.result, end.Code)
	}
	resp := &LLMResponse{Content: t.result.Result, Reasoning: t.reasoning.String(), Model: t.model, Provider: d.cfg.Name}
	u := t.result.Usage
	resp.settle(Usage{Input: u.Input.n, Output: u.Output.n, CacheRead: u.CacheRead.n, CacheWrite: u.CacheWrite.n},
		u.Input.said && u.Output.said && !u.Input.bad && !u.Output.bad, len(prompt))
	if readAction(resp, &req); resp.Content != "" {
		emit(StreamEvent{Type: EventText, Text: resp.Content})
	}
	return resp, nil
}

// read reads lines until the end of the output.
func (d *CursorCliDriver) read(ctx context.Context, c *cliChild, t *cursorTurn) error {
	idle := types.Errorf(types.ErrUnavailable, "Call", d.cfg.Name, "the answer broke off: nothing more came within %v", d.cfg.Idle)
	w := watch(ctx, d.cfg.FirstByte, types.Errorf(types.ErrTimeout, "Call", d.cfg.Name, "no answer within %v", d.cfg.FirstByte))
	defer w.stop()
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return nil
			}
			if t.line(line) {
				w.set(d.cfg.Idle, idle)
			}
		case <-w.ctx.Done():
			if e := vfs.Ended(ctx, "Call", d.cfg.Name); e != nil {
				return e
			}
			return context.Cause(w.ctx)
		}
	}
}

// cursorTurn is what the lines of an answer have told so far.
type cursorTurn struct {
	emit      func(StreamEvent)
	model     string
	reasoning strings.Builder
	result    *cursorResult
}

// cursorResult is the last line. Usage is not documented, and older versions do not have it.
type cursorResult struct {
	IsError bool   `json:"is_error"`
	Result  string `json:"result"`
	Usage   struct {
		Input      count `json:"inputTokens"`
		Output     count `json:"outputTokens"`
		CacheRead  count `json:"cacheReadTokens"`
		CacheWrite count `json:"cacheWriteTokens"`
	} `json:"usage"`
}

// line takes in one line. It reports whether it is a sign of an answer under way. Types that are not
// known are passed over.
func (t *cursorTurn) line(b []byte) bool {
	var l struct {
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
		Model   string `json:"model"`
		Text    string `json:"text"`
	}
	if json.Unmarshal(b, &l) != nil {
		return false
	}
	switch l.Type {
	case "system":
		t.model = cmp.Or(l.Model, t.model)
		return false
	case "user":
		return false
	case "thinking":
		if l.Subtype == "delta" && l.Text != "" {
			t.reasoning.WriteString(l.Text)
			t.emit(StreamEvent{Type: EventReasoning, Text: l.Text})
		}
	case "result":
		var r cursorResult
		if json.Unmarshal(b, &r) == nil {
			t.result = &r
		}
	}
	return true
}

// refusal classifies a failure by its words: there is no code and, in most cases, no JSON.
func (c *cliChild) refusal(r *cursorResult, exit int) error {
	text := strings.TrimSpace(c.stderr.String())
	if r != nil && r.IsError {
		text = strings.TrimSpace(r.Result + " " + text)
	}
	text = redact(shortened(oneLine(text), 1000), c.launch.secrets())
	fail := func(code types.ErrCode, format string, args ...any) error {
		return types.Errorf(code, "Call", c.launch.provider, format, args...)
	}
	switch {
	case text == "" && exit == 0:
		return fail(types.ErrUnavailable, "the program ended without a result")
	case text == "":
		return fail(types.ErrDriver, "the program ended with exit code %d and said nothing", exit)
	case limitWords().MatchString(text):
		return fail(types.ErrRateLimited, "%w", &RateLimit{Message: text})
	case loginWords().MatchString(text), strings.Contains(text, "agent login"):
		return fail(types.ErrAuth, "agent is not logged in, or its key is refused: run agent login, or set CURSOR_API_KEY; it says: %s", text)
	case tooLong(strings.ToLower(text)):
		return fail(types.ErrInvalid, "prompt is too long: %s", text)
	case brokenWords().MatchString(text):
		return fail(types.ErrUnavailable, "%s", text)
	}
	return fail(types.ErrDriver, "exit code %d: %s", exit, text)
}
