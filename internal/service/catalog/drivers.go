package catalog

import (
	"context"

	harnessdriver "rnix/drivers/harness"
	"rnix/drivers/llm"
	"rnix/internal/config"
	"rnix/internal/harness"
	"rnix/internal/permit"
	"rnix/internal/profile"
	"rnix/types"
	"rnix/vfs"
)

// Makers makes the drivers of providers. Its fields are set before it is used.
type Makers struct {
	Start    llm.Starter // of the command lines
	Bridge   *harnessdriver.Bridge
	Sessions Sessions
	Boxes    Boxes
}

// Boxes says how programs are confined that are models. *confine.Service is one.
type Boxes interface {
	// Model says how claude or cursor is confined, whose program has a path or a name.
	Model(c vfs.Caller, program, command string) (llm.Confined, error)
}

// Sessions knows the agents' command lines that run as processes.
type Sessions interface {
	// Dir is the private directory of a session.
	Dir(session string) string
	// StateOf says where the state.json of a session is, and what a platform calls it.
	StateOf(session, workDir string) harnessdriver.StatePlace
	// MayAct reports whether the process that asks a model may itself do all that an agent's command line does by its own tools.
	MayAct(ctx context.Context) bool
	// Judge decides about a call that an agent's command line makes with a tool of its own.
	Judge(ctx context.Context, session, id, tool string, c permit.Call) harness.Verdict
	// Metered reports whether the requests of an agent's command line to its models each count by themselves; if not, why no budget can be kept.
	Metered(c vfs.Caller, pr config.Provider) (metered bool, why string)
	// Confine says how an agent's command line is confined.
	Confine(c vfs.Caller, cli harness.CLI, program, dir string, readOnly bool) (harnessdriver.Confined, error)
}

// Make makes the driver of a provider.
func (m *Makers) Make(pr config.Provider) (llm.LLMDriver, error) {
	if pr.Problem != "" {
		return nil, types.Errorf(types.ErrInvalid, "Open", pr.Name, "%s", pr.Problem)
	}
	window := pr.Window(pr.DefaultModel)
	switch pr.Driver {
	case config.DriverOffline:
		return llm.NewOfflineDriver(pr.Name), nil
	case config.DriverReplay:
		d, err := llm.NewReplay(pr.Name, pr.Script)
		if err != nil {
			return nil, err
		}
		d.ContextWindow = window
		return d, nil
	case config.DriverClaude:
		return llm.NewClaudeCliDriver(llm.ClaudeConfig{Name: pr.Name, Command: pr.Command, Model: pr.DefaultModel, Effort: pr.ReasoningEffort,
			ExtraArgs: pr.ExtraArgs, ContextWindow: window, Start: m.Start, Confine: m.confine(pr.Program()), Total: pr.Timeout}), nil
	case config.DriverCursor:
		return llm.NewCursorCliDriver(llm.CursorConfig{Name: pr.Name, Command: pr.Command, Model: pr.DefaultModel,
			ExtraArgs: pr.ExtraArgs, ContextWindow: window, Start: m.Start, Confine: m.confine(pr.Program()), Total: pr.Timeout}), nil
	}
	if name := pr.Harness(); name != "" {
		return m.makeHarness(name, pr)
	}
	http := llm.HTTPConfig{Name: pr.Name, BaseURL: pr.BaseURL, APIKeyEnv: pr.APIKeyEnv, Model: pr.DefaultModel, MaxTokens: pr.MaxTokens,
		ContextWindow: window, Effort: pr.ReasoningEffort, Thinking: pr.Thinking, CacheKey: pr.Driver == config.DriverOpenAI, Headers: pr.Headers, CallTimeout: pr.Timeout}
	switch pr.Driver {
	case config.DriverAnthropic:
		return llm.NewAnthropic(http)
	case config.DriverOpenAI, config.DriverOpenAICompat:
		if pr.AsksBy() == config.APIResponses {
			return llm.NewResponses(http)
		}
		return llm.NewOpenAI(http)
	}
	return nil, types.Errorf(types.ErrInvalid, "Open", pr.Name, "no driver %s", pr.Driver)
}

// confine returns how a program is confined that is a model.
func (m *Makers) confine(program string) func(c vfs.Caller, command string) (llm.Confined, error) {
	return func(c vfs.Caller, command string) (llm.Confined, error) { return m.Boxes.Model(c, program, command) }
}

// ruled reports whether a caller has rules about its calls.
func ruled(ctx context.Context) bool {
	p, ok := llm.CallerFrom(ctx).Profile.(*profile.Profile)
	return ok && len(p.Permissions.Layers) > 0
}

// makeHarness makes the driver of an agent's command line.
func (m *Makers) makeHarness(name string, pr config.Provider) (llm.LLMDriver, error) {
	cli, err := harness.Lookup(name)
	if err != nil {
		return nil, err
	}
	if pr.Tools == config.ToolsKernel && !cli.Can().OwnToolsOff {
		return nil, types.Errorf(types.ErrInvalid, "Open", pr.Name, "the tools of %s cannot be switched off, so it cannot be started with the kernel's alone", name)
	}
	if pr.Sandbox == "" && name == "codex" && pr.Tools != config.ToolsKernel {
		pr.Sandbox = harness.SandboxWorkspace // its own default lets it change nothing
	}
	return harnessdriver.New(harnessdriver.Config{Name: pr.Name, CLI: cli, Program: pr.Command, Model: pr.DefaultModel, Effort: pr.ReasoningEffort,
		ExtraArgs: pr.ExtraArgs, OwnTools: pr.Tools != config.ToolsKernel, Sandbox: pr.Sandbox, Start: m.Start, Bridge: m.Bridge, Dir: m.Sessions.Dir,
		MayAct: m.Sessions.MayAct, Confine: m.Sessions.Confine, Ruled: ruled, Judge: m.Sessions.Judge,
		Trusted: func(ctx context.Context) bool {
			c := llm.CallerFrom(ctx)
			p, ok := c.Profile.(*profile.Profile)
			return ok && p.TrustsIn(c.WorkDir)
		},
		StateOf: m.Sessions.StateOf}), nil
}

// Metered implements Drivers: the requests of agent CLIs are metered by the gateway, where that can stand in for their vendors.
func (m *Makers) Metered(c vfs.Caller, pr config.Provider) (metered bool, why string) {
	switch {
	case pr.Harness() != "":
		return m.Sessions.Metered(c, pr)
	case pr.Driver == config.DriverCursor:
		return false, "cursor asks its vendor alone, at an address that cannot be set, and does not say beforehand what an answer can take; take another model, or no budget"
	}
	return false, ""
}
