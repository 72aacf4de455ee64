package kernel

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rnix/internal/event"
	"rnix/internal/permit"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// Permissions decides about which calls a person is asked.
type Permissions interface {
	// Judge decides about a call of a process that is about to be made. It must not call the kernel.
	Judge(p *Process, c *permit.Call) permit.Verdict
	// NextAsk returns a number that no ask has had.
	NextAsk() (uint64, error)
}

// NoPermissions allows everything.
type NoPermissions struct{}

// Judge allows every call, and has no person whom an agent could ask something.
func (NoPermissions) Judge(*Process, *permit.Call) permit.Verdict {
	return permit.Verdict{Decision: permit.Allow}
}

// NextAsk is never asked.
func (NoPermissions) NextAsk() (uint64, error) { return 1, nil }

// Ask is something that a person is asked about a process that runs.
type Ask struct {
	step.Ask
	PID  types.PID
	UUID types.UUID
	Call permit.Call
	// Paused says that the process is paused: what is allowed runs when it is resumed.
	Paused bool
}

// asker keeps what persons are asked about processes that run. An answer counts when it is on disk; the first one does.
type asker struct {
	judge  Permissions
	events *event.Log
	doing  *activity

	mu   sync.Mutex
	open map[uint64]*question // +checklocks:mu
}

// question is an ask that waits for its answer.
type question struct {
	Ask
	p    *Process
	came chan struct{} // an answer has come; capacity 1

	mu    sync.Mutex
	reply *step.Answered // +checklocks:mu
	over  bool           // +checklocks:mu
}

// questions are those of one process.
type questions struct {
	mu   sync.Mutex
	open []*question // +checklocks:mu
	// About calls that are none of its loop.
	own []*question // +checklocks:mu
	// Closed when what an earlier run has asked is shown again; nil = there is nothing, or it is.
	again chan struct{} // +checklocks:mu
	// An answer about one of open has come; capacity 1.
	came    chan struct{}
	denials types.Denials // +checklocks:mu
	// Of the run, as step.Life has it.
	unmet int // +checklocks:mu
	// How many wait for a person.
	waiting int // +checklocks:mu
}

// list returns what waits for an answer and outlasts the run, the oldest first.
func (q *questions) list() (out []step.Ask) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range q.open {
		if one.answer() == nil {
			out = append(out, one.Ask.Ask)
		}
	}
	return out
}

func (q *question) answer() *step.Answered {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reply
}

// wordsOfAsk bounds how a call is told in a line, in bytes.
const wordsOfAsk = 300

