package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"rnix/internal/plumbing"
	"rnix/types"
)

const (
	stopGrace = 2 * time.Second // what git gets to remove its lock files when it is stopped
	maxOutput = 64 << 20        // bytes that a git may write
)

// runner runs git.
type runner struct {
	run EnvCommandRunner
	env bool // it takes an environment

	patience time.Duration // see plumbing.Watch; 0 = plumbing.Patience
}

// whereOf returns where a git works, of what its first arguments say.
func whereOf(args []string) (at plumbing.Where) {
	for i, arg := range args {
		dir, ok := strings.CutPrefix(arg, "--git-dir=")
		switch {
		case ok:
			at.Gits = append(at.Gits, dir)
		case strings.HasPrefix(arg, "--work-tree="):
			at.Top = strings.TrimPrefix(arg, "--work-tree=")
		case arg == "-C" && i+1 < len(args):
			git, top := plumbing.Above(args[i+1])
			at.Top, at.Gits = top, append(at.Gits, git)
		}
	}
	for _, dir := range at.Gits {
		at.Gits = append(at.Gits, plumbing.CommonOf(dir))
	}
	return at
}

// git runs git with settings beside those that always hold, and returns what it wrote.
func (r runner) git(ctx context.Context, set []plumbing.Setting, args ...string) ([]byte, error) {
	env := slices.Concat(plumbing.Env(), []string{"LANGUAGE=C", "GCM_INTERACTIVE=never", "GIT_ASKPASS=", "SSH_ASKPASS="},
		plumbing.Given(os.Environ(), plumbing.Online(), set))
	watched, end := plumbing.Watch(ctx, cmp.Or(r.patience, plumbing.Patience), func() plumbing.Where { return whereOf(args) })
	out, err := r.run(watched, env, "git", args...)
	if pipe := end(); pipe != nil && err != nil {
		return out, types.Errorf(types.ErrConflict, "Git", plumbing.Verb(args), "%w", pipe)
	}
	if err != nil && ctx.Err() != nil {
		return out, types.Errorf(types.ErrCancelled, "Git", plumbing.Verb(args), "%w", context.Cause(ctx))
	}
	if err != nil {
		return out, &gitError{verb: plumbing.Verb(args), said: strings.TrimSpace(string(out)), err: err}
	}
	return out, nil
}

// gitError is a git that has failed.
type gitError struct {
	verb, said string
	err        error
}

func (e *gitError) Error() string {
	if e.said == "" {
		return fmt.Sprintf("git %s: %v", e.verb, e.err)
	}
	return fmt.Sprintf("git %s: %v: %s", e.verb, e.err, lastWords(e.said))
}

func (e *gitError) Unwrap() error { return e.err }

// lastWords returns the end of a long text.
func lastWords(s string) string {
	if len(s) > 2<<10 {
		s = "..." + strings.ToValidUTF8(s[len(s)-2<<10:], "")
	}
	return s
}

// failed reports whether git has run and failed with an exit status.
func failed(err error) bool {
	var e *gitError
	return errors.As(err, &e)
}

// exited reports whether git has ended with an exit status.
func exited(err error, code int) bool {
	var e interface{ ExitCode() int }
	return errors.As(err, &e) && e.ExitCode() == code
}

// passed are the variables that the default runner passes on: where programs and the user's own
// configuration are, and how servers are reached.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
	"http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"}

// execute is the runner where none is given: what a program wrote to its standard output, and behind
// that, if it has failed, what it wrote to standard error.
func execute(ctx context.Context, extra []string, name string, args ...string) ([]byte, error) {
	var out, errs limited
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr = &out, &errs
	for _, k := range passed {
		if v, ok := os.LookupEnv(k); ok {
			c.Env = append(c.Env, k+"="+v)
		}
	}
	c.Env = append(c.Env, extra...)
	c.Dir = "/"
	if lock, ok := ctx.Value(lockKey{}).(*os.File); ok {
		c.ExtraFiles = []*os.File{lock}
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal to ask at, and a group to signal
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = stopGrace
	started := plumbing.Starting(ctx)
	err := c.Start()
	if err == nil {
		started(c.Process.Pid)
		err = c.Wait()
	}
	if err != nil {
		if c.Process != nil && (ctx.Err() != nil || errors.Is(err, exec.ErrWaitDelay)) {
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // helpers that it has left; its group is ours alone
		}
		return append(out.Bytes(), errs.Bytes()...), err
	}
	if err == nil && out.over {
		err = fmt.Errorf("wrote more than %d MiB", maxOutput>>20)
	}
	return out.Bytes(), err
}

// limited keeps the beginning of what is written to it.
type limited struct {
	bytes.Buffer
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxOutput {
		l.over = true
		return len(p), nil
	}
	return l.Buffer.Write(p)
}
