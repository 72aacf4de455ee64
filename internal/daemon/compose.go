package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"rnix/agent"
	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/yamlfile"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// composer runs workflows. A run is a process; what is special about it is its body.
type composer struct{ *Daemon }

func (d composer) handle(s *ipc.Server) {
	on(d.Daemon, s, ipc.ComposeUp, d.up)
	on(d.Daemon, s, ipc.ComposeStatus, d.status)
	on(d.Daemon, s, ipc.ComposeList, d.list)
	on(d.Daemon, s, ipc.ComposeDown, d.down)
	on(d.Daemon, s, ipc.ComposePlan, d.plan)
	on(d.Daemon, s, ipc.ComposeResume, runResumer{d}.resume)
}

// composeBody makes the body of a run again.
func composeBody(d *Daemon, _ *profile.Profile, raw json.RawMessage) (kernel.Body, error) {
	spec, err := run.ParseSpec(raw)
	if err != nil {
		return nil, err
	}
	return run.New(spec, composer{d}), nil
}

var _ run.Starter = composer{}

// up starts a run. What can be known to be wrong is refused before anything starts, all of it at once.
func (d composer) up(ctx context.Context, peer *ipc.Peer, req ipc.ComposeUpRequest) (ipc.ComposeUpResponse, error) {
	var none ipc.ComposeUpResponse
	f, err := d.parse(peer, &req)
	if err != nil {
		return none, err
	}
	p, err := d.profiles.ForStart("Compose", req.Cwd, req.Env, req.TrustProject)
	if err == nil {
		err = d.room.Refusal("Compose")
	}
	if err != nil {
		return none, err
	}
	spec := run.Spec{File: f, Path: req.Path, Name: runName(&req, f), Dir: p.Cwd}
	if err := d.preflight(ctx, &req, p, f); err != nil {
		return none, err
	}
	steps := 0
	opts := kernel.SpawnOpts{Name: spec.Name, MaxSteps: &steps, WorkDir: p.Cwd, ReadRoots: p.Config.ReadRoots.V, Secret: p.Lookup, Profile: p,
		Env: proc.ComposeEnv(p.Env, nil, nil), Timeout: f.Timeout.Or(0), BudgetUSD: f.BudgetUSD, Body: run.New(spec, d)}
	if f.Budget != nil {
		n := int(*f.Budget)
		opts.ContextBudget = &n
	}
	if opts.Settings, err = p.Settings(&agent.Agent{}, nil); err != nil {
		return none, err
	}
	if opts.ParentPID, err = (spawner(d)).parentOf(peer, req.Parent, p, p.Trust); err != nil {
		return none, err
	}
	seq := d.events.Last()
	intent := strings.TrimSpace(f.Intent)
	if intent == "" {
		intent = "Run the workflow " + spec.Name
	}
	pid, err := d.kernel.SpawnContext(ctx, intent, nil, opts)
	if err != nil {
		return none, err
	}
	i, err := d.kernel.Info(pid)
	if err != nil {
		return none, err
	}
	return ipc.ComposeUpResponse{PID: pid, UUID: i.UUID, Name: i.Name, Nodes: len(f.Agents), Seq: seq, Warnings: p.Problems, Notes: f.Notes()}, nil
}

// parse reads the file of a run, and what the request says instead.
func (d composer) parse(peer *ipc.Peer, req *ipc.ComposeUpRequest) (*compose.File, error) {
	bad := func(format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, "Compose", req.File, format, args...)
	}
	src := compose.Source{Name: orElse(req.File, compose.FileName), Text: []byte(req.Text), Vars: req.Vars}
	if _, inside := d.agentOf(peer); !inside && filepath.IsAbs(req.Path) { // an agent reads files through its own devices
		src.ReadFile = func(name string) ([]byte, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(filepath.Dir(req.Path), name)
			}
			return yamlfile.ReadFile(name, yamlfile.MaxBytes+1)
		}
	}
	f, ps := compose.Parse(src)
	if err := ps.Err("Compose", ""); err != nil {
		return nil, err
	}
	switch {
	case req.MaxParallel < 0 || req.MaxParallel > compose.MaxParallel:
		return nil, bad("from 1 to %d nodes can run at once, not %d", compose.MaxParallel, req.MaxParallel)
	case req.Budget != nil && *req.Budget < 0:
		return nil, bad("the budget is %d; 0 means unlimited", *req.Budget)
	case req.TimeoutMs < 0:
		return nil, bad("the time limit is negative")
	}
	if req.MaxParallel > 0 {
		f.MaxParallel = req.MaxParallel
	}
	if req.Budget != nil {
		n := compose.Tokens(*req.Budget)
		f.Budget = &n
	}
	if req.BudgetUSD != nil {
		if !(*req.BudgetUSD >= 0 && *req.BudgetUSD <= 1e9) {
			return nil, bad("the budget is %v dollars; 0 means unlimited", *req.BudgetUSD)
		}
		f.BudgetUSD = req.BudgetUSD
	}
	if req.TimeoutMs > 0 {
		f.Timeout = agent.Duration(service.Timeout(req.TimeoutMs))
	}
	return f, nil
}

// runName is what a run is called: as asked for, as the file says, or after its directory.
func runName(req *ipc.ComposeUpRequest, f *compose.File) string {
	base := strings.TrimSuffix(filepath.Base(req.Path), filepath.Ext(req.Path))
	if dir := filepath.Dir(req.Path); base+filepath.Ext(req.Path) == compose.FileName {
		if base = filepath.Base(dir); base == ".rnix" {
			base = filepath.Base(filepath.Dir(dir))
		}
	}
	for _, name := range []string{req.Name, f.Name, base} {
		if compose.ValidName(name) {
			return name
		}
	}
	return "run"
}

