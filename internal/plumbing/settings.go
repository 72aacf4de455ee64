// Package plumbing is what this program knows of git's plumbing: the settings with which a git runs no program that a repository names, what
// a repository's configuration says, where git keeps things, and how its output reads.
//
// It owns formats and lists, each once, for runtime/worktree and internal/workspace. It starts no git: its callers do, each in its way, and
// hand in what git has said. It knows no history, no session and no snapshot.
package plumbing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Setting is one setting of git.
type Setting struct{ Key, Value string }

// Set returns a setting.
func Set(key, value string) Setting { return Setting{key, value} }

// closed are the settings of every git: none lets a repository name a program that is run, or begins work of its own in the background.
var closed = []Setting{{"core.hooksPath", "/dev/null"}, {"core.fsmonitor", "false"}, {"gc.auto", "0"}, {"maintenance.auto", "false"}}

// Online returns the settings of a git that may fetch: besides, nothing hides that a file was changed.
func Online() []Setting {
	return append([]Setting{{"protocol.ext.allow", "never"}, {"core.untrackedCache", "false"},
		{"core.trustctime", "true"}, {"core.checkStat", "default"}, {"core.fileMode", "true"},
		{"submodule.recurse", "false"}, {"fetch.recurseSubmodules", "false"}, {"advice.detachedHead", "false"}}, closed...)
}

// Offline returns the options of a git that may talk to no server, ask nothing, sign nothing and write no reflog, and that takes no object for another.
func Offline() []string {
	options := []string{"--no-replace-objects"}
	for _, s := range append([]Setting{{"core.pager", "cat"}, {"core.askPass", ""}, {"credential.helper", ""}, {"protocol.allow", "never"},
		{"core.logAllRefUpdates", "false"}, {"commit.gpgSign", "false"}}, closed...) {
		options = append(options, "-c", s.Key+"="+s.Value)
	}
	return options
}

// Env returns the environment of every git: it speaks English, asks nothing and writes nothing only because it has looked.
func Env() []string { return []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0"} }

// Given returns the variables that give git some settings, behind those that an environment gives in the same way.
func Given(environ []string, lists ...[]Setting) []string {
	old := map[string]string{}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(k, "GIT_CONFIG_") {
			old[k] = v
		}
	}
	var out []string
	n := 0
	add := func(s Setting) {
		out = append(out, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, s.Key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, s.Value))
		n++
	}
	count, err := strconv.Atoi(old["GIT_CONFIG_COUNT"])
	for i := 0; err == nil && i < min(count, 1000); i++ {
		k, ok1 := old[fmt.Sprint("GIT_CONFIG_KEY_", i)]
		v, ok2 := old[fmt.Sprint("GIT_CONFIG_VALUE_", i)]
		if ok1 && ok2 {
			add(Setting{k, v})
		}
	}
	for _, l := range lists {
		for _, s := range l {
			add(s)
		}
	}
	return append(out, "GIT_CONFIG_COUNT="+strconv.Itoa(n))
}

// Verb returns what a git is asked to do: its first argument that is no option, nor the value of one. "" = nothing.
func Verb(args []string) string {
	if i := verbAt(args); i < len(args) {
		return args[i]
	}
	return ""
}

// Sub returns the argument right behind the verb, which of some verbs says what to do, such as add of worktree. "" = there is none.
func Sub(args []string) string {
	if i := verbAt(args) + 1; i < len(args) {
		return args[i]
	}
	return ""
}

func verbAt(args []string) int {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-C", args[i] == "-c":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return i
		}
	}
	return len(args)
}

// readers are the verbs that write nothing, with the environment that Env gives.
var readers = strings.Fields(`cat-file check-attr check-ignore diff-files diff-index diff-tree for-each-ref ls-files ls-tree merge-base rev-list rev-parse status version`)

// OnlyReads reports whether a git with a verb, and what is behind it, writes nothing. The config of this program is one that reads, and so is its
// symbolic-ref that is only asked.
func OnlyReads(verb, sub string) bool {
	return slices.Contains(readers, verb) || verb == "config" || verb == "symbolic-ref" && sub == "-q" || verb == "worktree" && sub == "list"
}

// filterers are the verbs that read or write files of a work tree through the filters of a configuration.
var filterers = strings.Fields(`add checkout checkout-index clone commit diff diff-files fetch merge read-tree reset restore sparse-checkout stash status switch update-index write-tree`)

// RunsFilters reports whether a git may run the filters of a configuration, or of a fetch the programs that reach a server, if these are not switched off.
func RunsFilters(args []string) bool {
	verb, sub := Verb(args), Sub(args)
	return slices.Contains(filterers, verb) || verb == "worktree" && (sub == "add" || sub == "remove")
}
