package config

import (
	"os"
	"path/filepath"
	"strings"
)

// Available returns a function that says whether a provider could be used with an environment, and
// why, or why not and how to mend it. It looks at variables and files only; nothing is started or
// contacted.
func Available(lookup Lookup) func(Provider) (bool, string) {
	s := Sources{Lookup: lookup}
	return func(p Provider) (bool, string) {
		if p.Problem != "" {
			return false, p.Problem
		}
		switch p.Driver {
		case DriverOffline:
			return true, "always there; it is not a language model"
		case DriverReplay:
			if st, err := os.Stat(p.Script); err != nil || !st.Mode().IsRegular() {
				return false, "the script " + p.Script + " is missing"
			}
			return true, "answers come from " + p.Script
		case DriverClaude, DriverCursor, DriverClaudeAgent, DriverCodexAgent, DriverOpencode:
			if path, ok := Executable(p, lookup); ok {
				return true, "found " + path
			}
			return false, strings.Join(commands(p), " or ") + " is not in PATH; install it, or set command for " + p.Name + " in providers.yaml"
		}
		switch {
		case p.APIKeyEnv != "" && s.env(p.APIKeyEnv) != "":
			return true, p.APIKeyEnv + " is set"
		case p.APIKeyFile != "":
			if _, err := ReadKey(p.APIKeyFile); err != nil {
				return false, err.Error()
			}
			return true, "its key is in " + p.APIKeyFile
		case len(p.APIKeyCommand) > 0: // it is run when the key is needed
			return true, "its key is printed by " + p.APIKeyCommand[0]
		case p.BaseURL != "" && p.Driver != DriverAnthropic:
			return true, "the server " + p.BaseURL + " is configured" // a local server needs no key
		case p.APIKeyEnv == "":
			return false, "it has no key; set api_key_env or api_key_file for " + p.Name + " in providers.yaml"
		}
		return false, p.APIKeyEnv + " is not set; export it, or set api_key_file for " + p.Name + " in providers.yaml"
	}
}

// Executable returns the absolute path of a CLI provider's program: found in the PATH of the given
// environment, or in ~/.local/bin, where the vendors' installers put it.
func Executable(p Provider, lookup Lookup) (string, bool) {
	s := Sources{Lookup: lookup}
	dirs := filepath.SplitList(s.env("PATH"))
	if home := s.env("HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, ".local", "bin"))
	}
	for _, name := range commands(p) {
		if filepath.IsAbs(name) {
			return name, executable(name)
		}
		for _, dir := range dirs {
			// A relative element would make the answer depend on a directory that a project controls.
			if path := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(path) {
				return path, true
			}
		}
	}
	return "", false
}

// commands are the names that a provider's program may have, the surest first.
func commands(p Provider) []string {
	switch {
	case p.Command != "":
		return []string{p.Command}
	case p.Driver == DriverCursor:
		return []string{"cursor-agent", "agent"}
	case p.Harness() != "":
		return []string{p.Harness()}
	}
	return []string{"claude"}
}

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}
