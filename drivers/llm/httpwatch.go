package llm

import (
	"context"
	"errors"
	"io"
	"time"
)

var errAnswerTooLong = errors.New("the answer is too large")

// watchdog ends a context when something does not happen in time.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// watch returns a watchdog below ctx that ends with cause after d, unless it is set again or stopped.
func watch(ctx context.Context, d time.Duration, cause error) *watchdog {
	w := new(watchdog)
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(d, func() { w.cancel(cause) })
	return w
}

// set gives the watchdog another deadline. It is called by one goroutine only.
func (w *watchdog) set(d time.Duration, cause error) {
	w.timer.Stop()
	w.timer = time.AfterFunc(d, func() { w.cancel(cause) })
}

// stop ends the context and the timer.
func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(context.Canceled)
}

// boundedReader reads at most left bytes and reports each time that something came.
type boundedReader struct {
	r     io.Reader
	left  int64
	heard func()
}

// Read fails with errAnswerTooLong when there is more than the bound.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errAnswerTooLong
	}
	if n > 0 {
		b.heard()
	}
	return n, err
}
