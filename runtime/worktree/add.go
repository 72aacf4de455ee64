package worktree

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// objectName is a line of git's that is the name of an object.
var objectName = lazy(`(?m)^([0-9a-f]{64}|[0-9a-f]{40})$`)

// fetchBase brings the base up to date. It also reads the configuration of the repository: filters
// that it names are not run, and with programs that it names nothing is fetched.
func (p *attempt) fetchBase(ctx context.Context) error {
	parent := []string{"-C", p.rec.Parent}
	conf, err := p.git.configOf(ctx, parent...)
	if err != nil {
		return types.Errorf(types.ErrDriver, "Provision", p.rec.Parent, "its repository cannot be read: %w", err)
	}
	p.quiet = conf.quiet
	if len(conf.included) > 0 { // the work tree that is to be made may be one for which it holds
		return types.Errorf(types.ErrPermission, "Provision", p.rec.Parent, "the repository's own configuration includes files under conditions (%s), and agents can write it: "+
			"which programs these would run is not known; say that in your global configuration instead", strings.Join(conf.included, ", "))
	}
	base := p.spec.base()
	if p.spec.SkipBaseFetch || p.spec.BaseCommit != "" || base == "" {
		return nil
	}
	if len(conf.programs) > 0 {
		return types.Errorf(types.ErrPermission, "Provision", p.rec.Parent, "%w: the repository's own configuration names programs that a fetch would run (%s), and agents can write it: "+
			"say that in your global configuration instead, or set SkipBaseFetch", ErrBaseFetch, strings.Join(conf.programs, ", "))
	}
	auth, err := p.authenticate(ctx, conf.remote)
	if err != nil {
		return err
	}
	timeout := p.spec.BaseFetchTimeout
	if timeout <= 0 {
		timeout = DefaultBaseFetchTimeout
	}
	took, err := p.fetch(ctx, p.rec.Common, base, auth.set, parent, timeout)
	if err != nil && errors.Is(err, ErrInvalidBaseRef) && p.spec.BaseRef == "" && p.has(ctx, "refs/heads/"+p.spec.Branch) {
		p.log.Info("the remote does not have the branch: the local one is used", "branch", p.spec.Branch, "repository", p.rec.Parent)
		return nil
	}
	if err != nil {
		return err
	}
	p.rec.BaseFetched, p.rec.BaseFetch = true, took
	return nil
}

// has reports whether the repository has a reference.
func (p *attempt) has(ctx context.Context, ref string) bool { return p.commit(ctx, ref) != "" }

// commit returns the commit of a reference; "" if there is none.
func (p *attempt) commit(ctx context.Context, ref string) string {
	return p.commitIn(ctx, p.rec.Parent, ref)
}

// commitIn is commit in a work tree, which has a HEAD of its own.
func (p *attempt) commitIn(ctx context.Context, dir, ref string) string {
	out, err := p.git.git(ctx, p.quiet, "-C", dir, "rev-parse", "--quiet", "--verify", "--end-of-options", ref+"^{commit}")
	if err != nil {
		return ""
	}
	return string(objectName().Find(out))
}

// start returns where a new branch begins.
func (p *attempt) start(ctx context.Context) (string, error) {
	base := p.spec.base()
	switch {
	case p.spec.BaseCommit != "":
		return p.spec.BaseCommit, nil
	case base == "":
		return "HEAD", nil
	case p.rec.BaseFetched:
		p.rec.BaseRef = base
		return "refs/remotes/origin/" + base, nil
	case !p.spec.SkipBaseFetch: // the remote has no such branch, but there is a local one
		return "refs/heads/" + base, nil
	}
	p.rec.BaseRef = base
	for _, ref := range []string{"refs/remotes/origin/" + base, "refs/heads/" + base} {
		if p.has(ctx, ref) {
			return ref, nil
		}
	}
	if p.spec.BaseRef != "" {
		return "", types.Errorf(types.ErrNotFound, "Provision", p.rec.Parent, "%w: it has no branch %s, and none of origin's: fetch it first", ErrInvalidBaseRef, base)
	}
	p.rec.BaseRef = ""
	return "HEAD", nil
}

// addWorktree makes the directory a linked work tree.
func (p *attempt) addWorktree(ctx context.Context) error {
	start, err := p.start(ctx)
	if err != nil {
		return err
	}
	leave, err := shared.enter(ctx, p.rec.Common, toWrite)
	if err != nil {
		return err
	}
	defer leave()
	if err := p.add(ctx, start); err != nil {
		return err
	}
	out, err := p.git.git(ctx, p.quiet, "-C", p.rec.Path, "rev-parse", "HEAD", "--")
	if p.rec.BaseSHA = string(objectName().Find(out)); err == nil && p.rec.BaseSHA == "" {
		err = types.Errorf(types.ErrDriver, "Provision", p.rec.Path, "git does not say what is checked out: %q", lastWords(string(out)))
	}
	if err != nil {
		return types.Errorf(types.ErrDriver, "Provision", p.rec.Path, "%w", err)
	}
	p.rec.GitDir = plumbing.Dir(p.rec.Path)
	if err := p.atBase(ctx); err != nil {
		return err
	}
	return p.narrow(ctx)
}

