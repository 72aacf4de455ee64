package daemon

import (
	"context"
	"time"

	"rnix/internal/service"
	"rnix/ipc"
)

// wire returns where services register what they answer: each call counts as work, and its error is told in the words of whoever called.
func wire(d *Daemon, s *ipc.Server) *service.Wire {
	return &service.Wire{Server: s, Around: func(req any, call func() error) error {
		d.idle.Begin()
		defer func() { d.idle.End(time.Now()) }()
		return service.InTheirWords(d.names.Resolve, req, onReadOnly(d, call()))
	}}
}

// stopWhenIdle stops the daemon when it has had nothing to do for long enough: no processes, paused
// ones and those that are to be woken included, no calls, and no MCP server that a person has mounted.
func stopWhenIdle(ctx context.Context, d *Daemon) {
	busy := func() bool {
		return len(d.kernel.Proc().Processes()) > 0 || d.auto.Max > 0 && d.journal.Index().Sleeps() || len(d.mounts.List()) > 0
	}
	if d.idle.Wait(ctx, d.opt.Idle, busy) {
		d.log.Info("idle", "for", d.opt.Idle)
		d.stopper.is("RNIX_IDLE")
		d.stop()
	}
}
