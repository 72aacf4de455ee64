package llm

import (
	"context"
	"errors"

	"rnix/types"
	"rnix/vfs"
)

// Produce runs work and returns what it emits as the channel that LLMDriver.Stream promises: the
// pieces, then exactly one EventDone or EventError, then the end. emit blocks while nobody reads, and
// returns at once when ctx has ended; work must then return soon. The last event is never lost, not
// even when ctx has ended: pieces that nobody has read yet make room for it. A panic of work is an
// INTERNAL error of this call: one answer that a driver did not expect must not end all agents.
func Produce(ctx context.Context, work func(ctx context.Context, emit func(StreamEvent)) (*LLMResponse, error)) <-chan StreamEvent {
	ch := make(chan StreamEvent, 16)
	go func() { // started per call; ends with work, which ends with ctx; the reader of ch waits for it
		defer close(ch)
		resp, err := guarded(func() (*LLMResponse, error) {
			return work(ctx, func(ev StreamEvent) {
				select {
				case ch <- ev:
				case <-ctx.Done():
				}
			})
		})
		last := StreamEvent{Type: EventDone, Response: resp}
		if err != nil {
			last = StreamEvent{Type: EventError, Err: ended(ctx, err)}
		} else if resp == nil {
			last = StreamEvent{Type: EventError, Err: types.Errorf(types.ErrInternal, "Call", "", "the driver returned neither an answer nor an error")}
		}
		select {
		case ch <- last:
			return
		case <-ctx.Done():
		}
		for {
			select {
			case ch <- last:
				return
			default:
			}
			select {
			case <-ch: // an unread piece of an answer that nobody waits for
			default:
			}
		}
	}()
	return ch
}

// guarded runs work and makes a panic of it an error.
func guarded(work func() (*LLMResponse, error)) (resp *LLMResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			resp, err = nil, types.Errorf(types.ErrInternal, "Call", "", "panic: %v", p)
		}
	}()
	return work()
}

// Collect reads a stream to its end and returns the answer, or why there is none.
func Collect(events <-chan StreamEvent) (*LLMResponse, error) {
	return forward(events, func(StreamEvent) {})
}

// forward is Collect that hands every piece to emit.
func forward(events <-chan StreamEvent, emit func(StreamEvent)) (resp *LLMResponse, err error) {
	err = types.Errorf(types.ErrInternal, "Stream", "", "the driver closed its stream without a last event")
	for ev := range events {
		switch ev.Type {
		case EventDone:
			resp, err = ev.Response, nil
		case EventError:
			resp, err = nil, ev.Err
		default:
			emit(ev)
		}
	}
	return resp, err
}

// attempt performs one call of d and hands its pieces to emit.
func attempt(ctx context.Context, d LLMDriver, req LLMRequest, emit func(StreamEvent)) (*LLMResponse, error) {
	events, err := d.Stream(ctx, req)
	if err != nil {
		return nil, err
	}
	return forward(events, emit)
}

// ended turns the errors that come of an ended ctx into TIMEOUT or CANCELLED, and any error that has
// no code yet into DRIVER.
func ended(ctx context.Context, err error) error {
	var coded *types.SyscallError
	if errors.As(err, &coded) {
		return err
	}
	if e := vfs.Ended(ctx, "Call", ""); e != nil {
		return e
	}
	return types.Errorf(types.ErrDriver, "Call", "", "%w", err)
}
