package agent

import (
	"slices"
	"strings"

	"rnix/internal/yamlfile"
	"rnix/types"
)

// maxOnInterrupt bounds what an agent is told at an interrupt, in bytes: every list of processes shows it.
const maxOnInterrupt = 1024

// checkSignals reports what an agent cannot say of signals. A person can always pause, resume and kill it.
func (m *Manifest) checkSignals(d *yamlfile.Doc) {
	for i, sig := range m.BlockedSignals {
		at := "blocked_signals[" + itoa(i) + "]"
		switch {
		case reported(d, at):
		case sig == types.SIGKILL:
			d.Problemf(at, "SIGKILL cannot be blocked")
		case sig != types.SIGTERM && sig != types.SIGINT:
			d.Problemf(at, "an agent cannot block %v, so that it can be paused and resumed; want SIGTERM or SIGINT", sig)
		case slices.Contains(m.BlockedSignals[:i], sig):
			d.Problemf(at, "%v stands here a second time", sig)
		case sig == types.SIGINT && m.OnInterrupt != "":
			d.Problemf(at, "SIGINT is blocked, so the agent would never be told on_interrupt; leave one of them out")
		}
	}
	if m.OnInterrupt != "" && strings.TrimSpace(m.OnInterrupt) == "" {
		d.Problemf("on_interrupt", "it has no text; leave it out, and SIGINT ends the agent")
	}
	if len(m.OnInterrupt) > maxOnInterrupt {
		d.Problemf("on_interrupt", "longer than %d bytes; the place for more is %s", maxOnInterrupt, InstructionsFile)
	}
}
