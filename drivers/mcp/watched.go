package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"rnix/types"
)

// watched is a connection under guard: it keeps the results of our calls as the server wrote them,
// drops what a server sends unasked and too fast, and remembers why the connection ended.
type watched struct {
	mcp.Connection
	limiter *rate.Limiter
	dropped atomic.Int64
	first   func(result json.RawMessage) // is given the first result; set before the first Read

	once   sync.Once
	gone   chan struct{} // closed when the connection has ended
	reason error         // set before gone is closed; nil if it was we who closed

	mu      sync.Mutex
	waiting map[jsonrpc.ID]*answer // +checklocks:mu
}

// answer is the result of one call.
type answer struct {
	id  jsonrpc.ID
	raw json.RawMessage
	err error
	// unsent says that the call was not taken: no connection to the server could be made, or the server did not know the session.
	unsent bool
}

// answerKey is where a context carries the *answer of its call down to the connection.
type answerKey struct{}

func watch(c mcp.Connection, lim limits) *watched {
	return &watched{Connection: c, limiter: rate.NewLimiter(rate.Limit(lim.rate), int(lim.rate)),
		gone: make(chan struct{}), waiting: map[jsonrpc.ID]*answer{}}
}

// Connect makes a watched connection its own transport.
func (w *watched) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// expect returns a context whose call's result will be kept, and take, which must be called after the
// call and returns it.
func (w *watched) expect(ctx context.Context) (_ context.Context, take func() *answer) {
	a := &answer{}
	return context.WithValue(ctx, answerKey{}, a), func() *answer {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting, a.id)
		return &answer{raw: a.raw, err: a.err, unsent: a.unsent}
	}
}

// Write sends a message.
func (w *watched) Write(ctx context.Context, msg jsonrpc.Message) error {
	var a *answer // of the call that msg is
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		if a, _ = ctx.Value(answerKey{}).(*answer); a != nil {
			w.mu.Lock()
			a.id = req.ID
			w.waiting[req.ID] = a
			w.mu.Unlock()
		}
	}
	err := w.Connection.Write(ctx, msg)
	if a != nil && (errors.Is(err, errNotSent) || errors.Is(err, mcp.ErrSessionMissing)) {
		w.mu.Lock()
		a.unsent = true
		w.mu.Unlock()
	}
	return err
}

// Read returns the next message that is worth handling.
func (w *watched) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		msg, err := w.Connection.Read(ctx)
		if errors.Is(err, errTooLong) {
			if msg = w.refuseOnly(err); msg != nil {
				return msg, nil
			}
		}
		if err != nil {
			w.leave(err)
			return nil, err
		}
		switch m := msg.(type) {
		case *jsonrpc.Response:
			w.mu.Lock()
			if a := w.waiting[m.ID]; a != nil {
				a.raw = m.Result
			}
			w.mu.Unlock()
			if w.first != nil && m.Error == nil {
				w.first(m.Result)
				w.first = nil
			}
		case *jsonrpc.Request:
			if !w.limiter.Allow() {
				w.dropped.Add(1)
				continue
			}
		}
		return msg, nil
	}
}

// refuseOnly answers the only call under way, if there is just one, in place of a message that was too
// long to be read: it must have been its answer, and the server need not be given up. Otherwise it
// returns nil.
func (w *watched) refuseOnly(cause error) jsonrpc.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) != 1 {
		return nil
	}
	for id, a := range w.waiting {
		a.err = types.Errorf(types.ErrExhausted, "", "", "%w: ask for less at once", cause)
		return &jsonrpc.Response{ID: id, Error: a.err}
	}
	return nil
}

// Close ends the connection.
func (w *watched) Close() error {
	w.leave(nil)
	return w.Connection.Close()
}

func (w *watched) leave(reason error) {
	w.once.Do(func() {
		w.reason = reason
		close(w.gone)
	})
}
