// Package activity tells a platform what the agent of a session does: what it says, which tools it runs, how it
// ends. Events are kept in a journal until the platform has them, in order, each once.
//
// It owns what an event looks like on the wire. It does not know where events come from.
package activity

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rnix/agent"
	"rnix/runtime/internal/deliver"
	"rnix/runtime/journal"
)

// Defaults of Config.
const (
	DefaultQueueSize           = 256
	DefaultMaxRetries          = 5
	DefaultInitialBackoff      = 250 * time.Millisecond
	DefaultMaxBackoff          = 5 * time.Second
	DefaultHTTPTimeout         = 5 * time.Second
	DefaultStopDrainTimeout    = 2 * time.Second
	DefaultMaxToolSummaryChars = 200
	DefaultMaxToolOutputChars  = 2000
)

// Kind is the kind of a journal's events that are posted. Part of the on-disk format.
const Kind = "activity"

// RuntimeCredentials are who posts, and with which token. Fields that are empty are those of the last time.
type RuntimeCredentials = deliver.Credentials

// Config says which session, and how patiently. SessionID and BaseURL are required.
type Config struct {
	SessionID string
	WorkerID  string
	BaseURL   string
	AuthToken string
	// CredentialProvider is asked before each attempt; nil = WorkerID and AuthToken.
	CredentialProvider func(context.Context) (RuntimeCredentials, error)
	// Token is the fencing token of the lease, such as (*heartbeat.Pulser).Token; nil = none.
	Token func() uint64
	// Journal keeps the events; nil = one in memory, for QueueSize events. What that has no room for is told as a gap.
	Journal      *journal.Journal
	HTTPClient   *deliver.HTTPClient // nil = one of this package's own
	Logger       *slog.Logger        // nil = slog.Default
	Now          func() time.Time    // nil = time.Now
	Sleep        func(context.Context, time.Duration) error
	ProviderName string // goes along with each activity
	// Redact takes out what must not be told, from each text before it is kept; nil = nothing is taken out.
	Redact func(string) string

	QueueSize        int           // 0 = 256
	MaxRetries       int           // after so many a warning is logged, and asking goes on; 0 = 5
	InitialBackoff   time.Duration // 0 = 250 ms
	MaxBackoff       time.Duration // 0 = 5 s
	StopDrainTimeout time.Duration // 0 = 2 s
	// Running is asked before the platform is told that the session runs, as it is when it has taken an activity; nil = it does.
	Running func() bool

	MaxToolOutputChars int // of an output, and of each text of an input; 0 = 2000, negative = what an event can hold
}

// Poster posts the activities of one session. Safe for concurrent use.
type Poster struct {
	poster *deliver.Poster
	cfg    Config
	batch  atomic.Int64 // how many the platform takes at once; it says so
	told   bool         // that the session runs; exclusive to the feed

	mu sync.Mutex // held while an event is mapped and appended, so that their order is that of Send
	// When tools began.
	starts map[string]time.Time // +checklocks:mu
}

