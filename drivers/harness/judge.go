package harness

import (
	"context"
	"sync"

	"rnix/agent"
	"rnix/internal/harness"
	"rnix/internal/permit"
)

// Judge decides about a call that the command line of a session makes with a tool of its own, and waits for a person if one has to be asked: until
// ctx ends.
type Judge func(ctx context.Context, session, id, tool string, c permit.Call) harness.Verdict

// judging answers what one run of a command line asks before its calls.
type judging struct {
	s      *session
	child  *child
	ctx    context.Context // of all that is asked
	cancel context.CancelFunc
	work   sync.WaitGroup

	judged map[string]bool // calls about which it has asked and that have not ended, by their id; of the request under way

	mu   sync.Mutex
	open map[string]context.CancelFunc // +checklocks:mu
}

// judge begins to answer what the child of a session asks before its calls. The caller calls end before it ends the child.
func judge(s *session, c *child) *judging {
	j := &judging{s: s, child: c, judged: map[string]bool{}, open: map[string]context.CancelFunc{}}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	return j
}

// end answers nothing any more.
func (j *judging) end() {
	if j != nil {
		j.cancel()
		j.work.Wait()
	}
}

// waits reports whether something is asked that has no answer yet.
func (j *judging) waits() bool {
	if j == nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.open) > 0
}

// take answers a question, or forgets one that was withdrawn.
func (j *judging) take(e agent.PermitEvent) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.Withdrawn {
		if stop := j.open[e.RequestID]; stop != nil {
			stop()
		}
		return
	}
	if ours(e.ToolName) { // about which the kernel asks itself
		j.say(e, harness.Verdict{Decision: permit.Ask})
		return
	}
	j.judged[e.ToolUseID] = true
	ctx, stop := context.WithCancel(j.ctx)
	j.open[e.RequestID] = stop
	j.work.Go(func() { // ends with the answer, or with ctx; end waits for it
		v := j.s.cfg.Judge(ctx, j.s.id, callName(e.ToolUseID), e.ToolName, harness.Ruled(e.ToolName, e.Input))
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.open, e.RequestID)
		if ctx.Err() == nil {
			j.say(e, v)
		}
		stop()
	})
}

// say tells the child what becomes of a call.
func (j *judging) say(e agent.PermitEvent, v harness.Verdict) {
	if line, err := j.s.cfg.CLI.Judge(e, v); err == nil { // what asks can be answered
		j.child.say(line)
	}
}

// escaped reports whether a call of its own was made about which it has not asked.
func (j *judging) escaped(e *agent.ToolResultEvent, tool string) bool {
	if j == nil {
		return false
	}
	asked := j.judged[e.ToolUseID]
	delete(j.judged, e.ToolUseID)
	return !e.IsError && !harmless[tool] && !asked
}
