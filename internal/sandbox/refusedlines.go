package sandbox

import (
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"rnix/internal/hosts"
)

// mostLine is the longest line that is taken for an error, in bytes.
const mostLine = 2000

// failureKind is a kind of error of a path.
type failureKind int

const (
	missing  failureKind = iota + 1 // ENOENT
	noRight                         // EACCES, EPERM
	readOnly                        // EROFS
	busy                            // EBUSY
)

// failure is what a line says of paths.
type failure struct {
	kind   failureKind
	paths  []string
	bare   bool // the line names no path: it is the reason of one before
	writes bool // it was to be written, made or removed
	starts bool // perhaps it was to be run
}

// failureTexts are how errors of paths are written, in lower case.
var failureTexts = []struct {
	text string
	kind failureKind
}{
	{"permission denied", noRight}, {"operation not permitted", noRight}, {"read-only file system", readOnly},
	{"no such file or directory", missing}, {"device or resource busy", busy},
}

// netTexts are how errors of the network are written, in lower case. Those with a host count only where one is named.
var netTexts = []struct {
	text string
	host bool
}{
	{"could not resolve host", false}, {"unable to resolve host", true}, {"temporary failure in name resolution", false}, {"name or service not known", true}, {"[errno -2] name or service not known", false}, {"eai_again", false},
	{"getaddrinfo enotfound", false}, {"failed to resolve '", true}, {"no such host", true}, {"failed to lookup address", false}, {"unknownhostexception", true},
	{"network is unreachable", false}, {"enetunreach", false}, {"no route to host", true}, {"ehostunreach", true}, {"failed to connect to ", true}, {"econnrefused", true},
	{"connection refused", true}, {"connect eperm", true}, {"connect: operation not permitted", false}, {"socket: operation not permitted", false},
	{"/dev/tcp/", true}, {"/dev/udp/", true}, {"ssh: connect to host ", true},
}

// socketTexts are where Unix sockets are named, in front of the path.
var socketTexts = []string{"unix://", "dial unix ", `on socket "`, "through socket '"}

// rightsTexts are how errors look of what takes rights that no box gives, in lower case; all parts must be there.
var rightsTexts = []struct{ part, with, what string }{
	{"no new privileges", "", "the rights of other users (sudo, su)"},
	{"unshare failed", "operation not permitted", "namespaces and mounts"},
	{"failed to move to new namespace", "", "namespaces and mounts"},
	{"bwrap: ", "namespace", "namespaces and mounts"},
	{"mount: /", "permission denied", "namespaces and mounts"},
	{"mount: /", "operation not permitted", "namespaces and mounts"},
	{"ptrace", "operation not permitted", "the tracing of programs (ptrace)"},
}

// ProxyFailed begins what the proxy says of a host that is allowed and that it cannot reach: the fault is not the sandbox's.
const ProxyFailed = "the proxy of the sandbox lets commands reach "

// failing are words of a line that says what has failed, and the next one why.
var failing = []string{"failed", "could not", "couldn't", "unable to", "cannot"}

// tellsFailure reports whether a line, in lower case, can be an error that a sandbox has caused.
func tellsFailure(lower string) bool {
	if strings.Contains(lower, ProxyFailed) {
		return false
	}
	for _, f := range failureTexts {
		if strings.Contains(lower, f.text) {
			return true
		}
	}
	for _, n := range netTexts {
		if strings.Contains(lower, n.text) {
			return true
		}
	}
	return strings.Contains(lower, "no new privileges") || strings.Contains(lower, "failed to move to new namespace") || strings.Contains(lower, "unix://") || strings.Contains(lower, "bwrap: ")
}

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

// another begins a line that shows what is in a file: "grep -n", a diff, a comment, a trace of a shell.
var another = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\s:\[][^\s:]*:\d+:\S|^[-+><#*|]|^//`) })

func quotesAnother(line string) bool { return another().MatchString(line) }

func rightsIn(lower string) string {
	for _, r := range rightsTexts {
		if strings.Contains(lower, r.part) && strings.Contains(lower, r.with) {
			return r.what
		}
	}
	return ""
}

// socketIn returns the path of the Unix socket that an error names, if any.
func socketIn(line string) string {
	for _, text := range socketTexts {
		if _, rest, ok := strings.Cut(line, text); ok && strings.HasPrefix(rest, "/") {
			return filepath.Clean(strings.TrimRight(rest[:firstOf(rest, "'\" ,;)")], ".:"))
		}
	}
	return ""
}

// firstOf returns where the first of some characters is, or the length of s.
func firstOf(s, chars string) int {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return i
	}
	return len(s)
}

// hostForms are where errors of the network name a host, and perhaps a port, in order of their worth.
var hostForms = compiled(
	`(?i)could not resolve host(?:name)?:? ([\w.:-]+)`,
	`(?i)unable to resolve host(?: address)? ["'‘`+"`"+`]?([\w.-]+)`,
	`getaddrinfo (?:EAI_AGAIN|ENOTFOUND) ([\w.-]+)`,
	`lookup ([\w.-]+)(?: on |:)`,
	`[Ff]ailed to resolve '([\w.-]+)'`,
	`UnknownHostException: ([\w.-]+)`,
	`connect to (?:host )?([\w.:-]+) (?:\([^)]*\) )?port (\d+)`,
	`connect E[A-Z]+ ([\w.:\[\]-]+)`,
	`dial (?:tcp|udp)[46]? ([\w.:\[\]-]+): `,
	`/dev/(?:tcp|udp)/([\w.:-]+)/(\d+)`,
	`host='([\w.-]+)', port=(\d+)`,
	`Resolving ([\w.-]+)`,
	`Connecting to ([\w.:\[\]-]+)\.\.\. `,
	`\w+://(?:[\w.-]+@)?([\w.-]+(?::\d+)?)[/'" ]`,
)

