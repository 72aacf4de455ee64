// Package harness serves whole agent command lines (claude, codex, opencode) as models of /dev/llm. Such a
// command line is an agent with a loop of its own, and our loop drives it as it drives any model: what it
// asks the kernel to do, through the MCP server that it is given, comes back as the tool calls of an answer;
// the loop checks, records and runs them, and the next request brings what they gave. Calls of tools of its
// own come as calls that have been run (llm.Done). So one step is on record for each thing that it does, and
// pause, budgets, messages, resume and fork are those of every process.
//
// A session is kept for each conversation, from the first request to CloseSession. A session whose command
// line is gone (a crash, a restart of the daemon) goes on by the command line's own resume, with what has
// happened since; where that cannot be, a new one is told the whole conversation.
//
// Locks: Driver.mu, Bridge.mu and session.mu are leaves, never held together. A session's turn is held for
// the whole of a request: over the child's starting and its answer.
package harness

import (
	"cmp"
	"context"
	"sync"
	"time"

	"rnix/agent"
	"rnix/drivers/llm"
	"rnix/internal/harness"
	"rnix/runtime/state"
	"rnix/types"
	"rnix/vfs"
)

// Config configures a Driver. Zero values mean the default.
type Config struct {
	Name      string      // of the provider; required
	CLI       harness.CLI // required
	Program   string      // a name to look up in the caller's PATH, or a path; the command line's own name
	Model     string      // used when a request names none; the command line's own choice if empty
	Effort    string      // likewise
	ExtraArgs []string    // behind ours
	// OwnTools leaves it the tools that it brings along. Without, all that it can do is ask the kernel.
	OwnTools bool
	// MayAct reports whether the caller may do by itself what those tools do: run commands, read and write files. One that may not has
	// the kernel's tools alone, and is refused if the others cannot be switched off. nil = every caller may.
	MayAct  func(ctx context.Context) bool
	Sandbox string      // agent.Spec.SandboxLevel, for its own tools
	Start   llm.Starter // required
	// Confine says how a command line is confined that is started for a caller: it reads its private directory dir, and with readOnly it does
	// not write the caller's working directory. nil = proc.Confine says it.
	Confine func(c vfs.Caller, cli harness.CLI, program, dir string, readOnly bool) (Confined, error)
	Bridge  *Bridge // required
	// Trusted reports whether the settings of the caller's project count, which may run programs; nil = they do not.
	Trusted func(ctx context.Context) bool
	// Ruled reports whether rules are about the calls of the caller, so that Judge decides about those that its command line makes with tools of its
	// own, if it asks (harness.Abilities). nil = there are none.
	Ruled func(ctx context.Context) bool
	Judge Judge // required with Ruled
	// Dir returns the private directory of a session, which stays as long as its history does. Required.
	Dir func(session string) string

	// StateOf returns where the state of a session is, and what is to stand in it. Required.
	StateOf func(session, workDir string) StatePlace

	Silence time.Duration // without a word from it, while none of its own tools runs; 10 min

	states  *state.Store
	hearing time.Duration // how long after the end of a turn it may take to hear what was said during it; 20 s
}

// StatePlace says where .agent/state.json of a session is.
type StatePlace struct {
	Root   string // the directory above: its work tree if that is its own, else its private directory
	Issue  string // that it works on; empty = none is known
	Worker string // as which a platform knows it; empty = it is a session of none
}

// Driver is an agent's command line as a model. Safe for concurrent use; requests of one session wait for
// each other.
type Driver struct {
	cfg Config

	work sync.WaitGroup // sessions that are being ended

	mu       sync.Mutex
	sessions map[string]*session // +checklocks:mu
	closed   bool                // +checklocks:mu
}

// New returns a driver. Nothing is started before the first call.
func New(cfg Config) *Driver {
	cfg.Program = cmp.Or(cfg.Program, cfg.CLI.Name())
	cfg.Silence, cfg.hearing, cfg.states = cmp.Or(cfg.Silence, 10*time.Minute), cmp.Or(cfg.hearing, 20*time.Second), state.NewStore()
	return &Driver{cfg: cfg, sessions: map[string]*session{}}
}

