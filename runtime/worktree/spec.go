package worktree

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"rnix/internal/plumbing"
	"rnix/types"
)

// ProvisionSpec says what a session is to get.
type ProvisionSpec struct {
	SessionID      string // names the session, its record and, without LeafName, its directory
	LeafName       string // the name of the directory; "" = SessionID
	Strategy       CloneStrategy
	RepoURL        string // clone: what is cloned
	ParentRepoPath string // worktree-add: the repository that gets another work tree

	// Branch is what is checked out. A local branch that exists is used as it is: what it has and the
	// base has not stays; one that is only behind its base is brought forward. "" = for a clone the
	// remote's own, for a work tree none.
	Branch string
	// NewBranch refuses a Branch of a work tree that is there already (ErrBranchTaken).
	NewBranch bool

	// BaseRef is the branch of the remote at which a new Branch begins: main, origin/main,
	// refs/heads/main and refs/remotes/origin/main are the same. "" = Branch. For a work tree it is
	// fetched first, for at most BaseFetchTimeout (0 = DefaultBaseFetchTimeout), unless SkipBaseFetch is
	// set; then it is what the repository last saw of it, or its own branch of that name, or, if
	// BaseRef is empty too, what is checked out there.
	BaseRef          string
	SkipBaseFetch    bool
	BaseFetchTimeout time.Duration

	// BaseCommit is the commit, in full, at which a new Branch of a work tree begins, in place of a
	// BaseRef. Nothing is fetched.
	BaseCommit string

	// RequireBranchBase asks for a base that is literally the name of a branch of the remote, without
	// the spellings above, and for a checkout that begins at what was last seen of it: a tag of that name,
	// or a Branch with commits of its own, is refused (ErrInvalidBaseRef, ErrNotAtBase).
	RequireBranchBase bool

	// Sparse are directories below the top; only these, and the files at the top and beside what leads to
	// them, are checked out, and only these does a clone fetch. None = all. A repository that gets such a
	// work tree has extensions.worktreeConfig from then on: git keeps there what a work tree leaves out.
	Sparse []string

	// Seed is a repository on this machine of which a clone takes the objects that it has, in place of
	// fetching them. It is a cache: with "" or one that cannot be used the clone is slower and the same,
	// and it can go afterwards. Git takes what is in it on trust: name none that agents can write.
	Seed string
}

// What is not looked at in most programs is not made at their start.
var (
	sessionName = lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	commitName  = lazy(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	scpURL      = lazy(`^[^/:]+:`)
)

// lazy makes a regular expression when it is first wanted.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// checkSession refuses a name that cannot be the name of a file and a directory.
func checkSession(op, id string) error { return checkLeaf(op, "session id", id) }

func checkLeaf(op, what, name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return types.Errorf(types.ErrInvalid, op, "", "the %s is empty", what)
	case !sessionName().MatchString(name), strings.Contains(name, ".."), strings.HasSuffix(name, ".lock"):
		return types.Errorf(types.ErrInvalid, op, "", "the %s %q is refused: use letters, digits, dots, - and _, at most 128, beginning with a letter or a digit", what, name)
	}
	return nil
}

