package profile

import (
	"os"
	"strings"

	"rnix/agent"
	"rnix/internal/sandbox"
	"rnix/runtime/env"
)

// secrets returns what the configuration makes secret, whatever it is called: the keys of providers, and what is handed to them and to MCP
// servers in headers and variables.
func (p *Profile) secrets() []env.Secret {
	var out []env.Secret
	for _, pr := range keyed(p) {
		if pr.APIKeyEnv != "" {
			key, ok := p.Lookup(pr.APIKeyEnv)
			if !ok || key == "" {
				key = os.Getenv(pr.APIKeyEnv)
			}
			out = append(out, env.Secret{Name: pr.APIKeyEnv, Value: key})
		}
		out = append(out, env.Headers(pr.Headers)...)
	}
	for _, s := range p.Servers {
		if s.Scope == agent.ScopeProject && !p.Trust { // it is not started, and a stranger's words would be taken out of every text
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

// keysHidden hides the files with keys of providers from what runs in the sandbox.
func keysHidden(p *Profile) sandbox.Settings {
	var s sandbox.Settings
	for _, pr := range keyed(p) {
		if file := pr.APIKeyFile; file != "" {
			s.Paths.Hide = append(s.Paths.Hide, file)
		}
	}
	return s
}