// New checks a configuration: INVALID names what is missing or wrong.
func New(cfg Config) (*Poster, error) {
	if cfg.MaxRetries <= 0 {
		cfg.MaxRetries = DefaultMaxRetries
	}
	if cfg.InitialBackoff <= 0 {
		cfg.InitialBackoff = DefaultInitialBackoff
	}
	if cfg.MaxBackoff <= 0 {
		cfg.MaxBackoff = DefaultMaxBackoff
	}
	if cfg.MaxToolOutputChars == 0 {
		cfg.MaxToolOutputChars = DefaultMaxToolOutputChars
	}
	if cfg.MaxToolOutputChars < 0 {
		cfg.MaxToolOutputChars = maxOutput
	}
	if cfg.QueueSize <= 0 {
		cfg.QueueSize = DefaultQueueSize
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Redact == nil {
		cfg.Redact = func(s string) string { return s }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	p := &Poster{cfg: cfg, starts: map[string]time.Time{}}
	p.batch.Store(1)
	var err error
	p.poster, err = deliver.NewPoster(deliver.PosterConfig{
		Config: deliver.Config{SessionID: cfg.SessionID, BaseURL: cfg.BaseURL, WorkerID: cfg.WorkerID, AuthToken: cfg.AuthToken,
			Credentials: cfg.CredentialProvider, HTTPClient: cfg.HTTPClient, Timeout: DefaultHTTPTimeout, Token: cfg.Token,
			Sleep: cfg.Sleep, Logger: cfg.Logger},
		Journal: cfg.Journal, Room: cfg.QueueSize, Name: "activity", Kinds: []string{Kind}, Drain: cfg.StopDrainTimeout,
		Retry: deliver.Retry{Attempts: cfg.MaxRetries + 1, First: cfg.InitialBackoff, Longest: cfg.MaxBackoff, Jitter: 0.1},
		Calls: p.calls, Batch: func() int { return int(p.batch.Load()) }, OnTaken: p.taken,
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Start begins to post, until Stop or the end of ctx. Further calls do nothing.
func (p *Poster) Start(ctx context.Context) { p.poster.Start(ctx) }

// Send hands over an event; it does not wait for the platform, and for the disk only while much waits for that already. Events that say
// nothing to people are left out. Before Start and after Stop it does nothing.
func (p *Poster) Send(ctx context.Context, ev agent.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.mapLocked(ev)
	if !ok {
		return
	}
	_, _ = p.poster.Put(ctx, false, journal.Draft{Kind: Kind, Data: a}) // what fails is counted and logged there
}

// Pending returns how many activities the platform does not have yet.
func (p *Poster) Pending() int { return p.poster.Pending() }

// Dropped returns how many activities were not kept: a journal in memory had no room for them, or the disk failed.
func (p *Poster) Dropped() int { return p.poster.Dropped() }

// Refused returns how many activities the platform has refused for ever.
func (p *Poster) Refused() int { return p.poster.Refused() }

// Err returns why the platform took nothing the last time, or nil.
func (p *Poster) Err() error { return p.poster.Err() }

// Drained waits until the platform has all activities, or until ctx ends.
func (p *Poster) Drained(ctx context.Context) { p.poster.Drained(ctx) }

// Stop waits up to StopDrainTimeout for what is pending and ends the posting. What is pending then stays in
// Config.Journal for the next Poster. Stop can be called often.
func (p *Poster) Stop() { p.poster.Stop() }

// posted is the body of a post: one activity, or several if the platform takes them. Part of the wire format.
type posted struct {
	WorkerID   string     `json:"workerId,omitempty"`
	Activity   *Activity  `json:"activity,omitempty"`
	Activities []Activity `json:"activities,omitempty"`
}

// calls makes one request of events.
func (p *Poster) calls(events []journal.Event) (deliver.Call, int, error) {
	list := make([]Activity, 0, len(events))
	for i, e := range events {
		a, err := p.fromEvent(e)
		if err != nil && i > 0 { // first those before it
			break
		}
		if err != nil {
			return deliver.Call{}, 0, err
		}
		list = append(list, a)
	}
	return deliver.Call{Endpoint: "activity", Body: func(who deliver.Credentials) any {
		if len(list) == 1 {
			return posted{WorkerID: who.WorkerID, Activity: &list[0]}
		}
		return posted{WorkerID: who.WorkerID, Activities: list}
	}}, len(list), nil
}

// maxBatch is how many activities are posted at once at most.
const maxBatch = 100

// taken hears how many activities the platform takes at once and, the first time, tells it that the session runs.
func (p *Poster) taken(ctx context.Context, c *deliver.Client, _ []journal.Event, r deliver.Reply) {
	var answer struct {
		MaxBatch int64 `json:"maxBatch"`
	}
	if json.Unmarshal(r.Body, &answer) == nil && answer.MaxBatch > 0 {
		p.batch.Store(min(answer.MaxBatch, maxBatch))
	}
	if p.told {
		return
	}
	p.told = true
	if p.cfg.Running != nil && !p.cfg.Running() {
		return // how it has ended may be known there already
	}
	_, err := c.Do(ctx, deliver.Call{Endpoint: "status", Body: func(who deliver.Credentials) any {
		return map[string]string{"status": "running", "workerId": who.WorkerID}
	}})
	if err != nil && ctx.Err() == nil {
		p.cfg.Logger.Warn("the platform was not told that the session runs", "session", p.cfg.SessionID, "error", err)
	}
}
