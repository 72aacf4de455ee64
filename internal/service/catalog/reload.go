package catalog

import (
	"context"
	"slices"
	"sync"

	"rnix/agent"
	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
	"rnix/vfs"
)

// mcpReload starts servers of running processes anew, side by side. What came of each is in the answer; an error is only that of the request.
func (c *Service) mcpReload(ctx context.Context, peer *ipc.Peer, req ipc.MCPReloadRequest) (r ipc.MCPReloadResponse, err error) {
	if err := service.People(c.Callers, peer, "Reload", "not reload MCP servers"); err != nil {
		return r, err
	}
	var of service.Target
	if req.Process != "" {
		if of, err = c.Names.Resolve(req.Process); err != nil {
			return r, err
		}
	}
	list := slices.DeleteFunc(c.Mounts.List(), func(m vfs.MountInfo) bool {
		return m.PID == 0 || req.Server != "" && m.Server != req.Server || req.Process != "" && m.PID != of.PID
	})
	if len(list) == 0 {
		return r, types.Errorf(types.ErrNotFound, "Reload", req.Server, "no running process has such an MCP server; see: rnix mcp list")
	}
	r.Servers = make([]ipc.MCPReloaded, len(list))
	var wg sync.WaitGroup
	for i, m := range list {
		wg.Go(func() { r.Servers[i] = c.reload(ctx, m) }) // ends with the start of the server, which is bounded
	}
	wg.Wait()
	return r, nil
}

// reload starts one server anew, with its configuration read again. A server whose configuration cannot be used is left as it is.
func (c *Service) reload(ctx context.Context, m vfs.MountInfo) ipc.MCPReloaded {
	out := ipc.MCPReloaded{Path: m.Path, PID: m.PID, Server: m.Server}
	server, err := c.again(m)
	if err == nil {
		var change vfs.ToolChange
		change, err = c.Mounter.Reload(ctx, m.Path, server)
		out.Added, out.Removed, out.Changed = change.Added, change.Removed, change.Changed
	}
	if err != nil {
		out.Error = types.ToWire(c.Secrets.Error(err))
	}
	for _, now := range c.Mounts.List() {
		if now.Path == m.Path {
			out.Tools = now.Tools
		}
	}
	return out
}

// again reads the configuration of a server as its process would, if it were started now.
func (c *Service) again(m vfs.MountInfo) (agent.MCPServer, error) {
	was, ok := c.Mounts.Configured(m.Path)
	p, own := was.Owner.Profile.(*profile.Profile)
	if !ok || !own {
		return agent.MCPServer{}, types.Errorf(types.ErrNotFound, "Reload", m.Path, "it is not mounted any more")
	}
	return profile.Again(p, m.Server, func(trust bool) (*profile.Profile, error) {
		return c.Profiles.ForStart("Reload", p.Cwd, p.Env, trust)
	})
}
