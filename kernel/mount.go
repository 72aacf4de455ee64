package kernel

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"rnix/agent"
	"rnix/internal/event"
	"rnix/internal/redact"
	"rnix/internal/yamlfile"
	"rnix/types"
	"rnix/vfs"
)

// servers starts and ends the MCP servers of processes.
type servers struct {
	manager MountManager // nil = there are none
	devices *vfs.DeviceRegistry
	tracer  *tracer
	events  *event.Log
	log     *slog.Logger
	caller  func(*Process) vfs.Caller
	doing   *activity
	secrets *redact.Set
}

// Mount puts an MCP server at path.
func (k *KernelImpl) Mount(path string, config vfs.MCPConfig) error {
	if k.servers.manager == nil {
		return noMounts(path)
	}
	if config.Tell == nil {
		config.Tell = k.servers.heardByPeople(path)
	}
	c := k.tracer.call(k.table.caller(config.Owner.PID), "Mount", path)
	c.begins("")
	err := k.servers.manager.Mount(path, config)
	c.ends("", "", err)
	if err == nil {
		k.events.Append(event.Event{Kind: event.Mounted, PID: config.Owner.PID, UUID: config.Owner.UUID, Path: path, Dur: time.Since(c.start)})
	}
	return err
}

// Unmount ends the server at path.
func (k *KernelImpl) Unmount(path string) error {
	if k.servers.manager == nil {
		return types.Errorf(types.ErrNotFound, "Unmount", path, "not mounted")
	}
	return k.servers.unmount(nil, path)
}

// unmount ends the server at path, which belongs to the process that calls, or to none.
func (v *servers) unmount(p *Process, path string) error {
	c := v.tracer.call(p, "Unmount", path)
	c.begins("") // it has a time to end
	err := v.manager.Unmount(path)
	c.ends("", "", err)
	if err == nil {
		e := event.Event{Kind: event.Unmounted, Path: path}
		if p != nil {
			e.PID, e.UUID = p.PID, p.UUID
		}
		v.events.Append(e)
	}
	return err
}

// UnmountAll ends every server.
func (k *KernelImpl) UnmountAll() error {
	if k.servers.manager == nil {
		return nil
	}
	return k.servers.manager.UnmountAll()
}

// serversOf returns the MCP servers of the agent and the call, once each by name; the call wins.
func serversOf(ag *agent.Agent, opts SpawnOpts) []agent.MCPServer {
	out := slices.Clone(opts.MCP)
	for i := range out {
		out[i].Required = true // the call names it
	}
	for _, s := range ag.MCPConfigs {
		if !slices.ContainsFunc(opts.MCP, func(o agent.MCPServer) bool { return o.Name == s.Name }) {
			out = append(out, s)
		}
	}
	return out
}

// mountFor mounts servers for a process, side by side. One that cannot be started and is not needed becomes a warning, which the model is told;
// with any other that cannot, none is mounted. A mount gives the process the
// right to its path, but only if the caller and the parent leave it room: a list that was given and
// does not cover /mnt/mcp means that the process gets no server.
func (v *servers) mountFor(ctx context.Context, p, parent *Process, list []agent.MCPServer) error {
	var set []vfs.PathConfig
	for _, s := range list {
		if s.Disabled {
			continue
		}
		if !mayMount(p, parent, s.Name) {
			if p.opts.From == nil && !s.Offered {
				say(v.events, p, "warning", "the MCP server "+s.Name+" is left out: the process may not open "+mcpRoot+"/"+s.Name+" (--allow, --deny, or what its parent may)")
			}
			continue
		}
		set = append(set, vfs.PathConfig{Path: mcpRoot + "/" + p.PID.String() + "-" + s.Name,
			Config: vfs.MCPConfig{MCPServer: s, Dir: p.WorkDir, Owner: v.caller(p), Tell: v.heard(p, s.Name)}, Spare: spared(&s)})
	}
	if len(set) == 0 {
		return nil
	}
	start := time.Now()
	down, err := v.mountBy(ctx, parent, set)
	if err != nil {
		return err
	}
	for i := range down {
		v.startFailed(p, &down[i])
	}
	for _, s := range set {
		p.MCPMounts = append(p.MCPMounts, s.Path) // also of one that is down: a reload starts it, and a resume tries again
		if slices.ContainsFunc(down, func(d vfs.Down) bool { return d.Path == s.Path }) {
			continue
		}
		v.events.Append(event.Event{Kind: event.Mounted, PID: p.PID, UUID: p.UUID, Path: s.Path, Dur: time.Since(start)})
	}
	slices.Sort(p.MCPMounts)
	if p.Rights.Allowed != nil {
		p.Rights.Allowed = clean(append(slices.Clone(p.Rights.Allowed), p.MCPMounts...))
	}
	return v.deniedTools(p)
}

