package mcpserve

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/ipc"
	"rnix/types"
)

// installStarts adds the tools that start processes and let them go on.
func (p changer) installStarts(s *mcp.Server) {
	add(s, &mcp.Tool{Name: "spawn", Title: "Start an agent", Annotations: changes(true, true),
		Description: `Start an agent that works on an intent in the background. Without wait_seconds it returns at once with the PID; with it, as wait does. The agent sees nothing of this conversation: say in the intent all that it needs to know, and what it is to answer.`}, nil, p.spawn)
	add(s, &mcp.Tool{Name: "resume", Title: "Resume an agent", Annotations: changes(true, true),
		Description: "Resume a process that is paused, suspended or ended, where it stopped, and perhaps say something to it first. Budgets are so much more than it has used."}, nil, p.resume)
}

type spawnIn struct {
	Intent       string   `json:"intent" jsonschema:"what is to be done"`
	Agent        string   `json:"agent,omitempty" jsonschema:"which agent; default: that of the configuration"`
	Provider     string   `json:"provider,omitempty" jsonschema:"which model provider"`
	Model        string   `json:"model,omitempty" jsonschema:"which model, or provider/model"`
	Name         string   `json:"name,omitempty" jsonschema:"a name for the process"`
	Cwd          string   `json:"cwd,omitempty" jsonschema:"the directory to work in; default: that of this server"`
	BudgetTokens *int     `json:"budget_tokens,omitempty" jsonschema:"tokens over its life and that of its children; 0 = unlimited"`
	BudgetUSD    *float64 `json:"budget_usd,omitempty" jsonschema:"the same in dollars"`
	MaxSteps     *int     `json:"max_steps,omitempty" jsonschema:"end after so many steps; 0 = no limit"`
	Timeout      float64  `json:"timeout_seconds,omitempty" jsonschema:"end it after so long"`
	Allow        []string `json:"allow,omitempty" jsonschema:"only these devices, such as /dev/fs"`
	Deny         []string `json:"deny,omitempty" jsonschema:"not these devices, such as /dev/shell"`
	WaitSeconds  float64  `json:"wait_seconds,omitempty" jsonschema:"wait so long for its end; default: not at all"`
}

type spawnOut struct {
	PID      uint64   `json:"pid"`
	UUID     string   `json:"uuid"`
	Name     string   `json:"name,omitempty"`
	Model    string   `json:"model,omitempty"`
	MaxSteps int      `json:"max_steps,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Outcome  *outcome `json:"outcome,omitempty" jsonschema:"if it was waited for"`
}

func (p changer) spawn(ctx context.Context, in spawnIn) (out spawnOut, words string, err error) {
	if strings.TrimSpace(in.Intent) == "" {
		return out, "", types.Errorf(types.ErrInvalid, "spawn", "", "the intent is empty; say what is to be done")
	}
	var waitMs, timeMs int64
	if in.WaitSeconds != 0 {
		if waitMs, err = seconds("wait_seconds", in.WaitSeconds, 0, mostWait); err != nil {
			return out, "", err
		}
	}
	if timeMs, err = seconds("timeout_seconds", in.Timeout, 0, 365*24*time.Hour); err != nil {
		return out, "", err
	}
	req := ipc.SpawnRequest{Intent: in.Intent, Agent: in.Agent, ProcSpec: types.ProcSpec{Provider: in.Provider, Model: in.Model, Name: in.Name, ContextBudget: in.BudgetTokens, BudgetUSD: in.BudgetUSD, MaxSteps: in.MaxSteps, AllowedDevices: in.Allow, DeniedDevices: in.Deny}, TimeoutMs: timeMs, Cwd: p.Dir, Parent: p.Parent, Env: p.Environ}
	if in.Cwd != "" {
		req.Cwd = in.Cwd
		if !filepath.IsAbs(in.Cwd) {
			req.Cwd = filepath.Join(p.Dir, in.Cwd)
		}
	}
	r, err := call(ctx, p.Processes, ipc.Spawn, req)
	if err != nil {
		return out, "", err
	}
	out = startedOf(&r)
	if waitMs > 0 {
		o, err := p.await(ctx, r.UUID.String(), waitMs)
		if err != nil {
			return out, "", types.Errorf(types.CodeOf(err), "spawn", "", "PID %d was started, and works on; waiting for it: %w", r.PID, err)
		}
		out.Outcome, words = &o, endOf(&o)
	}
	return out, words, nil
}

func startedOf(r *ipc.SpawnResponse) spawnOut {
	return spawnOut{PID: uint64(r.PID), UUID: r.UUID.String(), Name: r.Name, Model: strings.Trim(r.Provider+"/"+r.Model, "/"), MaxSteps: r.MaxSteps, Warnings: r.Warnings}
}

type resumeIn struct {
	Process      process  `json:"process"`
	NewInput     string   `json:"new_input,omitempty" jsonschema:"something to say to it before it is resumed"`
	BudgetTokens *int     `json:"budget_tokens,omitempty" jsonschema:"so many tokens more than it has used; 0 = unlimited"`
	BudgetUSD    *float64 `json:"budget_usd,omitempty" jsonschema:"so many dollars more than it has used; 0 = unlimited"`
	MaxSteps     *int     `json:"max_steps,omitempty" jsonschema:"so many steps more than it has done; 0 = no limit"`
	Timeout      *float64 `json:"timeout_seconds,omitempty" jsonschema:"end it when it has lived so much longer; 0 = no limit"`
}

type resumeOut struct {
	spawnOut
	Mode    string   `json:"mode" jsonschema:"live (it was only paused) or continue"`
	Step    int      `json:"step" jsonschema:"the last step that it had done"`
	InDoubt []string `json:"in_doubt,omitempty" jsonschema:"calls that may have run or not; its model is told"`
	Woken   []uint64 `json:"woken,omitempty" jsonschema:"other processes that are resumed with it"`
}

func (p changer) resume(ctx context.Context, in resumeIn) (out resumeOut, _ string, err error) {
	req := ipc.ResumeRequest{Target: string(in.Process), NewInput: in.NewInput, Budget: in.BudgetTokens, BudgetUSD: in.BudgetUSD, MaxSteps: in.MaxSteps,
		OnInDoubt: "tell", Env: p.Environ}
	if in.Timeout != nil {
		req.TimeoutMs = new(int64(*in.Timeout * 1000))
	}
	r, err := call(ctx, p.Processes, ipc.Resume, req)
	if err != nil {
		return out, "", err
	}
	out = resumeOut{spawnOut: startedOf(&r.SpawnResponse), Mode: r.Mode, Step: r.Step}
	for _, d := range r.InDoubt {
		out.InDoubt = append(out.InDoubt, d.Tool+" "+short(d.Input, maxIntent))
	}
	for _, pid := range r.Woken {
		out.Woken = append(out.Woken, uint64(pid))
	}
	return out, "", nil
}
