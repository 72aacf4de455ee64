package env

import (
	"maps"
	"slices"
	"strings"
)

// AgentEnvBlocklist are the variables of the host that an agent's command line does not inherit: keys of models, and what leads
// its requests elsewhere. A session may set them for itself. Matched exactly, case and all.
var AgentEnvBlocklist = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "OPENCLAW_GATEWAY_TOKEN",
	"RNIX_GATEWAY_UPSTREAM_API_KEY", "RNIX_GATEWAY_UPSTREAM_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY",
	"AMP_API_KEY", "RNIX_PI_KEY", "CODE_INTEL_HOST_JWT_SECRET", "RNIX_CREDENTIAL_CAPABILITY",
}

// The variables with a meaning of their own for those who compose.
const (
	// OwnerVar marks a child and what descends from it. Part of the on-disk format.
	OwnerVar = "RNIX_OWNER"
	// ChannelVar says to what works for a process over which descriptor it reaches the daemon of which data directory: "200:/DIR".
	ChannelVar = "RNIX_CHANNEL"
	// RoadVar says the same of an address on the loopback, for what has lost the descriptor: "127.0.0.1:PORT:/DIR".
	RoadVar = "RNIX_ROAD"
	// InjectedEnvKeysVar is a list of names, with commas, of blocked variables that a supervisor has put into the
	// environment on purpose. Nobody but the one who composes sees it.
	InjectedEnvKeysVar = "RNIX_INJECTED_ENV_KEYS"
	// SessionReadToken is not inherited; a session may set it for itself.
	SessionReadToken = "RNIX_SESSION_READ_TOKEN"
)

// runnerOnly are the variables that no environment is composed with, whoever sets them: what opens the runner's own doors. A
// daemon marks its children with OwnerVar, ChannelVar and RoadVar itself, behind that.
var runnerOnly = []string{OwnerVar, ChannelVar, RoadVar, InjectedEnvKeysVar, "RNIX_SESSION_TOKEN", "ATTACH_TOKEN", "ATTACH_TOKEN_FILE", "ATTACH_URL"}

// shimPrefix begins the names between a runner and what keeps a session alive for it.
const shimPrefix = "RNIX_SESSION_SHIM"

// hostOwned are the variables that the host may set and a work item may not.
var hostOwned = []string{"RNIX_CONFINEMENT", "RNIX_CONFINEMENT_READ", "RNIX_CONFINEMENT_READ_PATHS", "RNIX_DATA_DIR", "RNIX_API_URL"}

// IsRunnerOnly reports whether no environment is composed with a variable of this name, not even when it is set on purpose.
func IsRunnerOnly(key string) bool {
	return slices.Contains(runnerOnly, key) || strings.HasPrefix(key, shimPrefix)
}

// inheritable reports whether a variable may come down from above by itself.
func inheritable(key string) bool { return !IsRunnerOnly(key) && key != SessionReadToken }

// FilterRunnerOnly returns environ without what a runner keeps to itself, also where a name stands without a
// value. environ is not changed.
func FilterRunnerOnly(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return IsRunnerOnly(key)
	})
}

// FilterRunnerOnlyMap returns a copy of vars without what a runner keeps to itself; nil for nil.
func FilterRunnerOnlyMap(vars map[string]string) map[string]string {
	out := maps.Clone(vars)
	maps.DeleteFunc(out, func(key, _ string) bool { return IsRunnerOnly(key) })
	return out
}

// FilterHostOwnedMap returns a copy of the variables of a work item without those that only the host may set, and without
// names that are none: one such as "RNIX_CONFINEMENT=off" would set a variable behind its own name. Nil for nil.
func FilterHostOwnedMap(vars map[string]string) map[string]string {
	out := maps.Clone(vars)
	maps.DeleteFunc(out, func(key, _ string) bool { return !ValidEnvKey(key) || slices.Contains(hostOwned, key) })
	return out
}

// InjectedEnvKeySet are names of blocked variables that pass because a supervisor has put them there. The zero value is none.
type InjectedEnvKeySet map[string]bool

// ParseInjectedEnvKeys reads the value of InjectedEnvKeysVar. Spaces around names do not count, there are no patterns, and what is
// no name is left out.
func ParseInjectedEnvKeys(value string) InjectedEnvKeySet {
	set := InjectedEnvKeySet{}
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); ValidEnvKey(name) {
			set[name] = true
		}
	}
	return set
}

// InjectedEnvKeysFrom reads the set from an environment. If the variable is there more than once, the last one counts.
func InjectedEnvKeysFrom(environ []string) InjectedEnvKeySet {
	for _, kv := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(kv, InjectedEnvKeysVar+"="); ok {
			return ParseInjectedEnvKeys(value)
		}
	}
	return nil
}

// InjectedEnvKeysFromMap reads the set from variables.
func InjectedEnvKeysFromMap(vars map[string]string) InjectedEnvKeySet {
	return ParseInjectedEnvKeys(vars[InjectedEnvKeysVar])
}

// Allows reports whether the variable of this very name passes. What a runner keeps to itself never does.
func (s InjectedEnvKeySet) Allows(key string) bool { return s[key] && !IsRunnerOnly(key) }
