package harness

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"rnix/agent"
	"rnix/internal/harness"
	"rnix/internal/permit"
	"rnix/types"
)

// Judge decides about a call that the command line of a session makes with a tool of its own, and waits for a person if one has to be asked: until
// ctx ends.
type Judge func(ctx context.Context, session, id, tool string, c permit.Call) harness.Verdict

// judging answers what one run of a command line asks before its calls.
type judging struct {
	s      *session
	ctx    context.Context // of all that is asked
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu sync.Mutex
	// Calls about which it has asked, that may be made, and that its output has not told of, by what both have in common.
	judged map[string]int // +checklocks:mu
	// What is asked, by a number or the id of the request.
	open map[string]context.CancelFunc // +checklocks:mu
	// Bytes of the lines that ask it.
	held int  // +checklocks:mu
	n    int  // +checklocks:mu
	over bool // +checklocks:mu
	// freed has room for one: something that was asked is over.
	freed chan struct{}
}

// maxAsked is how many questions may be open that came on the standard streams, and maxUnread bounds their bytes: who asks more waits for us.
const maxAsked = 256

// judge begins to answer what the command line of a session asks before its calls. The caller calls end before it ends the child.
func judge(s *session) *judging {
	j := &judging{s: s, judged: map[string]int{}, open: map[string]context.CancelFunc{}, freed: make(chan struct{}, 1)}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	return j
}

// end answers nothing any more.
func (j *judging) end() {
	if j != nil {
		j.mu.Lock()
		j.over = true
		j.mu.Unlock()
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

// take takes in a line of its output by which it asks on its standard streams, and reports whether it is one. It is answered by say beside whatever else is done: a
// call of its own waits for no call of the kernel, which may take days. A question that was withdrawn is forgotten.
func (j *judging) take(line []byte, say func(line []byte)) bool {
	e, ok := j.s.cfg.CLI.Asks(line)
	if ok {
		j.answer(e, len(line), say)
	}
	return ok
}

// full reports whether another question of so many bytes is to wait.
func (j *judging) full(size int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.over && len(j.open) > 0 && (len(j.open) >= maxAsked || j.held+size > maxUnread)
}

func (j *judging) answer(e agent.PermitEvent, size int, say func(line []byte)) {
	if e.Withdrawn {
		j.mu.Lock()
		defer j.mu.Unlock()
		if stop := j.open[e.RequestID]; stop != nil {
			stop()
		}
		return
	}
	for j.full(size) {
		select {
		case <-j.freed:
		case <-j.ctx.Done():
			return
		}
	}
	ctx, done, ok := j.begin(j.ctx, e.RequestID, size)
	if !ok {
		return
	}
	j.work.Go(func() { // ends with the answer, or with ctx; end waits for it
		defer done()
		if v := j.decide(ctx, e); ctx.Err() == nil {
			j.allowed(e, v)
			say(j.s.cfg.CLI.Judge(e, v))
		}
	})
}

// hook answers a question that a program of its brings (harness.Place.Judge): until ctx ends. CANCELLED: its run is over.
func (j *judging) hook(ctx context.Context, question []byte) ([]byte, error) {
	e, err := j.s.cfg.CLI.Question(question)
	if err != nil {
		return nil, err
	}
	ctx, done, ok := j.begin(ctx, "", 0)
	if !ok {
		return nil, errOver(e.ToolName)
	}
	defer done()
	v := j.decide(ctx, e)
	if ctx.Err() != nil {
		return nil, errOver(e.ToolName)
	}
	j.allowed(e, v) // before it can begin
	return j.s.cfg.CLI.Judge(e, v), nil
}

// begin notes that something is asked. The caller calls done. ok is false when the run is over.
func (j *judging) begin(parent context.Context, id string, size int) (ctx context.Context, done func(), ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over {
		return nil, nil, false
	}
	if _, twice := j.open[id]; twice || id == "" {
		j.n++
		id = "number " + strconv.Itoa(j.n)
	}
	j.held += size
	ctx, stop := context.WithCancel(parent)
	unbind := context.AfterFunc(j.ctx, stop)
	j.open[id] = stop
	j.work.Add(1)
	return ctx, func() {
		j.mu.Lock()
		delete(j.open, id)
		j.held -= size
		j.mu.Unlock()
		wake(j.freed)
		unbind()
		stop()
		j.work.Done()
	}, true
}

// decide decides about a call: as the strictest of what it does is decided about.
func (j *judging) decide(ctx context.Context, e agent.PermitEvent) harness.Verdict {
	v := harness.Verdict{Decision: permit.Ask}
	if ours(e.ToolName) { // about which the kernel asks itself
		return v
	}
	for _, c := range harness.Ruled(e.ToolName, e.Input) {
		c.Fixed = c.Fixed || j.s.cfg.CLI.Can().Fixed && !c.Shell()
		one := j.s.cfg.Judge(ctx, j.s.id, callName(e.ToolUseID), e.ToolName, c)
		if len(one.Input) > 0 && c.Fixed {
			one = harness.Verdict{Decision: permit.Deny, Why: e.ToolName + ": it cannot be called with another input"}
		}
		if one.Decision == permit.Deny {
			return one
		}
		if one.Decision == permit.Allow {
			v = one
		}
	}
	return v
}

// allowed notes that a call may be made, which its output will tell of.
func (j *judging) allowed(e agent.PermitEvent, v harness.Verdict) {
	if len(v.Input) > 0 {
		e.Input = v.Input
	}
	if key := j.s.cfg.CLI.Asked(e); key != "" && !ours(e.ToolName) && v.Decision != permit.Deny {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.judged[key]++
	}
}

// unasked reports whether a call of its own was made about which it has not asked.
func (j *judging) unasked(e *agent.ToolUseEvent) bool {
	if j == nil {
		return false
	}
	key := j.s.cfg.CLI.Began(*e)
	if key == "" {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.judged[key] == 0 {
		return true
	}
	if j.judged[key]--; j.judged[key] == 0 {
		delete(j.judged, key)
	}
	return false
}

// unbidden reports whether a call was made about which a command line that tells of its beginning has not asked before.
func (j *judging) unbidden(e *agent.ToolUseEvent) bool {
	return j != nil && j.s.cfg.CLI.Can().Begins && j.unasked(e)
}

// escaped reports whether a call has come to a good end about which a command line has not asked that tells of it before it asks.
func (j *judging) escaped(e *agent.ToolResultEvent, use *agent.ToolUseEvent) bool {
	return j != nil && !j.s.cfg.CLI.Can().Begins && j.unasked(use) && !e.IsError
}

// Judge answers a question about a call that the command line of a session is about to make with a tool of its own (harness.Place.Judge), and waits
// for a person if one has to be asked. PERMISSION if the credential is for no session, INVALID if that one does not ask so or if it is no question,
// CANCELLED if ctx or the run of the command line ends before.
func (b *Bridge) Judge(ctx context.Context, credential string, question []byte) (answer []byte, err error) {
	g, err := b.find(credential)
	if err != nil {
		return nil, err
	}
	if g.judging == nil {
		return nil, types.Errorf(types.ErrInvalid, "Session", g.s.cfg.Name, "it does not ask about its calls")
	}
	return g.judging.hook(ctx, slices.Clip(question))
}