// compiled compiles expressions when they are needed first: every short command would pay for it.
func compiled(exprs ...string) func() []*regexp.Regexp {
	return sync.OnceValue(func() (out []*regexp.Regexp) {
		for _, e := range exprs {
			out = append(out, regexp.MustCompile(e))
		}
		return out
	})
}

// netIn reports whether a line says that something could not be reached, and what: a host or an address, with ":port" where that is said.
func netIn(line, lower string) (host string, told bool) {
	needs := true
	for _, n := range netTexts {
		if strings.Contains(lower, n.text) {
			told, needs = true, needs && n.host
		}
	}
	if !told || strings.Contains(line, "dial unix ") {
		return "", false
	}
	for _, form := range hostForms() {
		if m := form.FindStringSubmatch(line); m != nil {
			if host = strings.TrimRight(m[1], ".:"); len(m) > 2 {
				host = net.JoinHostPort(strings.Trim(host, "[]"), m[2])
			}
			if _, err := hosts.ParseTarget(host, 1); err == nil && host != "rnix" { // which is the name of every box
				return host, true
			}
		}
	}
	return "", !needs
}

// isLoopback reports whether a host is the machine itself.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// writing are words of errors of what writes, makes or removes a path; operations are those of Go and Node.
var (
	writing = strings.Split("cannot create|cannot touch|cannot remove|cannot mkdir|cannot move|cannot rename|cannot unlink|cannot copy|cannot overwrite|cannot write|could not write|could not create|"+
		"couldn't create|unable to create|unable to write|unable to unlink|failed to create|failed to remove|failed to write|could not lock|could not make|changing permissions|changing ownership|"+
		"changing group|setting times|setting permissions|for writing|temporary file|output file|inter-device move", "|")
	operations = strings.Fields("mkdir unlink unlinkat remove rename renameat symlink link chmod chown lchown truncate copyfile rmdir rm utime chtimes write")
	writers    = strings.Fields("tee touch mkdir rmdir rm ln mv install truncate chmod chown chgrp")
)

var (
	// reasonEnds is what may follow an error of a path at the end of a line.
	reasonEnds = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[.)]?(?: \((?:os error )?\d+\)[.:]?)?$`) })
	pythonPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^: b?(["'].*)$`) })
	nodePath   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^, (\w+) (["'].*)$`) })
	shellLine  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\s:]+: (?:line )?\d+$`) })
	quotes     = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[\s(\[=:,])(?:'([^']+)'|"([^"]+)"|‘([^’]+)’|` + "`([^`']+)['`]" + `|“([^”]+)”)`)
	})
)

// quoted returns what stands in quotes in a line.
func quoted(line string) (out []string) {
	for _, m := range quotes().FindAllStringSubmatch(line, -1) {
		for _, text := range m[1:] {
			if text != "" {
				out = append(out, text)
			}
		}
	}
	return out
}

// failureIn reads an error of a path. lower is the line in lower case.
func failureIn(line, lower string) (e failure, ok bool) {
	at, size := -1, 0
	for _, f := range failureTexts {
		if i := strings.LastIndex(lower, f.text); i > at {
			at, size, e.kind = i, len(f.text), f.kind
		}
	}
	if at < 0 || len(lower) != len(line) {
		return e, false
	}
	before, after := line[:at], line[at+size:]
	e.writes = containsAny(lower[:at], writing)
	if m := pythonPath().FindStringSubmatch(after); m != nil && strings.Contains(before, "[Errno ") {
		e.paths = quoted(m[1])
		return e, true
	}
	if m := nodePath().FindStringSubmatch(after); m != nil {
		e.paths, e.writes, e.starts = quoted(m[2]), e.writes || slices.Contains(operations, m[1]), m[1] == "spawn"
		return e, true
	}
	if !reasonEnds().MatchString(after) {
		return e, false
	}
	before = strings.TrimRight(before, ": (")
	if before == "" {
		e.bare, e.writes = true, false
		return e, true
	}
	e.places(before)
	return e, len(e.paths) > 0
}

// places finds the paths in what stands before the reason of an error.
func (e *failure) places(before string) {
	parts := strings.Split(before, ": ")
	program := filepath.Base(parts[0])
	e.writes = e.writes || slices.Contains(writers, program)
	last := parts[len(parts)-1]
	if op, rest, ok := strings.Cut(last, " "); ok && slices.Contains(operations, op) {
		e.writes = true
		if strings.HasPrefix(rest, "/") { // as Go has it: rename OLD NEW
			e.paths = strings.Fields(rest)
			return
		}
	}
	shell := len(parts) > 2 && shellLine().MatchString(parts[0]+": "+parts[1])
	e.starts = !e.writes && (shell || slices.Contains([]string{"sh", "bash", "dash", "zsh", "env", "exec"}, program) || strings.Contains(before, "fork/exec ") || strings.Contains(before, "run command "))
	if e.paths = quoted(before); len(e.paths) > 0 {
		return
	}
	for i := len(parts) - 1; i >= max(0, len(parts)-2); i-- {
		if part := parts[i]; strings.HasPrefix(part, "/") || strings.HasPrefix(part, "./") || strings.HasPrefix(part, "../") {
			e.paths = append(e.paths, part)
		} else if words := strings.Fields(part); len(words) > 0 && (i > 0 || len(parts) == 1) {
			e.paths = append(e.paths, words[len(words)-1])
		}
	}
}
