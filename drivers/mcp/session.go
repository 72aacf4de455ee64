package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/types"
	"rnix/vfs"
)

// link is a way to a server, started or reached.
type link interface {
	// connection is the protocol's side of the link. Closing the connection makes the link end.
	connection() mcp.Connection
	// negotiated tells the link which protocol was agreed upon.
	negotiated(version string)
	// wait returns when nothing is left of the link: no OS process, no goroutine of ours. It is bounded,
	// and called after the connection was closed.
	wait()
	// pid is that of the OS child; 0 = it is none.
	pid() int
	// notes returns what is known of the end besides what the connection says: how the child ended, if
	// it did so by itself, and what it wrote to its standard error. It may wait a moment for the child,
	// whose connection has ended.
	notes(byItself bool) string
}

// session is one life of a server.
type session struct {
	conn    *watched
	link    link
	lim     limits
	client  *mcp.ClientSession
	born    time.Time
	calls   atomic.Int32 // under way
	mourned bool         // its loss was counted; exclusive to the one who is dialing
}

// begin initialises the protocol over a link. If it fails, nothing is left of the link.
func (t *transport) begin(ctx context.Context, l link, version string) (*session, error) {
	s := &session{conn: watch(l.connection(), t.lim), link: l, lim: t.lim, born: time.Now()}
	s.conn.first = func(result json.RawMessage) {
		var in struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(result, &in) == nil && in.ProtocolVersion != "" { // the client checks it
			l.negotiated(in.ProtocolVersion)
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "rnix", Version: t.version}, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{}, // no roots, sampling or elicitation
		MultiRoundTrip:         &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { t.tell(vfs.MCPNews{Kind: vfs.NewsList}) },
		//lint:ignore SA1019 deprecated since 2026-07-28, and what today's servers log with
		LoggingMessageHandler: func(_ context.Context, m *mcp.LoggingMessageRequest) {
			t.said.line(string(m.Params.Level), messageText(m.Params))
		},
	})
	var err error
	if s.client, err = client.Connect(ctx, s.conn, &mcp.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		err = s.explain(ctx, "initialize", err)
		_ = s.conn.Close() // the connection is closed already, or must be
		l.wait()
		return nil, err
	}
	return s, nil
}

// alive reports whether the connection has not ended.
func (s *session) alive() bool {
	select {
	case <-s.conn.gone:
		return false
	default:
		return true
	}
}

// messageText is a message of a server for people on one line: its text, or its data as JSON, behind the name of the logger.
//
//lint:ignore SA1019 see LoggingMessageHandler above
func messageText(m *mcp.LoggingMessageParams) string {
	text, ok := m.Data.(string)
	if !ok {
		b, _ := json.Marshal(m.Data) // it was decoded from JSON
		text = string(b)
	}
	if m.Logger != "" {
		text = m.Logger + ": " + text
	}
	return strings.Join(strings.Fields(text), " ")
}

// lose ends a session that is of no use any more, for a reason. Who dials next buries it.
func (s *session) lose(reason error) { s.conn.leave(reason) }

// unsentError is why a call failed that cannot have had an effect: it has not reached the server, or the server knows nothing of the session in which it
// was made, as after a restart. Only the sending of the call itself tells so: a missing session fails all calls of the session that are under way too.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// unsent reports whether a call may be made again.
func unsent(err error) bool {
	_, ok := errors.AsType[*unsentError](err)
	return ok
}

// close ends the session and waits until nothing is left of it. Calls under way fail first, so that
// the client has nothing to wait for.
func (s *session) close() {
	_ = s.conn.Close()   // a server that cannot be told any more will notice
	_ = s.client.Close() // its connection is closed
	s.link.wait()
}

// why returns the reason for which the session ended. The session must have ended.
func (s *session) why() error {
	<-s.conn.gone
	reason := s.conn.reason
	notes := s.link.notes(errors.Is(reason, io.EOF))
	switch {
	case reason == nil:
		reason = errClosed
	case errors.Is(reason, io.EOF):
		reason = errors.New("it closed the connection")
	}
	if notes != "" {
		return fmt.Errorf("%w; %s", reason, notes)
	}
	return reason
}

// explain makes an error of a request one that says what to think of it.
func (s *session) explain(ctx context.Context, method string, err error) error {
	var known *types.SyscallError
	var answered *jsonrpc.Error
	ended := vfs.Ended(ctx, "", "")
	switch {
	case errors.As(err, &known):
		return known
	case ended != nil && method == "initialize": // what it wrote may tell what it was waiting for
		_ = s.conn.Close() // it has ended already
		if notes := s.link.notes(false); notes != "" {
			return types.Errorf(types.CodeOf(ended), "", "", "%w; %s", context.Cause(ctx), notes)
		}
		return ended
	case ended != nil:
		return ended
	case errors.Is(err, errUnreachable): // before the next: the client wraps it in an error of the protocol
		return types.Errorf(types.ErrUnavailable, "", "", "%s: %w", method, err)
	case errors.As(err, &answered):
		return types.Errorf(codeOf(method, answered.Code), "", "", "%w", &refusal{method, answered})
	case errors.Is(err, mcp.ErrSessionMissing): // a server behind a URL was started again
		select {
		case <-s.conn.gone: // for the same reason, at any moment
		case <-ctx.Done():
		}
		return types.Errorf(types.ErrDisconnected, "", "", "%s: the server knows nothing of us any more: %w", method, mcp.ErrSessionMissing)
	case !s.alive() && s.conn.reason == nil: // the client gave up, for a reason that is err
		return types.Errorf(types.ErrDriver, "", "", "%s: %w", method, err)
	case !s.alive(), errors.Is(err, mcp.ErrConnectionClosed):
		_ = s.conn.Close() // a connection that cannot be written to is of no use
		return types.Errorf(types.ErrDisconnected, "", "", "%s: the server is lost: %w", method, s.why())
	}
	return types.Errorf(types.ErrDriver, "", "", "%s: %w", method, err)
}

// refusal is an error that the server answered.
type refusal struct {
	method string
	answer *jsonrpc.Error
}

func (r *refusal) Error() string {
	const most = 4 << 10
	text := r.answer.Message
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return r.method + ": " + text
}

func (r *refusal) Unwrap() error { return r.answer }

// codeOf gives an error code of the protocol ours.
func codeOf(method string, code int64) types.ErrCode {
	const noSuchResource = -32002 // until 2025-11-25; bad parameters since
	switch code {
	case jsonrpc.CodeMethodNotFound, noSuchResource:
		return types.ErrNotFound
	case jsonrpc.CodeInvalidParams:
		if method == "resources/read" { // the only parameter is which one
			return types.ErrNotFound
		}
		return types.ErrInvalid
	case jsonrpc.CodeInvalidRequest, jsonrpc.CodeParseError:
		return types.ErrInvalid
	}
	return types.ErrDriver
}

// wantsOtherVersion reports whether the server refused to initialise because of the protocol's version.
func wantsOtherVersion(err error) bool {
	var answered *jsonrpc.Error
	return errors.As(err, &answered) &&
		(answered.Code == jsonrpc.CodeMethodNotFound || answered.Code == mcp.CodeUnsupportedProtocolVersion)
}