// settled returns the spec with the base in its short form, or what is wrong with it.
func (s ProvisionSpec) settled() (ProvisionSpec, error) {
	const op = "Provision"
	invalid := func(format string, args ...any) (ProvisionSpec, error) {
		return s, types.Errorf(types.ErrInvalid, op, s.SessionID, format, args...)
	}
	if err := checkSession(op, s.SessionID); err != nil {
		return s, err
	}
	if s.LeafName == "" {
		s.LeafName = s.SessionID
	} else if err := checkLeaf(op, "leaf name", s.LeafName); err != nil {
		return s, err
	}
	if s.Branch != "" {
		if why := badBranch(s.Branch); why != "" {
			return invalid("the branch %q %s", s.Branch, why)
		}
	}
	if s.RequireBranchBase && s.Strategy != StrategyEmpty {
		if err := s.literalBase(); err != nil {
			return s, err
		}
	} else if s.BaseRef != "" {
		if s.BaseRef = shortRef(s.BaseRef); s.BaseRef == "" || badBranch(s.BaseRef) != "" || strings.HasPrefix(s.BaseRef, "refs/") {
			return invalid("%w: %q; name one, such as main or origin/main", ErrInvalidBaseRef, s.BaseRef)
		}
	}
	if why := badSparse(s.Sparse); why != "" {
		return invalid("%s", why)
	}
	if s.BaseCommit != "" && s.RequireBranchBase {
		return invalid("a base commit is no branch: leave it or RequireBranchBase out")
	}
	switch s.Strategy {
	case StrategyEmpty:
		if s.RepoURL != "" || s.ParentRepoPath != "" || s.Branch != "" || s.BaseRef != "" || s.BaseCommit != "" || s.SkipBaseFetch || s.RequireBranchBase || len(s.Sparse) > 0 || s.Seed != "" {
			return invalid("an empty directory has no repository, branch or base: leave them out, or name another strategy")
		}
	case StrategyClone:
		if s.ParentRepoPath != "" || s.BaseCommit != "" {
			return invalid("a clone has no parent repository and no base commit: leave them out")
		}
		if why := badURL(s.RepoURL); why != "" {
			return invalid("the repository URL %s", why)
		}
		if filepath.IsAbs(s.RepoURL) {
			s.RepoURL = filepath.Clean(s.RepoURL)
		}
		if s.Seed != "" && !filepath.IsAbs(s.Seed) {
			return invalid("the seed %q is no absolute path", s.Seed)
		}
	case StrategyWorktreeAdd:
		if s.ParentRepoPath == "" {
			return invalid("ParentRepoPath is empty: name the repository that gets a work tree")
		}
		if s.RepoURL != "" || s.Seed != "" {
			return invalid("a work tree of %s has no URL and no seed: leave them out", s.ParentRepoPath)
		}
		s.ParentRepoPath = plumbing.Resolved(s.ParentRepoPath)
		if s.BaseCommit != "" && (s.BaseRef != "" || !commitName().MatchString(s.BaseCommit)) {
			return invalid("the base commit %q is refused: give all digits of one, and no BaseRef beside it", s.BaseCommit)
		}
	default:
		return invalid("there is no strategy %d", s.Strategy)
	}
	return s, nil
}

// base is the branch of the remote that is wanted; "" = none.
func (s ProvisionSpec) base() string {
	if s.BaseRef != "" {
		return s.BaseRef
	}
	return s.Branch
}

// shortRef returns the name of a branch without what says where it is.
func shortRef(ref string) string {
	for _, prefix := range []string{"refs/heads/", "refs/remotes/origin/", "origin/"} {
		if short, ok := strings.CutPrefix(ref, prefix); ok {
			return short
		}
	}
	return ref
}

// badBranch says why a name cannot be that of a branch; "" = it can. The rules are git's.
func badBranch(name string) string {
	switch {
	case name == "", len(name) > 1024:
		return "is empty or too long"
	case strings.HasPrefix(name, "-"):
		return "begins with a -, as options do"
	case name == "HEAD", name == "@", strings.HasPrefix(name, "refs/"):
		return "is no name of a branch"
	case strings.Contains(name, ".."), strings.Contains(name, "@{"), strings.Contains(name, "//"), strings.ContainsAny(name, " ~^:?*[\\\x7f"):
		return "holds what the name of a branch cannot hold"
	}
	for _, r := range name {
		if r < 0x20 {
			return "holds a control character"
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock") {
			return "has a part that is empty, begins or ends with a dot, or ends with .lock"
		}
	}
	return ""
}

// badURL says why a URL is not given to git; "" = it is.
func badURL(raw string) string {
	switch {
	case strings.TrimSpace(raw) == "":
		return "is empty"
	case strings.HasPrefix(raw, "-"):
		return "begins with a -, as options do"
	case strings.ContainsFunc(raw, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return "holds a control character"
	case plumbing.HelperURL().MatchString(raw):
		return "names a program that would fetch it"
	}
	if scheme, _, ok := strings.Cut(raw, "://"); ok {
		switch strings.ToLower(scheme) {
		case "http", "https", "ssh", "git", "file":
		default:
			return "is of a kind that is refused: use https, http, ssh, git or file"
		}
		if u, err := url.Parse(raw); err != nil {
			return "is none"
		} else if strings.HasPrefix(u.Host, "-") || strings.HasPrefix(u.User.Username(), "-") {
			return "has a host that begins with a -, as options do"
		}
	} else if scpURL().MatchString(raw) && strings.Contains(raw, "@-") {
		return "has a host that begins with a -, as options do"
	}
	return ""
}
