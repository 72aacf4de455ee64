package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/vfs"
)

// child is a server that runs as our OS child.
type child struct {
	proc    *proc.Child
	lines   *lines
	stderr  *ears
	secrets []string // values that error texts must not show
	lim     limits
	buried  chan struct{} // closed when nothing is left of it
	// confined says that it runs in a sandbox.
	confined bool
}

// startChild starts a server. It fails with TIMEOUT if the child is not up within the spawn timeout:
// that is about starting a program; how long it takes to be ready is the mount's affair.
func (f *factory) startChild(ctx context.Context, config vfs.MCPConfig, said *said) (link, error) {
	c := &child{stderr: &ears{ring: proc.NewRing(64 << 10), said: said}, secrets: secretsOf(config), lim: f.lim, buried: make(chan struct{})}
	spec := f.spec(config)
	if f.opts.Confine != nil {
		var err error
		if spec.Box, err = f.opts.Confine(config, spec.Env); err != nil {
			return nil, err
		}
		c.confined = spec.Box.Plan.Rung != sandbox.RungNone
	}
	spec.Stderr = c.stderr
	limit := config.SpawnTimeout.Or(defaultSpawnTimeout)
	if limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, errors.New("the program was not started within "+limit.String()+" (spawn_timeout)"))
		defer stop()
	}
	type started struct {
		child *proc.Child
		err   error
	}
	result := make(chan started, 1)
	go func() { // ends with the start, for which the Close of the manager waits
		p, err := f.mgr.Start(context.Background(), spec) // it lives until its connection is closed
		result <- started{p, err}
	}()
	select {
	case r := <-result:
		if r.err != nil {
			return nil, r.err
		}
		c.proc = r.child
	case <-ctx.Done():
		go func() { // ends when the start has, as above
			if r := <-result; r.err == nil {
				r.child.Kill()
			}
		}()
		return nil, vfs.Ended(ctx, "Start", config.Command)
	}
	c.lines = newLines(c.proc.Stdin(), c.proc.Stdout(), f.lim.frame)
	go c.bury() // ends after the child or its connection, whichever comes first; waited for by wait
	return c, nil
}

// secretsOf returns the values that were given to a server.
func secretsOf(config vfs.MCPConfig) (out []string) {
	for _, v := range config.Env {
		if len(v) >= 8 { // shorter ones are no secrets, and would tear words apart
			out = append(out, v)
		}
	}
	return out
}

// spec says what to start. The environment is that of the owner; what the configuration declares goes
// on top and is not filtered, for it was written there on purpose.
func (f *factory) spec(config vfs.MCPConfig) proc.Spec {
	env := config.Owner.Env
	if len(env) == 0 {
		env = f.opts.Env
	}
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, declared := config.Env[name]
		return declared
	})
	var declared []string
	for name, value := range config.Env {
		declared = append(declared, name+"="+value)
		if name == "PATH" { // the program is looked up there
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(declared)
	dir := config.Dir
	if dir == "" {
		dir = config.Owner.WorkDir
	}
	return proc.Spec{
		Kind: proc.KindMCP, Owner: config.Owner.PID, OwnerUUID: config.Owner.UUID,
		Path: config.Command, Args: config.Args, Shown: config.Shown, Dir: dir, Env: env, Credentials: declared,
		StdinPipe: true, StdoutPipe: true,
	}
}

func (c *child) connection() mcp.Connection { return c.lines }
func (c *child) negotiated(string)          {}
func (c *child) wait()                      { <-c.buried }
func (c *child) pid() int                   { return c.proc.PID() }

// bury ends the child when its connection has ended, and the connection when the child has. A server
// that is asked to go is given half of the grace to go because its input has ended, as the protocol
// has it, and the other half after SIGTERM.
func (c *child) bury() {
	defer close(c.buried)
	select {
	case <-c.proc.Done():
		// Read still finds what it wrote last, and closes the connection at the end.
		<-c.lines.closed
	case <-c.lines.closed:
		timer := time.NewTimer(c.lim.grace / 2)
		select {
		case <-c.proc.Done():
		case <-timer.C:
		}
		timer.Stop()
		c.proc.Stop(c.lim.grace / 2)
	}
	c.lines.writer.Wait()
	c.stderr.end()
}

// notes says how the child ended, unless it was ended by us, and how its standard error ends.
func (c *child) notes(byItself bool) string {
	timer := time.NewTimer(2 * c.lim.grace)
	defer timer.Stop()
	select {
	case <-c.buried:
	case <-timer.C:
	}
	var parts []string
	select {
	case <-c.proc.Done():
		switch end := c.proc.Wait(); {
		case !byItself || end.Cause != proc.Exited:
		case end.Signal != 0:
			parts = append(parts, fmt.Sprintf("it was ended by signal %d (%s)", int(end.Signal), end.Signal))
		default:
			parts = append(parts, fmt.Sprintf("it exited with status %d", end.Code))
		}
	default:
	}
	if said := c.lastWords(); said != "" {
		parts = append(parts, "its standard error ends with: "+said)
	}
	if len(parts) > 0 && c.confined {
		parts = append(parts, "it runs in the sandbox: what it needs besides is said under sandbox of its entry (docs/security.md)")
	}
	return strings.Join(parts, "; ")
}

// lastWords returns the end of what the child wrote to its standard error, without the values that
// were given to it.
func (c *child) lastWords() string {
	text := strings.ToValidUTF8(string(c.stderr.ring.Bytes()), "\uFFFD")
	for _, s := range c.secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	text = strings.TrimSpace(text)
	if len(text) > c.lim.tail {
		text = "..." + strings.ToValidUTF8(text[len(text)-c.lim.tail:], "")
	}
	return text
}
