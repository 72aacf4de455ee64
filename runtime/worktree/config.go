package worktree

import (
	"context"
	"slices"
	"strings"
)

// foreign is what the configuration of a repository itself, which everybody who works there can write,
// says about programs and remotes.
type foreign struct {
	quiet    []pair   // settings that switch its filters off
	shut     []pair   // settings without which a git that misses an object would run one of programs
	programs []string // keys that name a program that a fetch would run
	included []string // keys that include files under a condition: what these say is seen only where it holds
	remote   string   // the URL of origin
	// remotes are the URLs of all remotes, those for pushing too, by their names. One that is reached
	// through a program has one of the kind that helperURL knows.
	remotes   map[string][]string
	rewritten bool // it says that URLs mean others
}

// configOf reads the configuration of a repository.
func (r runner) configOf(ctx context.Context, where ...string) (foreign, error) {
	out, err := r.git(ctx, nil, append(slices.Clone(where), "config", "--show-scope", "-z", "--list")...)
	if err != nil {
		return foreign{}, err
	}
	f := parseConfig(string(out))
	f.quiet = append(f.quiet, f.shut...)
	return f, nil
}

// parseConfig reads what git config --show-scope -z --list says: scope, NUL, key, line end, value, NUL.
func parseConfig(out string) (f foreign) {
	words := strings.Split(out, "\x00")
	f.remotes = map[string][]string{}
	seen := map[string]bool{}
	protocols := []string{"protocol", "protocol.file", "protocol.git", "protocol.ssh", "protocol.http", "protocol.https"}
	for i := 0; i+1 < len(words); i += 2 {
		key, value, _ := strings.Cut(words[i+1], "\n")
		section, name := key, ""
		if dot := strings.LastIndexByte(key, '.'); dot >= 0 {
			section, name = key[:dot], key[dot+1:]
		}
		if key == "remote.origin.url" {
			f.remote = value
		}
		if remote, ok := strings.CutPrefix(section, "remote."); ok {
			switch name {
			case "url", "pushurl":
				f.remotes[remote] = append(f.remotes[remote], value)
			case "vcs":
				f.remotes[remote] = append(f.remotes[remote], value+"::")
			}
		}
		if words[i] != "local" && words[i] != "worktree" {
			continue
		}
		if strings.HasPrefix(section, "filter.") && slices.Contains([]string{"clean", "smudge", "process", "required"}, name) && !seen[section] {
			seen[section] = true
			f.quiet = append(f.quiet, pair{section + ".clean", ""}, pair{section + ".smudge", ""}, pair{section + ".process", ""}, pair{section + ".required", "false"})
		}
		if runsOnFetch(section, name, value) {
			f.programs = append(f.programs, key)
		}
		if strings.HasPrefix(section, "url.") && (name == "insteadof" || name == "pushinsteadof") {
			f.rewritten = true
		}
		if strings.HasPrefix(section, "includeif.") {
			f.included = append(f.included, key)
		}
		if strings.HasPrefix(section, "protocol.") {
			protocols = append(protocols, section)
		}
	}
	if len(f.programs) > 0 { // git fetches objects that are missing by itself, if a repository says so
		for _, p := range protocols {
			f.shut = append(f.shut, pair{p + ".allow", "never"})
		}
	}
	return f
}

// runsOnFetch reports whether a setting names a program that a fetch from origin runs.
func runsOnFetch(section, name, value string) bool {
	switch {
	case section == "core":
		return slices.Contains([]string{"sshcommand", "gitproxy", "alternaterefscommand", "askpass"}, name) && value != ""
	case section == "credential" || strings.HasPrefix(section, "credential."):
		return name == "helper" && value != ""
	case strings.HasPrefix(section, "remote."):
		return name == "uploadpack" || name == "vcs" || name == "url" && helperURL().MatchString(value)
	case strings.HasPrefix(section, "url."):
		return helperURL().MatchString(strings.TrimPrefix(section, "url."))
	case strings.HasPrefix(section, "protocol.ext"):
		return true
	}
	return false
}
