package catalog

import (
	"context"

	"rnix/ipc"
	"rnix/kernel"
)

// tools lists the tools that agents may be offered, and whether they are with the configuration of a client.
func (c *Service) tools(_ context.Context, _ *ipc.Peer, req ipc.ProjectRequest) (ipc.ToolsResponse, error) {
	p, err := c.Profiles.Read(req.Cwd, req.Env, req.TrustProject)
	if err != nil {
		return ipc.ToolsResponse{}, err
	}
	r := ipc.ToolsResponse{Tools: []ipc.ToolInfo{}, Problems: p.Problems}
	for _, t := range kernel.AllTools(c.Devices) {
		r.Tools = append(r.Tools, ipc.ToolInfo{Name: t.Name, Description: t.Description, Path: t.Path, Op: t.Op, Effect: string(t.Effect),
			Offered: t.Offered == nil || t.Offered(p), InputSchema: t.Schema})
	}
	return r, nil
}
