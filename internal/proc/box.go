package proc

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"rnix/internal/sandbox"
	"rnix/types"
)

// Box is how a child is confined.
type Box struct {
	Plan sandbox.Plan
	// Env is the child's environment in place of Spec.Env; nil = that. It is cleared of what is blocked, as that is.
	Env []string
	// Start is what is started in place of the program of the Spec; nil = that.
	Start *Start
	// Inner are ports of 127.0.0.1, as the child finds it, at which something is served for it alone: see sandbox.Command. The network of the plan is the child's own.
	Inner []Inner
	// Clock is given, before anything is served, what stops the child's time limit, until the function that it returns is called; nil = nothing of the kind is needed.
	Clock func(hold func() (goOn func()))
	// Refused returns what was refused at these; nil = nothing is. It is called once, when nothing is served any more.
	Refused func() []sandbox.Refusal
	// Free gives back what was made for the child; nil = nothing was. It is called once, when nothing of the child is left, or none came to be.
	Free func()
	// Ended is called once for each child that has it, before Done is closed: with how the child has ended, and the end of what it has written to Spec.Stderr, if that
	// is a writer of its own. It must not wait for the child. nil = nobody is told.
	Ended func(exit ExitInfo, said string)
}

// Inner is a port at which something is served for one child, and what it has started.
type Inner struct {
	Port uint16
	// Serve is called once, when the child's program is about to run. The listener is closed when the child has ended; Serve ends all that has come of it,
	// and returns.
	Serve func(net.Listener)
}

// Start is what is started in place of a program that others can change, such as a copy of it. People see the command line of the Spec.
type Start struct {
	Path string // "" = that of the Spec
	Args []string
}

// Confine says how m finds out how a child is confined that does not say it itself, in the Spec. An error refuses the child. It is called
// before the first Start; without it such a child is not confined.
func Confine(m *Manager, by func(Spec) (Box, error)) { m.boxOf = by }

// confinedBy returns how a child of m is confined.
func confinedBy(m *Manager, spec Spec) (Box, error) {
	switch {
	case spec.Box != nil:
		return *spec.Box, nil
	case m.boxOf != nil:
		return m.boxOf(spec)
	}
	return Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}}, nil
}

// openBox makes the box of a child whose program has this path, and what to start for it.
func (c *Child) openBox(by Box, path, token string) (err error) {
	spec := c.spec
	c.plan, c.free, c.inner, c.clock, c.refused = by.Plan, by.Free, by.Inner, by.Clock, by.Refused
	if s := by.Start; s != nil {
		if spec.Args = s.Args; s.Path != "" {
			spec.Path, path = s.Path, s.Path
		}
	}
	if by.Env != nil {
		spec.Env = by.Env
	}
	c.exec.path, c.exec.argv, c.exec.env, c.exec.dir = path, append([]string{spec.Path}, spec.Args...), c.channel.environ(childEnv(spec, token)), spec.Dir
	if by.Plan.Rung == sandbox.RungNone && by.Plan.Policy.Level == sandbox.LevelOff && len(by.Inner) == 0 {
		return nil
	}
	dir := spec.Dir
	if dir == "" {
		dir = "/"
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	command := sandbox.Command{Path: path, Args: spec.Args, Env: c.exec.env, Dir: dir}
	if c.channel.file != nil {
		command.Keep = []int{ChannelFD}
	}
	for _, in := range by.Inner {
		command.Listen = append(command.Listen, in.Port)
	}
	if c.box, err = by.Plan.Open(command); err != nil {
		return types.Errorf(types.CodeOf(err), "Start", spec.Path, "%w", err)
	}
	c.entry.Held = c.box.Held()
	c.exec.path, c.exec.argv, c.exec.env, c.exec.dir = c.box.Path, append([]string{c.box.Path}, c.box.Args...), c.box.Env, "/"
	return nil
}

// overhear keeps the end of what a child says for who is told of its end.
func (c *Child) overhear(by Box) {
	if c.ended = by.Ended; c.ended == nil {
		return
	}
	c.said = NewRing(0)
	if spec := &c.spec; spec.Stderr != nil && (spec.Stdout == nil || !same(spec.Stdout, spec.Stderr)) {
		spec.Stderr = io.MultiWriter(spec.Stderr, c.said)
	}
}

// tell tells of the end of a child, once it is known.
func (c *Child) tell() {
	if c.ended != nil {
		c.ended(c.exit, c.said.String())
	}
}

// PlanOf returns how a child is confined.
func PlanOf(c *Child) sandbox.Plan { return c.plan }

// program is what the operating system is asked to start.
type program struct {
	path, dir string
	argv, env []string
}

// inherited returns the descriptors of a child, given its streams.
func (c *Child) inherited(streams []*os.File) []*os.File {
	if c.box == nil {
		return streams
	}
	return c.box.Inherited([3]*os.File(streams))
}

// opening is what came of the start of a command in a box.
type opening struct {
	done chan struct{}
	err  error // written before done is closed, read after
}

// open begins to wait until the command of a child runs.
func (c *Child) open() {
	c.opening.done = make(chan struct{})
	if c.box == nil {
		close(c.opening.done)
		return
	}
	go func() { // ends with the start, or with the child; waited for by watch
		defer close(c.opening.done)
		if c.opening.err = c.box.Started(); c.opening.err == nil {
			serve(c)
		}
	}()
}

// serve begins to serve what a child finds inside of its box.
func serve(c *Child) {
	if c.clock != nil {
		c.clock(func() func() { return hold(c) })
	}
	for i, l := range c.box.Listeners() {
		c.serving.Go(func() { c.inner[i].Serve(l) }) // ends with the listener; waited for by closeInner
	}
}

// closeInner ends what is served for a child whose start is over, and returns what was refused to it.
func closeInner(c *Child) []sandbox.Refusal {
	if c.box == nil || len(c.inner) == 0 {
		return nil
	}
	for _, l := range c.box.Listeners() {
		_ = l.Close() // again is no news
	}
	c.serving.Wait()
	if c.refused == nil {
		return nil
	}
	return c.refused()
}

// opened waits until the command of a child runs, and returns why it does not.
func (c *Child) opened() error {
	<-c.opening.done
	if err := c.opening.err; err != nil {
		return types.Errorf(types.CodeOf(err), "Start", c.spec.Path, "%w", err)
	}
	return nil
}

// closeBox gives back what the box of a child holds. It is called once, when nothing of the child is left or none came to be.
func (c *Child) closeBox() (changed []string) {
	if c.free != nil {
		defer c.free()
	}
	if c.box == nil {
		return nil
	}
	changed, err := c.box.Close()
	if err != nil {
		c.manager.log.Warn("the sandbox of a child left something behind", "command", c.command, "error", err)
	}
	return changed
}

// abandon gives back what was opened for a child that never came to be.
func (c *Child) abandon() {
	c.closeBox()
	c.channel.close()
	leaveCradle(c)
}

// terminate asks a child to end, and all that its group is. Bubblewrap would take its command with it at once, so that is left out.
func (c *Child) terminate(sig syscall.Signal) {
	if c.plan.Rung != sandbox.RungBwrap {
		c.Signal(sig)
		return
	}
	inside := false
	for _, id := range c.tree.find() {
		if s, ok := statOf(id.PID); ok && id.PID != c.process.Pid && s.parent != c.process.Pid { // the latter is the first process of the namespace
			signal(id, sig)
			inside = true
		}
	}
	if !inside { // its command does not run yet
		c.Signal(syscall.SIGKILL)
	}
}
