package daemon

import "rnix/internal/service/mail"

// startMail gives the service that carries messages what it needs of the others.
func startMail(d *Daemon) {
	m := d.mail
	m.Kernel, m.Stored, m.Finder, m.Secrets = d.kernel, mail.Letters{Stored: d.stored, Secrets: d.secrets}, d.access, d.secrets
}
