package profile

import (
	"slices"
	"time"

	"rnix/internal/config"
	"rnix/internal/step"
)

// There reports whether the provider of a history can be used with what the daemon has by itself: its environment, files and commands.
func (r *Reader) There(was *step.Settled) bool {
	p, pr := r.providerOf(was)
	if pr == nil {
		return false
	}
	if ok, _ := p.Available(*pr); !ok {
		return false
	}
	if pr.APIKeyEnv == "" {
		return true
	}
	if v, ok := p.Lookup(pr.APIKeyEnv); ok && v != "" {
		return true
	}
	own := printerOf(p, pr.APIKeyEnv)
	return own != nil && p.keys.Good(own, p.Env)
}

// KeySource names the command that prints the key for which a history waits; empty = none does.
func (r *Reader) KeySource(was *step.Settled) string {
	p, pr := r.providerOf(was)
	if pr == nil || pr.APIKeyEnv == "" {
		return ""
	}
	if own := printerOf(p, pr.APIKeyEnv); own != nil {
		return commandOf(own)
	}
	return ""
}

// KeyMoved returns when a source has brought a key last that was not refused, or was to be asked anew; zero = never.
func (r *Reader) KeyMoved(source string) time.Time {
	if r.Keys == nil {
		return time.Time{}
	}
	r.Keys.mu.Lock()
	one := r.Keys.known[source]
	r.Keys.mu.Unlock()
	if one == nil {
		return time.Time{}
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.moved
}

// providerOf returns the configuration with which a history is resumed without a client, and its provider; nil = there is none.
func (r *Reader) providerOf(was *step.Settled) (*Profile, *config.Provider) {
	set := SettingsIn(was)
	p, err := r.Read(set.Cwd, nil, set.Trust)
	if err != nil {
		return nil, nil
	}
	i := slices.IndexFunc(p.Providers.List, func(pr config.Provider) bool { return pr.Name == was.Provider })
	if i < 0 {
		return p, nil
	}
	return p, &p.Providers.List[i]
}
