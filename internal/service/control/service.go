// Package control is what is asked of the daemon itself: whether it is there, how it is, and that it stop.
package control

import (
	"context"
	"os"
	"runtime"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Service answers what concerns the daemon itself. Its fields are set before it is registered.
type Service struct {
	Version string
	Daemon  Daemon
	Kernel  Kernel
	Index   Index
	Callers Callers
}

// Daemon is the daemon as a whole.
type Daemon interface {
	// Broken returns why the daemon cannot start, if that is so.
	Broken(ctx context.Context) error
	// Outdated reports whether the daemon starts nothing, because of a mistake in a configuration that has been corrected meanwhile.
	Outdated() bool
	// Stopping reports whether the daemon is being stopped.
	Stopping() bool
	// Stop has the daemon stop, when what is under way has ended, such as the call of who asked; by says in words what stops it.
	Stop(by string, asked *ipc.Peer)
	// Status is what its parts say of themselves.
	Status(ctx context.Context) ipc.Status
}

// Kernel has the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	List() []kernel.Info
}

// Index knows the histories on disk. Each store.Index is one.
type Index interface {
	List() []step.ProcInfo
}

// Callers knows who asks.
type Callers interface {
	// AgentOf returns inside which process a caller runs.
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
}

// Register registers what the service answers.
func (c *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.Ping, c.ping)
	service.Handle(on, ipc.DaemonStatus, c.status)
	service.Handle(on, ipc.Shutdown, c.shutdown)
}

// ping says who answers. A daemon that can start nothing, while the next one could, makes room for that.
func (c *Service) ping(_ context.Context, peer *ipc.Peer, _ ipc.Empty) (ipc.PingResponse, error) {
	if c.Daemon.Outdated() && !c.Daemon.Stopping() {
		c.Daemon.Stop("a restart, since its configuration was corrected", peer)
	}
	return ipc.PingResponse{PID: os.Getpid(), Version: c.Version, Stopping: c.Daemon.Stopping()}, nil
}

func (c *Service) status(ctx context.Context, _ *ipc.Peer, _ ipc.Empty) (ipc.Status, error) {
	if err := c.Daemon.Broken(ctx); err != nil {
		return ipc.Status{}, err
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	s := c.Daemon.Status(ctx)
	s.PID, s.Version, s.Goroutines, s.HeapBytes = os.Getpid(), c.Version, runtime.NumGoroutine(), mem.HeapAlloc
	count(&s, c.Kernel.List(), c.Index.List())
	return s, nil
}

// count counts processes: those that live, and those that are only on disk.
func count(s *ipc.Status, live []kernel.Info, stored []step.ProcInfo) {
	lives := make(map[types.UUID]bool, len(live))
	for i := range live {
		p := &live[i]
		lives[p.UUID] = true
		if p.Suspended {
			s.Suspended++
		} else if p.State < types.StateZombie {
			s.Running++
		}
	}
	for i := range stored {
		s.Stored++
		if p := &stored[i]; p.Suspended && !lives[p.UUID] {
			s.Suspended++
		}
	}
}

// shutdown stops the daemon after its answer is on its way.
func (c *Service) shutdown(_ context.Context, peer *ipc.Peer, _ ipc.Empty) (ipc.Empty, error) {
	if owner, inside := c.Callers.AgentOf(peer); inside {
		return ipc.Empty{}, service.Outside("Shutdown", owner, "not stop the daemon")
	}
	c.Daemon.Stop("rnix daemon stop", peer)
	return ipc.Empty{}, nil
}
