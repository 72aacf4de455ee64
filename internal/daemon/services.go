package daemon

import (
	"rnix/internal/service"
	"rnix/vfs"
)

// startServices gives each service what it needs of the others.
func startServices(d *Daemon, transports vfs.TransportFactory) {
	startWatch(d)
	startFlows(d)
	startLifecycle(d)
	startHistories(d)
	startBilling(d)
	startFiles(d)
	d.storage.Kernel = d.kernel
	startMail(d)
	d.groups.Kernel, d.groups.Callers = d.kernel, d.access
	startCatalog(d, transports)
	startControl(d)
	startPlatform(d)
}

// registerServices registers what the services answer.
func registerServices(d *Daemon, on *service.Wire) {
	d.lifecycle.Register(on)
	d.clis.Register(on)
	d.watch.Register(on)
	d.histories.Register(on)
	d.billing.Register(on)
	d.files.Register(on)
	d.storage.Register(on)
	d.mail.Register(on)
	d.asks.Register(on)
	d.notices.Register(on)
	d.groups.Register(on)
	d.catalog.Register(on)
	d.paths.Register(on)
	d.control.Register(on)
	d.sandbox.Register(on)
	d.flows.Register(on)
}
