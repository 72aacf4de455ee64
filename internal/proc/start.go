package proc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"rnix/internal/redact"
	"rnix/internal/sandbox"
	"rnix/types"
)

// Start starts a child. When ctx ends, the child is ended, with Spec.Grace. It fails with NOT_FOUND
// if there is no such program or directory, PERMISSION if it may not be run, INVALID for a bad spec,
// STORAGE if the child cannot be registered, and UNAVAILABLE after Close; then nothing runs. The
// caller need not call Wait: the child is waited for in any case.
func (m *Manager) Start(ctx context.Context, spec Spec) (*Child, error) {
	opened := false
	defer func() {
		if !opened && spec.Box != nil && spec.Box.Free != nil {
			spec.Box.Free()
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, types.Errorf(types.ErrCancelled, "Start", spec.Path, "%w", context.Cause(ctx))
	}
	path, err := resolve(spec)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, closedError(spec)
	}
	m.work.Add(1) // this start; Close waits for it
	m.mu.Unlock()
	defer m.work.Done()

	by, err := confinedBy(m, spec)
	if err != nil {
		return nil, err
	}
	c := &Child{manager: m, spec: spec, command: commandText(spec, m.secrets), done: make(chan struct{})}
	token := rand.Text()
	c.overhear(by)
	c.screen(m.secrets)
	c.entry = m.registry.entry(token, spec, c.command)
	if m.leaseOf != nil {
		c.entry.Lease = m.leaseOf(spec.Owner, spec.OwnerUUID)
	}
	if err := c.openChannel(); err != nil {
		return nil, err
	}
	if err := c.openBox(by, path, token); err != nil {
		c.channel.close()
		return nil, err
	}
	opened = true // what it holds is given back with it
	c.cradle = m.births.cradle(spec.Owner, token)
	c.entry.Cgroup = string(c.cradle)
	if err := m.births.bound(c.cradle.above(), spec.Owner); err != nil {
		c.abandon()
		return nil, types.Errorf(types.ErrUnavailable, "Start", spec.Path, "%w", err)
	}
	c.before = m.births.hits(spec.Owner)
	if err := m.registry.write(c.entry); err != nil {
		c.abandon()
		return nil, types.Errorf(types.ErrStorage, "Start", spec.Path, "cannot register the child: %w", err)
	}
	family.forking.RLock()
	if err := m.fork(c); err != nil {
		family.forking.RUnlock()
		err = full(c, err)
		c.abandon()
		m.registry.forget(c.entry, m.log)
		return nil, err
	}
	c.entry.Leader = identityOf(c.process.Pid)
	c.tree = newTree(root{c.entry.Leader, token})
	c.tree.cradle = c.cradle
	c.tree.alone = noOrphans
	c.tree.left = c.leftBehind
	c.arm()
	m.mu.Lock()
	m.children[c.process.Pid] = c
	closed := m.closed
	m.work.Add(1)
	m.mu.Unlock()
	family.forking.RUnlock()
	settle(m, c)
	failed := m.registry.write(c.entry) // until here a crash leaves it to be found by its token
	c.open()
	go c.watch() // ends when the child has ended; waited for by Close
	switch {
	case failed != nil:
		c.Kill()
		return nil, types.Errorf(types.ErrStorage, "Start", spec.Path, "cannot register the child: %w", failed)
	case closed:
		c.Kill()
		return nil, closedError(spec)
	}
	heed(c)
	c.follow(ctx)
	if err := c.opened(); err != nil {
		err = full(c, err)
		c.Kill()
		if ctx.Err() != nil { // that has ended it
			err = types.Errorf(types.ErrCancelled, "Start", spec.Path, "%w", context.Cause(ctx))
		}
		return nil, err
	}
	return c, nil
}

func closedError(spec Spec) error {
	return types.Errorf(types.ErrUnavailable, "Start", spec.Path, "no child can be started: the daemon is stopping")
}

