package heartbeat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"rnix/runtime/internal/deliver"
	"rnix/types"
)

// refresh is the body of a lock-refresh. Part of the wire format.
type refresh struct {
	WorkerID            string       `json:"workerId,omitempty"`
	IssueID             string       `json:"issueId,omitempty"`
	SessionClass        string       `json:"sessionClass,omitempty"`
	AckedInject         string       `json:"ackedInject,omitempty"`  // the latest
	AckedInjects        []string     `json:"ackedInjects,omitempty"` // those that were not told yet, if there are several
	DeadLetteredInjects []deadLetter `json:"deadLetteredInjects,omitempty"`
}

// refreshed is the answer. Part of the wire format.
type refreshed struct {
	Refreshed    bool           `json:"refreshed"`
	Stop         bool           `json:"stop"`
	Inject       *InjectPayload `json:"inject"`
	TTLMs        int64          `json:"ttlMs"`        // 0 = the platform does not say
	FencingToken uint64         `json:"fencingToken"` // 0 = there is none
}

// outcome is what a tick has come to.
type outcome int

const (
	kept      outcome = iota // the lease is ours
	lostLease                // another owner has it
	stopped                  // the session is to stop
	failed                   // nobody knows
	cut                      // the context has ended: it counts for nothing
)

// beat makes a tick and reports whether there is to be another one.
func (p *Pulser) beat(ctx context.Context) bool {
	result, answer := p.ask(ctx)
	p.mu.Lock()
	more := p.settleLocked(result)
	tick, observe := p.tick, p.cfg.OnHeartbeatAck
	p.mu.Unlock()
	if result != kept {
		return more
	}
	if observe != nil {
		observe(tick)
	}
	if answer.Inject != nil {
		p.offered(*answer.Inject)
	}
	return more
}

// settleLocked does what an outcome means and reports whether to go on.
//
// +checklocks:p.mu
func (p *Pulser) settleLocked(o outcome) bool {
	attended := p.cfg.SessionClass == SessionClassInteractive
	switch o {
	case cut:
		return false
	case kept:
		p.strikes, p.refused, p.degraded = 0, false, false
		return true
	case stopped:
		p.stop = true
		p.overLocked("the platform wants the session to stop")
		return false
	case lostLease:
		p.refused = true
		if !attended {
			p.overLocked("another owner has the session")
			return false
		}
	case failed:
		p.strikes++
		if p.strikes < p.cfg.StrikesUntilLost {
			return true
		}
		if !attended {
			p.overLocked("the platform could not be asked for too long")
			return false
		}
	}
	if !p.degraded {
		p.degraded = true
		p.cfg.Logger.Warn("a session that a person attends continues without its lease", "session", p.cfg.SessionID, "strikes", p.strikes)
	}
	return true
}

// +checklocks:p.mu
func (p *Pulser) overLocked(why string) {
	if !p.over {
		p.over = true
		close(p.lost)
		p.cfg.Logger.Warn("the lease of a session is over: "+why, "session", p.cfg.SessionID)
	}
}

// ask makes the attempts of one tick.
func (p *Pulser) ask(ctx context.Context) (outcome, refreshed) {
	pauses := deliver.Retry{Attempts: p.cfg.MaxAttemptsPerTick, First: time.Second, Patience: p.cfg.Interval}.Pauses()
	for {
		p.mu.Lock()
		report := p.post.report()
		p.mu.Unlock()
		asked := p.cfg.now()
		answer, err := attempt(ctx, p.client, p.cfg.request(report))
		switch {
		case err == nil:
			return p.heard(answer, report, asked), answer
		case ctx.Err() != nil:
			return cut, answer
		case errors.Is(err, deliver.ErrFenced):
			return lostLease, answer
		}
		failure, _ := errors.AsType[*deliver.Failure](err) // nil: there was an answer that says nothing
		p.cfg.Logger.Debug("a refresh of a lease has failed", "session", p.cfg.SessionID, "error", err)
		d, again := pauses.Next(failure)
		if !again {
			p.cfg.Logger.Warn("the lease of a session could not be refreshed", "session", p.cfg.SessionID, "attempts", pauses.Made(), "error", err)
			return failed, answer
		}
		if p.client.Wait(ctx, d) != nil {
			return cut, answer
		}
	}
}

func (c *Config) request(r refresh) deliver.Call {
	return deliver.Call{Endpoint: "lock-refresh", Body: func(who deliver.Credentials) any {
		r.WorkerID, r.IssueID, r.SessionClass = who.WorkerID, c.IssueID, c.SessionClass
		return r
	}}
}

// attempt asks once. No answer at all is a success, as it was before answers said something.
func attempt(ctx context.Context, c *deliver.Client, call deliver.Call) (refreshed, error) {
	var answer refreshed
	reply, err := c.Do(ctx, call)
	if err != nil {
		return answer, err
	}
	if len(bytes.TrimSpace(reply.Body)) == 0 {
		return refreshed{Refreshed: true}, nil
	}
	if err := json.Unmarshal(reply.Body, &answer); err != nil {
		return refreshed{}, types.Errorf(types.ErrInvalid, "Post", "lock-refresh", "the answer is not what was agreed on: %w", err)
	}
	return answer, nil
}

// heard notes what an answer says of the lease and of our post.
func (p *Pulser) heard(a refreshed, report refresh, asked moment) outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.post.told(report)
	switch {
	case a.Stop:
		return stopped
	case !a.Refreshed:
		return lostLease
	}
	if a.TTLMs > 0 {
		p.ttl = time.Duration(min(a.TTLMs, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
	}
	p.token = max(p.token, a.FencingToken)
	p.held, p.since, p.tick = true, asked, p.cfg.now().time.UnixMilli()
	return kept
}

// pause returns how long to wait for the next tick: no longer than a third of the lease, and a little by chance,
// so that a fleet does not ask all at once.
func pause(interval, ttl time.Duration) time.Duration {
	return time.Duration(float64(min(interval, ttl/3)) * (0.9 + 0.2*rand.Float64()))
}

// Remaining returns how long ago the lease was asked for that is in force, and how long it is still good without another word
// of the platform, by the clock of Check: not above 0 if it has run out. Both are 0 if it was not confirmed yet.
func (p *Pulser) Remaining() (since, left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.held {
		return 0, 0
	}
	since = p.cfg.now().since(p.since)
	return since, p.ttl - since
}

// Check reports whether the lease is good at this moment, by a clock that no setting moves and that runs on while the host
// sleeps: nil, or an error of code CONFLICT with ErrLostOwnership in its chain if another owner has the session or
// may have it, since the lease has run out. A lease that has run out is asked for at once. Who writes for the session asks before it does,
// and sends Token along: what is on its way when the lease ends, the platform refuses.
func (p *Pulser) Check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stop:
		return p.cfg.refuse("the platform wants the session to stop")
	case p.over || p.refused:
		return p.cfg.refuse("the platform says so")
	case !p.held:
		return p.cfg.refuse("the lease was not confirmed yet")
	case p.cfg.now().since(p.since) >= p.ttl:
		select {
		case p.kick <- struct{}{}:
		default:
		}
		return p.cfg.refuse("the lease has run out, and so it may be that it is so")
	}
	return nil
}

func (c *Config) refuse(why string) error {
	return types.Errorf(types.ErrConflict, "Check", c.SessionID, "%s: %w", why, ErrLostOwnership)
}
