package daemon

import (
	"os"
	"strings"

	"rnix/agent"
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

// secrets returns what the configuration makes secret, whatever it is called: the keys of providers, and what is handed to them and to MCP
// servers in headers and variables.
func (p *profile) secrets() []env.Secret {
	var out []env.Secret
	for _, pr := range p.providers.List {
		if pr.APIKeyEnv != "" {
			key, ok := p.lookup(pr.APIKeyEnv)
			if !ok || key == "" {
				key = os.Getenv(pr.APIKeyEnv)
			}
			out = append(out, env.Secret{Name: pr.APIKeyEnv, Value: key})
		}
		out = append(out, env.Headers(pr.Headers)...)
	}
	for _, s := range p.servers {
		if s.Scope == agent.ScopeProject && !p.trust { // it is not started, and a stranger's words would be taken out of every text
			continue
		}
		out = append(out, env.Granted(s.Env)...)
		out = append(out, env.Headers(s.Headers)...)
		out = append(out, env.SecretIn(s.Name, s.URL)...)
		out = append(out, env.InWords(s.Name, s.URL)...)
		out = append(out, env.InWords(s.Name, strings.Join(append([]string{s.Command}, s.Args...), " "))...)
	}
	return out
}
