package catalog

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
	"rnix/vfs"
)

// mountRoot is where MCP servers are mounted: those of processes as <pid>-<server>, those of people under other names.
const mountRoot = "/mnt/mcp/"

var (
	mountName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	ownedName = regexp.MustCompile(`^[0-9]+-`)
)

// reserved are the paths that are being mounted by hand: each has one client that may take the mount back.
type reserved struct {
	mu sync.Mutex
	// +checklocks:mu
	paths map[string]bool
}

// take reserves a path, and reports whether it was free.
func (r *reserved) take(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paths[path] {
		return false
	}
	if r.paths == nil {
		r.paths = map[string]bool{}
	}
	r.paths[path] = true
	return true
}

func (r *reserved) free(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.paths, path)
}

// checkHandPath refuses a path at which a person cannot mount a server.
func checkHandPath(path string) error {
	bad := func(format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, "Mount", path, "cannot mount at %q: "+format, append([]any{path}, args...)...)
	}
	name, ok := strings.CutPrefix(path, mountRoot)
	switch {
	case !ok:
		return bad("want a path %sNAME", mountRoot)
	case ownedName.MatchString(name):
		return bad("names that begin with a PID belong to processes; take another one, such as %s%s", mountRoot, ownedName.ReplaceAllString(name, ""))
	case !mountName.MatchString(name):
		return bad("a name has letters, digits, dots, underscores and hyphens, and begins with a letter or digit")
	}
	return nil
}

// mcpMount mounts a server for people. Processes do not reach it: they have the servers that they were started with.
func (c *Service) mcpMount(ctx context.Context, peer *ipc.Peer, req ipc.MCPMountRequest) (ipc.MCPMount, error) {
	if err := service.People(c.Callers, peer, "Mount", "not mount MCP servers"); err != nil {
		return ipc.MCPMount{}, err
	}
	if err := checkHandPath(req.Path); err != nil {
		return ipc.MCPMount{}, err
	}
	if (req.Server == "") == (len(req.Command) == 0) || len(req.Command) > 0 && req.Command[0] == "" {
		return ipc.MCPMount{}, types.Errorf(types.ErrInvalid, "Mount", req.Path, "want either the name of a server or a command")
	}
	cfg, err := c.serverFor("Mount", req.ProjectRequest, req.Server, req.Command)
	if err != nil {
		return ipc.MCPMount{}, err
	}
	if !c.byHand.take(req.Path) {
		return ipc.MCPMount{}, types.Errorf(types.ErrAlreadyMounted, "Mount", req.Path, "another client is mounting a server here")
	}
	defer c.byHand.free(req.Path)
	if _, taken := c.mountAt(req.Path); taken {
		return ipc.MCPMount{}, types.Errorf(types.ErrAlreadyMounted, "Mount", req.Path, "a server is mounted here already; unmount it with: rnix mcp unmount %s", req.Path)
	}
	stay := context.AfterFunc(ctx, func() { _ = c.Mounter.Unmount(req.Path) }) // a client that leaves ends a mount under way
	err = c.Mounter.Mount(req.Path, cfg)
	if !stay() && err == nil {
		_ = c.Mounter.Unmount(req.Path) // it left when the mount was not known yet
		err = vfs.Ended(ctx, "Mount", req.Path)
	}
	if err != nil {
		return ipc.MCPMount{}, err
	}
	m, _ := c.mountAt(req.Path)
	return ipc.MCPMount{Path: req.Path, Since: m.Since, Tools: m.Tools}, nil
}

// mcpUnmount ends a server that a person has mounted. The servers of a process end with it, and not before: its tools are promised.
func (c *Service) mcpUnmount(_ context.Context, peer *ipc.Peer, req ipc.MCPUnmountRequest) (ipc.Empty, error) {
	if err := service.People(c.Callers, peer, "Unmount", "not unmount MCP servers"); err != nil {
		return ipc.Empty{}, err
	}
	switch m, ok := c.mountAt(req.Path); {
	case !ok:
		return ipc.Empty{}, types.Errorf(types.ErrNotFound, "Unmount", req.Path, "no server is mounted at %q (mounts end with the daemon); see: rnix mcp list", req.Path)
	case m.PID != 0:
		return ipc.Empty{}, types.Errorf(types.ErrInvalid, "Unmount", req.Path, "cannot unmount %s: process %d uses it until it ends; to end both: rnix kill %d", req.Path, m.PID, m.PID)
	}
	return ipc.Empty{}, c.Mounter.Unmount(req.Path)
}

// mountAt returns what is mounted at a path.
func (c *Service) mountAt(path string) (vfs.MountInfo, bool) {
	list := c.Mounts.List()
	i := slices.IndexFunc(list, func(m vfs.MountInfo) bool { return m.Path == path })
	if i < 0 {
		return vfs.MountInfo{}, false
	}
	return list[i], true
}
