package daemon

import "rnix/internal/service/histories"

// startHistories gives the service that shows what processes have done what it needs of the others.
func startHistories(d *Daemon) {
	d.histories = &histories.Service{Journal: d.journal, Index: d.journal.Index(), Kernel: d.kernel, Archive: d.collector, Finder: d.access, Looks: d.looks, Log: d.log}
}
