package worktree

import (
	"bytes"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
)

// heard is what was noted of the remote of a clone when it was made: what is in no record is not known.
type heard struct {
	url  string
	tips []string // commits of branches
	tags []string // each as its object and its name
}

// maxTips is how many tips are told to one git. More are not told: then commits may count as
// unpublished that are not.
const maxTips = 20000

// ref is a reference of a repository.
type ref struct{ object, kind, peeled, peeledKind, name string }

// commit returns the commit of a reference; "" if it is to something else.
func (r ref) commit() string {
	switch {
	case r.kind == "commit":
		return r.object
	case r.peeledKind == "commit":
		return r.peeled
	}
	return ""
}

const refFormat = "--format=%(objectname) %(objecttype) %(*objectname) %(*objecttype) %(refname)"

func parseRefs(out string) (list []ref) {
	for line := range strings.Lines(out) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), " "); len(f) == 5 {
			list = append(list, ref{f[0], f[1], f[2], f[3], f[4]})
		}
	}
	return list
}

// neighbour is a remote that is a directory of this machine: it can be asked.
type neighbour struct {
	common string   // its git directory
	where  []string // how git is told where it is
	quiet  []plumbing.Setting
	tips   map[string]bool // commits
	tags   map[string]bool // object and name
}

// evidence is what is known of the remotes of a clone.
type evidence struct {
	*look
	refs []ref                 // of the clone
	near map[string]*neighbour // by their URLs
	far  map[string]bool       // URLs of what is not on this machine
}

// published looks for what is in a clone and not at its remotes. What is believed of these, Look says.
func (l *look) published() {
	out, ok := l.run("for-each-ref", refFormat)
	if !ok || !l.head() {
		return
	}
	e := &evidence{look: l, refs: parseRefs(out), near: map[string]*neighbour{}, far: map[string]bool{}}
	e.neighbours()
	e.names()
	if info, err := os.Stat(filepath.Join(l.at.GitDir, "info", "grafts")); err == nil && info.Size() > 0 {
		l.unknown("its history is not that of its commits (info/grafts)")
	}
	which := []string{"--all", "--reflog", "--ignore-missing"}
	if l.h.Head != "" {
		which = append(which, l.h.Head)
	}
	left, ok := l.list(slices.Concat(which, []string{"--not"}, e.believed()))
	if !ok {
		return
	}
	for _, n := range e.near {
		if len(left) > 0 && len(left) <= maxLost && e.holds(n, left) {
			left = nil
		}
	}
	l.h.Unpublished = left
}

// names looks for references that are lost with a clone even though the commits are elsewhere.
func (e *evidence) names() {
	noted := map[string]bool{}
	if e.at.noted.url != "" && e.near[e.at.noted.url] == nil && e.far[e.at.noted.url] {
		for _, t := range e.at.noted.tags {
			noted[t] = true
		}
	}
	for _, r := range e.refs {
		tag := r.object + " " + r.name
		switch {
		case r.name == "refs/stash":
			e.h.Stashed = true
		case !strings.HasPrefix(r.name, "refs/tags/"):
			if r.kind != "commit" {
				e.h.Refs = append(e.h.Refs, r.name)
			}
		case !noted[tag]:
			theirs := false
			for _, n := range e.near {
				theirs = theirs || n.tags[tag]
			}
			if !theirs {
				e.h.Tags = append(e.h.Tags, r.name)
			}
		}
	}
}

// believed returns the commits that are published, with all that comes before them.
func (e *evidence) believed() []string {
	var tips, ask []string
	add := func(url string, commits ...string) {
		if e.far[url] {
			tips = append(tips, commits...)
		} else if e.near[url] != nil {
			ask = append(ask, commits...)
		}
	}
	for _, r := range e.refs {
		c := r.commit()
		remote := e.remoteOf(r.name)
		if c == "" || remote == "" {
			continue
		}
		urls := e.conf.remotes[remote]
		if slices.ContainsFunc(urls, func(u string) bool { return !e.far[u] }) {
			add(urls[slices.IndexFunc(urls, func(u string) bool { return !e.far[u] })], c)
		} else if !e.conf.rewritten && e.arrived(r, remote) {
			tips = append(tips, c)
		}
	}
	add(e.at.noted.url, e.at.noted.tips...)
	for _, n := range e.near {
		for c := range n.tips {
			tips = append(tips, c)
		}
	}
	slices.Sort(ask)
	asked := 0
	for _, c := range slices.Compact(ask) {
		for _, n := range e.near {
			if n.tips[c] {
				break
			}
			if asked++; asked <= maxAsked && e.holds(n, []string{c}) {
				tips = append(tips, c)
				break
			}
		}
	}
	slices.Sort(tips)
	tips = slices.Compact(tips)
	return tips[:min(len(tips), maxTips)]
}

// maxAsked is how many commits a neighbour is asked for one by one that no branch of it is at any more.
const maxAsked = 32

// remoteOf returns the remote to which a remote-tracking branch belongs; "" if there is none that is
// configured with a URL.
func (e *evidence) remoteOf(name string) (remote string) {
	short, ok := strings.CutPrefix(name, "refs/remotes/")
	for r := range e.conf.remotes {
		if ok && strings.HasPrefix(short, r+"/") && len(r) > len(remote) {
			remote = r
		}
	}
	return remote
}

