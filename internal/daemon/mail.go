package daemon

import (
	"rnix/internal/service/asks"
	"rnix/internal/service/mail"
)

// startMail gives the services that carry messages, and what persons are asked, what they need of the others.
func startMail(d *Daemon) {
	*d.mail = mail.Service{Kernel: d.kernel, Stored: mail.Letters{Stored: d.stored, Secrets: d.secrets}, Finder: d.access, Secrets: d.secrets}
	d.asks.Kernel, d.asks.Stored, d.asks.Index, d.asks.Finder, d.asks.Numbers, d.asks.Secrets = d.kernel, asks.Histories{Stored: d.stored}, d.journal.Index(), d.access, d.journal.Asks, d.secrets
}
