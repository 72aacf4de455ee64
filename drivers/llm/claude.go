package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	rnixctx "rnix/context"
	"rnix/types"
	"rnix/vfs"
)

// ClaudeConfig configures a ClaudeCliDriver. Zero values mean the default.
type ClaudeConfig struct {
	Name          string   // of the provider; "claude"
	Command       string   // the program, looked up in the caller's PATH; "claude"
	Model         string   // used when a request names none; the CLI's own choice if empty
	Effort        string   // reasoning effort, when a request does not say
	ExtraArgs     []string // more arguments, behind ours
	Credentials   []string // more variables that the CLI may have, such as those of a cloud's login
	ContextWindow int      // in tokens; 0 = unknown
	Start         Starter  // starts the children; required
	// Confine says how a child is confined whose program has a path or a name; nil = as proc.Confine says.
	Confine func(c vfs.Caller, command string) (Confined, error)

	FirstByte  time.Duration // from the question to the first sign of an answer; 120 s
	Idle       time.Duration // between two signs; 180 s
	Total      time.Duration // of a call whose request has no TimeoutMs; 30 min
	MaxRetries int           // of the CLI itself, for failures of the API; 2. Below 0: none

	Keep     int           // children that are kept between calls; 4. Below 0: none
	KeepIdle time.Duration // how long a child is kept without being used; 5 min
}

// ClaudeCliDriver is `claude -p` as a pure model: without tools, settings, MCP servers or memory of
// its own, with the kernel's prompt only. The kernel's tools are offered to it as text, with a schema
// for its answer, and its answer comes back as tool calls.
//
// A child is kept for each conversation, so that a step costs what the model costs and its provider's
// prompt cache works; only what is new is sent. A conversation that does not go on from what its child
// has seen (after a compaction, or when the daemon was restarted) gets a fresh child and is sent as
// one text. Close ends all children, CloseSession those of one conversation.
type ClaudeCliDriver struct {
	cfg ClaudeConfig

	work sync.WaitGroup // who is ending children

	mu sync.Mutex
	// +checklocks:mu
	kept   map[string]*claudeChild // by session; none of them is in use
	closed bool                    // +checklocks:mu
}

// NewClaudeCliDriver returns a driver. Nothing is started before the first call.
func NewClaudeCliDriver(cfg ClaudeConfig) *ClaudeCliDriver {
	cfg.Name, cfg.Command = cmp.Or(cfg.Name, "claude"), cmp.Or(cfg.Command, CommandOf("claude"))
	cfg.FirstByte, cfg.Idle = cmp.Or(cfg.FirstByte, 120*time.Second), cmp.Or(cfg.Idle, 180*time.Second)
	cfg.Total, cfg.KeepIdle = cmp.Or(cfg.Total, 30*time.Minute), cmp.Or(cfg.KeepIdle, 5*time.Minute)
	cfg.MaxRetries, cfg.Keep = max(cmp.Or(cfg.MaxRetries, 2), 0), max(cmp.Or(cfg.Keep, 4), 0)
	return &ClaudeCliDriver{cfg: cfg, kept: map[string]*claudeChild{}}
}

// Info describes the driver.
func (d *ClaudeCliDriver) Info() DriverInfo {
	return DriverInfo{Name: d.cfg.Name, Driver: "claude-cli", Model: d.cfg.Model, ContextWindow: d.cfg.ContextWindow, SaysCost: true, Aside: true,
		Abilities: Abilities{Tools: ToolsText, Effort: true}}
}

// Call performs one completion.
func (d *ClaudeCliDriver) Call(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	return Collect(Produce(ctx, func(ctx context.Context, emit func(StreamEvent)) (*LLMResponse, error) {
		return d.perform(ctx, req, emit)
	}))
}

// Stream performs one completion. With tools the answer is an action, so its text comes as one piece
// when it is known; the reasoning comes while it is made.
func (d *ClaudeCliDriver) Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error) {
	return Produce(ctx, func(ctx context.Context, emit func(StreamEvent)) (*LLMResponse, error) {
		return d.perform(ctx, req, emit)
	}), nil
}

// perform asks the child of the conversation, or a fresh one.
func (d *ClaudeCliDriver) perform(ctx context.Context, req LLMRequest, emit func(StreamEvent)) (*LLMResponse, error) {
	total := d.cfg.Total
	if req.TimeoutMs > 0 {
		total = time.Duration(req.TimeoutMs) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, total)
	defer cancel()
	if e := vfs.Ended(ctx, "Call", d.cfg.Name); e != nil {
		return nil, e
	}
	l, err := d.launch(ctx, &req)
	if err != nil {
		return nil, err
	}
	keep := req.Session != "" && !req.Aside && d.cfg.Keep > 0
	if keep {
		if c := d.take(req.Session); c != nil {
			if next, ok := c.goesOn(&req, l.key); ok {
				resp, err := d.ask(ctx, c, &req, next, true, emit)
				if !errors.Is(err, errUnheard) {
					return resp, err
				}
				// It had died before it was asked: a fresh one is asked the whole.
			} else {
				d.retire(c)
			}
		}
	}
	c, err := d.start(ctx, l)
	if err != nil {
		return nil, err
	}
	resp, err := d.ask(ctx, c, &req, Transcript(conversation(req)), keep, emit)
	if errors.Is(err, errUnheard) {
		return nil, c.fail(types.ErrDriver, "the program ended without an answer"+c.how(), nil)
	}
	return resp, err
}

