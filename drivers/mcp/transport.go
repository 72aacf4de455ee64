package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/types"
	"rnix/vfs"
)

// transport is a server that is reconnected when it is lost. A call that was under way when the server
// died fails, for nobody knows what it did; the next call starts the server again. Servers that
// keep dying are started less and less often, and a call waits for that only so long. A call that cannot have reached the server is made again (mostAgain).
type transport struct {
	config  vfs.MCPConfig
	lim     limits
	log     *slog.Logger
	version string
	said    *said
	open    func(context.Context) (link, error) // starts or reaches the server

	life context.Context // ends with Close
	end  context.CancelCauseFunc

	// Exclusive to the one who is dialing.
	lost    int       // how often in a row the server was lost or could not be started
	retryAt time.Time // not before
	reason  error     // of the last loss

	mu sync.Mutex
	// +checklocks:mu
	session *session // nil before the first one; not replaced after life has ended
	// +checklocks:mu
	dialing chan struct{} // not nil while somebody is dialing; closed when that is over
	// +checklocks:mu
	state vfs.MCPState

	watchers sync.WaitGroup // one for each session, until its connection has ended
}

// shortRest is how long a call waits whose connection failed while other calls of the session are under way, before it is made once more.
const shortRest = 250 * time.Millisecond

// mostAgain is how often a call is made again that cannot have reached the server: once because a connection was closed that was kept, and once because
// the server that is there now knows nothing of the session. After a restart both may come, one behind the other.
const mostAgain = 2

// steady is how long a server must have lived for its loss to count as the first one again.
const steady = time.Minute

// errClosed is the cause that Close gives to everything under way.
var errClosed = errors.New("the server is unmounted")

// Connect starts or reaches the server and initialises the protocol, within ctx. A transport that was
// closed stays closed.
func (t *transport) Connect(ctx context.Context) error {
	_, err := t.live(ctx, 0)
	return err
}

// tell passes news on, but for those of a transport that is closed.
func (t *transport) tell(n vfs.MCPNews) {
	if t.config.Tell != nil && t.life.Err() == nil {
		t.config.Tell(n)
	}
}

// State implements vfs.MCPStater.
func (t *transport) State() vfs.MCPState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// is notes in which state the server is now. A state that it is in already keeps its time.
func (t *transport) is(state string, reason error, pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := time.Now()
	if t.state.State == state {
		since = t.state.Since
	}
	t.state = vfs.MCPState{State: state, Since: since, Reason: reason, OSPID: pid}
}

// Call performs one method and returns its result as the server wrote it. It fails with INVALID for a
// method that is not known, TIMEOUT or CANCELLED if ctx or the time limit of a request ends,
// DEVICE_DISCONNECTED if the server is lost under way, SERVICE_UNAVAILABLE if it cannot be started
// again yet, and with a code for what the server answered otherwise.
func (t *transport) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	request, ok := methods[method]
	if !ok {
		return nil, types.Errorf(types.ErrInvalid, "", "", "method %q is not offered", method)
	}
	if limit := t.config.RequestTimeout.Or(defaultRequestTimeout); limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, errors.New("no answer to "+method+" within "+limit.String()+" (request_timeout)"))
		defer stop()
	}
	for again := mostAgain; ; again-- {
		s, err := t.live(ctx, t.lim.patient)
		if err != nil {
			return nil, err
		}
		s.calls.Add(1)
		result, err := request(ctx, s, params)
		others := s.calls.Add(-1) > 0
		switch {
		case err == nil:
			return result, nil
		case ctx.Err() == nil && t.life.Err() != nil:
			return nil, types.Errorf(types.ErrDisconnected, "", "", "%s: %w", method, context.Cause(t.life))
		case again > 0 && ctx.Err() == nil && unsent(err):
			if !others || errors.Is(err, mcp.ErrSessionMissing) {
				s.lose(s.explain(ctx, method, err))
			} else if err := rest(ctx, shortRest); err != nil { // the calls under way may still be answered
				return nil, err
			}
			continue
		}
		return nil, s.explain(ctx, method, err)
	}
}

// Ping checks that the server answers. It does not start a server that was lost.
func (t *transport) Ping(ctx context.Context) error {
	t.mu.Lock()
	s := t.session
	t.mu.Unlock()
	if s == nil {
		return types.Errorf(types.ErrDisconnected, "", "", "not connected")
	}
	if err := s.client.Ping(ctx, nil); err != nil {
		return s.explain(ctx, "ping", err)
	}
	return nil
}

// Close ends the connection and the server's whole process tree, and waits until they are gone. Calls
// under way fail. It may be called more than once.
func (t *transport) Close() error { return t.CloseFor(errClosed) }

// CloseFor is Close for a reason, which calls under way are told.
func (t *transport) CloseFor(reason error) error {
	t.end(reason)
	t.mu.Lock()
	dialing := t.dialing
	t.mu.Unlock()
	if dialing != nil {
		<-dialing // ends at once, for its context has
	}
	t.mu.Lock()
	s := t.session
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	t.bury(s)
	t.watchers.Wait()
	return nil
}

// Drop ends the connection for a reason: the next call makes another one.
func (t *transport) Drop(reason error) {
	t.mu.Lock()
	s := t.session
	t.mu.Unlock()
	if s != nil {
		s.lose(reason)
		_ = s.conn.Close() // a child ends with it; who dials next waits for that
	}
}

// bury closes a session, and says what was dropped in its life.
func (t *transport) bury(s *session) {
	if n := s.conn.dropped.Swap(0); n > 0 {
		t.log.Warn("messages of an MCP server were dropped: it sends too many", "count", n)
	}
	s.close()
}

