package permit

import (
	"path"
	"slices"
	"strings"
)

// shells run what stands behind -c; unseen have other names run what they stand for, or read it elsewhere.
var (
	shells = []string{"sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "yash", "fish", "csh", "tcsh", "ash", "busybox", "su"}
	unseen = []string{".", "source", "alias", "hash", "enable", "compgen"}
)

// wrappers run the command that stands in their arguments.
var wrappers = []string{"bunx", "builtin", "bwrap", "capsh", "cgexec", "choom", "chpst", "chroot", "chrt", "command", "dbus-run-session", "dbus-launch", "doas", "dumb-init", "entr", "env", "envdir",
	"exec", "expect", "faketime", "fakeroot", "fakechroot", "firejail", "flock", "gdb", "gosu", "hyperfine", "i386", "ionice", "linux32", "linux64", "ltrace", "mapfile", "nice", "nohup", "npx", "nsenter",
	"numactl", "parallel", "pkexec", "pnpx", "prlimit", "proot", "readarray", "rlwrap", "runuser", "screen", "script", "sem", "setarch", "setpriv", "setsid", "setuidgid", "sg", "softlimit",
	"ssh-agent", "start-stop-daemon", "stdbuf", "strace", "su-exec", "sudo", "systemd-inhibit", "systemd-run", "taskset", "time", "timeout", "tini", "tmux", "toybox", "tsocks", "torsocks", "proxychains",
	"proxychains4", "uclampset", "unbuffer", "uname26", "unshare", "uvx", "valgrind", "watch", "x86_64", "xargs", "xvfb-run"}

// finders are options of programs that look for files, behind which a command stands; exact are those programs.
var (
	finders = []string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}
	exact   = []string{"find", "fd", "fdfind"}
)

// builtins are the wrappers that a shell has itself, so that they run what only shells have.
var builtins = []string{"command", "builtin", "exec", "time", "env"}

// behind are programs that run the command which stands behind one of these words, and nothing else of what they are given.
var behind = map[string][]string{
	"find": finders, "fd": finders, "fdfind": finders,
	"uv": {"run", "tool"}, "npm": {"exec", "x"}, "pnpm": {"exec", "dlx"}, "yarn": {"exec", "dlx"}, "bun": {"x"}, "poetry": {"run"}, "pipenv": {"run"}, "pdm": {"run"}, "hatch": {"run"}, "rye": {"run"},
	"pixi": {"run"}, "conda": {"run"}, "mamba": {"run"}, "micromamba": {"run"}, "bundle": {"exec"}, "direnv": {"exec"}, "mise": {"exec", "x"}, "asdf": {"exec"}, "rustup": {"run"}, "perf": {"stat", "record", "trace"},
	"nix": {"-c", "--command"}, "nix-shell": {"--run", "--command"}, "git": {"run", "foreach", "--exec", "-x"},
}

// feeders add words to a command that they read elsewhere.
var feeders = []string{"xargs", "parallel", "sem", "entr"}

// runs adds what a command runs that is said in its arguments.
func (l *line) runs(name string, args command, depth int) {
	if words, ok := behind[name]; ok {
		for i, w := range args {
			if w == nil {
				continue
			}
			for _, b := range words {
				rest := args[i+1:]
				value, with := strings.CutPrefix(*w, b+"=") // --exec=
				if with {
					rest = append(command{&value}, rest...)
				} else if *w != b {
					continue
				}
				if slices.Contains(exact, name) {
					l.found(rest, depth)
				} else {
					l.wrapped(rest, depth)
				}
				return
			}
		}
		return
	}
	if !slices.Contains(wrappers, name) && !loader(name) {
		return
	}
	if slices.Contains(builtins, name) && slices.ContainsFunc(args, func(w *string) bool { return w != nil && slices.Contains(unseen, *w) }) {
		l.innerUnknown = true
	}
	if slices.Contains(feeders, name) {
		l.fed(args)
	}
	l.wrapped(args, depth)
	if name == "start-stop-daemon" {
		l.started(args, depth)
	}
}

// found adds what a program runs that looks for files, whose names stand for {}.
func (l *line) found(args command, depth int) {
	c := slices.Clone(args)
	if end := slices.IndexFunc(c, func(w *string) bool { return w != nil && (*w == ";" || *w == "+") }); end >= 0 {
		c = c[:end]
	}
	for i, w := range c {
		if w != nil && strings.Contains(*w, "{}") {
			c[i] = nil
		}
	}
	switch {
	case depth >= maxNested:
		l.innerUnknown = true
	case len(c) > 0:
		l.add(c, depth+1)
		if c[0] != nil && strings.ContainsAny(*c[0], " \t") { // a line of fd
			l.text(c[:1], depth+1)
		}
	}
}

// fed adds what a command may run that reads words elsewhere, which it puts behind the command or in the place of others.
func (l *line) fed(args command) {
	places, c := []string{"{}"}, slices.Clone(args)
	for i, w := range c {
		switch {
		case w == nil:
		case strings.HasPrefix(*w, ":::"):
			c = c[:i]
		case *w == "-I" && i+1 < len(c) && c[i+1] != nil:
			places = append(places, *c[i+1])
		case strings.HasPrefix(*w, "-I") && len(*w) > 2:
			places = append(places, (*w)[2:])
		case strings.HasPrefix(*w, "--replace="):
			places = append(places, strings.TrimPrefix(*w, "--replace="))
		}
		if i >= len(c) {
			break
		}
	}
	for i, w := range c {
		if w != nil && slices.ContainsFunc(places, func(p string) bool { return p != "" && strings.Contains(*w, p) }) {
			c[i] = nil
		}
	}
	for i := range c[:min(len(c), maxWrapped)] {
		if c[i] != nil {
			l.texts = append(l.texts, append(slices.Clone(c[i:]), nil))
		}
	}
}

// loader reports whether a program is the one by which the system starts others.
func loader(name string) bool {
	return strings.HasPrefix(name, "ld-") && strings.Contains(name, ".so") || name == "ld.so"
}

// started adds what start-stop-daemon runs: a program and, behind --, its arguments.
func (l *line) started(args command, depth int) {
	var program *string
	for i, w := range args {
		switch {
		case w == nil:
		case *w == "--" && program != nil:
			l.wrapped(append(command{program}, args[i+1:]...), depth)
			return
		case slices.Contains([]string{"-x", "--exec", "-a", "--startas"}, *w) && i+1 < len(args):
			program = args[i+1]
		default:
			for _, option := range []string{"--exec=", "--startas=", "-x", "-a"} {
				if value, ok := strings.CutPrefix(*w, option); ok && value != "" {
					program = &value
				}
			}
		}
	}
}

// valued are options of git, before its command, whose value is the next word.
var valued = []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env", "--attr-source", "--list-cmds"}

// git adds a command of git as it is without the options that stand before what it does: git -C dir push is a push. Settings that are given with it can
// have names run other things.
func (l *line) git(c command) {
	if path.Base(*c[0]) != "git" {
		return
	}
	i := 1
	for ; i < len(c) && c[i] != nil && strings.HasPrefix(*c[i], "-"); i++ {
		option := *c[i]
		if !slices.Contains(valued, option) {
			continue
		}
		if i++; i == len(c) {
			return
		}
		if (option == "-c" || option == "--config-env") && (c[i] == nil || strings.HasPrefix(strings.ToLower(*c[i]), "alias.")) {
			l.innerUnknown = true
		}
	}
	if i > 1 && i < len(c) {
		name := "git"
		l.inner = append(l.inner, append(command{&name}, c[i:]...))
	}
}
