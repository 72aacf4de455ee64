package daemon

import (
	"rnix/internal/proc"
	"rnix/internal/service/confine"
	"rnix/internal/service/files"
	"rnix/types"
	"rnix/vfs"
)

// openSandbox gives what decides how children are confined what it needs, before the first one is started for a process.
func openSandbox(d *Daemon) {
	path, _ := d.opt.Lookup("PATH")
	*d.sandbox = confine.Service{
		Caller: func(pid types.PID) (vfs.Caller, bool) { return d.kernel.VFS().Caller(pid) },
		Made: func(id types.UUID, dir string) bool {
			return files.Within(dir, d.trees.Home(id)) || files.Within(dir, d.snapshots.ForkDir(id))
		},
		Over: func(id types.UUID) bool { i, ok := d.stored.Get(id); return !ok || i.Over() },
		Data: d.places.DataDir, Home: d.home, Path: path, Self: d.opt.Program, Start: d.procs.Start, Log: d.log,
	}
	for _, own := range ownPaths(d) {
		d.sandbox.Private = append(d.sandbox.Private, own.Path)
	}
	d.launcher.Spawner.Sandboxes = d.sandbox
	proc.Confine(d.procs, d.sandbox.Box)
}
