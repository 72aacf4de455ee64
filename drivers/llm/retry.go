package llm

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"rnix/types"
	"rnix/vfs"
)

// RetryConfig says how often and how long Retry tries. Zero values mean the default.
type RetryConfig struct {
	Tries    int           // of one call that fails with UNAVAILABLE or TIMEOUT; 3
	First    time.Duration // before the second try, doubled each time, with jitter; 500 ms
	Max      time.Duration // the longest of these pauses, also when the provider asks for more; 30 s
	LimitMax time.Duration // the longest time that one call waits for rate limits; 10 min; negative = none
	// Limits is shared with others that ask the same Provider, as they call it; nil = with nobody. KeyEnv is the name of the key: who has another one
	// is not held by a limit of this one, nor is another model, unless the provider says that the limit is of the account.
	Limits *Limits
	// Refused is told of a key that the server refuses. again says that there may be another one now, with which it is asked once more; later that one
	// can come. nil = there is none.
	Refused          func(ctx context.Context, name, key string) (again, later bool)
	Provider, KeyEnv string
}

// Retry asks again what failed for a reason that passes. A rate limit is waited for, visibly, as long
// as the provider asks (EventWait); while one lasts, one call at a time probes whether it is over, and
// the others wait for what it finds. TimeoutMs of a request bounds each try, not the waiting.
//
// An answer that breaks off half-way is asked for again too: nothing of it counts until it is
// complete. The pieces that were shown are followed by a note, of type EventReasoning.
type Retry struct {
	LLMDriver // Info
	cfg       RetryConfig
}

// NewRetry puts retries around a driver. All calls through it, and through others with the same Limits and Provider, share what
// is known of the rate limit of their key.
func NewRetry(driver LLMDriver, cfg RetryConfig) *Retry {
	if cfg.Tries <= 0 {
		cfg.Tries = 3
	}
	if cfg.First <= 0 {
		cfg.First = 500 * time.Millisecond
	}
	if cfg.Max <= 0 {
		cfg.Max = 30 * time.Second
	}
	if cfg.LimitMax == 0 {
		cfg.LimitMax = 10 * time.Minute
	}
	if cfg.Limits == nil {
		cfg.Limits = new(Limits)
	}
	return &Retry{LLMDriver: driver, cfg: cfg}
}

// Call performs one completion.
func (r *Retry) Call(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	return attempt(ctx, r, req, func(StreamEvent) {})
}

// Stream performs one completion and delivers it in pieces.
func (r *Retry) Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error) {
	return Produce(ctx, func(ctx context.Context, emit func(StreamEvent)) (*LLMResponse, error) {
		c := retrying{r: r, limits: r.limits(ctx, req.Model), emit: emit, began: time.Now(), pause: growing(r.cfg.First, r.cfg.Max), limitPause: growing(5*time.Second, 5*time.Minute)}
		return c.run(ctx, req)
	}), nil
}

func (r *Retry) limits(ctx context.Context, model string) limitsOf {
	of := func(model string) *limit { return r.cfg.Limits.of(ctx, r.cfg.Provider, model, r.cfg.KeyEnv) }
	return limitsOf{model: of(cmp.Or(model, r.Info().Model, "default")), account: of("")}
}

func growing(first, longest time.Duration) *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: first, RandomizationFactor: 0.3, Multiplier: 2, MaxInterval: longest}
}

// retrying is one call under way.
type retrying struct {
	r                 *Retry
	limits            limitsOf
	emit              func(StreamEvent)
	began             time.Time
	pause, limitPause *backoff.ExponentialBackOff
	tries             int
	asked             bool // once more, with another key
	shown             bool // pieces of a try that has failed were delivered
}

func (c *retrying) run(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	for {
		if err := c.limits.admit(ctx, c.began.Add(c.r.cfg.LimitMax), c.emit); err != nil {
			return nil, err
		}
		resp, came, err := c.try(ctx, req)
		if err == nil || ctx.Err() != nil {
			c.limits.passed(err == nil)
			return resp, err
		}
		c.shown = c.shown || came
		if types.CodeOf(err) == types.ErrRateLimited {
			wait, ofAccount := c.limited(err)
			c.limits.hit(ofAccount, time.Now().Add(wait))
			if time.Since(c.began)+wait > c.r.cfg.LimitMax {
				return nil, types.Errorf(types.ErrRateLimited, "Call", c.r.Info().Name, "not waiting longer than %v: %w", max(c.r.cfg.LimitMax, 0), causeOf(err))
			}
			continue // admit waits
		}
		c.limits.passed(true)
		if c.renewed(ctx, err) {
			continue
		}
		if !c.again(err, came) {
			return nil, err
		}
		if err := c.rest(ctx, err); err != nil {
			return nil, err
		}
	}
}

// try makes one try and reports whether anything came.
func (c *retrying) try(ctx context.Context, req LLMRequest) (resp *LLMResponse, came bool, err error) {
	resp, err = attempt(ctx, c.r.LLMDriver, req, func(ev StreamEvent) {
		if ev.Type == EventText || ev.Type == EventReasoning {
			came = true
			c.limits.passed(true)
			if c.shown {
				c.shown = false
				c.emit(StreamEvent{Type: EventReasoning, Text: "\n[the answer broke off; this is another]\n"})
			}
		}
		c.emit(ev)
	})
	return resp, came, err
}

// renewed reports whether to ask once more since a key that was refused may have been replaced.
func (c *retrying) renewed(ctx context.Context, err error) bool {
	refused, ok := errors.AsType[*refusedKey](err)
	if !ok || refused.key == "" || c.r.cfg.Refused == nil {
		return false
	}
	again, later := c.r.cfg.Refused(ctx, refused.name, refused.key)
	refused.later = later
	again, c.asked = again && !c.asked, true
	return again
}

// again counts a failure and reports whether another try is worth it.
func (c *retrying) again(err error, came bool) bool {
	c.tries++
	if c.tries >= c.r.cfg.Tries {
		return false
	}
	switch types.CodeOf(err) {
	case types.ErrUnavailable:
		return true
	case types.ErrTimeout:
		return !came || !c.r.Info().Acts // one that has acted meanwhile would do it twice
	}
	return false
}

// limited returns how long to wait for a rate limit, and whether it is that of the account.
func (c *retrying) limited(err error) (wait time.Duration, ofAccount bool) {
	var asked *RateLimit
	if errors.As(err, &asked) && asked.RetryAfter > 0 {
		return asked.RetryAfter, asked.Account
	}
	return c.limitPause.NextBackOff(), asked != nil && asked.Account
}

// rest waits before the next try.
func (c *retrying) rest(ctx context.Context, err error) error {
	d := c.pause.NextBackOff()
	var asked *RateLimit
	if errors.As(err, &asked) {
		d = max(d, min(asked.RetryAfter, c.r.cfg.Max))
	}
	until := time.Now().Add(d)
	c.emit(StreamEvent{Type: EventWait, Until: until, Text: types.CodeOf(err).Error()})
	defer c.emit(StreamEvent{Type: EventWait})
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return vfs.Ended(ctx, "Call", c.r.Info().Name)
	}
}
