package llm

import (
	"context"
	"sync"
	"time"

	"rnix/vfs"
)

// limit is what is known of a provider's rate limit. Its zero value is "none". Safe for concurrent use.
type limit struct {
	mu sync.Mutex
	// +checklocks:mu
	until time.Time // when it is expected to end; zero = there is none
	// +checklocks:mu
	probing bool // one call finds out whether it has ended
	// +checklocks:mu
	changed chan struct{} // closed when any of the above changes; made by the first waiter
}

// admit waits until a call may be made, and says so through emit. If it returns true the call is a
// probe, and its maker must report the result with hit or passed. Who would have to wait beyond latest
// probes at once instead: the limit may have been lifted.
func (l *limit) admit(ctx context.Context, latest time.Time, emit func(StreamEvent)) (probe bool, err error) {
	var shown time.Time
	defer func() {
		if !shown.IsZero() {
			emit(StreamEvent{Type: EventWait})
		}
	}()
	for {
		if vfs.Ended(ctx, "Call", "") != nil {
			return false, vfs.Ended(ctx, "Call", "")
		}
		l.mu.Lock()
		until, wait := l.until, time.Until(l.until)
		if until.IsZero() || !l.probing && (wait <= 0 || until.After(latest)) {
			l.probing = !until.IsZero()
			l.mu.Unlock()
			return !until.IsZero(), nil
		}
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		if !until.Equal(shown) {
			shown = until
			emit(StreamEvent{Type: EventWait, Until: until, Text: "rate limit"})
		}
		sleep(ctx, wait, changed)
	}
}

// sleep waits for changed, for the end of ctx, or, if d is positive, for d.
func sleep(ctx context.Context, d time.Duration, changed <-chan struct{}) {
	var alarm <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		alarm = t.C
	}
	select {
	case <-alarm:
	case <-changed:
	case <-ctx.Done():
	}
}

// hit notes that a call met the limit, which is to last until then.
func (l *limit) hit(probe bool, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if probe {
		l.probing = false
	}
	if probe || until.After(l.until) {
		l.until = until
	}
	l.tellLocked()
}

// passed notes that a call did not meet the limit. A probe that was ended from outside (told is false)
// has found nothing out: another will.
func (l *limit) passed(probe, told bool) {
	if !probe {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probing = false
	if told {
		l.until = time.Time{}
	}
	l.tellLocked()
}

// +checklocks:l.mu
func (l *limit) tellLocked() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