// arrived reports whether the log of a remote-tracking branch says last that a push, or a fetch from its
// remote, or the clone brought it to where it is.
func (e *evidence) arrived(r ref, remote string) bool {
	line := lastLine(filepath.Join(e.at.GitDir, "logs", r.name))
	objects, said, ok := strings.Cut(line, "\t")
	if f := strings.Fields(objects); !ok || len(f) < 2 || f[1] != r.object {
		return false
	}
	if said == "update by push" || e.depth > 0 && strings.HasPrefix(said, "clone: from ") {
		return true
	}
	command, _, ok := strings.Cut(said, ": ")
	words := strings.Fields(command)
	if !ok || len(words) == 0 || words[0] != "fetch" && words[0] != "pull" {
		return false
	}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") {
			return w == remote
		}
	}
	return true // from the remote of the branch, or all
}

// lastLine returns the last line of a file; "" if there is none.
func lastLine(path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, info, err := plumbing.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 8 << 10
	b, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-most), most))
	if err != nil {
		return ""
	}
	b = bytes.TrimRight(b, "\n")
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}

// neighbours says of the URLs of the remotes which are directories that can be asked, and which are
// elsewhere. What is neither is not believed: a program, or a directory that is not there, is in the
// checkout, or takes its objects from it.
func (e *evidence) neighbours() {
	urls := map[string]bool{}
	if !e.conf.rewritten {
		for _, list := range e.conf.remotes {
			for _, u := range list {
				urls[u] = true
			}
		}
	}
	if u := e.at.noted.url; u != "" {
		urls[u] = true
	}
	for u := range urls {
		dir, local := localDir(u)
		switch {
		case !local:
			e.far[u] = u != "" && !plumbing.HelperURL().MatchString(u)
		case e.err == nil:
			if !filepath.IsAbs(dir) {
				dir = e.homeOf(dir)
			}
			if n := e.neighbour(dir); n != nil {
				e.near[u] = n
			}
		}
	}
}

// localDir returns the directory that a URL names, if it names one of this machine. The rules are git's.
func localDir(u string) (string, bool) {
	if scheme, _, ok := strings.Cut(u, "://"); ok {
		parsed, err := url.Parse(u)
		if !strings.EqualFold(scheme, "file") {
			return "", false
		}
		if err != nil {
			return "", true
		}
		return parsed.Path, true
	}
	colon := strings.IndexByte(u, ':')
	if slash := strings.IndexByte(u, '/'); colon >= 0 && (slash < 0 || colon < slash) {
		return "", false
	}
	return u, u != ""
}

// neighbour asks a repository of this machine what it has; nil if it is none that can be believed.
func (e *evidence) neighbour(dir string) *neighbour {
	gitDir := ""
	for _, d := range []string{dir, dir + ".git"} { // as git looks for it
		if gitDir = plumbing.Dir(d); gitDir == "" && plumbing.IsDir(d) {
			gitDir = plumbing.Resolved(d)
		}
		if gitDir != "" {
			break
		}
	}
	if gitDir == "" || !e.apart(plumbing.CommonOf(gitDir), 0) {
		return nil
	}
	n := &neighbour{common: plumbing.CommonOf(gitDir), where: []string{"--no-replace-objects", "--git-dir=" + gitDir}, tips: map[string]bool{}, tags: map[string]bool{}}
	conf, err := e.configOf(e.ctx, n.where...)
	if err == nil {
		n.quiet = conf.quiet
		var out []byte
		if out, err = e.git(e.ctx, n.quiet, append(slices.Clone(n.where), "for-each-ref", refFormat)...); err == nil {
			for _, r := range parseRefs(string(out)) {
				n.tags[r.object+" "+r.name] = true
				if c := r.commit(); c != "" {
					n.tips[c] = true
				}
			}
			return n
		}
	}
	if !failed(err) && e.err == nil {
		e.err = err
	}
	return nil
}

// apart reports whether a repository has nothing of what would be removed: neither its files nor objects
// that it only borrows.
func (e *evidence) apart(common string, depth int) bool {
	for _, d := range e.gone() {
		if below(d, common) {
			return false
		}
	}
	objects := plumbing.Resolved(filepath.Join(common, "objects"))
	b, _, err := plumbing.ReadFile(filepath.Join(objects, "info", "alternates"), plumbing.MostText)
	if depth == 0 && objects != filepath.Join(common, "objects") {
		return e.apart(filepath.Dir(objects), 1)
	}
	if os.IsNotExist(err) {
		return true
	}
	if err != nil || depth > maxDepth {
		return false
	}
	for line := range strings.Lines(string(b)) {
		other := strings.TrimSuffix(line, "\n")
		if other == "" || strings.HasPrefix(other, "#") {
			continue
		}
		if strings.HasPrefix(other, `"`) { // quoted: nobody writes that by accident
			return false
		}
		if !filepath.IsAbs(other) {
			other = filepath.Join(objects, other)
		}
		if !e.apart(filepath.Dir(plumbing.Resolved(other)), depth+1) {
			return false
		}
	}
	return true
}

// holds asks a neighbour whether its references hold commits.
func (e *evidence) holds(n *neighbour, commits []string) bool {
	if e.err != nil {
		return false
	}
	leave, err := shared.enter(e.ctx, n.common, toRead) // git fails at a work tree of it that is half made
	if err != nil {
		e.err = err
		return false
	}
	defer leave()
	out, err := e.git(e.ctx, n.quiet, slices.Concat(n.where, []string{"rev-list", "--count"}, commits, []string{"--not", "--all", "--"})...)
	if err != nil && !failed(err) {
		e.err = err
	}
	return err == nil && strings.TrimSpace(string(out)) == "0"
}
