package daemon

import (
	"rnix/internal/service/billing"
)

// startBilling gives the service that knows what is used and what is left what it needs of the others.
func startBilling(d *Daemon) {
	b := d.billing
	b.Kernel, b.Index, b.Removed, b.Looks, b.Finder, b.Stored = d.kernel, d.journal.Index(), d.collector, d.looks, d.access, billing.Purses{Kernel: d.kernel, Stored: d.stored, Resumer: d.lifecycle.Resumer}
}
