package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"rnix/agent"
	"rnix/internal/sandbox"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/runtime/env"
	"rnix/types"
	"rnix/vfs"
)

func (c *Service) mcpList(_ context.Context, peer *ipc.Peer, req ipc.ProjectRequest) (ipc.MCPListResponse, error) {
	p, err := c.Profiles.Read(req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return ipc.MCPListResponse{}, err
	}
	r := ipc.MCPListResponse{Servers: []ipc.MCPServerInfo{}, Mounts: []ipc.MCPMount{}}
	for _, s := range p.Servers {
		r.Servers = append(r.Servers, ipc.MCPServerInfo{Name: s.Name, Type: cmp.Or(s.Type, "stdio"), Source: s.Source, Disabled: s.Disabled,
			Command: env.Conceal(s.Shown), Problem: serverProblem(&s, p.Trust)})
	}
	owner, inside := c.Callers.AgentOf(peer)
	for _, m := range c.Mounts.List() {
		mount := ipc.MCPMount{Path: m.Path, PID: m.PID, Since: m.Since, Tools: m.Tools, State: m.State, StateSince: m.MCPState.Since, OSPID: m.OSPID}
		if m.Reason != nil && (!inside || m.PID == owner) { // it may end with what the server wrote, which is no other agent's to see
			why := m.Reason
			if e, ok := errors.AsType[*types.SyscallError](why); ok && e.Err != nil { // the path is there already
				why = e.Err
			}
			mount.Reason = c.Secrets.String(why.Error())
		}
		r.Mounts = append(r.Mounts, mount)
	}
	r.Problems = append(r.Problems, p.Problems...)
	return r, nil
}

// serverProblem says why a configured server cannot be used, or nothing.
func serverProblem(s *agent.MCPEntry, trust bool) string {
	if list := s.Problems.Errors(); len(list) > 0 {
		return list[0].String()
	}
	if s.Scope == agent.ScopeProject && !trust {
		return "it comes from the project, which is not trusted: look at it, and trust it with: rnix trust"
	}
	return ""
}

// mcpTest starts a configured server, lists what it offers and ends it. Naming a server of the
// project's files needs trust, since it is started.
func (c *Service) mcpTest(ctx context.Context, peer *ipc.Peer, req ipc.MCPTestRequest) (ipc.MCPTestResponse, error) {
	if owner, inside := c.Callers.AgentOf(peer); inside {
		return ipc.MCPTestResponse{}, service.Outside("MCPTest", owner, "not start MCP servers by hand")
	}
	cfg, err := c.serverFor("MCPTest", req.ProjectRequest, req.Server, nil)
	if err != nil {
		return ipc.MCPTestResponse{}, err
	}
	t, err := c.Transports(cfg)
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

// serverFor is how a server of the configuration, or a command, is started for a person in a directory. A configuration with a
// mistake starts nothing, and a project's server needs trust.
func (c *Service) serverFor(op string, where ipc.ProjectRequest, server string, command []string) (vfs.MCPConfig, error) {
	p, err := c.Profiles.ForStart(op, where.Cwd, where.Env, where.TrustProject)
	if err != nil {
		return vfs.MCPConfig{}, err
	}
	var cfg vfs.MCPConfig
	if len(command) > 0 {
		cfg.Command, cfg.Args = command[0], command[1:]
		cfg.Sandbox.Level = sandbox.LevelOff // it is a command of the person's
	} else {
		ag, err := p.Load("", []string{server})
		if err != nil {
			return vfs.MCPConfig{}, err
		}
		for _, s := range ag.MCPConfigs {
			if s.Name == server {
				cfg.MCPServer = s
			}
		}
	}
	cfg.Dir = p.Cwd
	cfg.Owner, err = p.Caller(c.Scratch)
	return cfg, err
}

// defaultMountTimeout is how long a test waits for a server that says nothing else.
const defaultMountTimeout = 30 * time.Second
