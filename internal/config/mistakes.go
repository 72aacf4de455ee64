package config

import (
	"slices"
	"strings"
)

// fromEnvironment is the File of problems in variables.
const fromEnvironment = "environment"

// harmless are the sections of config.yaml whose mistakes loosen no limit and give no right.
var harmless = []string{"checkpoint", "gc"}

// atStart are the keys that the daemon reads when it starts, and then not again.
var atStart = []string{"data_dir", "durability", "limits", "heartbeat", "snapshots", "daemon", "disk"}

// Mistakes returns the problems because of which no agent may start: those that may have dropped a limit, a right,
// a bound of the trust in a project or of a sandbox. Left out are warnings, what is Contained, and mistakes in the
// sections checkpoint and gc; a provider with a mistake in its own entry cannot be used, and keeps no other from it. The files have to be mended and loaded again.
func Mistakes(lists ...Problems) Problems {
	var out Problems
	for _, p := range slices.Concat(lists...) {
		if !p.Warning && !p.Contained && !concerns(&p, harmless) {
			out = append(out, p)
		}
	}
	return out
}

// MistakesAtStart returns the Mistakes that may concern what a daemon reads when it starts, such as limits: those in
// files, and those in the variables of such keys. A daemon that has any must be restarted before an agent starts.
func (c *Config) MistakesAtStart() Problems {
	return slices.DeleteFunc(Mistakes(c.Problems), func(p Problem) bool { return p.File == fromEnvironment && !concerns(&p, atStart) })
}

// RetentionUnknown returns the problems because of which it is not known how long the user wants to keep histories;
// none may be archived or deleted then.
func (c *Config) RetentionUnknown() Problems {
	out := c.MistakesAtStart()
	for _, p := range c.Problems.Errors() {
		if !p.Contained && concerns(&p, []string{"gc"}) && !concerns(&p, []string{"gc.interval_seconds"}) {
			out = append(out, p)
		}
	}
	return out
}

// concerns reports whether a problem is one of keys or of what is in them, in a file or as a variable.
func concerns(p *Problem, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		if p.File == fromEnvironment {
			return p.Key == variable(key) || strings.HasPrefix(p.Key, variable(key)+"_")
		}
		return len(Problems{*p}.Under(key)) > 0
	})
}