// add runs git worktree add. A new branch is made by git itself, which refuses one that exists; only
// then is it looked at.
func (p *attempt) add(ctx context.Context, start string) error {
	run := func(args ...string) error {
		if len(p.spec.Sparse) > 0 { // narrow checks out
			args = append([]string{"--no-checkout"}, args...)
		}
		args = append([]string{"-C", p.rec.Parent, "worktree", "add", "--quiet"}, args...)
		_, err := p.git.git(ctx, p.quiet, args...)
		if err != nil {
			return types.Errorf(types.ErrDriver, "Provision", p.rec.Path, "%w", err)
		}
		return nil
	}
	branch := p.spec.Branch
	if branch == "" {
		return run("--detach", "--", p.rec.Path, start)
	}
	local := "refs/heads/" + branch
	if start == local {
		return run("--", p.rec.Path, branch)
	}
	err := run("--no-track", "-b", branch, "--", p.rec.Path, start)
	if err == nil || !failed(err) || ctx.Err() != nil {
		return err
	}
	tip := p.commit(ctx, local)
	if tip == "" {
		return err
	}
	if p.spec.NewBranch {
		return types.Errorf(types.ErrConflict, "Provision", branch, "%w: %w", ErrBranchTaken, err)
	}
	if where := p.checkedOut(ctx, local); where != "" {
		return types.Errorf(types.ErrConflict, "Provision", branch, "%w: it is checked out at %s: %w", errInUse, where, err)
	}
	// What the branch has and its start has not is work: it stays. What is only behind is brought forward.
	if _, aerr := p.git.git(ctx, p.quiet, "-C", p.rec.Parent, "merge-base", "--is-ancestor", tip, start); aerr == nil {
		to := p.commit(ctx, start)
		if _, uerr := p.git.git(ctx, p.quiet, "-C", p.rec.Parent, "update-ref", "-m", "rnix: brought forward", local, to, tip); uerr != nil {
			return types.Errorf(types.ErrConflict, "Provision", branch, "%w", uerr)
		}
	} else if !exited(aerr, 1) {
		return types.Errorf(types.ErrDriver, "Provision", branch, "%w", aerr)
	} else {
		p.log.Info("the branch has its own commits: it is checked out as it is", "branch", branch, "base", start)
	}
	return run("--", p.rec.Path, branch)
}

// errInUse says that something is in use that somebody else may give back.
var errInUse = errors.New("in use")

// checkedOut returns the work tree in which a branch is checked out; "" if it is in none.
func (p *attempt) checkedOut(ctx context.Context, ref string) string {
	out, err := p.git.git(ctx, nil, "-C", p.rec.Parent, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return ""
	}
	for _, w := range plumbing.ParseWorktrees(out) {
		if w.Branch == ref {
			return w.Path
		}
	}
	return ""
}

// retriable reports whether what stood in the way may go away by itself. Git has no exit status for
// these, so where looking does not tell, its words do: those of the versions before 2.42 and after.
func (p *attempt) retriable(ctx context.Context, err error) bool {
	switch {
	case ctx.Err() != nil, errors.Is(err, ErrWorkareaRootOccupied), errors.Is(err, ErrBaseFetch), errors.Is(err, ErrBranchTaken), errors.Is(err, ErrInvalidBaseRef), errors.Is(err, ErrLostOwnership):
		return false
	case errors.Is(err, errInUse):
		return true
	case p.spec.Strategy == StrategyWorktreeAdd && p.spec.Branch != "" && failed(err):
		leave, gerr := shared.enter(ctx, p.rec.Common, toRead) // git cannot list them while one is half registered
		if gerr != nil {
			return false
		}
		defer leave()
		if p.checkedOut(ctx, "refs/heads/"+p.spec.Branch) != "" {
			return true
		}
	}
	var e *gitError
	return errors.As(err, &e) && inUse([]byte(e.said+e.err.Error()))
}

// inUse reads in git's words that somebody else is using something.
func inUse(said []byte) bool {
	for _, words := range []string{"already checked out", "already used by worktree at", "already exists", "could not lock config file", "failed to read .git/worktrees/",
		"unable to create", "Agent already running", "Agent is still running"} {
		if bytes.Contains(said, []byte(words)) && (words != "unable to create" || bytes.Contains(said, []byte(".lock': File exists"))) {
			return true
		}
	}
	return false
}
