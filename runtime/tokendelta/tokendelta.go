// Package tokendelta streams what a model says, while it says it, to a platform, in batches: a request for
// each token is forbidden by contract.
//
// It owns the batches. The whole text is told by others: what is gone here is gone from the show alone.
package tokendelta

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"rnix/runtime/internal/deliver"
	"rnix/runtime/journal"
)

// Defaults of Config.
const (
	DefaultFlushInterval    = 100 * time.Millisecond
	DefaultFlushFrames      = 20
	DefaultQueueSize        = 512
	DefaultMaxRetries       = 2
	DefaultInitialBackoff   = 100 * time.Millisecond
	DefaultMaxBackoff       = time.Second
	DefaultHTTPTimeout      = 5 * time.Second
	DefaultStopDrainTimeout = 2 * time.Second
)

// Kind is the kind of a journal's events that are posted. Part of the on-disk format.
const Kind = "token-delta"

// RuntimeCredentials are who posts, and with which token. Fields that are empty are those of the last time.
type RuntimeCredentials = deliver.Credentials

// Frame is a piece of text. Part of the wire format.
type Frame struct {
	Index int    `json:"index"` // counted by who sends
	Text  string `json:"text"`
	Done  bool   `json:"done"` // the last one of its turn
}

// Config says which session, and how large the batches are. SessionID and BaseURL are required.
type Config struct {
	SessionID string
	WorkerID  string
	BaseURL   string
	AuthToken string
	// CredentialProvider is asked before each attempt; nil = WorkerID and AuthToken.
	CredentialProvider func(context.Context) (RuntimeCredentials, error)
	Token              func() uint64       // the fencing token of the lease; nil = none
	Journal            *journal.Journal    // keeps the batches; nil = one in memory, for QueueSize batches
	HTTPClient         *deliver.HTTPClient // nil = one of this package's own
	Logger             *slog.Logger        // nil = slog.Default
	Sleep              func(context.Context, time.Duration) error

	FlushInterval    time.Duration // how old the oldest frame of a batch gets; 0 = 100 ms
	FlushFrames      int           // how many a batch has; 0 = 20
	QueueSize        int           // 0 = 512
	MaxRetries       int           // after so many a warning is logged, and asking goes on; 0 = 2
	InitialBackoff   time.Duration // 0 = 100 ms
	MaxBackoff       time.Duration // 0 = 1 s
	StopDrainTimeout time.Duration // 0 = 2 s
}

// Poster posts the frames of one session. Safe for concurrent use.
type Poster struct {
	poster *deliver.Poster
	cfg    Config

	mu      sync.Mutex // held while a batch is appended, so that their order is that of Send
	started bool       // +checklocks:mu
	stopped bool       // +checklocks:mu
	// The turn of the frames that come.
	turn string // +checklocks:mu
	// The frames of that turn that are not in the journal yet.
	frames []Frame // +checklocks:mu
	// The beginning of a character whose end the next frame has.
	rest string // +checklocks:mu
	// Flushes frames; nil if there are none.
	timer *time.Timer // +checklocks:mu
}

// batch is what is kept and posted: what a person sees at once. Part of the wire and on-disk formats.
type batch struct {
	EventID string  `json:"eventId,omitempty"` // the same each time that it is posted
	TurnID  string  `json:"turnId"`
	Frames  []Frame `json:"frames"`
}

