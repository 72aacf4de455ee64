package config

import (
	"slices"
	"time"
)

// How long a key is used that a command has printed, where nothing is said, and at most.
const (
	DefaultKeyTTL = 5 * time.Minute
	maxKeyTTL     = 24 * time.Hour
)

// keyCommand reads the command that prints the key of a provider.
func (r reader) keyCommand(key string, e providerEntry, p *Provider) {
	d := r.d
	at, ttl := key+".api_key_command", key+".api_key_ttl"
	if d.Has(at) && len(d.Problems().Under(at)) == 0 {
		switch {
		case len(e.APIKeyCommand) == 0 || e.APIKeyCommand[0] == "":
			d.Problemf(at, "is empty; write a program and its arguments, such as [secret-tool, lookup, service, rnix]")
		case !r.shared:
			p.APIKeyCommand, p.APIKeyTTL = slices.Clone(e.APIKeyCommand), DefaultKeyTTL
			p.APIKeyCommand[0] = r.home(e.APIKeyCommand[0])
		}
	}
	switch v := time.Duration(e.APIKeyTTL); {
	case !d.Has(ttl) || len(d.Problems().Under(ttl)) > 0:
	case !d.Has(at):
		d.Warnf(ttl, "has no effect without api_key_command; remove it")
	case v < time.Second || v > maxKeyTTL:
		d.Problemf(ttl, "is %s; from 1s to 24h is possible", v)
	default:
		p.APIKeyTTL = v
	}
}
