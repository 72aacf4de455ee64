package workspace

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rnix/internal/plumbing"
	"rnix/internal/proc"
	"rnix/types"
)

// gitGrace is what git gets to remove its lock files when it is cancelled.
const gitGrace = 2 * time.Second

// git runs git. Safe for concurrent use.
type git struct {
	procs   *proc.Manager
	base    string   // our directory, <data>/snapshots
	program string   // "" = there is none
	missing error    // why there is none
	source  []string // the environment of the daemon
	env     []string // what every git gets of it
	home    string   // of the user; "" = not known
	log     *slog.Logger

	patience time.Duration // see plumbing.Watch
}

// newGit finds git in the environment of the daemon.
func newGit(opts Options) *git {
	k := &git{procs: opts.Procs, base: filepath.Join(opts.Dir, "snapshots"), source: opts.Env, log: opts.Log, patience: plumbing.Patience}
	k.program, k.missing = proc.LookPath("git", opts.Env)
	for _, kv := range opts.Env {
		if v, ok := strings.CutPrefix(kv, "HOME="); ok {
			k.home = filepath.Clean(v)
		}
		if strings.HasPrefix(kv, "PATH=") || strings.HasPrefix(kv, "TMPDIR=") {
			k.env = append(k.env, kv)
		}
	}
	return k
}

// call is one run of git.
type call struct {
	dir   string   // working directory; "" = ours
	user  bool     // with the user's own configuration; else with none but the repository's
	mine  bool     // it runs the filters of that configuration; else no program
	env   []string // what git is told by its environment besides, such as another index
	reads []string // the trees that it reads, besides the system, without links; nil = all
	input []byte
	args  []string
}

// spec returns how git is started for a call.
func (k *git) spec(id types.UUID, c call, out *bytes.Buffer, errs *proc.Ring) proc.Spec {
	home := k.emptyHome()
	env := slices.Clone(k.env)
	if c.user && k.home != "" {
		home = k.home
		for _, kv := range k.source {
			if strings.HasPrefix(kv, "XDG_CONFIG_HOME=") {
				env = append(env, kv)
			}
		}
	} else {
		env = append(env, "XDG_CONFIG_HOME="+home, "GIT_CONFIG_NOSYSTEM=1")
	}
	// protocol.allow is a default only, and a repository that says where its missing objects are could name the program that asks there.
	env = append(env, "HOME="+home, "GIT_ALLOW_PROTOCOL=none",
		"GIT_AUTHOR_NAME=rnix", "GIT_AUTHOR_EMAIL=rnix@localhost", "GIT_COMMITTER_NAME=rnix", "GIT_COMMITTER_EMAIL=rnix@localhost")
	env = slices.DeleteFunc(append(env, plumbing.Env()...), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(c.env, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	})
	dir := c.dir
	if dir == "" {
		dir = home
	}
	if c.mine { // filters make temporary files; where they cannot, git says so
		scratch := filepath.Join(k.base, "scratch")
		_ = mkdir(scratch)
		env = append(slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "TMPDIR=") }), "TMPDIR="+scratch)
	}
	s := proc.Spec{
		Kind: proc.KindGit, OwnerUUID: id, Path: k.program, Args: slices.Concat(plumbing.Offline(), c.args),
		Shown: "git " + strings.Join(c.args, " "), Dir: dir, Env: append(env, c.env...), Input: c.input, Stderr: errs, Grace: gitGrace, Git: gitCall(k.base, k.env, c),
	}
	if out != nil {
		s.Stdout = out
	}
	return s
}

// emptyHome is a home directory without any configuration.
func (k *git) emptyHome() string { return filepath.Join(k.base, "home") }

// run runs git and returns its standard output. A git that fails is DRIVER with its last words, one
// that ctx has ended is CANCELLED, and one that waits at a pipe, which an agent can make, is ended and CONFLICT.
func (k *git) run(ctx context.Context, id types.UUID, c call) ([]byte, error) {
	if k.program == "" {
		return nil, types.Errorf(types.ErrUnavailable, "Git", "", "git is not there: %w", k.missing)
	}
	if err := mkdir(k.emptyHome()); err != nil {
		return nil, err
	}
	if filters(k.base, c) {
		return nil, types.Errorf(types.ErrInternal, "Git", c.dir, "git %s would run the filters of a repository", plumbing.Verb(c.args))
	}
	var out bytes.Buffer
	errs := proc.NewRing(4 << 10)
	watched, end := plumbing.Watch(ctx, k.patience, func() plumbing.Where {
		at := worksAt(c)
		return plumbing.Where{Top: at.top, Gits: []string{at.gitDir, at.common}, Ours: k.base}
	})
	started := plumbing.Starting(watched)
	child, err := k.procs.Start(watched, k.spec(id, c, &out, errs))
	if err != nil {
		_ = end() // there is no git that waits
		return nil, err
	}
	started(child.PID())
	exit := child.Wait() // until then out is git's
	if err := end(); err != nil && exit.Cause == proc.Cancelled {
		return nil, types.Errorf(types.ErrConflict, "Git", cmp.Or(worksAt(c).top, c.dir), "%w", err)
	}
	return out.Bytes(), gitError(ctx, c, exit, errs)
}

// filters reports whether a call may read files of a repository that is not ours, below base, through its filters: so does what looks at files, and, of
// files that changed about when an index was written, also all that writes an index. Such a call needs what inert returns.
func filters(base string, c call) bool {
	switch plumbing.Verb(c.args) {
	case "add", "checkout-index", "diff-files", "read-tree", "status", "update-index", "write-tree":
		return !strings.HasPrefix(c.args[0], "--git-dir="+base) && !slices.ContainsFunc(c.env, func(kv string) bool { return strings.HasPrefix(kv, "GIT_CONFIG_COUNT=") })
	}
	return false
}

// gitError says how a git has failed; nil if it has not.
func gitError(ctx context.Context, c call, exit proc.ExitInfo, errs *proc.Ring) error {
	name := strings.TrimSpace("git " + plumbing.Verb(c.args))
	switch {
	case exit.Cause == proc.Cancelled:
		return types.Errorf(types.ErrCancelled, "Git", c.dir, "%s: %w", name, context.Cause(ctx))
	case exit.Err != nil:
		return types.Errorf(types.ErrInternal, "Git", c.dir, "%s: %w", name, exit.Err)
	case exit.Code != 0:
		return types.Errorf(types.ErrDriver, "Git", c.dir, "%s: exit status %d: %s", name, exit.Code, strings.TrimSpace(errs.String()))
	}
	return nil
}

// both runs two calls side by side.
func (k *git) both(ctx context.Context, id types.UUID, a, b call) (outA, outB []byte, err error) {
	var errB error
	var second sync.WaitGroup
	second.Go(func() { outB, errB = k.run(ctx, id, b) }) // ends with its git; waited for below
	outA, err = k.run(ctx, id, a)
	second.Wait()
	if err == nil {
		err = errB
	}
	return outA, outB, err
}

// config reads the configuration of a git directory, with the user's own or without.
func (k *git) config(ctx context.Context, id types.UUID, gitDir string, user bool) (plumbing.Config, error) {
	out, err := k.run(ctx, id, call{user: user, args: append([]string{"--git-dir=" + gitDir}, plumbing.ListConfig()...)})
	return plumbing.ParseConfig(out), err
}
