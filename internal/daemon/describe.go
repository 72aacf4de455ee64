package daemon

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"time"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/proc"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/runtime/env"
	"rnix/types"
	"rnix/vfs"
)

// describer answers what concerns the daemon itself and what a project sees.
type describer struct{ *Daemon }

func (d describer) handle(s *ipc.Server) {
	on(d.Daemon, s, ipc.Ping, func(context.Context, *ipc.Peer, ipc.Empty) (ipc.PingResponse, error) {
		if outdated(d.Daemon) && d.stopping.CompareAndSwap(false, true) {
			d.log.Info("stopping, since the configuration is mended that could not be read at the start")
			d.stop() // what is under way ends first, such as this answer
		}
		return ipc.PingResponse{PID: os.Getpid(), Version: d.opt.Version, Stopping: d.stopping.Load()}, nil
	})
	on(d.Daemon, s, ipc.DaemonStatus, d.status)
	on(d.Daemon, s, ipc.Providers, d.providers)
	on(d.Daemon, s, ipc.ListAgents, d.agents)
	on(d.Daemon, s, ipc.ListSkills, d.skills)
	on(d.Daemon, s, ipc.MCPList, d.mcpList)
	on(d.Daemon, s, ipc.MCPTest, d.mcpTest)
}

func (d describer) status(ctx context.Context, _ *ipc.Peer, _ ipc.Empty) (ipc.Status, error) {
	if err := d.bootstrap.failed(); err != nil {
		return ipc.Status{}, d.bootstrap.wait(ctx)
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	s := ipc.Status{
		PID: os.Getpid(), Version: d.opt.Version, Started: d.started, Socket: d.places.Socket, DataDir: d.places.DataDir, Log: d.places.Log,
		Children: len(d.procs.All()), Goroutines: runtime.NumGoroutine(), HeapBytes: mem.HeapAlloc, Freezer: string(proc.FreezerHere()), Recovered: d.notes.all(), Recovering: !closed(d.looked), Misread: d.misread,
		Init: d.bootstrap.all(), Starting: !closed(d.bootstrap.done),
	}
	s.Room = d.room.Why()
	s.CheckpointFailures, s.CheckpointFailure = d.store.CheckpointFailures()
	s.Storage = d.storage.Status(ctx)
	live := map[types.UUID]bool{}
	for _, i := range d.kernel.List() {
		live[i.UUID] = true
		if i.Suspended {
			s.Suspended++
		} else if i.State < types.StateZombie {
			s.Running++
		}
	}
	for _, i := range d.journal.Index().List() {
		s.Stored++
		if i.Suspended && !live[i.UUID] {
			s.Suspended++
		}
	}
	return s, nil
}

func (d describer) providers(_ context.Context, _ *ipc.Peer, req ipc.ProvidersRequest) (ipc.ProvidersResponse, error) {
	p, err := d.profileOf(req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return ipc.ProvidersResponse{}, err
	}
	r := ipc.ProvidersResponse{Problems: p.problems, Mistakes: p.mistakes.Strings(), Providers: []ipc.Provider{}}
	for _, pr := range p.providers.List {
		ok, detail := p.available(pr)
		r.Providers = append(r.Providers, ipc.Provider{Name: pr.Name, Driver: pr.Driver, Path: "/dev/llm/" + pr.Name, Model: pr.DefaultModel,
			Available: ok, Detail: detail, Source: pr.Source, AtOnce: atOnce(p, pr)})
	}
	wish := config.Wish{Provider: req.Provider, ProjectDefault: p.providers.ProjectDefault, UserDefault: p.providers.UserDefault}
	ag, err := p.load(req.Agent, nil)
	switch {
	case err != nil && req.Agent != "":
		return ipc.ProvidersResponse{}, err
	case err != nil:
		r.Problems = append(r.Problems, err.Error())
	default:
		wish.Agent = ag.Models
	}
	choice, err := config.Choose(p.providers.List, wish, p.available)
	if err != nil {
		r.Why = strings.TrimPrefix(err.Error(), "Provider ")
		return r, nil
	}
	r.Chosen, r.Why = choice.Provider.Name, choice.Why
	r.Problems = append(r.Problems, choice.Warnings...)
	return r, nil
}

func (d describer) agents(_ context.Context, _ *ipc.Peer, req ipc.ProjectRequest) (ipc.AgentsResponse, error) {
	p, err := d.profileOf(req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return ipc.AgentsResponse{}, err
	}
	r := ipc.AgentsResponse{Agents: []ipc.AgentInfo{}}
	r.Problems = p.catalog.Problems().Strings()
	for _, e := range p.catalog.Agents() {
		r.Agents = append(r.Agents, ipc.AgentInfo{Manifest: e.Manifest, Scope: e.Scope, Source: e.Source})
		r.Problems = append(r.Problems, e.Problems.Strings()...)
	}
	return r, nil
}

func (d describer) skills(_ context.Context, _ *ipc.Peer, req ipc.ProjectRequest) (ipc.SkillsResponse, error) {
	p, err := d.profileOf(req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return ipc.SkillsResponse{}, err
	}
	return ipc.SkillsResponse{Skills: append([]agent.Skill{}, p.catalog.Skills()...), Problems: p.catalog.Problems().Strings()}, nil
}

func (d describer) mcpList(_ context.Context, _ *ipc.Peer, req ipc.ProjectRequest) (ipc.MCPListResponse, error) {
	p, err := d.profileOf(req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return ipc.MCPListResponse{}, err
	}
	r := ipc.MCPListResponse{Servers: []ipc.MCPServerInfo{}, Mounts: []ipc.MCPMount{}}
	for _, s := range p.servers {
		r.Servers = append(r.Servers, ipc.MCPServerInfo{Name: s.Name, Type: orElse(s.Type, "stdio"), Source: s.Source, Disabled: s.Disabled,
			Command: env.Conceal(s.Shown), Problem: serverProblem(&s, req.TrustProject)})
	}
	for _, m := range d.mounts.List() {
		r.Mounts = append(r.Mounts, ipc.MCPMount{Path: m.Path, PID: m.PID, Since: m.Since, Tools: m.Tools})
	}
	r.Problems = append(r.Problems, p.problems...)
	return r, nil
}

// serverProblem says why a configured server cannot be used, or nothing.
func serverProblem(s *agent.MCPEntry, trust bool) string {
	if list := s.Problems.Errors(); len(list) > 0 {
		return list[0].String()
	}
	if s.Scope == agent.ScopeProject && !trust {
		return "it comes from the project, which is not trusted: look at " + s.Source + ", then say --trust-project"
	}
	return ""
}

// mcpTest starts a configured server, lists what it offers and ends it. Naming a server of the
// project's files needs trust, since it is started.
func (d describer) mcpTest(ctx context.Context, peer *ipc.Peer, req ipc.MCPTestRequest) (ipc.MCPTestResponse, error) {
	if owner, inside := d.agentOf(peer); inside {
		return ipc.MCPTestResponse{}, service.Outside("MCPTest", owner, "not start MCP servers by hand")
	}
	p, err := startProfile(d.Daemon, "MCPTest", req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return ipc.MCPTestResponse{}, err
	}
	ag, err := p.load("", []string{req.Server})
	if err != nil {
		return ipc.MCPTestResponse{}, err
	}
	var cfg vfs.MCPConfig
	for _, s := range ag.MCPConfigs {
		if s.Name == req.Server {
			cfg.MCPServer = s
		}
	}
	caller, err := paths(d).userCaller(p)
	if err != nil {
		return ipc.MCPTestResponse{}, err
	}
	cfg.Dir, cfg.Owner = p.cwd, caller
	t, err := d.transports(cfg)
	if err != nil {
		return ipc.MCPTestResponse{}, err
	}
	defer t.Close()
	start := time.Now()
	cctx, cancel := context.WithTimeout(ctx, time.Duration(cfg.MountTimeout.Or(defaultMountTimeout)))
	defer cancel()
	if err := t.Connect(cctx); err != nil {
		return ipc.MCPTestResponse{}, err
	}
	r := ipc.MCPTestResponse{ConnectMs: time.Since(start).Milliseconds()}
	if r.Tools, err = t.Call(cctx, "tools/list", json.RawMessage("{}")); err != nil {
		return r, err
	}
	if res, rerr := t.Call(cctx, "resources/list", json.RawMessage("{}")); rerr == nil { // a server need not have any
		r.Resources = res
	}
	return r, nil
}

// defaultMountTimeout is how long a test waits for a server that says nothing else.
const defaultMountTimeout = 30 * time.Second

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
