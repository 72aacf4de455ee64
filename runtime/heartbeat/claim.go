package heartbeat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"rnix/runtime/internal/deliver"
	"rnix/types"
)

// Lease is what Claim gets, and Look sees.
type Lease struct {
	Owner        string        // the worker that has the session: of Claim, this one
	TTL          time.Duration // how long it is good without a refresh
	FencingToken uint64        // goes into Config.FencingToken
}

// ownership is what a platform says of a session's owner. Part of the wire format.
type ownership struct {
	Owned        bool   `json:"owned"`
	Owner        string `json:"owner"`
	TTLMs        int64  `json:"ttlMs"`
	FencingToken uint64 `json:"fencingToken"`
}

// Claim makes this worker the owner of a session: POST /api/sessions/<id>/claim. While another one has it, the error has
// code CONFLICT and ErrLostOwnership in its chain. Each claim that succeeds has a higher fencing token than all before
// it, also those of the same worker.
func Claim(ctx context.Context, cfg Config) (Lease, error) {
	var o ownership
	claim := rand.Text() // of all attempts: one whose answer was lost is not a second claim
	body := func(who deliver.Credentials) any {
		return map[string]string{"workerId": who.WorkerID, "issueId": cfg.IssueID, "claimId": claim}
	}
	if err := once(ctx, cfg, deliver.Call{Endpoint: "claim", Body: body}, &o); err != nil {
		return Lease{}, err
	}
	return o.lease(), nil
}

// Probe asks whether this worker has the session, without changing anything: GET /api/sessions/<id>/ownership. With
// cfg.FencingToken set, it has to be under that token. It fits worktree's OwnershipProber.
func Probe(ctx context.Context, cfg Config) (owned bool, err error) {
	var who RuntimeCredentials
	if provider := cfg.CredentialProvider; provider != nil {
		cfg.CredentialProvider = func(ctx context.Context) (RuntimeCredentials, error) {
			c, err := provider(ctx)
			who = c
			return c, err
		}
	}
	o, err := look(ctx, cfg)
	if err != nil {
		return false, err
	}
	if who.WorkerID == "" {
		who.WorkerID = cfg.WorkerID
	}
	return o.Owned && o.Owner == who.WorkerID && (cfg.FencingToken == 0 || o.FencingToken == cfg.FencingToken), nil
}

// Look asks who has a session, or had it last, without changing anything: GET /api/sessions/<id>/ownership. Of who gave it
// back, or whose lease has run out, TTL is 0. NOT_FOUND if the platform does not know the session.
func Look(ctx context.Context, cfg Config) (Lease, error) {
	o, err := look(ctx, cfg)
	if !o.Owned {
		o.TTLMs = 0
	}
	return o.lease(), err
}

func look(ctx context.Context, cfg Config) (o ownership, err error) {
	err = once(ctx, cfg, deliver.Call{Endpoint: "ownership"}, &o)
	return o, err
}

func (o ownership) lease() Lease {
	return Lease{o.Owner, time.Duration(o.TTLMs) * time.Millisecond, o.FencingToken}
}

// Release gives the session back, so that another owner need not wait for the lease to run out. Call it
// after Stop, when nothing is written any more. A session that is not ours any more is no error.
func (p *Pulser) Release(ctx context.Context) error {
	cfg := p.cfg
	cfg.FencingToken = p.Token()
	var ignored json.RawMessage
	body := func(who deliver.Credentials) any { return map[string]string{"workerId": who.WorkerID} }
	err := once(ctx, cfg, deliver.Call{Endpoint: "release", Body: body}, &ignored)
	if errors.Is(err, deliver.ErrFenced) {
		return nil
	}
	return err
}

// once makes one request of a client of its own, with three attempts.
func once(ctx context.Context, cfg Config, call deliver.Call, answer any) error {
	c, err := client(cfg, func() uint64 { return cfg.FencingToken })
	if err != nil {
		return err
	}
	defer c.Close()
	pauses := deliver.Retry{Attempts: DefaultMaxAttemptsPerTick, First: time.Second, Patience: DefaultInterval}.Pauses()
	for {
		reply, err := c.Do(ctx, call)
		if err == nil {
			if len(reply.Body) == 0 {
				return nil
			}
			if err := json.Unmarshal(reply.Body, answer); err != nil {
				return types.Errorf(types.ErrInvalid, "Post", call.Endpoint, "the answer is not what was agreed on: %w", err)
			}
			return nil
		}
		var failure *deliver.Failure
		switch {
		case errors.Is(err, deliver.ErrFenced):
			return types.Errorf(types.ErrConflict, "Claim", cfg.SessionID, "%w: %w", ErrLostOwnership, err)
		case !errors.As(err, &failure) || failure.Verdict != deliver.Again:
			return err
		}
		d, again := pauses.Next(failure)
		if !again {
			return err
		}
		if cerr := c.Wait(ctx, d); cerr != nil {
			return types.Errorf(types.ErrCancelled, "Post", call.Endpoint, "%w", cerr)
		}
	}
}
