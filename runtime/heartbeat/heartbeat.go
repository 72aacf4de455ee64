// Package heartbeat keeps the lease of one session: it tells the platform again and again that this worker
// owns it, and says when it does not any more. The lease is about ownership alone: it goes on while an agent is
// paused, and says nothing of progress.
//
// Every lease has a fencing token, a number that grows with each owner. Whoever writes for the session asks
// Check before and sends Token along, so that an owner of yesterday writes nothing.
//
// It owns the timing of the lease and what was heard with it: messages of people (injects), and the
// wish that the session stops. It does not know what a session is, nor what becomes of a message.
package heartbeat

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"rnix/runtime/internal/deliver"
	"rnix/types"
)

// Defaults of Config.
const (
	DefaultInterval           = 30 * time.Second
	DefaultStrikesUntilLost   = 3
	DefaultMaxAttemptsPerTick = 3
)

// SessionClassInteractive is the class of sessions that a person attends: losing sight of the platform degrades
// them and does not end them. Part of the wire format.
const SessionClassInteractive = "interactive"

// ErrLostOwnership is in the chain of what Check returns once another owner has the session, or may have it.
var ErrLostOwnership = errors.New("the session belongs to another owner")

// RuntimeCredentials are who asks, and with which token. Fields that are empty are those of the last time.
type RuntimeCredentials = deliver.Credentials

// Config says which session, and how often. SessionID and BaseURL are required.
type Config struct {
	SessionID string
	WorkerID  string
	IssueID   string // sent if it is set; some platforms refuse a refresh without it
	BaseURL   string
	AuthToken string
	// CredentialProvider is asked before each attempt; nil = WorkerID and AuthToken.
	CredentialProvider func(context.Context) (RuntimeCredentials, error)
	SessionClass       string // "" or SessionClassInteractive

	Interval           time.Duration // 0 = 30 s; a third of the TTL if that is shorter. A tenth of it, either way, is chance
	StrikesUntilLost   int           // failed ticks in a row; 0 = 3
	MaxAttemptsPerTick int           // 0 = 3, with 1 s and 2 s between them; a fourth would come 4 s after the third
	RequestTimeout     time.Duration // 0 = 5 s, or a third of Interval if that is shorter
	TTL                time.Duration // of a lease if the platform does not say; 0 = StrikesUntilLost * Interval
	FencingToken       uint64        // of the lease that Claim has got; 0 = what the first refresh says

	HTTPClient *deliver.HTTPClient                        // nil = one of this package's own
	Logger     *slog.Logger                               // nil = slog.Default
	Now        func() time.Time                           // nil = the clock, with the time that the host was asleep
	Sleep      func(context.Context, time.Duration) error // between attempts; nil = a timer

	// OnInject is given a message of a person, on the goroutine of the heartbeat: it must not block. True acknowledges it;
	// after false the platform offers it again, unless AckInject or DeadLetterInject is called. nil = none is ever
	// acknowledged.
	OnInject func(InjectPayload) bool
	// OnHeartbeatAck is told of each successful tick, in Unix milliseconds: what LastTick returns then.
	OnHeartbeatAck func(tick int64)
}

// InjectPayload is a message for a session. Part of the wire format.
type InjectPayload struct {
	DeliveryID string `json:"deliveryId"`
	Text       string `json:"text"`
	Kind       string `json:"kind,omitempty"` // "memory", "user" or ""
	TurnID     string `json:"turnId,omitempty"`
}

// Pulser keeps one lease. Safe for concurrent use. Start it once, and Stop it.
type Pulser struct {
	cfg    Config
	client *deliver.Client
	lost   chan struct{} // closed when the session is lost or is to stop
	kick   chan struct{} // somebody wants to know now
	life   context.Context
	end    context.CancelFunc
	done   sync.WaitGroup // the goroutine

	mu      sync.Mutex
	started bool // +checklocks:mu
	stopped bool // +checklocks:mu
	// The channel lost is closed.
	over bool // +checklocks:mu
	// The platform wants the session to stop.
	stop bool // +checklocks:mu
	// The last answer was that another owner has it.
	refused  bool // +checklocks:mu
	degraded bool // +checklocks:mu
	strikes  int  // +checklocks:mu
	// The tick of the last success, in ms; 0 = none.
	tick int64 // +checklocks:mu
	// A refresh has succeeded, at the moment since.
	held bool // +checklocks:mu
	// When that refresh was asked for.
	since moment        // +checklocks:mu
	ttl   time.Duration // +checklocks:mu
	token uint64        // +checklocks:mu
	post  postbag       // +checklocks:mu
}