// ask asks a child, and keeps it or ends it.
func (d *ClaudeCliDriver) ask(ctx context.Context, c *claudeChild, req *LLMRequest, prompt string, keep bool, emit func(StreamEvent)) (*LLMResponse, error) {
	streamed := false
	resp, err := c.ask(ctx, prompt, len(req.Tools) > 0, !keep, d.cfg, func(ev StreamEvent) {
		streamed = streamed || ev.Type == EventText
		emit(ev)
	})
	if err != nil {
		c.end(cliGrace)
		return nil, err
	}
	resp.Provider = d.cfg.Name
	readAction(resp, req)
	if !streamed && resp.Content != "" {
		emit(StreamEvent{Type: EventText, Text: resp.Content})
	}
	if keep {
		c.seen, c.said = hashMessages(req.Messages), resp
		d.put(req.Session, c)
		return resp, nil
	}
	if end := c.finish(); end != "" {
		return nil, c.fail(types.ErrDriver, "the program failed after its answer"+end, nil)
	}
	return resp, nil
}

// claudeLaunch is how a child is started, and a key of all that it depends on.
type claudeLaunch struct {
	cliLaunch
	system string
	key    string
}

// claudeSecrets are the variables by which the CLI logs in.
var claudeSecrets = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"}

func (d *ClaudeCliDriver) launch(ctx context.Context, req *LLMRequest) (claudeLaunch, error) {
	args := []string{
		"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
		"--tools", "", "--strict-mcp-config", "--setting-sources", "", "--no-session-persistence", "--disable-slash-commands",
	}
	if m := cmp.Or(req.Model, d.cfg.Model); m != "" {
		args = append(args, "--model", m)
	}
	if e := cmp.Or(req.Effort, d.cfg.Effort); e != "" {
		if e == "minimal" { // another vendor's word
			e = "low"
		}
		args = append(args, "--effort", e)
	}
	turns, system := max(req.MaxTurns, 1), systemText(req)
	if schema := ActionSchema(req.Tools); schema != nil && len(schema) < 100<<10 { // an argument has room for 128 KiB
		args = append(args, "--json-schema", string(schema))
		system += "\nGive the object by calling the tool StructuredOutput; it is not one of the tools above.\n"
		turns++ // a model that answers in words is asked once more for the object
	}
	args = append(args, "--max-turns", strconv.Itoa(turns))
	args = append(args, d.cfg.ExtraArgs...)
	credentials := append(cliCredentials(ctx, append(claudeSecrets, d.cfg.Credentials...)),
		"CLAUDE_CODE_MAX_RETRIES="+strconv.Itoa(d.cfg.MaxRetries), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1")
	if req.MaxTokens > 0 {
		credentials = append(credentials, "CLAUDE_CODE_MAX_OUTPUT_TOKENS="+strconv.Itoa(req.MaxTokens))
	}
	l := claudeLaunch{
		cliLaunch: cliLaunch{provider: d.cfg.Name, command: d.cfg.Command, args: args, dir: cliDir(ctx, req), credentials: credentials},
		system:    system,
	}
	key, err := json.Marshal([]any{args, l.dir, credentials, l.system, CallerFrom(ctx).PID})
	l.key = string(key)
	return l, err
}

// systemText is the whole system prompt of a text-only model. It is never empty: a CLI would then use
// its own.
func systemText(req *LLMRequest) string {
	s := req.SystemPrompt
	if tools := TextToolPrompt(req.Tools); tools != "" {
		if s != "" {
			s += "\n\n"
		}
		s += tools
	}
	return cmp.Or(s, "Answer the user.")
}

// start starts a child. Its system prompt is in a private file until the child has read it: where it works, if that is not the directory of its process.
func (d *ClaudeCliDriver) start(ctx context.Context, l claudeLaunch) (*claudeChild, error) {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return nil, types.Errorf(types.ErrUnavailable, "Call", d.cfg.Name, "the driver is closed")
	}
	var err error
	if l.confined, err = confine(ctx, d.cfg.Confine, d.cfg.Command); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(l.confined.Dir, "rnix-system-*.txt") // 0600
	if err != nil {
		l.confined.done()
		return nil, types.Errorf(types.ErrStorage, "Call", d.cfg.Name, "the system prompt cannot be written: %w", err)
	}
	c := &claudeChild{key: l.key, promptFile: f.Name()}
	_, err = f.WriteString(l.system)
	if err = errors.Join(err, f.Close()); err != nil {
		c.removePrompt()
		l.confined.done()
		return nil, types.Errorf(types.ErrStorage, "Call", d.cfg.Name, "the system prompt cannot be written: %w", err)
	}
	l.args = append(l.args[:len(l.args):len(l.args)], "--system-prompt-file", f.Name())
	if c.cliChild, err = startCLI(ctx, d.cfg.Start, l.cliLaunch); err != nil {
		c.removePrompt()
		if types.CodeOf(err) == types.ErrNotFound {
			return nil, types.Errorf(types.ErrNotFound, "Call", d.cfg.Name, "%w; install Claude Code (npm install -g @anthropic-ai/claude-code) and log in once with it, or name the program in providers.yaml", err)
		}
		return nil, err
	}
	return c, nil
}

// hashMessages is a hash of all that a child has been told.
func hashMessages(ms []rnixctx.Message) (h messagesHash) {
	sum := newMessagesHash()
	for i := range ms {
		sum.add(&ms[i])
	}
	return sum.sum()
}
