// Package proc starts the OS children of the daemon, all of them, and knows of each whether it
// lives, to whom it belongs and how to end it with everything that it has started.
//
// It owns the environment that a child sees (env.go), its pipes (pipes.go), its session and process
// group, in what it is confined (box.go), its identity on disk (registry.go), its end (child.go, tree.go), the children that a crashed
// daemon has left behind (survivors.go), orphans (orphans.go), the cgroups that
// they are born in (births*.go) and that bound what they use (bounds.go, controllers.go), what makes them stand still (freezer*.go),
// for whom a process works (owner.go), and the parent of the daemon, which ends all that this leaves (warden_linux.go, guard.go).
// It does not know
// what a child is for: shells, MCP servers, model CLIs and git are one to it, and agents are numbers.
//
// Every child leads a session and a process group of its own, dies when the daemon dies, inherits
// its three streams, its channel to the daemon (channel.go) and no more, and carries RNIX_OWNER=<random token> in its environment. Its
// descendants are what /proc says: processes below it, in its group or session, or with its token.
// A process is only ever signalled by pid and start time together, through a pidfd where there are
// any, so that a recycled pid is never touched. Outside Linux there is no /proc to walk: there a
// child is its process group, and survivors of a crash are reported but not ended.
//
// Locks: ice.mu is taken before Child.mu; Manager.mu and Child.mu are never held together; tree.mu, HeadTail.mu and Ring.mu are taken
// last, in this order.
package proc

import (
	"io"
	"syscall"
	"time"

	"rnix/internal/sandbox"
	"rnix/types"
)

// Kind says what a child is for. Part of the on-disk format.
type Kind string

// The kinds.
const (
	KindShell Kind = "shell"
	KindMCP   Kind = "mcp"
	KindLLM   Kind = "llm"
	// KindHarness is an agent's whole command line, which works by itself: it stands still with its process.
	KindHarness Kind = "harness"
	KindGit     Kind = "git"
	// KindNotice tells a person of something, as the configuration of that person says.
	KindNotice Kind = "notice"
	// KindKey prints a key of a provider, as the configuration of that person says.
	KindKey Kind = "key"
)

func (k Kind) valid() bool {
	return k == KindShell || k == KindMCP || k == KindLLM || k == KindHarness || k == KindGit || k == KindNotice || k == KindKey
}

// Spec says what to start, for whom, and with what.
type Spec struct {
	Kind      Kind
	Owner     types.PID  // the agent that it belongs to; 0 = the daemon itself
	OwnerUUID types.UUID // may be zero

	// Path is the program: a path, or a name that is looked up in the PATH of Env. Args are its
	// arguments, without the program itself.
	Path string
	Args []string
	Dir  string // working directory, absolute
	// Shown is the command line as people and the registration on disk see it, where Args hold what
	// they must not see; "" = Path and Args.
	Shown string

	// Env is the whole environment, "NAME=value". Names that env.Blocked reports are left out, whoever
	// put them there. Credentials are added after that, and may have any name that env.IsRunnerOnly does not report; only the
	// kinds "llm", "mcp", "harness" and "key" may have any.
	Env         []string
	Credentials []string

	// Input is the whole standard input. With StdinPipe set, Child.Stdin is the writing end of a pipe
	// instead. With neither, the child reads from /dev/null.
	Input     []byte
	StdinPipe bool

	// Stdout and Stderr get what the child writes; they must not block, and are not used any more
	// once Wait has returned. If both are the same writer, they share one pipe, and the output arrives
	// as it was written. Nil is /dev/null. With StdoutPipe set, Child.Stdout is read by the caller.
	Stdout     io.Writer
	Stderr     io.Writer
	StdoutPipe bool

	// Git is what a child of the kind "git" works on, for Confine.
	Git *sandbox.GitCall

	// Road is where on the loopback (host:port) it reaches the daemon besides its channel, and what it starts does; they find that in env.RoadVar. "" = nowhere.
	Road string

	// Box is how it is confined; nil = as Confine says.
	Box *Box

	Timeout time.Duration // ends the child after so much time, frozen time not counted; 0 = never
	Grace   time.Duration // between SIGTERM and SIGKILL when ctx or the timeout ends the child; 0 = none
}

// Cause says who ended a child.
type Cause string

// The causes.
const (
	Exited    Cause = ""          // the child itself, or somebody outside
	TimedOut  Cause = "timed out" // Spec.Timeout
	Cancelled Cause = "cancelled" // the context that it was started with
	Stopped   Cause = "stopped"   // Stop, Kill, KillOwner or Close
)

// ExitInfo is how a child ended.
type ExitInfo struct {
	Code   int            // exit status; 128 + the signal's number if a signal ended it
	Signal syscall.Signal // 0 if it exited by itself
	Cause  Cause
	Left   int           // processes that were still there when it had exited; they were killed
	Took   time.Duration // without the time that it was frozen
	User   time.Duration // processor time, with the descendants that it waited for
	System time.Duration
	MaxRSS int64 // in bytes
	Err    error // its status could not be had; Code is -1 then
	// Changed are protected paths that it has changed, which happens only where its box cannot protect them; see sandbox.Box.
	Changed []string
	// Refused is what was refused to it at the ports that its box serves.
	Refused []sandbox.Refusal
	// Hits is what the bounds of its agent held while it ran.
	Hits Hits
}

// Info describes a living child.
type Info struct {
	PID       int // of the operating system
	Kind      Kind
	Owner     types.PID
	OwnerUUID types.UUID
	Command   string // program and arguments for people, bounded
	StartedAt time.Time
	Frozen    bool
}