// New checks a configuration: INVALID names what is missing or wrong.
func New(cfg Config) (*Pulser, error) {
	if cfg.Interval < 0 || cfg.StrikesUntilLost < 0 || cfg.MaxAttemptsPerTick < 0 || cfg.TTL < 0 {
		return nil, types.Errorf(types.ErrInvalid, "New", "heartbeat", "intervals and counts must not be negative")
	}
	if cfg.Interval == 0 {
		cfg.Interval = DefaultInterval
	}
	if cfg.StrikesUntilLost == 0 {
		cfg.StrikesUntilLost = DefaultStrikesUntilLost
	}
	if cfg.MaxAttemptsPerTick == 0 {
		cfg.MaxAttemptsPerTick = DefaultMaxAttemptsPerTick
	}
	if cfg.RequestTimeout <= 0 {
		cfg.RequestTimeout = min(5*time.Second, cfg.Interval/3)
	}
	if cfg.TTL == 0 {
		cfg.TTL = time.Duration(cfg.StrikesUntilLost) * cfg.Interval
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	p := &Pulser{cfg: cfg, lost: make(chan struct{}), kick: make(chan struct{}, 1), token: cfg.FencingToken, ttl: cfg.TTL}
	var err error
	if p.client, err = client(cfg, p.Token); err != nil {
		return nil, err
	}
	p.life, p.end = context.WithCancel(context.Background())
	return p, nil
}

func client(cfg Config, token func() uint64) (*deliver.Client, error) {
	return deliver.New(deliver.Config{SessionID: cfg.SessionID, BaseURL: cfg.BaseURL, WorkerID: cfg.WorkerID, AuthToken: cfg.AuthToken,
		Credentials: cfg.CredentialProvider, HTTPClient: cfg.HTTPClient, Timeout: cfg.RequestTimeout, Token: token,
		Sleep: cfg.Sleep, Logger: cfg.Logger})
}

// NewWithAckObserver is New with cfg.OnHeartbeatAck set to observe.
func NewWithAckObserver(cfg Config, observe func(tick int64)) (*Pulser, error) {
	cfg.OnHeartbeatAck = observe
	return New(cfg)
}

// Start makes the first tick, in the time that this takes, and goes on until Stop, the end of ctx, or the loss of
// the session. A first tick that fails is a strike and no error. A second Start, or one after Stop, is INVALID.
func (p *Pulser) Start(ctx context.Context) error {
	p.mu.Lock()
	if p.started || p.stopped {
		p.mu.Unlock()
		return types.Errorf(types.ErrInvalid, "Start", "heartbeat", "a heartbeat is started once, and not after Stop")
	}
	p.started = true
	p.done.Add(1) // before the lock is let go, so that Stop waits
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stopped := context.AfterFunc(p.life, cancel)
	if !p.beat(ctx) {
		stopped()
		cancel()
		p.done.Done()
		return nil
	}
	go func() { // ends with ctx, with Stop, which waits for it, or with the session
		defer p.done.Done()
		defer cancel()
		defer stopped()
		p.run(ctx)
	}()
	return nil
}

func (p *Pulser) run(ctx context.Context) {
	for {
		p.mu.Lock()
		ttl := p.ttl
		p.mu.Unlock()
		t := time.NewTimer(pause(p.cfg.Interval, ttl))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-p.kick:
			t.Stop()
		case <-t.C:
		}
		if !p.beat(ctx) {
			return
		}
	}
}

// Stop ends the heartbeat and waits for it. What was acknowledged and not told yet is told in one more request, of at
// most 5 s. The lease is kept: see Release. Stop can be called often.
func (p *Pulser) Stop() error {
	p.mu.Lock()
	first := !p.stopped
	p.stopped = true
	p.mu.Unlock()
	p.end()
	p.done.Wait()
	if !first {
		return nil
	}
	p.mu.Lock()
	owed, report := p.started && p.post.owed(), p.post.report()
	p.mu.Unlock()
	if owed {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if _, err := p.client.Do(ctx, p.cfg.request(report)); err != nil {
			p.cfg.Logger.Warn("what was acknowledged could not be told to the platform; it will be offered again", "session", p.cfg.SessionID, "error", err)
		} else {
			p.mu.Lock()
			p.post.told(report)
			p.mu.Unlock()
		}
	}
	p.client.Close()
	return nil
}

// LostOwnership returns a channel that is closed, once, when the session is lost or is to stop.
func (p *Pulser) LostOwnership() <-chan struct{} { return p.lost }

// StopRequested reports whether the platform wants the session to stop.
func (p *Pulser) StopRequested() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop
}

// Degraded reports whether an interactive session goes on without a lease.
func (p *Pulser) Degraded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.degraded
}

// Strikes returns how many ticks in a row have failed.
func (p *Pulser) Strikes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.strikes
}

// LastTick returns when a tick succeeded last, in Unix milliseconds; 0 if none has.
func (p *Pulser) LastTick() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tick
}

// Token returns the fencing token of the lease; 0 if the platform has none.
func (p *Pulser) Token() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token
}