// permit decides about calls of a process that are about to be made, and writes down about which a person is asked.
func (k *asker) permit(p *Process, actions []loop.Action) (asked []int, err error) {
	defer p.asks.shown()
	var ms []step.Marker
	var all []*question
	for i := range actions {
		a := &actions[i]
		if !effective(a) || a.Earlier != nil { // it was begun by an earlier run
			continue
		}
		c := permit.Call{Tool: a.Call.Name, Path: ruled(p, actionPath(a)), Input: a.Call.Input, Dir: p.WorkDir}
		v := k.judge.Judge(p, &c)
		if a.Kind == loop.Ask && (a.Reply != nil || settle(a, v)) {
			continue
		}
		if a.Reply != nil && (v.Decision != permit.Deny || v.Unasked) { // answered, in an earlier run; what is denied since is not made
			continue
		}
		switch v.Decision {
		case permit.Deny:
			a.Problem = denied(a.Call.Name, v)
			m, err := k.refused(p, a.Call.Name, a.Brief(), v, false)
			if err != nil {
				return nil, err
			}
			ms = append(ms, m)
			continue
		case permit.Ask:
		default:
			continue
		}
		if a.Ask == nil {
			n, err := k.judge.NextAsk()
			if err != nil {
				return nil, err
			}
			a.Ask = k.asked(n, a, &c, v)
			m, err := step.AskMarker(p.PID, a.Ask)
			if err != nil {
				return nil, err
			}
			ms = append(ms, m)
		}
		all = append(all, &question{Ask: Ask{Ask: *a.Ask, PID: p.PID, UUID: p.UUID, Call: c}, p: p})
		asked = append(asked, i)
	}
	if len(ms) > 0 {
		if err := mark(p, ms...); err != nil {
			return nil, err
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	k.wait(p, all)
	return asked, nil
}

// ruled returns a path as rules name it: that of a server without the PID of its process.
func ruled(p *Process, path string) string {
	if name, own := strings.CutPrefix(path, mcpRoot+"/"+p.PID.String()+"-"); own {
		return mcpRoot + "/" + name
	}
	return path
}

// denied is what the model is told of a call that a rule does not allow.
func denied(tool string, v permit.Verdict) *types.SyscallError {
	why := "the rule %q does not allow this call here (calling it again does not help)"
	if v.Unasked {
		why = "because of the rule %q a person has to be asked about this call, and none is there (calling it again does not help)"
	}
	return types.Errorf(types.ErrPermission, "Tool", tool, why, v.Rule)
}

// wait shows what a person is asked from now on.
func (k *asker) wait(p *Process, all []*question) {
	p.asks.mu.Lock()
	p.asks.open, p.asks.came = all, make(chan struct{}, 1)
	for _, q := range all {
		q.came = p.asks.came
	}
	p.asks.mu.Unlock()
	k.show(all)
}

// show lists asks, and tells of them.
func (k *asker) show(all []*question) {
	k.mu.Lock()
	for _, q := range all {
		k.open[q.Number] = q
	}
	k.mu.Unlock()
	for _, q := range all {
		k.events.Append(event.Event{Kind: event.Asked, PID: q.PID, UUID: q.UUID, Args: number(q.Number), Name: q.Tool, Path: q.Path, Text: k.doing.logText(q.Text), Result: q.Rule, Until: q.Until})
	}
}

// answered waits until a person has answered about one of the actions.
func (k *asker) answered(ctx context.Context, p *Process, actions []loop.Action, asked []int) (at int, held error) {
	k.stand(p, actions[asked[0]].Ask.Text)
	defer k.goOn(p)
	for {
		for at, i := range asked {
			if q := p.asks.of(actions[i].Ask.Number); q != nil {
				if reply := q.answer(); reply != nil {
					p.asks.drop(q)
					actions[i].Answer(reply)
					return at, nil
				}
			}
		}
		due, stop := k.due(actions, asked)
		select {
		case <-p.asks.came:
		case <-due:
			k.byDefault(p, actions, asked)
		case <-ctx.Done():
			stop()
			k.forget(p)
			return 0, context.Cause(ctx)
		}
		stop()
	}
}

// stand has the clock of a process stand still, and shows for what it waits.
func (k *asker) stand(p *Process, text string) {
	p.asks.stand(p, 1)
	k.doing.waitTold(p, types.SuspendAsk, k.doing.asks(text))
}

func (k *asker) goOn(p *Process) {
	p.asks.stand(p, -1)
	checkClock(p)
	k.doing.waitTold(p, "", "")
}

// stand counts who waits for a person. While there is one, the clock of the process stands still.
func (q *questions) stand(p *Process, more int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting += more
	p.gate.Still(time.Now(), q.waiting > 0)
}

// forget takes no answers any more about a process whose run is over. What is open stands in its record.
func (k *asker) forget(p *Process) {
	p.asks.mu.Lock()
	all := slices.Clone(p.asks.open)
	p.asks.mu.Unlock()
	for _, q := range all {
		k.close(q)
	}
}

// close takes no answer any more to a question, and returns the one that it has; nil if there is none.
func (k *asker) close(q *question) *step.Answered {
	q.mu.Lock() // an answer that is being written is written first
	q.over = true
	reply := q.reply
	q.mu.Unlock()
	k.mu.Lock()
	delete(k.open, q.Number)
	k.mu.Unlock()
	return reply
}

func (q *questions) of(number uint64) *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range q.open {
		if one.Number == number {
			return one
		}
	}
	return nil
}

func (q *questions) drop(one *question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = slices.DeleteFunc(slices.Clone(q.open), func(o *question) bool { return o == one })
}

// list returns what waits for an answer, in the order of the numbers.
func (k *asker) list() []Ask {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]Ask, 0, len(k.open))
	for _, q := range k.open {
		a := q.Ask
		_, a.Paused = q.p.gate.Since()
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Ask) int { return int(int64(a.Number) - int64(b.Number)) })
	return out
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func notAsked(n uint64) error {
	return types.Errorf(types.ErrNotFound, "Answer", number(n), "no ask with this number waits for an answer; `rnix asks` lists those that do")
}

// asking is what the loop of a process sees of what a person is asked.
type asking struct{ postman }

// Permit implements loop.Host.
func (h asking) Permit(_ int, actions []loop.Action) ([]int, error) {
	return h.k.asks.permit(h.p, actions)
}

// Answered implements loop.Host.
func (h asking) Answered(ctx context.Context, actions []loop.Action, asked []int) (int, error) {
	return h.k.asks.answered(ctx, h.p, actions, asked)
}

// Asks returns what persons are asked about processes that run, in the order of the numbers.
func (k *KernelImpl) Asks() []Ask { return k.asks.list() }

// Answer takes the answer of a person to an ask of a process that runs; it is on disk when it returns. NOT_FOUND: no process that runs waits for it.
// CONFLICT: somebody was faster. INVALID: the input of the answer is none.
func (k *KernelImpl) Answer(r step.Answered) (Ask, error) { return k.asks.reply(r) }

// Grant writes into the record of a process that runs that calls pass without asking, durably. NOT_FOUND if it does not run.
func (k *KernelImpl) Grant(id types.UUID, g *permit.Grant) error {
	return k.note(id, func(pid types.PID) (step.Marker, error) { return step.GrantMarker(pid, g) })
}

// RevokeGrant writes into the record of a process that runs that a grant counts no more, durably. NOT_FOUND if it does not run.
func (k *KernelImpl) RevokeGrant(id types.UUID, n uint64) error {
	return k.note(id, func(pid types.PID) (step.Marker, error) { return step.RevokeMarker(pid, n) })
}

// note writes a marker into the record of a process that runs.
func (k *KernelImpl) note(id types.UUID, make func(pid types.PID) (step.Marker, error)) error {
	p, ok := k.ByUUID(id)
	if !ok || p.State() >= types.StateZombie {
		return types.Errorf(types.ErrNotFound, "Grant", id.String(), "%w", ErrNoProcess)
	}
	m, err := make(p.PID)
	if err != nil {
		return err
	}
	return mark(p, m)
}
