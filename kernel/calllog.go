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
	k.events.Append(event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: toolLine, Text: logText(k, a.Brief())})
}

// logFailed writes into the log that a call has failed, and why, in a line.
func (k *KernelImpl) logFailed(p *Process, a *loop.Action, err error) {
	why, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	why = logText(k, why)
	k.events.Append(event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: toolLine, Text: logText(k, a.Brief()) + " failed: " + why,
		Err: why, Code: types.CodeOf(err)})
}

// logText is a text as the log has it: cut after its secrets were taken out, as half of one is not known for a secret.
func logText(k *KernelImpl, text string) string {
	return rnixctx.Elide(k.cfg.Secrets.String(text), traceMax)
}

// toolLine is the category of what tools do and print.
const toolLine = "tool"