// resolve checks a spec and returns the path of its program.
func resolve(spec Spec) (string, error) {
	invalid := func(format string, args ...any) (string, error) {
		return "", types.Errorf(types.ErrInvalid, "Start", spec.Path, format, args...)
	}
	switch {
	case !spec.Kind.valid():
		return invalid("unknown kind of child %q", spec.Kind)
	case spec.Path == "":
		return invalid("no program is named")
	case spec.Dir != "" && !filepath.IsAbs(spec.Dir):
		return invalid("working directory %q is not absolute", spec.Dir)
	case spec.StdinPipe && spec.Input != nil, spec.StdoutPipe && spec.Stdout != nil:
		return invalid("a stream cannot be a pipe and something else too")
	case len(spec.Credentials) > 0 && spec.Kind != KindLLM && spec.Kind != KindMCP && spec.Kind != KindHarness && spec.Kind != KindKey:
		return invalid("a child of kind %s cannot have credentials", spec.Kind)
	}
	for _, s := range append(append(append([]string{spec.Path, spec.Dir}, spec.Args...), spec.Env...), spec.Credentials...) {
		if strings.IndexByte(s, 0) >= 0 {
			return invalid("a NUL byte stands in the program, its arguments or its environment")
		}
	}
	if spec.Dir != "" {
		if info, err := os.Stat(spec.Dir); err != nil {
			return "", startError(spec, err)
		} else if !info.IsDir() {
			return invalid("working directory %s is a file", spec.Dir)
		}
	}
	return LookPath(spec.Path, spec.Env)
}

// fork opens the pipes of a child and starts it.
func (m *Manager) fork(c *Child) error {
	files, err := c.openPipes()
	if err != nil {
		return types.Errorf(types.ErrExhausted, "Start", c.spec.Path, "cannot make its pipes: %w", err)
	}
	attr := &os.ProcAttr{Dir: c.exec.dir, Env: c.exec.env, Files: c.channel.files(c.inherited(files)), Sys: &syscall.SysProcAttr{Setsid: true}}
	dieWithParent(attr.Sys)
	forked := make(chan error, 1)
	job := func() {
		c.started = time.Now()
		forked <- bear(c, attr)
	}
	m.jobs <- job // the launcher cannot end before this start has
	err = <-forked
	closeAll(files)
	c.channel.given()
	if err != nil {
		c.closePipes()
		return startError(c.spec, err)
	}
	c.adopts = c.adopts || c.plan.Rung == sandbox.RungLandlock // its helper asks for that; see startProcess
	c.copyPipes()
	return nil
}

// bear starts a child's program in its cgroup, and without one where it cannot be born in that.
func bear(c *Child, attr *os.ProcAttr) (err error) {
	if c.cradle != "" {
		shut, err := bornIn(attr.Sys, c.cradle)
		if err == nil {
			c.process, c.adopts, err = startProcess(c.exec.path, c.exec.argv, attr)
			shut()
		}
		if err == nil || !unborn(err) {
			return err
		}
		if !c.before.Bounds.IsZero() {
			return fmt.Errorf("%w: %w", errNoCgroup, err)
		}
	}
	c.process, c.adopts, err = startProcess(c.exec.path, c.exec.argv, attr)
	if err == nil && c.cradle != "" {
		c.manager.log.Warn("a child was not born in its cgroup; it is found and frozen without one", "pid", c.process.Pid, "cgroup", string(c.cradle))
		leaveCradle(c)
	}
	return err
}

// leaveCradle ends what is in the cgroup of a child, and removes it.
func leaveCradle(c *Child) {
	if c.cradle != "" {
		c.manager.births.clear(c.cradle)
		c.cradle, c.entry.Cgroup = "", ""
	}
}

// startError gives a failure of the operating system its code.
func startError(spec Spec, err error) error {
	code := types.ErrInternal
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = types.ErrNotFound
	case errors.Is(err, fs.ErrPermission):
		code = types.ErrPermission
	case errors.Is(err, syscall.E2BIG), errors.Is(err, syscall.ENOEXEC):
		code = types.ErrInvalid
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		code = types.ErrExhausted
	}
	return types.Errorf(code, "Start", spec.Path, "%w", err)
}

// commandText returns program and arguments as people see them, at most 200 bytes.
func commandText(spec Spec, secrets *redact.Set) string {
	const most = 200
	text := spec.Shown
	if text == "" {
		text = strings.Join(append([]string{spec.Path}, spec.Args...), " ")
	}
	text = secrets.String(text)
	if len(text) > most {
		text = string(cutEnd([]byte(text[:most]))) + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
