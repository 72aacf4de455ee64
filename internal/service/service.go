// Package service is the ground on which the services of the daemon stand: how they register what they answer, and how they refuse who
// calls from inside an agent. A service is a package below it, with its own state, and with what it needs of others as interfaces.
package service

import (
	"context"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// Wire is where services register what they answer.
type Wire struct {
	Server *ipc.Server
	// Around is called around each call, with what was asked, and returns the error that the caller is told.
	Around func(req any, call func() error) error
}

// Handle registers a handler.
func Handle[Req, Resp any](w *Wire, m ipc.Method[Req, Resp], fn func(context.Context, *ipc.Peer, Req) (Resp, error)) {
	ipc.Handle(w.Server, m, func(ctx context.Context, peer *ipc.Peer, req Req) (resp Resp, err error) {
		err = w.Around(req, func() (err error) {
			resp, err = fn(ctx, peer, req)
			return err
		})
		return resp, err
	})
}

// Stream is Handle for a stream.
func Stream[Req, Resp any](w *Wire, m ipc.Method[Req, Resp], fn func(context.Context, *ipc.Peer, Req, *ipc.Stream) error) {
	ipc.HandleStream(w.Server, m, func(ctx context.Context, peer *ipc.Peer, req Req, out *ipc.Stream) error {
		return w.Around(req, func() error { return fn(ctx, peer, req, out) })
	})
}

// Outside is the error for a caller inside an agent who asks for what it may not do: may says what it may. owner 0 is one that comes from
// some agent that is not known.
func Outside(op string, owner types.PID, may string) *types.SyscallError {
	if owner == 0 {
		return types.Errorf(types.ErrPermission, op, "", "the caller was started by an agent that it has left, and may do nothing here; start it as a child of the command that uses it")
	}
	return types.Errorf(types.ErrPermission, op, "", "the caller runs inside process %d and may %s", owner, may)
}

// Callers knows inside which process a caller runs.
type Callers interface {
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
}

// People refuses a caller inside an agent what only people decide: may says what it may.
func People(who Callers, peer *ipc.Peer, op, may string) error {
	if owner, inside := who.AgentOf(peer); inside {
		return Outside(op, owner, may)
	}
	return nil
}

// MaxTimeoutMs is a year: longer limits are no limits, and must not overflow.
const MaxTimeoutMs = 366 * 24 * 3600 * 1000

// Timeout is a time limit of a request, in milliseconds, at most MaxTimeoutMs.
func Timeout(ms int64) time.Duration { return time.Duration(min(ms, MaxTimeoutMs)) * time.Millisecond }

// MaxTokens bounds what is added to a budget at once, in tokens.
const MaxTokens = 1_000_000_000_000