// live returns a session that lives, making one if there is none. patience is how long it tries, and waits for a server that is not to be started yet;
// 0 = it tries once.
func (t *transport) live(ctx context.Context, patience time.Duration) (*session, error) {
	for {
		if err := vfs.Ended(ctx, "", ""); err != nil {
			return nil, err
		}
		t.mu.Lock()
		if t.life.Err() != nil {
			t.mu.Unlock()
			return nil, types.Errorf(types.ErrDisconnected, "", "", "%w", context.Cause(t.life))
		}
		old := t.session
		if old != nil && old.alive() {
			t.mu.Unlock()
			return old, nil
		}
		if other := t.dialing; other != nil {
			t.mu.Unlock()
			select {
			case <-other:
			case <-ctx.Done():
			}
			continue
		}
		done := make(chan struct{})
		t.dialing = done
		t.mu.Unlock()

		s, err := t.redial(ctx, old, patience)

		t.mu.Lock()
		if err == nil {
			t.session = s
			t.watchers.Go(func() { t.watch(s) }) // ends with the connection, which Close ends; waited for there
		}
		t.dialing = nil
		close(done)
		t.mu.Unlock()
		return s, err
	}
}

// watch tells of the end of a session that we have not ended.
func (t *transport) watch(s *session) {
	<-s.conn.gone
	if s.conn.reason == nil || t.life.Err() != nil {
		return
	}
	reason := s.why()
	t.mu.Lock()
	current := t.session == s && t.dialing == nil
	t.mu.Unlock()
	if current {
		t.is(vfs.MCPLost, reason, 0)
	}
	t.tell(vfs.MCPNews{Kind: vfs.NewsLost, Reason: reason})
}

// redial makes a session. The caller is the one who is dialing.
func (t *transport) redial(ctx context.Context, old *session, patience time.Duration) (*session, error) {
	if old != nil && !old.mourned {
		old.mourned = true
		t.miss(old.born, old.why())
		t.bury(old)
		t.log.Info("an MCP server was lost", "reason", t.reason)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.life, func() { cancel(context.Cause(t.life)) })()
	for until := time.Now().Add(patience); ; {
		if wait := time.Until(t.retryAt); wait > 0 {
			if t.retryAt.After(until) {
				return nil, types.Errorf(types.ErrUnavailable, "", "", "the server was lost %d times in a row and is started again in %s at the earliest: %w",
					t.lost, wait.Round(100*time.Millisecond), t.reason)
			}
			if err := rest(ctx, wait); err != nil {
				return nil, err
			}
		}
		again, state := t.lost > 0, vfs.MCPStarting
		if again {
			state = vfs.MCPRestarting
		}
		t.is(state, nil, 0)
		s, err := t.dialOnce(ctx)
		switch {
		case err == nil:
			t.is(vfs.MCPRunning, nil, s.link.pid())
			if again {
				t.tell(vfs.MCPNews{Kind: vfs.NewsBack})
			}
			return s, nil
		case ctx.Err() != nil: // whoever waits has gone: it says nothing of the server
			t.lost = max(t.lost, 1) // but that one is told when it is connected
			t.is(vfs.MCPLost, t.reason, 0)
			return nil, err
		}
		t.miss(time.Now(), err)
		t.is(vfs.MCPFailed, err, 0)
		if again {
			t.tell(vfs.MCPNews{Kind: vfs.NewsFailed, Reason: err})
		}
		if patience == 0 || !passes(err) || t.retryAt.After(until) {
			return nil, err
		}
	}
}

// rest waits, or returns why ctx has ended.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return vfs.Ended(ctx, "", "")
	}
}

// passes reports whether a start that has failed may succeed a moment later. What only a person can mend does not.
func passes(err error) bool {
	switch types.CodeOf(err) {
	case types.ErrUnavailable, types.ErrDisconnected, types.ErrTimeout:
		return true
	}
	return false
}

// dialOnce makes a session within the time for a mount.
func (t *transport) dialOnce(ctx context.Context) (*session, error) {
	if limit := t.config.MountTimeout.Or(defaultMountTimeout); limit > 0 {
		within, stop := context.WithTimeoutCause(ctx, limit, errors.New("not ready within "+limit.String()+" (mount_timeout)"))
		defer stop()
		return t.dial(within)
	}
	return t.dial(ctx)
}

// miss counts a loss and settles when the next start may be: at once after the first loss, then after
// 1 s, 2 s, 4 s, up to a minute.
func (t *transport) miss(born time.Time, reason error) {
	if time.Since(born) > steady {
		t.lost = 0
	}
	t.lost++
	t.reason = reason
	t.retryAt = time.Time{}
	if t.lost > 1 {
		t.retryAt = time.Now().Add(min(time.Second<<min(t.lost-2, 6), steady))
	}
}

// dial makes a session. Servers are asked in the way of the older protocol first: those that ignore a
// method that they do not know would let us wait for ever. Those that know only the newer one say so.
func (t *transport) dial(ctx context.Context) (*session, error) {
	s, err := t.dialWith(ctx, "2025-11-25")
	if err != nil && wantsOtherVersion(err) {
		return t.dialWith(ctx, "2026-07-28")
	}
	return s, err
}

func (t *transport) dialWith(ctx context.Context, version string) (*session, error) {
	l, err := t.open(ctx)
	if err != nil {
		if types.CodeOf(err) == types.ErrInternal {
			if ended := vfs.Ended(ctx, "", ""); ended != nil {
				return nil, ended
			}
		}
		return nil, err
	}
	return t.begin(ctx, l, version)
}
