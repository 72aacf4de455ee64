package config

import (
	"slices"
	"strings"

	"rnix/internal/yamlfile"
)

// concealing are the keys that say what is hidden from agents, whichever provider they use. A mistake in one is none of its provider alone.
var concealing = []string{"api_key_env", "api_key_file", "headers"}

// concealingWords are in the names that other programs give such keys (env_key, http_headers, token_file).
var concealingWords = []string{"key", "env", "header", "token", "secret", "auth", "pass", "cred", "file"}

// conceals reports whether a mistake in an entry may be about what is hidden from agents, be it that the key is mistyped or that of another program.
func conceals(p *Problem, entry string) bool {
	rest := strings.TrimPrefix(p.Key, entry+".")
	if strings.HasPrefix(p.Message, "merge keys") || strings.HasPrefix(p.Message, "a key must be a text") { // which hold any
		return true
	}
	if strings.HasPrefix(p.Message, "unknown key") && slices.ContainsFunc(concealingWords, func(w string) bool { return strings.Contains(strings.ToLower(rest), w) }) {
		return true
	}
	key, _, _ := strings.Cut(rest, ".")
	key, _, _ = strings.Cut(key, "[")
	return slices.Contains(concealing, key) || !slices.Contains(specialKeys, key) && yamlfile.Nearest(key, concealing) != ""
}

// blame makes a provider one that cannot be used, because of a mistake in its entry in a file. It is named where one is asked for, and keeps no agent from
// starting that uses another.
func (p *Provider) blame(d *yamlfile.Doc, entry string) {
	bad := d.Problems().Under(entry).Errors()
	if !p.Wrong {
		p.Problem = bad[0].String()
	}
	for i := range bad {
		if !bad[i].Contained { // else it was thought of, such as a variable that is not set
			if !p.Wrong {
				p.Problem, p.Wrong = bad[i].String(), true
			}
		}
	}
	d.Contain(func(at *Problem) bool {
		return len(Problems{*at}.Under(entry)) > 0 && !conceals(at, entry)
	})
}

// blame does so for a provider that there is already, of this file (fresh) or an earlier one, where an entry would have changed it. What a project may not say
// changes nothing, and is no reason.
func (p *Providers) blame(d *yamlfile.Doc, entry string, fresh []Provider, name string) {
	if slices.ContainsFunc(concealing, func(key string) bool { return d.Has(entry + "." + key) }) {
		return // nothing of this entry counts, so what it would have hidden is not known
	}
	if !slices.ContainsFunc(d.Problems().Under(entry).Errors(), func(at Problem) bool { return !at.Contained }) {
		return
	}
	for i := range fresh {
		if fresh[i].Name == name {
			fresh[i].blame(d, entry)
			return
		}
	}
	if have := p.find(name); have != nil {
		have.blame(d, entry)
	}
}

// nameKey gives the key of a provider a name, wherever one is asked for.
func (p *Provider) nameKey() {
	if (p.APIKeyFile != "" || len(p.APIKeyCommand) > 0) && p.APIKeyEnv == "" {
		p.APIKeyEnv = strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_")) + "_API_KEY"
	}
}
