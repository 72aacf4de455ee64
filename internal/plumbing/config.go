package plumbing

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ListConfig are the arguments of the git whose output ParseConfig reads.
func ListConfig() []string { return []string{"config", "--show-scope", "-z", "--list"} }

// Entry is one line of a configuration.
type Entry struct {
	Scope, Key string
	Value      string // "" also of a key without a value, which git takes for true
	Text       string // key and value as git writes them
}

// Local reports whether the repository itself says so, and not the configuration of the user or the machine: everybody who works there can write it.
func (e Entry) Local() bool { return e.Scope == "local" || e.Scope == "worktree" }

// Section returns the part of the key before its last dot, such as filter.lfs; "" if it has none.
func (e Entry) Section() string { return e.Key[:max(strings.LastIndexByte(e.Key, '.'), 0)] }

// Name returns the part of the key behind its last dot.
func (e Entry) Name() string { return e.Key[strings.LastIndexByte(e.Key, '.')+1:] }

// Config is a configuration as a git sees it: what comes later goes before.
type Config []Entry

// ParseConfig reads what ListConfig gives: scope, NUL, key, line end, value, NUL.
func ParseConfig(out []byte) (c Config) {
	for f := Records(out); len(f) > 1; f = f[2:] {
		key, value, _ := strings.Cut(f[1], "\n")
		c = append(c, Entry{Scope: f[0], Key: key, Value: value, Text: f[1]})
	}
	return c
}

// Get returns the value of a key, which is in lower case but for the name of a subsection. ok is false if nothing sets it.
func (c Config) Get(key string) (value string, ok bool) {
	for _, e := range slices.Backward(c) {
		if e.Key == key {
			return e.Value, true
		}
	}
	return "", false
}

// Says reports whether a key has one of some values, in whatever case. A key without a value is true.
func (c Config) Says(key string, values ...string) bool {
	for _, e := range slices.Backward(c) {
		if e.Key == key {
			return slices.Contains(values, strings.ToLower(e.Value)) || e.Text == key && slices.Contains(values, "true")
		}
	}
	return false
}

// Local returns the entries of the repository itself.
func (c Config) Local() Config {
	return slices.DeleteFunc(slices.Clone(c), func(e Entry) bool { return !e.Local() })
}

// Filters returns the entries that name one of some programs of a filter, such as clean.
func (c Config) Filters(programs ...string) Config {
	return slices.DeleteFunc(slices.Clone(c), func(e Entry) bool {
		return !strings.HasPrefix(e.Section(), "filter.") || !slices.Contains(programs, e.Name())
	})
}

// filterOff returns the settings that switch a filter off.
func filterOff(section string) []Setting {
	return []Setting{{section + ".clean", ""}, {section + ".smudge", ""}, {section + ".process", ""}, {section + ".required", "false"}}
}

// FiltersOff returns the settings that switch off each filter of which anything is said.
func (c Config) FiltersOff() (off []Setting) {
	seen := map[string]bool{}
	for _, e := range c {
		if section := e.Section(); strings.HasPrefix(section, "filter.") && !seen[section] {
			seen[section] = true
			off = append(off, filterOff(section)...)
		}
	}
	return off
}

// MergesOff returns the settings with which each way of merging of which anything is said makes a conflict.
func (c Config) MergesOff() (off []Setting) {
	seen := map[string]bool{}
	for _, e := range c {
		if section := e.Section(); strings.HasPrefix(section, "merge.") && !seen[section] {
			seen[section] = true
			off = append(off, Setting{section + ".driver", "false"})
		}
	}
	return off
}

// HelperURL matches a URL that is reached through a program.
var HelperURL = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9+.-]*::`) })

// RunsOnFetch reports whether an entry names a program that a fetch from origin runs.
func (e Entry) RunsOnFetch() bool {
	section, name := e.Section(), e.Name()
	switch {
	case section == "core":
		return slices.Contains([]string{"sshcommand", "gitproxy", "alternaterefscommand", "askpass"}, name) && e.Value != ""
	case section == "credential" || strings.HasPrefix(section, "credential."):
		return name == "helper" && e.Value != ""
	case strings.HasPrefix(section, "remote."):
		return name == "uploadpack" || name == "vcs" || name == "url" && HelperURL().MatchString(e.Value)
	case strings.HasPrefix(section, "url."):
		return HelperURL().MatchString(strings.TrimPrefix(section, "url."))
	case strings.HasPrefix(section, "protocol.ext"):
		return true
	}
	return false
}

// RunsProgram reports whether git may run a program because of an entry, or read more settings.
func (e Entry) RunsProgram() bool {
	section, name, value := e.Section(), e.Name(), e.Value
	kind, _, _ := strings.Cut(section, ".")
	in := func(names ...string) bool { return slices.Contains(names, name) }
	switch kind {
	case "include", "includeif":
		return true
	case "core":
		return name == "fsmonitor" && value != "true" && value != "false" ||
			in("hookspath", "sshcommand", "gitproxy", "pager", "editor", "askpass", "alternaterefscommand")
	case "alias":
		return strings.HasPrefix(value, "!")
	case "pager":
		return value != "true" && value != "false"
	case "submodule":
		return name == "update" && strings.HasPrefix(value, "!")
	case "remote":
		return in("uploadpack", "receivepack", "vcs") || in("url", "pushurl") && strings.Contains(value, "::")
	case "filter":
		return in("clean", "smudge", "process")
	}
	return in("external", "command", "textconv", "driver", "cmd", "helper", "program", "editor", "difffilter", "defaultkeycommand", "packobjectshook")
}
