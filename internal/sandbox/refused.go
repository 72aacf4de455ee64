package sandbox

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
)

// Outcome is what came of a command, as far as it tells what was refused.
type Outcome struct {
	Command string // the command line for a shell; empty = not known
	Dir     string // where it was started, absolute
	Code    int    // exit status
	Output  string // the end of what it printed, errors included
	// Reads reports whether its user may read a path, the sandbox aside; nil = not known. It is asked only about paths that the policy lets
	// be read.
	Reads func(path string) bool
}

// Wanted says what a command was refused.
type Wanted string

// What a command can be refused.
const (
	WantedRead   Wanted = "read"    // a path: what is hidden
	WantedWrite  Wanted = "write"   // a path, also to make or remove it
	WantedNet    Wanted = "network" // a host
	WantedSocket Wanted = "socket"  // a Unix socket
	WantedRights Wanted = "rights"  // what takes other users' rights, namespaces, or other programs
)

// Refusal is one thing that the sandbox did not let a command do.
type Refusal struct {
	Wanted Wanted
	// Target is the path, absolute, or the host or address, with a port where that is known; empty = a host or a socket that the command
	// did not name. Of rights it says in words which.
	Target string
	// Advice is what a person can do, as half a sentence.
	Advice string
	// Why is what was refused, in place of what Wanted and Target say; empty = that.
	Why string
}

// Besides returns what was read of a command's refusals without what is told already, of hosts that its proxy has refused: their name is enough, and so are words
// that name no host.
func Besides(read, told []Refusal) []Refusal {
	if len(told) == 0 {
		return read
	}
	host := func(target string) string {
		if name, _, err := net.SplitHostPort(target); err == nil {
			return name
		}
		return target
	}
	return slices.DeleteFunc(slices.Clone(read), func(r Refusal) bool {
		return r.Wanted == WantedNet && (r.Target == "" || slices.ContainsFunc(told, func(t Refusal) bool { return host(t.Target) == host(r.Target) }))
	})
}

// mostRefusals bounds how many refusals of one command are told apart.
const mostRefusals = 16

// Text returns a sentence for the model whose command it was: what was refused, and that trying again does not help.
func (r Refusal) Text() string {
	return r.what() + "; trying again does not help, " + r.Advice
}

// Notice returns a sentence for the person whose agent it is: what was refused, and what to do if that is not wanted.
func (r Refusal) Notice() string { return r.what() + "; " + r.Advice }

func (r Refusal) what() string {
	if r.Why != "" {
		return r.Why
	}
	what := "the sandbox does not let commands " + string(r.Wanted) + " " + r.Target
	switch r.Wanted {
	case WantedRead:
		what = "the sandbox hides " + r.Target + " from commands, whether it exists or not"
	case WantedNet:
		if what = "the sandbox gives commands no network"; r.Target != "" {
			what += ", so " + r.Target + " cannot be reached"
		}
	case WantedSocket:
		if what = "the sandbox does not let commands use Unix sockets"; r.Target != "" {
			what += ", such as " + r.Target
		}
	case WantedRights:
		what = "the sandbox does not give commands " + r.Target
	}
	return what
}

// Refused returns what the plan has refused a command, as far as its output tells, in the order of the output, each once. The kernel tells
// nobody else: Landlock's audit log needs privileges, and a mount that is read-only is silent. A line counts if it has the form of an error of
// a program, and the plan refuses what the line names; any other error is the command's own. files is the file system of the host.
func (p Plan) Refused(o Outcome, files Files) []Refusal {
	if p.Rung == RungNone {
		return nil
	}
	r := refusals{plan: &p, outcome: &o, files: files, line: parseLine(o.Command)}
	if o.Code == 128+sigsys {
		r.add(WantedRights, "system calls of another architecture")
	}
	if o.Code == 0 && !r.line.hides {
		return r.out // nothing has failed that mattered
	}
	for line := range strings.Lines(o.Output) {
		if len(r.out) == mostRefusals {
			break
		}
		if line = strings.TrimSpace(line); line != "" && len(line) <= mostLine {
			r.judge(line)
		}
	}
	named := func(e Refusal) bool { return e.Wanted == WantedNet && e.Target != "" }
	if slices.ContainsFunc(r.out, named) {
		r.out = slices.DeleteFunc(r.out, func(e Refusal) bool { return e.Wanted == WantedNet && e.Target == "" })
	}
	return r.out
}

