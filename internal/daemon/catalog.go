package daemon

import (
	"rnix/internal/service/agentcli"
	"rnix/internal/service/catalog"
	"rnix/internal/service/paths"
	"rnix/vfs"
)

// startCatalog gives the services that say what there is to start agents with, and what the name space has, what they need of the others.
func startCatalog(d *Daemon, transports vfs.TransportFactory) {
	d.catalog = &catalog.Service{Profiles: d.profiles, Devices: d.devices, Models: d.models, Mounts: d.mounts, Mounter: d.kernel, Callers: d.access, Names: d.names, Transports: transports, Scratch: d.userScratch, Secrets: d.secrets}
	d.histories.Encoder, d.paths = d.catalog, &paths.Service{Agents: d.kernel, Space: d.kernel.VFS(), Devices: d.devices, Profiles: d.profiles, Callers: d.access, Scratch: d.userScratch}
}

// newCLIs makes the service that looks after agent CLIs, before the kernel.
func newCLIs(d *Daemon) *agentcli.Service {
	return &agentcli.Service{Index: d.journal.Index(), Trees: d.trees, Platforms: d.platforms, Histories: d.journal.Dir, Program: d.opt.Program, Socket: d.places.Socket, Boxes: d.sandbox, Version: d.opt.Version, Roads: d.channels,
		Secrets: d.secrets, Note: d.note, Log: d.log}
}
