package proc

import (
	"strings"

	"rnix/runtime/env"
)

// ComposeEnv returns the environment of an agent's children: see env.Inherit, which decides.
func ComposeEnv(source []string, allowExtra []string, add map[string]string) []string {
	return env.Inherit(source, allowExtra, add)
}

// childEnv returns the environment of a child, the only place where one is made: what is not blocked, its credentials, its mark.
func childEnv(spec Spec, token string) []string {
	out := make([]string, 0, len(spec.Env)+len(spec.Credentials)+1)
	for _, kv := range spec.Env {
		if name, _, ok := strings.Cut(kv, "="); ok && (!env.Blocked(name) || told(spec.Kind, name)) {
			out = append(out, kv)
		}
	}
	for _, kv := range spec.Credentials {
		if name, _, ok := strings.Cut(kv, "="); ok && name != "" && !env.IsRunnerOnly(name) {
			out = append(out, kv)
		}
	}
	return append(out, env.OwnerVar+"="+token)
}

// told reports whether a variable is how a child of ours is told what to do: nobody else starts a git of
// this kind, so what is in its environment was written for it and is not inherited.
func told(kind Kind, name string) bool {
	return kind == KindGit && (strings.HasPrefix(name, "GIT_CONFIG_") || name == "GIT_INDEX_FILE" || name == "GIT_OBJECT_DIRECTORY" || name == "GIT_ALTERNATE_OBJECT_DIRECTORIES" || name == "GIT_ASKPASS" || name == "GIT_ALLOW_PROTOCOL")
}
