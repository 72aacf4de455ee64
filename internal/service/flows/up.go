package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/service"
	"rnix/internal/yamlfile"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// starter starts runs of workflows, and their nodes. A run is a process; what is special about it is its body.
type starter struct {
	kernel Kernel
	finder Finder
	starts Starts
}

var _ run.Starter = (*starter)(nil)

// up starts a run. What can be known to be wrong is refused before anything starts, all of it at once.
func (s *starter) up(ctx context.Context, peer *ipc.Peer, req *ipc.ComposeUpRequest) (ipc.ComposeUpResponse, error) {
	var none ipc.ComposeUpResponse
	f, err := s.parse(peer, req)
	if err != nil {
		return none, err
	}
	p, err := s.starts.Profile("Compose", req.Cwd, req.Env, req.TrustProject)
	if err == nil {
		err = p.AskSandbox(req.Sandbox, req.Net, req.Bounds, req.Hosts)
	}
	if err == nil {
		err = s.starts.Room("Compose")
	}
	if err != nil {
		return none, err
	}
	parent, err := s.starts.Parent(peer, req.Parent, p, p.Trusts()) // before its settings are kept
	var said []string
	if err == nil {
		said, err = preflight(ctx, req, p, f)
	}
	if err != nil {
		return none, err
	}
	opts, err := p.Program()
	if err != nil {
		return none, err
	}
	spec := run.Spec{File: f, Path: req.Path, Name: runName(req, f), Dir: p.Cwd()}
	steps := 0
	opts.Name, opts.MaxSteps, opts.Timeout, opts.BudgetUSD, opts.Body = spec.Name, &steps, f.Timeout.Or(0), f.BudgetUSD, run.New(spec, s)
	if f.Budget != nil {
		n := int(*f.Budget)
		opts.ContextBudget = &n
	}
	opts.ParentPID = parent
	seq := s.starts.Seq()
	intent := strings.TrimSpace(f.Intent)
	if intent == "" {
		intent = "Run the workflow " + spec.Name
	}
	pid, err := s.kernel.SpawnContext(ctx, intent, nil, opts)
	if err != nil {
		return none, err
	}
	i, err := s.kernel.Info(pid)
	if err != nil {
		return none, err
	}
	return ipc.ComposeUpResponse{PID: pid, UUID: i.UUID, Name: i.Name, Nodes: len(f.Agents), Seq: seq, Warnings: append(slices.Clone(p.Problems()), said...), Notes: f.Notes()}, nil
}

// parse reads the file of a run, and what the request says instead.
func (s *starter) parse(peer *ipc.Peer, req *ipc.ComposeUpRequest) (*compose.File, error) {
	bad := func(format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, "Compose", req.File, format, args...)
	}
	src := compose.Source{Name: cmp.Or(req.File, compose.FileName), Text: []byte(req.Text), Vars: req.Vars}
	if _, inside := s.finder.AgentOf(peer); !inside && filepath.IsAbs(req.Path) { // an agent reads files through its own devices
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

// maxProblems is of how many nodes of a run it is said what is wrong with them.
const maxProblems = 20

// preflight looks for agents, skills and models that are not there, of all nodes of which they are known. said is what nodes do not get.
func preflight(ctx context.Context, req *ipc.ComposeUpRequest, p Profile, f *compose.File) (said []string, err error) {
	if req.Name != "" && !compose.ValidName(req.Name) {
		return nil, types.Errorf(types.ErrInvalid, "Compose", req.Name, "it cannot be the name of a run; use letters, digits, '-' and '_', a letter first, at most 48")
	}
	var wrong []string
	code := types.ErrInvalid
	for _, name := range f.Plan().Order {
		n := *f.Agents[name]
		if n.HasReferences() {
			continue // it is known when the node starts
		}
		run.Defaults(&n, f)
		at := fmt.Sprintf("%s:%d: %s: ", cmp.Or(req.File, compose.FileName), n.Line, name)
		_, _, problems, err := p.Agent(nodeRequest(&n))
		if err == nil && n.Cwd != "" {
			err = isThere(n.Cwd, inDir(p.Cwd(), n.Cwd))
		}
		if err == nil && n.Worktree != nil {
			err = p.Fits(ctx, inDir(p.Cwd(), n.Cwd), n.Worktree)
		}
		if err == nil {
			for _, what := range problems {
				if len(said) < maxProblems {
					said = append(said, at+what)
				}
			}
			continue
		}
		if code = types.CodeOf(err); len(wrong) < maxProblems {
			wrong = append(wrong, at+err.Error())
		}
	}
	if len(wrong) == 0 {
		return said, nil
	}
	syscall := "Compose"
	if code == types.ErrUnavailable {
		syscall = "Provider"
	}
	return nil, &types.SyscallError{Syscall: syscall, Code: code, Err: errors.New(strings.Join(wrong, "\n"))}
}

// nodeRequest is what a client would ask for to start a node.
func nodeRequest(n *compose.Node) *ipc.SpawnRequest {
	req := &ipc.SpawnRequest{Intent: n.Intent, Agent: n.Agent, ProcSpec: types.ProcSpec{Provider: n.Provider, Model: n.Model, FallbackProvider: n.FallbackProvider, FallbackModel: n.FallbackModel, Effort: n.Effort, SystemPrompt: n.SystemPrompt, AllowedDevices: n.Allow, DeniedDevices: n.Deny, MaxSteps: n.MaxSteps, BudgetUSD: n.BudgetUSD, Sandbox: string(n.Sandbox.Level), Net: string(n.Sandbox.Net), Bounds: n.Sandbox.Bounds()}, OnlyHosts: n.Sandbox.Hosts, Skills: n.Skills, MCP: n.MCP, TimeoutMs: n.Timeout.Or(0).Milliseconds()}
	if n.Budget != nil {
		b := int(*n.Budget)
		req.ContextBudget = &b
	}
	return req
}

// isThere refuses the directory of a node that is not there. named is how the file calls it.
func isThere(named, path string) error {
	if _, err := os.Stat(path); err != nil {
		return types.Errorf(types.ErrNotFound, "Spawn", named, "no such directory")
	}
	return nil
}

func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Unresolved implements run.Starter.
func (s *starter) Unresolved(id types.UUID) []string { return s.starts.Unresolved(id) }

// StartNode implements run.Starter: a node is settled as if a person had started it with the flags that
// its file has.
func (s *starter) StartNode(ctx context.Context, parent *kernel.Process, l *run.Launch) (types.PID, error) {
	p, ok := s.starts.ProfileOf(parent)
	if !ok {
		return 0, types.Errorf(types.ErrUnavailable, "Spawn", l.Name, "the run has no configuration")
	}
	var err error
	if l.Node.Cwd != "" {
		if p, err = p.In("Spawn", inDir(parent.WorkDir, l.Node.Cwd), nil); err != nil {
			return 0, err
		}
	}
	req := nodeRequest(l.Node)
	req.Intent, req.Inputs = l.Intent, service.Each(l.Inputs, service.WireInput)
	ag, opts, _, err := p.Agent(req)
	if err != nil {
		return 0, err
	}
	opts.UUID, opts.ParentPID, opts.Name = l.UUID, parent.PID, l.Name
	made, err := p.Plant(ctx, l, &opts)
	if err != nil {
		return 0, err
	}
	if made.Told != "" {
		l.Intent += "\n\n" + made.Told
	}
	pid, err := s.kernel.SpawnContext(ctx, l.Intent, ag, opts)
	if err != nil {
		made.Undo()
	}
	return pid, err
}