// sigsys is the number of the signal by which the kernel ends what calls as another architecture does.
const sigsys = 31

// refusals finds what one command was refused.
type refusals struct {
	plan    *Plan
	outcome *Outcome
	files   Files
	line    commandLine
	subject []string // the paths in the last line that says that something failed, for a line that only says why
	since   int      // lines since then
	out     []Refusal
}

// mostBetween is how many lines after what has failed the reason may stand.
const mostBetween = 4

// judge adds what the plan has refused according to a line that has the form of an error.
func (r *refusals) judge(line string) {
	lower := strings.ToLower(line)
	if r.since++; r.since > mostBetween {
		r.subject = nil
	}
	if !tellsFailure(lower) {
		if containsAny(lower, failing) {
			r.subject, r.since = quoted(line), 0
		}
		return
	}
	if quotesAnother(line) || r.line.reads && !r.line.saidBy(line) {
		return // it shows what others have written
	}
	if what := rightsIn(lower); what != "" {
		r.add(WantedRights, what)
		return
	}
	if path := socketIn(line); path != "" {
		if !r.plan.Unix {
			r.add(WantedSocket, path)
		}
		return
	}
	if r.plan.Rung == RungBwrap && !r.plan.Unix && strings.Contains(lower, "socket() failed: operation not permitted") {
		r.add(WantedSocket, "") // those of the network may be made there
		return
	}
	if host, told := netIn(line, lower); told {
		if !r.line.reads {
			r.host(host)
		}
		return
	}
	e, ok := failureIn(line, lower)
	if !ok {
		return
	}
	if e.bare {
		e.paths, r.subject = r.subject, nil
	}
	for _, path := range e.paths {
		if r.path(path, e) {
			return
		}
	}
}

// host adds a host that could not be reached, if the policy refuses it.
func (r *refusals) host(host string) {
	switch {
	case r.plan.Policy.Net == NetOpen:
		return
	case r.plan.Rung == RungBwrap && isLoopback(host):
		return // the command has a loopback, where nothing has answered
	}
	r.add(WantedNet, host)
}

// path adds a path that a failure names, and reports whether the plan refuses it. Programs change their directory, so a relative one must be
// refused from each directory that the command line names; but what may be written is on no file system that is read-only.
func (r *refusals) path(name string, e failure) bool {
	dirs := []string{"/"}
	if !filepath.IsAbs(name) {
		if dirs = r.dirs(name, e); dirs == nil {
			return false
		}
	}
	var wanted Wanted
	var target string
	for _, dir := range dirs {
		w, path := r.refused(name, r.behind(joined(dir, name)), e)
		if w == "" && e.kind != readOnly {
			return false
		}
		if w != "" {
			wanted, target = w, path
		}
	}
	if wanted != "" {
		r.add(wanted, target)
	}
	return wanted != ""
}

// dirs returns the directories that a relative path in an error can be meant from; nil if that is not known.
func (r *refusals) dirs(name string, e failure) []string {
	if name = strings.TrimPrefix(name, "./"); name == "" || !r.line.known || !filepath.IsAbs(r.outcome.Dir) {
		return nil
	}
	if said := slices.ContainsFunc(r.line.words, func(w string) bool { return strings.TrimPrefix(w, "./") == name }); !said && (e.kind != readOnly && e.kind != busy || !filepath.IsLocal(name)) {
		return nil
	}
	out := []string{joined(r.outcome.Dir, r.line.start)}
	for _, to := range r.line.dirs {
		out = append(out, joined(out[len(out)-1], to))
	}
	return out
}

func joined(dir, to string) string {
	if filepath.IsAbs(to) {
		return filepath.Clean(to)
	}
	return filepath.Join(dir, to)
}

// behind returns the path that one leads to through links. What is hidden is not looked at: whether it is a link is no business of the command's.
func (r *refusals) behind(path string) string {
	if r.plan.Policy.Access(path) == AccessNone {
		return path
	}
	if to, _, err := real(r.files, path); err == nil {
		return to
	}
	return path
}

