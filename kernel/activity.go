package kernel

import (
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/redact"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// activity shows what processes do at the moment: what each waits for, and the lines of its log about its calls.
// To begin and to end something is progress, which it tells the watchdog.
type activity struct {
	lifecycle Lifecycle
	events    *event.Log
	pulse     *pulse
	secrets   *redact.Set
}

// touch tells whoever watches that a process has changed. No lock of the kernel is held.
func (v *activity) touch(p *Process) {
	v.lifecycle.Touched(p.UUID)
}

// waitForModel and waitForNothing keep the value off the stack of a process that waits long.
func waitForModel(v *activity, p *Process) {
	now := time.Now()
	v.setWaitAt(p, waiting{tool: modelInHand, since: now}, now)
}
func waitForNothing(v *activity, p *Process) { v.setWait(p, waiting{}) }

// setWait publishes what a process waits for.
func (v *activity) setWait(p *Process, w waiting) { v.setWaitAt(p, w, time.Now()) }

// setWaitAt is setWait as of now.
func (v *activity) setWaitAt(p *Process, w waiting, now time.Time) {
	v.pulse.livesAt(p, now) // to begin and to end something is progress
	if text := p.asks.beside(); text != "" && w.reason == "" {
		w.reason, w.kind, w.beside = v.asks(text), types.SuspendAsk, true
	}
	p.mu.Lock()
	if w.since.IsZero() {
		if w.since = now; w.reason == p.waits.reason {
			w.since = p.waits.since // it is still the same
		}
	}
	p.waits = w
	p.mu.Unlock()
	v.touch(p)
}

// waitOutside shows that a process waits for something outside: a rate limit, a queue.
func (v *activity) waitOutside(p *Process, part vfs.StreamPart) {
	w := waiting{reason: part.Text, until: part.Until}
	if part.Until.IsZero() && part.Text == "" {
		w = waiting{tool: modelInHand, since: time.Now()}
	}
	v.setWait(p, w)
	v.events.Append(event.Event{Kind: event.Waiting, PID: p.PID, UUID: p.UUID, Text: w.reason, Until: w.until})
}

// waitTold shows what a process waits for, and tells those who follow it; empty = it goes on.
func (v *activity) waitTold(p *Process, kind types.SuspendKind, reason string) {
	v.setWait(p, waiting{reason: reason, kind: kind})
	v.events.Append(event.Event{Kind: event.Waiting, PID: p.PID, UUID: p.UUID, Text: reason})
}

// logCall writes into the log that a process makes a call: with which tool and on what.
func (v *activity) logCall(p *Process, a *loop.Action) {
	v.events.Append(event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: toolLine, Text: v.logText(a.Brief())})
}

// asks is what a process waits for of which a person is asked about a call.
func (v *activity) asks(text string) string { return "ask: " + v.logText(text) }

// logFailed writes into the log that a call has failed, and why, in a line.
func (v *activity) logFailed(p *Process, a *loop.Action, err error) {
	why, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	why = v.logText(why)
	v.events.Append(event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: toolLine, Text: v.logText(a.Brief()) + " failed: " + why,
		Err: why, Code: types.CodeOf(err)})
}

// logText is a text as the log has it: cut after its secrets were taken out, as half of one is not known for a secret.
func (v *activity) logText(text string) string {
	return rnixctx.Elide(v.secrets.String(text), traceMax)
}

// toolLine is the category of what tools do and print.
const toolLine = "tool"
