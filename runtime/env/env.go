// Package env decides which variables a child of an agent may see. It owns the lists: the variables that
// never pass, those that everybody may see, those that a runner keeps to itself. It reads no environment and
// starts nothing: what there is, it is handed, and what it returns is the whole environment of a child.
//
// There are two ways to compose. Inherit begins with nothing and takes what is on a list, or named: that is the
// stronger one, and what this system uses for its own children. Composer and ComposeChildEnv begin with everything
// and take away what is on AgentEnvBlocklist: for command lines of agents that need what nobody can foresee.
//
// What is returned has to become the environment of the child as it is. Appending it to os.Environ() brings back all that
// was taken away.
package env

import (
	"maps"
	"slices"
	"strings"

	"rnix/agent"
)

// Composer puts together the environment of an agent's command line. The zero value and nil are ready to use.
type Composer struct {
	// Blocklist are the names that do not pass from the base. Nil means AgentEnvBlocklist; one that is empty but not nil
	// means none. What a runner keeps to itself does not pass in any case.
	Blocklist []string
}

// NewComposer returns a Composer with AgentEnvBlocklist.
func NewComposer() *Composer { return &Composer{} }

// Compose returns "NAME=value" lines, sorted by name, each name once: base without what is blocked, and over it the
// variables of spec, which may set a blocked name on purpose. A blocked name that base itself declares
// to be injected (InjectedEnvKeysVar) passes. Empty values are kept. Names and values that the system cannot hold are left
// out, as is in both what a runner keeps to itself (IsRunnerOnly).
func (c *Composer) Compose(base map[string]string, spec agent.Spec) []string {
	injected := InjectedEnvKeysFromMap(base)
	out := make(map[string]string, len(base)+len(spec.Env))
	for k, v := range base {
		if (!c.IsBlocked(k) || injected.Allows(k)) && inheritable(k) {
			out[k] = v
		}
	}
	maps.Copy(out, spec.Env)
	return lines(out)
}

// IsBlocked reports whether the base's variable of this very name does not pass. Case matters.
func (c *Composer) IsBlocked(key string) bool {
	if c == nil || c.Blocklist == nil {
		return slices.Contains(AgentEnvBlocklist, key)
	}
	return slices.Contains(c.Blocklist, key)
}

// ComposeChildEnv returns the environment of a child of parent, the environment of a process, with explicit over it,
// where later ones win. What comes from parent stands first and as it stood, without AgentEnvBlocklist (but for names that
// parent declares to be injected); explicit names follow, sorted, and may be blocked ones. What a runner keeps to itself
// passes from neither.
func ComposeChildEnv(parent []string, explicit ...map[string]string) []string {
	injected := InjectedEnvKeysFrom(parent)
	out := make([]string, 0, len(parent)+8)
	blocked := make(map[string]bool, len(AgentEnvBlocklist))
	for _, k := range AgentEnvBlocklist {
		blocked[k] = true
	}
	for _, kv := range parent {
		k, v, ok := strings.Cut(kv, "=")
		if ok && inheritable(k) && fits(k, v) && (!blocked[k] || injected.Allows(k)) {
			out = append(out, kv)
		}
	}
	over := map[string]string{}
	for _, m := range explicit {
		maps.Copy(over, m)
	}
	return append(out, lines(over)...)
}

// lines turns variables into lines, without what never passes.
func lines(vars map[string]string) []string {
	out := make([]string, 0, len(vars))
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		if fits(k, vars[k]) && !IsRunnerOnly(k) {
			out = append(out, k+"="+vars[k])
		}
	}
	return out
}

// fits reports whether an environment can hold a variable.
func fits(key, value string) bool {
	return key != "" && !strings.ContainsAny(key, "=\x00") && strings.IndexByte(value, 0) < 0
}

// ValidEnvKey reports whether key is a name that every shell takes: letters, digits and underscores, no digit first.
func ValidEnvKey(key string) bool {
	for i, r := range []byte(key) {
		if r != '_' && (r|0x20 < 'a' || r|0x20 > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return key != ""
}
