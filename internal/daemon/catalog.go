package daemon

import (
	"context"

	"rnix/drivers/harness"
	"rnix/internal/service/catalog"
	"rnix/internal/service/paths"
	"rnix/vfs"
)

// startCatalog gives the services that say what there is to start agents with, and what the name space has, what they need of the others.
func startCatalog(d *Daemon, transports vfs.TransportFactory) {
	d.catalog = &catalog.Service{Profiles: d.profiles, Mounts: d.mounts, Callers: callers{d}, Transports: transports, Scratch: d.userScratch}
	d.paths = &paths.Service{Agents: d.kernel, Space: d.kernel.VFS(), Devices: d.devices, Profiles: d.profiles, Callers: callers{d}, Scratch: d.userScratch}
}

// clis knows the agents' command lines that run as processes.
type clis struct{ daemon *Daemon }

func (c clis) Dir(session string) string { return sessions{c.daemon}.dir(session) }

func (c clis) StateOf(session, workDir string) harness.StatePlace {
	return sessions{c.daemon}.stateOf(session, workDir)
}

func (c clis) MayAct(ctx context.Context) bool { return sessions{c.daemon}.mayAct(ctx) }
