// Package actions are the tools that the kernel itself offers to agents: spawn, wait, send, recv, signal, ps, ask, specialize,
// plan and replan. It reads what a model has asked for, decides what is to be done, and words the answer. What it does goes through Agent, which
// is the kernel as the calling process sees it: it knows no process table, no lock and no file.
package actions

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/permit"
	"rnix/internal/recovery"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// Agent is the process whose model calls, and what it can do.
type Agent struct {
	Self
	Family Family
	Mail   Mail
}

// Self is the process by itself.
type Self interface {
	// Me describes it.
	Me() Me
	// Stopping reports whether the kernel stops.
	Stopping() bool
	// Ended is how a call ends whose context has ended: it is cancelled, or stays open because the kernel stops.
	Ended(ctx context.Context, call string) error
	// CutOff waits until the end of the kernel has reached the process, and returns how a call ends that stays open for it.
	CutOff() error
	// Activate puts the instructions of a skill into what the process is told, and into its record.
	Activate(name string) (Skill, error)
	// SetPlan keeps the plan of the model for people to see.
	SetPlan(plan string)
}

// Me is what the tools need to know of the process.
type Me struct {
	PID    types.PID
	Forked bool // it is a copy of another process: its conversation tells of children that are not its own
	CLI    bool // its model is an agent's command line, which reads its system prompt when it starts
}

// Skill is a skill that is active.
type Skill struct {
	Name    string
	Section string // its part of the system prompt
	Again   bool   // it was active before
}

// Family is the process with those above and below it.
type Family interface {
	// Start starts a child, and notes that it is waited for or that it runs in the background. bad is what is wrong with the input, if
	// anything is: nothing is started then, and the call stands in the trace with it.
	Start(ctx context.Context, id types.UUID, input string, in *SpawnInput, bad error) (types.PID, error)
	// Begun finds a child that may have been started: NOT_FOUND if it was not, IN_DOUBT if nobody knows.
	Begun(id types.UUID) (View, error)
	// Note notes that a child runs in the background.
	Note(c Child)
	// Await waits for a child. When ctx ends first, the child goes on in the background.
	Await(ctx context.Context, c Child) (View, error)
	// Children are those with the PIDs, of any of their runs, or all whose end the process has not heard of. One that is no child is
	// PERMISSION.
	Children(pids []types.PID) ([]Child, error)
	// Fate is what is known of a child; false if there is no such child any more.
	Fate(c Child) (View, bool)
	// Reap removes a child that has ended from the process table.
	Reap(id types.UUID)
	// Planted says where the work of a child is that has a work tree of its own, and lets the process read there; "" if it has none.
	Planted(id types.UUID) string
	// Failed notes the failure of a child, for people.
	Failed(what string)
	// Below lists the process and its descendants, and its children that are suspended.
	Below() ([]View, error)
	// Signal sends a signal to a descendant, with its descendants if tree is set, and returns how many it has reached.
	Signal(pid types.PID, sig types.Signal, tree bool) (int, error)
}

// Mail is the mailbox of the process.
type Mail interface {
	// Send sends a message to a relative. What comes again with the same key is delivered once. suspended says that it gets the message
	// when it is resumed.
	Send(ctx context.Context, to types.PID, text, key string) (suspended bool, err error)
	// Waiting are the messages that a model may get at once, the oldest first; none that a person has said.
	Waiting() []Letter
	// Take takes the n oldest of them for a call, which has them until it is answered.
	Take(call string, n int) []Letter
	// TakeEnds takes the messages about the ends of these children for a call.
	TakeEnds(call string, of []types.UUID)
	// Changed is closed when the next message comes.
	Changed() <-chan struct{}
	// Interrupted reports whether a person has said something, which the model gets before anything else.
	Interrupted() bool
}

// Child is a child of the process.
type Child struct {
	ID  types.UUID
	PID types.PID // of the run that was seen last; 0 = none was
}

// View is what is known of a process.
type View struct {
	PID, PPID types.PID
	ID        types.UUID
	Name      string
	Intent    string
	State     string
	Step      int
	Tokens    int
	Wait      string            // what it waits for, while it runs
	Exit      *types.ExitStatus // nil while it has not ended
	Result    string
	Asleep    string          // what it waits for, if it has ended its run to wait; else why it is suspended
	Waits     bool            // it has ended its run to wait
	Left      <-chan struct{} // closed when it ends; nil if it does not run
}

