package harness

import (
	"context"
	"strings"

	"rnix/drivers/llm"
	"rnix/internal/harness"
	"rnix/internal/proc"
)

// Confined says how a command line is confined.
type Confined struct {
	Box *proc.Box // nil = as proc.Confine says
	// Home is where it finds its home, in place of the user's; empty = the user's, and it is not confined.
	Home string
	// Road is where on the loopback (host:port) it reaches the kernel, which serves its MCP server there at RoadPath; empty = it has the socket.
	Road string
	// Gateway is where it finds the vendors of its models; nil = it calls them itself.
	Gateway *harness.Gateway
	// Done is called when it has ended, or could not be started; nil = nothing is to be done.
	Done func()
}

// confine asks how a command line is confined that is started now, whose private directory is dir.
func confine(ctx context.Context, c *Config, dir string) (Confined, error) {
	if c.Confine == nil {
		return Confined{}, nil
	}
	return c.Confine(llm.CallerFrom(ctx), c.CLI, c.Program, dir, c.Sandbox == harness.SandboxReadOnly)
}

// Over tells whoever confines it that it has ended, once.
func (c *Confined) Over() {
	if c.Done != nil {
		c.Done()
	}
	c.Done = nil
}

// Also has end called when it has ended, before what is called then so far.
func (c *Confined) Also(end func()) {
	done := c.Done
	c.Done = func() {
		end()
		if done != nil {
			done()
		}
	}
}

// secret looks up a variable of the user for a command line: one that has a home of its own keeps nothing elsewhere.
func (c *Confined) secret(ctx context.Context, cli harness.CLI, name string) string {
	if c.Home != "" && name == cli.Login().Variable {
		return ""
	}
	v, _ := llm.SecretFrom(ctx, name)
	return v
}

// variable looks up a variable that a command line has.
func (c *Confined) variable(ctx context.Context, cli harness.CLI, name string) string {
	switch {
	case c.Home == "":
		return variable(ctx, name)
	case name == "HOME":
		return c.Home
	case name == cli.Login().Variable, strings.HasPrefix(name, "XDG_"):
		return ""
	}
	return variable(ctx, name)
}