// New checks a configuration: INVALID names what is missing or wrong.
func New(cfg Config) (*Poster, error) {
	or := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	or(&cfg.FlushInterval, DefaultFlushInterval)
	or(&cfg.InitialBackoff, DefaultInitialBackoff)
	or(&cfg.MaxBackoff, DefaultMaxBackoff)
	if cfg.FlushFrames <= 0 {
		cfg.FlushFrames = DefaultFlushFrames
	}
	if cfg.QueueSize <= 0 {
		cfg.QueueSize = DefaultQueueSize
	}
	if cfg.MaxRetries <= 0 {
		cfg.MaxRetries = DefaultMaxRetries
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	p := &Poster{cfg: cfg}
	var err error
	p.poster, err = deliver.NewPoster(deliver.PosterConfig{
		Config: deliver.Config{SessionID: cfg.SessionID, BaseURL: cfg.BaseURL, WorkerID: cfg.WorkerID, AuthToken: cfg.AuthToken,
			Credentials: cfg.CredentialProvider, HTTPClient: cfg.HTTPClient, Timeout: DefaultHTTPTimeout, Token: cfg.Token,
			Sleep: cfg.Sleep, Logger: cfg.Logger},
		Journal: cfg.Journal, Room: cfg.QueueSize, Name: "token-delta", Kinds: []string{Kind}, Drain: cfg.StopDrainTimeout,
		Retry: deliver.Retry{Attempts: cfg.MaxRetries + 1, First: cfg.InitialBackoff, Longest: cfg.MaxBackoff, Jitter: 0.1},
		Calls: calls, Batch: func() int { return 1 },
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// calls makes a request of the first event. Of a gap there is nothing to say: the numbers of the frames show it.
func calls(events []journal.Event) (deliver.Call, int, error) {
	if events[0].Kind != Kind {
		return deliver.Call{}, 1, nil
	}
	var b batch
	if err := json.Unmarshal(events[0].Data, &b); err != nil {
		return deliver.Call{}, 0, err
	}
	b.EventID = events[0].ID
	return deliver.Call{Endpoint: "token-delta", Body: func(deliver.Credentials) any { return b }}, 1, nil
}

// Start begins to post, until Stop or the end of ctx. Further calls do nothing.
func (p *Poster) Start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = true
	p.poster.Start(ctx)
}

// SetTurn says which turn the frames belong to that are sent from now on.
func (p *Poster) SetTurn(turnID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if turnID != p.turn {
		p.flushLocked()
		p.turn, p.rest = turnID, ""
	}
}

// Send hands over a frame of the present turn; it does not wait for the platform. A character that is divided between two frames is
// told with the second one. Before Start and after Stop it does nothing.
func (p *Poster) Send(f Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started || p.stopped {
		return
	}
	f.Text, p.rest = whole(p.rest + f.Text)
	if f.Done {
		f.Text, p.rest = f.Text+p.rest, ""
	}
	p.frames = append(p.frames, f)
	switch {
	case f.Done || len(p.frames) >= p.cfg.FlushFrames:
		p.flushLocked()
	case p.timer == nil:
		p.timer = time.AfterFunc(p.cfg.FlushInterval, p.flush)
	}
}

// whole cuts off the beginning of a character at the end of s.
func whole(s string) (text, rest string) {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if tail := s[len(s)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return s[:len(s)-n], tail
			}
			break
		}
	}
	return s, ""
}

func (p *Poster) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushLocked()
}

// flushLocked puts the frames into the journal.
//
// +checklocks:p.mu
func (p *Poster) flushLocked() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if len(p.frames) == 0 {
		return
	}
	_, _ = p.poster.Put(context.Background(), false, journal.Draft{Kind: Kind, Data: batch{TurnID: p.turn, Frames: p.frames}}) // what fails is counted and logged there
	p.frames = nil
}

// Pending returns how many batches the platform does not have yet, with the one that is being collected.
func (p *Poster) Pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.poster.Pending()
	if len(p.frames) > 0 {
		n++
	}
	return n
}

// Dropped returns how many batches were not kept: a journal in memory had no room for them, or the disk failed.
func (p *Poster) Dropped() int { return p.poster.Dropped() }

// Err returns why the platform took nothing the last time, or nil.
func (p *Poster) Err() error { return p.poster.Err() }

// Stop flushes, waits up to StopDrainTimeout for what is pending and ends the posting. Stop can be called often.
func (p *Poster) Stop() {
	p.mu.Lock()
	p.flushLocked()
	p.stopped = true
	p.mu.Unlock()
	p.poster.Stop()
}