// Letter is a message as a model gets it.
type Letter struct {
	Seq  uint64    `json:"seq"`
	From types.PID `json:"from"`
	Name string    `json:"name,omitempty"`
	Text string    `json:"text"`
	// Attachments are shown to the model with the message, whose text names them.
	Attachments []rnixctx.Attachment `json:"-"`
}

// The paths that must be allowed for an agent to start others, to signal its descendants, to send messages, and to ask persons. No devices are there.
const (
	SpawnPath  = "/sys/spawn"
	SignalPath = "/sys/signal"
	SendPath   = "/sys/send"
	AskPath    = permit.AskPath // to ask persons
)

// Paths are where the actions are, for records; a kind without one changes nothing outside of the process.
var Paths = map[loop.Kind]string{
	loop.Spawn: SpawnPath, loop.Wait: recovery.WaitPath, loop.Send: SendPath, loop.Recv: "/sys/recv", loop.Signal: SignalPath, loop.Ask: AskPath,
}

// Effects are what they do to the world. A message that is sent again has the key of the first, a signal that
// is sent again does nothing more, and what recv has taken and not answered is still to be delivered.
var Effects = map[loop.Kind]vfs.Effect{
	loop.Spawn: vfs.EffectExternal, loop.Wait: vfs.EffectNone, loop.Send: vfs.EffectIdempotent, loop.Recv: vfs.EffectIdempotent, loop.Signal: vfs.EffectIdempotent,
	loop.Ask: vfs.EffectNone,
}

// Calls are the syscalls that they are. The one of a Spawn is made where the child is started.
var Calls = map[loop.Kind]string{loop.Plan: "Plan", loop.Replan: "Replan", loop.Specialize: "Specialize", loop.Complete: "Complete",
	loop.Wait: "Wait", loop.Send: "Send", loop.Recv: "Recv", loop.Signal: "Signal", loop.Ps: "Ps", loop.Ask: "Ask"}

// May is what a process may do.
type May struct {
	Spawn, Signal, Send bool
	Ask                 bool // a person may be asked
	Skills              bool // there are skills that it could ask for
}

// Offers reports whether one of the actions is offered.
func (m May) Offers(kind loop.Kind) bool {
	switch kind {
	case loop.Specialize:
		return m.Skills
	case loop.Spawn, loop.Wait:
		return m.Spawn
	case loop.Signal:
		return m.Spawn && m.Signal
	case loop.Send, loop.Recv:
		return m.Send
	case loop.Ask:
		return m.Ask
	case loop.Ps:
		return m.Spawn || m.Send
	}
	return true
}

// Run performs an action. key names the call, so that a message which is sent again after a crash comes once.
func Run(ctx context.Context, ag Agent, a *loop.Action, key string) (string, error) {
	switch a.Kind {
	case loop.Spawn:
		return spawn(ctx, ag, a)
	case loop.Plan, loop.Replan:
		return plan(ag, a)
	case loop.Specialize:
		return specialize(ag, a)
	case loop.Wait:
		return wait(ctx, ag, a)
	case loop.Send:
		return send(ctx, ag, a, key)
	case loop.Recv:
		return recv(ctx, ag, a)
	case loop.Signal:
		return signal(ag, a)
	case loop.Ps:
		return ps(ag)
	case loop.Ask:
		return ask(a)
	}
	return "", types.Errorf(types.ErrInternal, "Tool", a.Call.Name, "action of kind %s", a.Kind)
}

// inputOf decodes the input of an action. A field that it does not have is INVALID.
func inputOf(a *loop.Action, in any) error {
	d := json.NewDecoder(bytes.NewReader(a.Call.Input))
	d.DisallowUnknownFields()
	if err := d.Decode(in); err != nil {
		return types.Errorf(types.ErrInvalid, "Tool", a.Call.Name, "%w", err)
	}
	return nil
}

// maxTimeoutS is the longest time limit in seconds: a year.
const maxTimeoutS = 366 * 24 * 3600

// alarm returns a channel that fires after so many seconds, never for 0, and what stops it.
func alarm(call string, seconds float64) (<-chan time.Time, func() bool, error) {
	switch {
	case seconds == 0:
		return nil, func() bool { return true }, nil
	case seconds < 0 || seconds > maxTimeoutS:
		return nil, nil, types.Errorf(types.ErrInvalid, "Tool", call, "timeout_s is %g; give a number of seconds, up to a year", seconds)
	}
	t := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	return t.C, t.Stop, nil
}
