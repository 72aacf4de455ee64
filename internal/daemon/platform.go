package daemon

import (
	"context"
	"path/filepath"
	"time"

	"rnix/internal/config"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/service/platform"
	"rnix/internal/step"
	"rnix/types"
)

// newPlatform makes the service that keeps the sessions of a platform, before the kernel: a start removes histories, and with them what
// a platform was to be told.
func newPlatform(d *Daemon) *platform.Service {
	return platform.New(filepath.Join(d.places.DataDir, "sessions"))
}

// startPlatform gives the service that keeps the sessions of a platform what it needs of the others.
func startPlatform(d *Daemon) {
	p := d.platforms
	p.Kernel, p.Processes, p.Journal, p.Index, p.Events, p.Log = d.kernel, tenants{d}, d.journal, d.journal.Index(), d.events, d.log
}

// tellPlatform has the platform told what an earlier daemon has left to tell.
func tellPlatform(d *Daemon) {
	for _, line := range d.platforms.TakeUp(&d.profiles.Own().Platform, config.Lookup(d.opt.Lookup)) {
		d.note("%s", line)
	}
}

// requestOf is what a process with a profile asks of a platform; provider is that of its model.
func requestOf(p *profile.Profile, provider string) platform.Request {
	return platform.Request{Session: p.Member.Session, Issue: p.Member.Issue, Config: &p.Config.Platform, Lookup: p.Lookup, Provider: provider}
}

// memberships opens the sessions that a platform has for processes.
type memberships struct{ service *platform.Service }

func (m memberships) Open(ctx context.Context, id types.UUID, p *profile.Profile, provider string) error {
	return m.service.Open(ctx, id, requestOf(p, provider))
}

func (m memberships) Begun(id types.UUID) { m.service.Begun(id) }

func (m memberships) Ended(id types.UUID) { m.service.Ended(id) }

// tenants are the processes that have sessions of a platform.
type tenants struct{ daemon *Daemon }

func (t tenants) Say(ctx context.Context, id types.UUID, key, text string) error {
	_, _, err := t.daemon.mail.Carry(ctx, id, step.Mail{Kind: step.MailSteer, Key: key, Text: text, Time: time.Now()}, true)
	return err
}

func (t tenants) Bound(id types.UUID, left time.Duration) { proc.Lease(t.daemon.procs, id, left) }

func (t tenants) Confirmed(id types.UUID, at int64) { t.daemon.clis.Confirmed(id, at) }
