package kernel

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/permit"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// Permission is what became of a call about which AskFor was asked.
type Permission struct {
	// Decision is Allow if no rule is about the call, Ask if a person has allowed it, and Deny.
	Decision permit.Decision
	Input    json.RawMessage // of Ask: what a person wants it to be called with; nil = as it is
	Why      error           // of Deny, for the model
	Granted  bool            // of Allow: a rule is about it, and a person has allowed it before
}

// AskFor decides about a call that a process makes outside of its loop, as an agent CLI does with a tool of its own, and waits for the answer of a
// person if one has to be asked: until ctx or the run of the process ends, with which the ask is over, too. The directory of the call is that of the
// process. id is the call's own in what asks. NOT_FOUND: the process does not run. CANCELLED: ctx or the run has ended.
func (k *KernelImpl) AskFor(ctx context.Context, of types.UUID, id string, c permit.Call) (Permission, error) {
	p, ok := k.ByUUID(of)
	if !ok || p.State() >= types.StateZombie {
		return Permission{}, types.Errorf(types.ErrNotFound, "Ask", of.String(), "%w", ErrNoProcess)
	}
	return k.asks.about(ctx, p, id, c)
}

// about decides about a call that is none of the loop's.
func (k *asker) about(ctx context.Context, p *Process, id string, c permit.Call) (Permission, error) {
	c.Dir = p.WorkDir
	v := k.judge.Judge(p, &c)
	switch v.Decision {
	case permit.Deny:
		m, err := k.refused(p, c.Tool, callText(&c), v, true)
		if err == nil {
			err = mark(p, m)
		}
		if err != nil {
			return Permission{}, err
		}
		return Permission{Decision: permit.Deny, Why: denied(c.Tool, v)}, nil
	case permit.Ask:
		return k.askFor(ctx, p, id, c, v)
	}
	return Permission{Decision: permit.Allow, Granted: v.Granted}, nil
}

// askFor asks a person about a call that is none of the loop's.
func (k *asker) askFor(ctx context.Context, p *Process, id string, c permit.Call, v permit.Verdict) (Permission, error) {
	n, err := k.judge.NextAsk()
	if err != nil {
		return Permission{}, err
	}
	a := step.Ask{Number: n, CallID: id, Tool: c.Tool, Path: c.Path, Text: callText(&c), Rule: v.Rule, Own: true, Since: time.Now().Round(0)}
	m, err := step.AskMarker(p.PID, &a)
	if err != nil {
		return Permission{}, err
	}
	if err := mark(p, m); err != nil {
		return Permission{}, err
	}
	q := &question{Ask: Ask{Ask: a, PID: p.PID, UUID: p.UUID, Call: c}, p: p, came: make(chan struct{}, 1)}
	p.asks.add(q)
	k.show([]*question{q})
	k.standBeside(p)
	defer k.goOnBeside(p, q)
	select {
	case <-q.came:
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
	reply := k.close(q)
	if reply == nil {
		k.withdraw(p, &a)
		return Permission{}, types.Errorf(types.ErrCancelled, "Ask", number(n), "it is not waited for any more")
	}
	if !reply.Allow {
		return Permission{Decision: permit.Deny, Why: loop.Refused(c.Tool, reply)}, nil
	}
	return Permission{Decision: permit.Ask, Input: reply.Input}, nil
}

// callText is a call in a line.
func callText(c *permit.Call) string {
	on, _, _ := strings.Cut(c.On(), "\n")
	return rnixctx.Elide(strings.TrimSpace(c.Tool+" "+on), wordsOfAsk) + loop.MoreLines(c.Command())
}

// refused counts a call that a rule has refused, and returns the marker of it.
func (k *asker) refused(p *Process, tool, text string, v permit.Verdict, own bool) (step.Marker, error) {
	d := types.Denial{Tool: tool, Text: rnixctx.Elide(text, wordsOfAsk), Why: "the rule " + strconv.Quote(v.Rule), Unasked: v.Unasked}
	if v.Unasked {
		d.Why += " asks a person, and none is there"
	}
	p.asks.deny(p, d, k.doing, own)
	return step.DeniedMarker(p.PID, d, own)
}

// withdraw writes down that nobody waits for an answer any more. With the run itself the record says so.
func (k *asker) withdraw(p *Process, a *step.Ask) {
	m, err := step.AnswerMarker(p.PID, &step.Answered{Number: a.Number, CallID: a.CallID, Withdrawn: true})
	if err == nil && p.ctx.Err() == nil {
		_ = mark(p, m) // the end of the run says it too
	}
	k.events.Append(event.Event{Kind: event.Answered, PID: p.PID, UUID: p.UUID, Args: number(a.Number), Name: a.Tool, Result: string(step.Withdrawn)})
}

func (q *questions) add(one *question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.own = append(slices.Clone(q.own), one)
}

// beside returns for what the process waits beside what its loop does; empty = for nothing.
func (q *questions) beside() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.own) == 0 {
		return ""
	}
	return q.own[0].Text
}

// standBeside shows that a process waits for a person, whatever else it has in hand.
func (k *asker) standBeside(p *Process) {
	p.asks.stand(p, 1)
	k.tellBeside(p)
}

// goOnBeside ends what standBeside began.
func (k *asker) goOnBeside(p *Process, q *question) {
	p.asks.mu.Lock()
	p.asks.own = slices.DeleteFunc(slices.Clone(p.asks.own), func(o *question) bool { return o == q })
	p.asks.mu.Unlock()
	p.asks.stand(p, -1)
	checkClock(p)
	k.tellBeside(p)
}

// tellBeside shows for what a process waits, beside what it has in hand, and tells those who follow it. What its loop waits for goes before.
func (k *asker) tellBeside(p *Process) {
	p.mu.Lock()
	w := p.waits
	p.mu.Unlock()
	if w.beside {
		w.reason, w.kind, w.beside, w.until = "", "", false, time.Time{}
	}
	k.doing.setWait(p, w) // which shows what is asked
	p.mu.Lock()
	text := p.waits.reason
	p.mu.Unlock()
	k.events.Append(event.Event{Kind: event.Waiting, PID: p.PID, UUID: p.UUID, Text: text})
}
