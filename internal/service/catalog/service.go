// Package catalog is what there is to start agents with: agents, skills, providers and their models, MCP servers, as a client in its directory
// has them. Its Models serve /dev/llm.
package catalog

import (
	"context"
	"strings"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/profile"
	"rnix/internal/redact"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
	"rnix/vfs"
)

// Service answers what there is. Its fields are set before it is registered.
type Service struct {
	Profiles   Profiles
	Devices    *vfs.DeviceRegistry
	Models     Describer
	Mounts     Mounts
	Mounter    Mounter
	Callers    Callers
	Names      Names
	Transports vfs.TransportFactory // to MCP servers
	Scratch    string               // the directory for outputs that belong to no process
	Secrets    *redact.Set          // what is told of servers is without them; nil = none are known

	byHand reserved
}

// Profiles reads the configuration as a client sees it. *profile.Reader is one.
type Profiles interface {
	Read(cwd string, environ []string, trust bool) (*profile.Profile, error)
	// ForStart is Read for what starts a program: it refuses a configuration with a mistake.
	ForStart(op, cwd string, environ []string, trust bool) (*profile.Profile, error)
}

// Mounts knows the MCP servers that run. *vfs.MountManager is one.
type Mounts interface {
	List() []vfs.MountInfo
	// Configured returns with what the server at a path was started last.
	Configured(path string) (vfs.MCPConfig, bool)
}

// Names finds processes by what people call them.
type Names interface {
	Resolve(text string) (service.Target, error)
}

// Mounter mounts MCP servers and ends them. *kernel.KernelImpl is one.
type Mounter interface {
	Mount(path string, config vfs.MCPConfig) error
	Unmount(path string) error
	Reload(ctx context.Context, path string, server agent.MCPServer) (vfs.ToolChange, error)
}

// Callers knows who asks.
type Callers interface {
	// AgentOf returns inside which process a caller runs.
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
}

// Register registers what the service answers.
func (c *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.Providers, c.providers)
	service.Handle(on, ipc.ProviderTraffic, func(context.Context, *ipc.Peer, ipc.Empty) (ipc.ProviderCallsResponse, error) {
		return ipc.ProviderCallsResponse{Providers: c.Models.Traffic()}, nil
	})
	service.Handle(on, ipc.Models, c.models)
	service.Handle(on, ipc.ListAgents, c.agents)
	service.Handle(on, ipc.ListSkills, c.skills)
	service.Handle(on, ipc.ListTools, c.tools)
	service.Handle(on, ipc.MCPList, c.mcpList)
	service.Handle(on, ipc.MCPTest, c.mcpTest)
	service.Handle(on, ipc.MCPMountAt, c.mcpMount)
	service.Handle(on, ipc.MCPUnmount, c.mcpUnmount)
	service.Handle(on, ipc.MCPReload, c.mcpReload)
}

func (c *Service) providers(_ context.Context, _ *ipc.Peer, req ipc.ProvidersRequest) (ipc.ProvidersResponse, error) {
	p, err := c.Profiles.Read(req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return ipc.ProvidersResponse{}, err
	}
	r := ipc.ProvidersResponse{Problems: p.Problems, Mistakes: p.Mistakes.Strings(), Warnings: p.Warnings, Providers: []ipc.Provider{}}
	for _, pr := range p.Providers.List {
		ok, detail := p.Available(pr)
		n, from := atOnce(p, pr)
		r.Providers = append(r.Providers, ipc.Provider{Name: pr.Name, Driver: pr.Driver, Path: "/dev/llm/" + pr.Name, Model: pr.DefaultModel,
			Available: ok, Detail: detail, Source: pr.Source, AtOnce: n, AtOnceFrom: from})
	}
	var models agent.Models
	ag, err := p.Load(req.Agent, nil)
	switch {
	case err != nil && req.Agent != "":
		return ipc.ProvidersResponse{}, err
	case err != nil:
		r.Problems = append(r.Problems, err.Error())
	default:
		models = ag.Models
	}
	choice, err := p.ChooseBy(models, config.Wish{Provider: req.Provider})
	if err != nil {
		r.Why = strings.TrimPrefix(err.Error(), "Provider ")
		return r, nil
	}
	r.Chosen, r.Why = choice.Provider.Name, choice.Why
	r.Problems = append(r.Problems, choice.Warnings...)
	return r, nil
}

func (c *Service) agents(_ context.Context, _ *ipc.Peer, req ipc.ProjectRequest) (ipc.AgentsResponse, error) {
	p, err := c.Profiles.Read(req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return ipc.AgentsResponse{}, err
	}
	r := ipc.AgentsResponse{Agents: []ipc.AgentInfo{}}
	r.Problems = p.Catalog.Problems().Strings()
	for _, e := range p.Catalog.Agents() {
		r.Agents = append(r.Agents, ipc.AgentInfo{Manifest: e.Manifest, Scope: e.Scope, Source: e.Source})
		r.Problems = append(r.Problems, e.Problems.Strings()...)
	}
	return r, nil
}

func (c *Service) skills(_ context.Context, _ *ipc.Peer, req ipc.ProjectRequest) (ipc.SkillsResponse, error) {
	p, err := c.Profiles.Read(req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return ipc.SkillsResponse{}, err
	}
	return ipc.SkillsResponse{Skills: append([]agent.Skill{}, p.Catalog.Skills()...), Problems: p.Catalog.Problems().Strings()}, nil
}