// spared says for which reasons a process begins without a server. What a call names, or the agent needs, must be there. Whatever else the agent
// names may be away, but not be refused, which a person has to decide; what a project offers to all may be refused too.
func spared(s *agent.MCPServer) func(error) bool {
	switch {
	case s.Required:
		return nil
	case s.Offered:
		return func(error) bool { return true }
	}
	return func(err error) bool { return types.CodeOf(err) != types.ErrPermission }
}

// deniedTools refuses a denial of a tool that a server of the process does not have: a slip in its name would deny nothing.
func (v *servers) deniedTools(p *Process) error {
	if p.opts.From != nil || p.opts.Recorded {
		return nil
	}
	for _, denied := range p.opts.DeniedDevices {
		for _, m := range p.MCPMounts {
			server := mcpRoot + "/" + strings.TrimPrefix(m, mcpRoot+"/"+p.PID.String()+"-")
			tool, ok := strings.CutPrefix(denied, server+"/tools/")
			if !ok {
				continue
			}
			var names []string
			for _, t := range v.devices.Tools(m) {
				names = append(names, strings.TrimPrefix(t.Path, m+"/tools/"))
			}
			if len(names) == 0 || slices.Contains(names, tool) { // one that is down has none
				continue
			}
			near := ""
			if n := yamlfile.Nearest(tool, names); n != "" {
				near = "; did you mean " + n + "?"
			}
			return types.Errorf(types.ErrInvalid, "Spawn", denied, "cannot deny %q: the server %s has no such tool%s; available: %s", denied, strings.TrimPrefix(server, mcpRoot+"/"), near, strings.Join(names, ", "))
		}
	}
	return nil
}

// mountBy is mountSet, traced as calls of the one who starts the process: the process does nothing yet.
func (v *servers) mountBy(ctx context.Context, p *Process, set []vfs.PathConfig) ([]vfs.Down, error) {
	under := make([]sysCall, len(set))
	for i := range set {
		under[i] = v.tracer.call(p, "Mount", set[i].Path)
		under[i].begins("")
	}
	down, err := v.mountSet(ctx, set)
	for i := range under {
		failed := err
		for _, d := range down {
			if d.Path == set[i].Path {
				failed = d.Reason
			}
		}
		under[i].ends("", "", failed)
	}
	return down, err
}

// mountSet mounts all that are not spared or none: side by side if the mount manager can, else one after the other.
func (v *servers) mountSet(ctx context.Context, set []vfs.PathConfig) (down []vfs.Down, err error) {
	if v.manager == nil {
		return nil, noMounts(set[0].Path)
	}
	if m, ok := v.manager.(interface {
		MountSet(context.Context, []vfs.PathConfig) ([]vfs.Down, error)
	}); ok {
		return m.MountSet(ctx, set)
	}
	for i, s := range set {
		err := v.manager.Mount(s.Path, s.Config)
		switch {
		case err == nil:
		case s.Spare != nil && s.Spare(err):
			down = append(down, vfs.Down{Path: s.Path, Server: s.Config.Name, Reason: err})
		default:
			for _, up := range set[:i] {
				_ = v.manager.Unmount(up.Path) // what failed before matters more
			}
			return nil, err
		}
	}
	return down, nil
}

func noMounts(path string) error {
	return types.Errorf(types.ErrUnavailable, "Mount", path, "this kernel has no MCP driver")
}

// mayMount reports whether a process may have a server. The lists of the call and the parent must
// cover /mnt/mcp (or be absent), and a parent with a list must have the server itself.
func mayMount(p, parent *Process, server string) bool {
	if f := p.opts.From; f != nil {
		return f.had(server)
	}
	path := mcpRoot + "/" + server
	call := Rights{}.Narrow(p.opts.AllowedDevices).Without(p.opts.DeniedDevices)
	if !call.Permits(path) {
		return false
	}
	if parent == nil || parent.Rights.Permits(path) {
		return true
	}
	return slices.Contains(parent.MCPMounts, mcpRoot+"/"+parent.PID.String()+"-"+server)
}

// unmountFor ends the servers of a process, side by side: each may take its grace time. An error must
// not block the exit. by is who calls: the process itself at its end, and PID 0 if it was not started.
func (v *servers) unmountFor(by, p *Process) {
	if len(p.MCPMounts) == 0 {
		return
	}
	var wg sync.WaitGroup // each goroutine ends with its unmount, which takes a bounded time
	for _, path := range p.MCPMounts {
		wg.Go(func() {
			if err := v.unmount(by, path); err != nil {
				v.log.Warn("unmount", "pid", p.PID, "path", path, "err", err)
			}
		})
	}
	wg.Wait()
}
