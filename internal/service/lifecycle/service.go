package lifecycle

import (
	"context"

	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
)

// Service answers what starts, resumes, forks, renames, waits for and signals processes.
type Service struct {
	Deps
	Resumer *Resumer
	// Heartbeat is how the kernel looks for processes that make no progress.
	Heartbeat kernel.Heartbeat
	signals   *signaller
	resumes   *resumes
}

// New makes the service.
func New(d Deps) *Service {
	chain := &Resumer{Kernel: d.Kernel, Stored: d.Stored, Launcher: d.Launcher, Log: d.Log}
	return &Service{
		Deps: d, Resumer: chain, signals: &signaller{Names: d.Names, Access: d.Access, Stored: d.Stored, Log: d.Log, Kernel: d.Kernel, Ground: d.Ground},
		resumes: &resumes{
			Names: d.Names, Access: d.Access, Stored: d.Stored, Launcher: d.Launcher, Profiles: d.Profiles, Seq: d.Seq, Kernel: d.Kernel, Ground: d.Ground, Begin: d.Begin, Auto: d.Auto, chain: chain,
			forks: &forks{Stored: d.Stored, Launcher: d.Launcher, Files: d.Files, Ground: d.Ground, Begin: d.Begin, Names: d.Names},
		},
	}
}

// Register registers what the service answers.
func (d *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.Spawn, d.spawn)
	service.Handle(on, ipc.Wait, d.wait)
	service.Handle(on, ipc.SameCaller, d.sameCaller)
	service.Handle(on, ipc.Signal, func(ctx context.Context, peer *ipc.Peer, req ipc.SignalRequest) (ipc.SignalResponse, error) {
		return d.signals.send(ctx, peer, "Signal", req, false)
	})
	service.Handle(on, ipc.SignalTree, func(ctx context.Context, peer *ipc.Peer, req ipc.SignalRequest) (ipc.SignalResponse, error) {
		return d.signals.send(ctx, peer, "SignalTree", req, true)
	})
	service.Handle(on, ipc.Resume, d.resumes.resume)
	service.Handle(on, ipc.ListResumable, d.list)
	service.Handle(on, ipc.Rename, d.rename)
	service.Handle(on, ipc.Compact, d.compact)
	service.Handle(on, ipc.Heartbeat, d.beats)
}
