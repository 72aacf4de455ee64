package daemon

import (
	"rnix/drivers/fs"
	"rnix/internal/proc"
	"rnix/internal/service/confine"
	"rnix/internal/service/files"
	"rnix/types"
	"rnix/vfs"
)

// openSandbox gives what decides how children are confined what it needs, before the first one is started for a process.
func openSandbox(d *Daemon, own *fs.Own) {
	*d.sandbox = confine.Service{
		Caller: func(pid types.PID) (vfs.Caller, bool) { return d.kernel.VFS().Caller(pid) },
		Kernel: func() confine.Kernel { return d.kernel }, Made: files.Made(d.trees, d.snapshots), Private: own.Paths(), Finder: d.access, Index: d.journal.Index(),
		Own: confine.Own{Data: d.places.DataDir, Over: func(id types.UUID) bool { i, ok := d.stored.Get(id); return !ok || i.Over() }, Log: d.log}, Home: d.home, Lookup: d.opt.Lookup, Self: d.opt.Program, Start: d.procs.Start, Refusals: confine.Refusals{Events: d.events}, Users: d.profiles, Network: d.opt.Network, Enforced: func() proc.Enforced { return proc.EnforcedBy(d.procs) },
	}
	d.launcher.Spawner.Sandboxes, own.Writes = d.sandbox, d.sandbox.Writes
	proc.Confine(d.procs, d.sandbox.Box)
	proc.Bound(d.procs, confine.BoundsOf(d.sandbox), d.sandbox.Refusals.Held)
}