// refused returns what the plan refuses at a path, which an error has by some name; empty = nothing that explains the error.
func (r *refusals) refused(name, path string, e failure) (Wanted, string) {
	access := r.plan.Policy.Access(path)
	switch {
	case path == "/" || r.plan.givesOwn(path):
	case access == AccessNone && e.kind == missing && r.plan.Rung == RungLandlock: // it would have been a refusal: it is really not there
	case access == AccessNone && (e.writes || e.kind == readOnly), access == AccessRead && r.writes(name, path, e):
		return WantedWrite, path
	case access == AccessNone && e.kind != busy:
		return WantedRead, path
	}
	return "", ""
}

// givesOwn reports whether a box has its own at a path, hidden or not: what is missing there the command has not made.
func (p *Plan) givesOwn(path string) bool {
	switch {
	case within(path, "/proc"):
		return true
	case within(path, "/dev"):
		name, _, _ := strings.Cut(strings.TrimPrefix(path, "/dev/"), "/")
		if slices.Contains(ownDevices, name) {
			return true
		}
	}
	decides := ""
	for _, at := range slices.Concat(p.Policy.Hide, p.Policy.Read, p.Policy.Write, p.Policy.Protect) {
		if within(path, at) && len(at) > len(decides) {
			decides = at
		}
	}
	return p.Rung == RungBwrap && slices.Contains(private, decides)
}

// ownDevices are the names in /dev that lead to what is the command's own.
var ownDevices = strings.Fields("fd stdin stdout stderr pts ptmx console core mqueue tcp udp")

// writes reports whether a failure at a path that may be read only came of the sandbox: with bubblewrap that looks like no other error, with
// Landlock like a lack of rights, where something must tell that the command wanted to write.
func (r *refusals) writes(name, path string, e failure) bool {
	switch {
	case e.kind == readOnly:
		return true
	case e.kind == busy: // a mount point cannot be replaced
		return r.plan.Rung == RungBwrap && slices.Contains(r.plan.Policy.Protect, path)
	case e.kind != noRight || r.plan.Rung != RungLandlock:
		return false
	case e.writes:
		return true
	case e.starts:
		return slices.Contains(r.line.into, name)
	case r.files.Kind(path) == Missing: // nothing is there that could be read
		return r.plan.Policy.Allows(filepath.Dir(path), AccessRead)
	}
	return r.outcome.Reads != nil && r.outcome.Reads(path)
}

// add adds a refusal, once.
func (r *refusals) add(wanted Wanted, target string) {
	if !slices.ContainsFunc(r.out, func(e Refusal) bool { return e.Wanted == wanted && e.Target == target }) {
		e := Refusal{Wanted: wanted, Target: target, Advice: r.plan.advice(wanted, target)}
		if wanted == WantedNet && r.plan.Policy.Net == NetHosts {
			e.Why = "the sandbox lets commands reach hosts by its proxy alone, which HTTPS_PROXY and HTTP_PROXY name"
			if target != "" {
				e.Why += ", so " + target + " was not reached without it"
			}
			if target != "" && r.plan.Policy.Reaches(target) {
				e.Advice = "the host is allowed: use a program, or an option of it, that obeys these variables"
			}
		}
		r.out = append(r.out, e)
	}
}

// AllowHost says what a person can do about a host that is refused.
func AllowHost(host string) string {
	if host == "" {
		host = "HOST"
	}
	return "a person can allow it with --allow-host " + strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80") + ", or under sandbox.hosts in config.yaml"
}

// advice says what a person can do about a refusal.
func (p *Plan) advice(wanted Wanted, target string) string {
	const off = "a person can switch the sandbox off with --sandbox off"
	with := p.Policy
	switch wanted {
	case WantedNet:
		if with.Net == NetHosts {
			return AllowHost(target)
		}
		return "a person can allow it with --net open, or net: open under sandbox in config.yaml"
	case WantedRead:
		if with.Read = append(slices.Clone(with.Read), target); with.Allows(target, AccessRead) {
			return "a person can allow it under sandbox.read in config.yaml"
		}
	case WantedWrite:
		if p.Rung == RungLandlock && slices.ContainsFunc(private, func(dir string) bool { return within(target, dir) }) {
			return "temporary files belong in $TMPDIR"
		}
		if with.Write = append(slices.Clone(with.Write), filepath.Dir(target)); with.Allows(target, AccessWrite) {
			return "a person can allow its directory under sandbox.write in config.yaml"
		}
	}
	return off
}
