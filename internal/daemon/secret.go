package daemon

import (
	"rnix/internal/redact"
	"rnix/runtime/env"
)

// learn notes secrets before anything is done with them, so that they are in nothing that is written from now on. They are
// kept for as long as the daemon lives: what one process has been told, another can say.
func learn(d *Daemon, secrets []env.Secret) {
	set := make([]redact.Secret, len(secrets))
	for i, s := range secrets {
		set[i] = redact.Secret(s)
	}
	if n := d.secrets.Add(set...); n > 0 {
		d.log.Debug("secrets are kept out of records and logs", "more", n)
	}
}

// secretsOf returns what of an environment is secret by its name.
func secretsOf(environ []string) []env.Secret { return env.Secrets(environ) }
