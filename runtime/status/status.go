// Package status tells a platform how a session stands and how it has ended. What is told is kept in a journal until the
// platform has it, in order, each once: a result is not lost because the platform was away when it came.
//
// It owns the words on the wire. It does not know why a session ended.
package status

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"rnix/runtime/internal/deliver"
	"rnix/runtime/journal"
	"rnix/types"
)

// Kinds of a journal's events that are posted. Part of the on-disk format.
const (
	KindStatus     = "status"
	KindCompletion = "completion"
)

// RuntimeCredentials are who posts, and with which token. Fields that are empty are those of the last time.
type RuntimeCredentials = deliver.Credentials

// Status is how a session stands. Part of the wire format.
type Status struct {
	Status            string  `json:"status"` // such as running, completed or failed
	ProviderSessionID string  `json:"providerSessionId,omitempty"`
	WorktreePath      string  `json:"worktreePath,omitempty"`
	CommitSHA         string  `json:"commitSha,omitempty"`
	PullRequestURL    string  `json:"pullRequestUrl,omitempty"`
	Error             *Error  `json:"error,omitempty"`
	TotalCostUSD      float64 `json:"totalCostUsd,omitempty"`
	InputTokens       int     `json:"inputTokens,omitempty"`
	OutputTokens      int     `json:"outputTokens,omitempty"`
}

// Error is why a session has failed. Part of the wire format.
type Error struct {
	Message string `json:"message"`
}

// Config says which session. SessionID and BaseURL are required.
type Config struct {
	SessionID          string
	WorkerID           string
	BaseURL            string
	AuthToken          string
	CredentialProvider func(context.Context) (RuntimeCredentials, error) // nil = WorkerID and AuthToken
	Token              func() uint64                                     // the fencing token of the lease; nil = none
	Journal            *journal.Journal                                  // nil = one in memory
	HTTPClient         *deliver.HTTPClient                               // nil = one of this package's own
	Logger             *slog.Logger                                      // nil = slog.Default
	Sleep              func(context.Context, time.Duration) error
	StopDrainTimeout   time.Duration // 0 = 10 s
	// Stale says that another owner has had the session since what Journal holds was said: it is dropped, since the
	// session does not stand so any more.
	Stale bool
}

// Poster posts how one session stands. Safe for concurrent use.
type Poster struct {
	poster  *deliver.Poster
	session string
}

// New checks a configuration: INVALID names what is missing or wrong. Pauses between attempts are 1, 2 and 4 s, and then 4 s.
func New(cfg Config) (*Poster, error) {
	if cfg.StopDrainTimeout <= 0 {
		cfg.StopDrainTimeout = 10 * time.Second
	}
	p, err := deliver.NewPoster(deliver.PosterConfig{
		Config: deliver.Config{SessionID: cfg.SessionID, BaseURL: cfg.BaseURL, WorkerID: cfg.WorkerID, AuthToken: cfg.AuthToken,
			Credentials: cfg.CredentialProvider, HTTPClient: cfg.HTTPClient, Token: cfg.Token, Sleep: cfg.Sleep, Logger: cfg.Logger},
		Journal: cfg.Journal, Name: "status", Kinds: []string{KindStatus, KindCompletion}, Drain: cfg.StopDrainTimeout,
		Retry: deliver.Retry{Attempts: 3, First: time.Second, Longest: 4 * time.Second},
		Calls: cfg.calls, Batch: func() int { return 1 },
	})
	if err != nil {
		return nil, err
	}
	return &Poster{p, cfg.SessionID}, nil
}

// calls makes a request of the first event; of a gap there is nothing to say that the next status does not.
func (c *Config) calls(events []journal.Event) (deliver.Call, int, error) {
	e := events[0]
	if e.Kind == journal.KindGap || c.Stale {
		return deliver.Call{}, 1, nil
	}
	var body map[string]any
	if err := json.Unmarshal(e.Data, &body); err != nil {
		return deliver.Call{}, 0, err
	}
	return deliver.Call{Endpoint: e.Kind, Body: func(who deliver.Credentials) any {
		body["eventId"], body["workerId"] = e.ID, who.WorkerID
		return body
	}}, 1, nil
}

// Start begins to post, until Stop or the end of ctx. Further calls do nothing.
func (p *Poster) Start(ctx context.Context) { p.poster.Start(ctx) }

// Set tells how the session stands. Once it has returned nil, that is in the journal. Before Start and after Stop it is
// INVALID: nothing would be told.
func (p *Poster) Set(ctx context.Context, s Status) error {
	return p.put(ctx, journal.Draft{Kind: KindStatus, Data: s})
}

// Complete tells what a session has come to and how it stands then, both or neither, as Set does. The platform is told
// of the second even if it refuses the first.
func (p *Poster) Complete(ctx context.Context, summary string, s Status) error {
	return p.put(ctx, journal.Draft{Kind: KindCompletion, Data: map[string]string{"summary": summary}},
		journal.Draft{Kind: KindStatus, Data: s})
}

func (p *Poster) put(ctx context.Context, drafts ...journal.Draft) error {
	ok, err := p.poster.Put(ctx, true, drafts...)
	if err == nil && !ok {
		return types.Errorf(types.ErrInvalid, "Set", p.session, "nothing is posted before Start and after Stop")
	}
	return err
}

// Pending returns how much of this the platform does not have yet.
func (p *Poster) Pending() int { return p.poster.Pending() }

// Refused returns how much of this the platform has refused for ever.
func (p *Poster) Refused() int { return p.poster.Refused() }

// Err returns why the platform took nothing the last time, or nil.
func (p *Poster) Err() error { return p.poster.Err() }

// Drained waits until the platform has all of this, or until ctx ends.
func (p *Poster) Drained(ctx context.Context) { p.poster.Drained(ctx) }

// Stop waits up to StopDrainTimeout for what is pending and ends the posting. What is pending then stays in Config.Journal
// for the next Poster. Stop can be called often.
func (p *Poster) Stop() { p.poster.Stop() }