// preflight looks for agents, skills and models that are not there, of all nodes of which they are known.
func (d composer) preflight(ctx context.Context, req *ipc.ComposeUpRequest, p *profile.Profile, f *compose.File) error {
	if req.Name != "" && !compose.ValidName(req.Name) {
		return types.Errorf(types.ErrInvalid, "Compose", req.Name, "it cannot be the name of a run; use letters, digits, '-' and '_', a letter first, at most 48")
	}
	var wrong []string
	code := types.ErrInvalid
	for _, name := range f.Plan().Order {
		n := *f.Agents[name]
		if n.HasReferences() {
			continue // it is known when the node starts
		}
		run.Defaults(&n, f)
		q := *p
		_, _, _, err := (spawner(d)).settle(&q, nodeRequest(&n))
		if err == nil && n.Cwd != "" && !exists(inDir(p.Cwd, n.Cwd)) {
			err = types.Errorf(types.ErrNotFound, "Spawn", n.Cwd, "no such directory")
		}
		if err == nil && n.Worktree != nil {
			err = d.grove.Fits(ctx, types.UUID{}, planting(inDir(p.Cwd, n.Cwd), n.Worktree))
		}
		if err == nil {
			continue
		}
		if code = types.CodeOf(err); len(wrong) < 20 {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %s: %v", orElse(req.File, compose.FileName), n.Line, name, err))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	syscall := "Compose"
	if code == types.ErrUnavailable {
		syscall = "Provider"
	}
	return &types.SyscallError{Syscall: syscall, Code: code, Err: errors.New(strings.Join(wrong, "\n"))}
}

// nodeRequest is what a client would ask for to start a node.
func nodeRequest(n *compose.Node) ipc.SpawnRequest {
	req := ipc.SpawnRequest{Intent: n.Intent, Agent: n.Agent, Provider: n.Provider, Model: n.Model, FallbackProvider: n.FallbackProvider,
		FallbackModel: n.FallbackModel, Effort: n.Effort, SystemPrompt: n.SystemPrompt, Skills: n.Skills, MCP: n.MCP, Allow: n.Allow, Deny: n.Deny,
		MaxSteps: n.MaxSteps, BudgetUSD: n.BudgetUSD, TimeoutMs: n.Timeout.Or(0).Milliseconds()}
	if n.Budget != nil {
		b := int(*n.Budget)
		req.ContextBudget = &b
	}
	return req
}

func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// StartNode implements run.Starter: a node is settled as if a person had started it with the flags that
// its file has.
func (d composer) StartNode(ctx context.Context, parent *kernel.Process, l *run.Launch) (types.PID, error) {
	above, ok := profile.Of(parent)
	if !ok {
		return 0, types.Errorf(types.ErrUnavailable, "Spawn", l.Name, "the run has no configuration")
	}
	p := *above
	if l.Node.Cwd != "" {
		q, err := d.profiles.ForStart("Spawn", inDir(parent.WorkDir, l.Node.Cwd), above.Env, above.Trust)
		if err != nil {
			return 0, err
		}
		p = *q
		p.Recorded = above.Recorded
	}
	req := nodeRequest(l.Node)
	req.Intent, req.Inputs = l.Intent, l.Inputs
	ag, opts, _, err := (spawner(d)).settle(&p, req)
	if err != nil {
		return 0, err
	}
	opts.UUID, opts.ParentPID, opts.Name = l.UUID, parent.PID, l.Name
	_, undo, err := planter{worktrees(d)}.forNode(ctx, p.Cwd, l, &opts)
	if err != nil {
		return 0, err
	}
	pid, err := d.kernel.SpawnContext(ctx, l.Intent, ag, opts)
	if err != nil {
		undo()
	}
	return pid, err
}

// waitedFor returns the attempts that a run has started and that have not ended, as its history says.
func waitedFor(spec json.RawMessage, notes map[string]json.RawMessage) []types.UUID {
	sp, err := run.ParseSpec(spec)
	if err != nil {
		return nil
	}
	state, err := compose.NewState(sp.File.Plan(), sp.Rounds, notes)
	if err != nil {
		return nil
	}
	var out []types.UUID
	for _, id := range state.Live() {
		out = append(out, id)
	}
	return out
}

// foreground is the body of a run that is in the kernel's table.
func (d composer) foreground(pid types.PID) (*run.Run, bool) {
	r, ok := d.kernel.BodyOf(pid).(*run.Run)
	return r, ok
}

// find finds a run: the process that is meant, or of several runs of one name the one that lives, or else
// the latest.
func (d composer) find(text string) (target, error) {
	t, err := d.names.ResolveKind(text, run.Kind)
	if types.CodeOf(err) == types.ErrAmbiguous {
		var last *step.ProcInfo
		stored, living := d.journal.Index().List(), 0
		for i := range stored { // the latest comes last
			if s := &stored[i]; s.Kind == run.Kind && s.Name == text {
				last = s
				if _, alive := d.running(s.UUID); alive {
					living++
				}
			}
		}
		if last != nil && living == 0 { // else several live, and one must be named
			t, err = d.names.Resolve(last.UUID.String())
		}
	}
	if err != nil {
		return t, err
	}
	if kind := t.Kind(); kind != run.Kind {
		return t, &types.SyscallError{Syscall: "Compose", Device: text, PID: t.PID, Code: types.ErrInvalid, Err: errors.New("it is no run of a workflow; `rnix compose ps -a` lists them")}
	}
	return t, nil
}