// Info describes the driver. It cannot say how long an answer gets: the command line asks its model as often
// as it likes between two things that it does. Its session goes on when a call is cut off, and the next answer counts
// all that it has used since the last one.
func (d *Driver) Info() llm.DriverInfo {
	can := d.cfg.CLI.Can()
	return llm.DriverInfo{Abilities: llm.Abilities{Tools: llm.ToolsOwn, Streams: true, Images: can.Images, Documents: can.Documents}, Name: d.cfg.Name, Driver: d.cfg.CLI.Name() + "-agent", Model: d.cfg.Model, NativeTools: true, CountsOn: true, Acts: d.cfg.OwnTools}
}

// Call performs one request.
func (d *Driver) Call(ctx context.Context, req llm.LLMRequest) (*llm.LLMResponse, error) {
	events, err := d.Stream(ctx, req)
	if err != nil {
		return nil, err
	}
	return llm.Collect(events)
}

// Stream tells the command line what is new, and answers when it wants something done, has done something, or
// has ended. When ctx ends, the session stays as it is: the next request goes on with it.
func (d *Driver) Stream(ctx context.Context, req llm.LLMRequest) (<-chan llm.StreamEvent, error) {
	if caller := llm.CallerFrom(ctx); req.Session == "" || req.Session != caller.UUID.String() { // nobody speaks in another's session
		return nil, types.Errorf(types.ErrInvalid, "Call", d.cfg.Name, "an agent CLI answers its own process only; start a process for it: rnix run --provider %s \"...\"", d.cfg.Name)
	}
	s, err := d.session(req.Session)
	if err != nil {
		return nil, err
	}
	return llm.Produce(ctx, func(ctx context.Context, emit func(llm.StreamEvent)) (*llm.LLMResponse, error) {
		return s.perform(ctx, &req, emit)
	}), nil
}

// session returns the session of a conversation.
func (d *Driver) session(id string) (*session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, types.Errorf(types.ErrUnavailable, "Call", d.cfg.Name, "the driver is closed")
	}
	s := d.sessions[id]
	if s == nil {
		s = newSession(&d.cfg, id)
		d.sessions[id] = s
	}
	return s, nil
}

// CloseSession ends the command line of a conversation, with all that it has started. It does nothing if
// there is none.
func (d *Driver) CloseSession(id string) {
	d.mu.Lock()
	s := d.sessions[id]
	delete(d.sessions, id)
	d.mu.Unlock()
	if s != nil {
		s.end()
	}
}

// Close ends all sessions and waits for them; later calls fail.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	all := d.sessions
	d.sessions = map[string]*session{}
	d.mu.Unlock()
	for _, s := range all {
		d.work.Go(s.end) // side by side; waited for below
	}
	d.work.Wait()
	return nil
}

// spec is what a session is started with. own says that it has tools of its own.
func (c *Config) spec(req *llm.LLMRequest, prompt, instructions, resume string, own bool) agent.Spec {
	s := agent.Spec{Prompt: prompt, CWD: req.WorkDir, Model: cmp.Or(req.Model, c.Model), Effort: cmp.Or(req.Effort, c.Effort),
		SystemPromptAppend: instructions, Autonomous: true, SandboxLevel: c.Sandbox, NoOwnTools: !own, Resume: resume}
	if !own && c.OwnTools { // the level was meant for its own tools
		s.SandboxLevel = ""
	}
	return s
}

// own reports whether a caller's command line has the tools that it brings along.
func (c *Config) own(ctx context.Context) (bool, error) {
	switch {
	case !c.OwnTools:
		return false, nil
	case c.MayAct == nil || c.MayAct(ctx):
		return true, nil
	case !c.CLI.Can().OwnToolsOff:
		return false, types.Errorf(types.ErrPermission, "Call", c.Name, "the tools that %s brings along run commands and change files, which this process may not, and they cannot be switched off; give the process /dev/shell, /dev/fs and /dev/workspace, or another model", c.CLI.Name())
	}
	return false, nil
}
