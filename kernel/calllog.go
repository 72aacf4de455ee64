package kernel

import (
	"strings"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// logCall writes into the log that a process makes a call: with which tool and on what.
func (k *KernelImpl) logCall(p *Process, a *loop.Action) {
	k.events.Append(event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: toolLine, Text: k.cfg.Secrets.String(rnixctx.Elide(a.Brief(), traceMax))})
}

// logFailed writes into the log that a call has failed, and why, in a line.
func (k *KernelImpl) logFailed(p *Process, a *loop.Action, err error) {
	why, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	why = k.cfg.Secrets.String(rnixctx.Elide(why, traceMax))
	k.events.Append(event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: toolLine, Text: k.cfg.Secrets.String(rnixctx.Elide(a.Brief(), traceMax)) + " failed: " + why,
		Err: why, Code: types.CodeOf(err)})
}

// toolLine is the category of what tools do and print.
const toolLine = "tool"
