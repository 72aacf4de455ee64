// Package paths is the name space as people see it: what `rnix ls`, `cat` and `stat` show of devices, and what is written to them.
package paths

import (
	"context"
	"errors"
	"io"

	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
	"rnix/vfs"
)

// Service answers what concerns the name space. Its fields are set before it is registered.
type Service struct {
	Agents   Agents
	Space    Space
	Devices  Devices
	Profiles Profiles
	Callers  Callers
	Scratch  string // the directory for outputs that belong to no process
}

// Agents opens paths with the rights of a process. *kernel.KernelImpl is one.
type Agents interface {
	OpenAs(pid types.PID, path string, flags vfs.OpenFlag) (vfs.VFSFile, error)
}

// Space opens paths for who is no process. *vfs.VFS is one.
type Space interface {
	OpenAs(c vfs.Caller, path string, flags vfs.OpenFlag) (vfs.VFSFile, error)
}

// Devices knows where devices are. *vfs.DeviceRegistry is one.
type Devices interface {
	Paths() []string
}

// Profiles reads the configuration as a client sees it. *profile.Reader is one.
type Profiles interface {
	Read(cwd string, environ []string, trust bool) (*profile.Profile, error)
	// MayStart refuses, if the configuration has a mistake, what may start a program.
	MayStart(op string, p *profile.Profile) error
}

// Callers knows who asks, and what of whom.
type Callers interface {
	// AgentOf returns inside which process a caller runs.
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
	// Alive finds a process that runs by what a person calls it.
	Alive(op, text string) (types.PID, error)
	// InSubtree reports whether a process is root or runs below it.
	InSubtree(root, pid types.PID) bool
	// Paused reports whether a person has paused a process.
	Paused(pid types.PID) bool
}

// Register registers what the service answers.
func (s *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.ReadPath, s.read)
	service.Handle(on, ipc.WritePath, s.write)
	service.Handle(on, ipc.ListPath, s.list)
}

// open opens a path as a process, or as the user in the request's directory. A caller inside an
// agent opens as that agent.
func (s *Service) open(peer *ipc.Peer, req ipc.PathRequest, flags vfs.OpenFlag) (vfs.VFSFile, error) {
	owner, inside := s.Callers.AgentOf(peer)
	if inside && owner == 0 {
		return nil, service.Outside("Open", owner, "")
	}
	if req.As != "" {
		pid, err := s.Callers.Alive("Open", req.As)
		if err != nil {
			return nil, err
		}
		if inside && !s.Callers.InSubtree(owner, pid) {
			return nil, service.Outside("Open", owner, "open paths for its own subtree only")
		}
		if !inside && flags != vfs.OpenRead && s.Callers.Paused(pid) { // an agent's own command stands still with it
			return nil, types.Errorf(types.ErrConflict, "Open", req.Path, "process %d is paused, and what is done as it would stand still until it is resumed; resume it first: rnix resume %d", pid, pid)
		}
		owner, inside = pid, true
	}
	if inside {
		return s.Agents.OpenAs(owner, req.Path, flags)
	}
	p, err := s.Profiles.Read(req.Cwd, req.Env, false)
	if err != nil {
		return nil, err
	}
	if flags != vfs.OpenRead {
		if err := s.Profiles.MayStart("Open", p); err != nil {
			return nil, err
		}
	}
	caller, err := p.Caller(s.Scratch)
	if err != nil {
		return nil, err
	}
	return s.Space.OpenAs(caller, req.Path, flags)
}

// maxRead is how much a read returns when nothing is said.
const maxRead = 1 << 20

func (s *Service) read(_ context.Context, peer *ipc.Peer, req ipc.PathRequest) (ipc.PathResponse, error) {
	f, err := s.open(peer, req, vfs.OpenRead)
	if err != nil {
		return ipc.PathResponse{}, err
	}
	defer f.Close()
	return answer(f, req)
}

func (s *Service) write(ctx context.Context, peer *ipc.Peer, req ipc.PathRequest) (ipc.PathResponse, error) {
	f, err := s.open(peer, req, vfs.OpenReadWrite)
	if err != nil {
		return ipc.PathResponse{}, err
	}
	defer f.Close()
	if err := f.Write(ctx, req.Data); err != nil {
		return ipc.PathResponse{}, service.Named(err, "Write", req.Path)
	}
	return answer(f, req)
}

// answer reads at most what the request asks for.
func answer(f vfs.VFSFile, req ipc.PathRequest) (r ipc.PathResponse, err error) {
	limit := req.Max
	if limit <= 0 {
		limit = maxRead
	}
	r.Data, r.Cut, err = readUpTo(f, req.Path, min(limit, ipc.MaxBody))
	return r, err
}

// readUpTo reads a file up to a limit in bytes. cut says that there was more.
func readUpTo(f vfs.VFSFile, path string, limit int) (data []byte, cut bool, err error) {
	data = []byte{}
	for {
		b, err := f.Read(limit + 1 - len(data))
		data = append(data, b...)
		if len(data) > limit {
			return data[:limit], true, nil
		}
		switch {
		case errors.Is(err, io.EOF), err == nil && len(b) == 0:
			return data, false, nil
		case err != nil:
			return data, false, service.Named(err, "Read", path)
		}
	}
}
