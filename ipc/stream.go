package ipc

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"rnix/types"
)

// The event names that a stream uses itself. Part of the wire format.
const (
	kindMissed = "missed" // data is Missed; events were lost before the client could be given them
	kindEnd    = "end"    // the stream is complete
	kindError  = "error"  // data is types.WireError; the last event of a stream that failed
)

// Missed is a range of events, both ends included, that a stream's reader was too late for.
type Missed struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// How a stream batches what it writes.
const (
	flushSize   = 8 << 10                // bytes that are written without waiting for more
	flushEvery  = 5 * time.Millisecond   // least time between two smaller writes
	maxPending  = 64 << 10               // bytes after which Send waits for the client
	acceptAfter = 100 * time.Millisecond // after which a handler that has not failed counts as begun
	lastWords   = 2 * time.Second        // for a client to take the end of a stream that was cut off
)

// Stream sends events to one client. Its methods may be called by several goroutines, but only until
// the handler returns. A client that reads slowly makes Send wait, and nobody else.
type Stream struct {
	srv    *Server
	w      http.ResponseWriter
	cancel context.CancelCauseFunc
	wake   chan struct{} // one token: buf is no longer empty, or has reached flushSize
	over   chan struct{} // closed when nothing more will be added
	pumped chan struct{} // closed when the pump has written its last
	tasks  sync.WaitGroup

	mu   sync.Mutex
	room sync.Cond // of mu: buf became shorter, or err was set
	buf  []byte    // +checklocks:mu
	// +checklocks:mu
	conn net.Conn // nil until the stream has begun
	// +checklocks:mu
	err error // why nothing can be sent any more
	// +checklocks:mu
	gone bool // the connection is of no use any more
	// +checklocks:mu
	hurry bool // the stream was cut off: do not wait long for the client
	// +checklocks:mu
	done bool // the handler has returned
}

// serveStream runs the handler of rt on a new stream.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request, rt *route, peer *Peer) {
	s.streams.Add(1)
	defer s.streams.Done()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	st := &Stream{srv: s, w: w, cancel: cancel,
		wake: make(chan struct{}, 1), over: make(chan struct{}), pumped: make(chan struct{})}
	st.room.L = &st.mu
	st.tasks.Go(st.pump) // owned by this call; ends after st.over is closed
	defer context.AfterFunc(ctx, func() { st.cut(context.Cause(ctx)) })()
	err := s.guard(rt.name, func() error { return rt.stream(ctx, peer, s.decoder(w, r, rt), st) })
	if !st.finish(ctx, err) {
		s.fail(w, r, err)
	}
}

// Start begins the stream: the client learns that its request was accepted. Without it that happens
// with the first event, or after a tenth of a second.
func (st *Stream) Start() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.startLocked()
}

// Send sends v, encoded as JSON, as the event seq. It waits while the client is far behind. It
// returns an error when the client or the server has ended the stream.
func (st *Stream) Send(seq uint64, kind string, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return types.Errorf(types.ErrInternal, "Send", "", "event %d cannot be encoded: %w", seq, err)
	}
	return st.SendRaw(seq, kind, bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
}

// SendRaw is Send for JSON that is already encoded. It copies data before it returns.
func (st *Stream) SendRaw(seq uint64, kind string, data []byte) error {
	switch kind {
	case kindMissed, kindEnd, kindError:
		return types.Errorf(types.ErrInternal, "Send", "", "event kind %q belongs to the stream", kind)
	}
	if len(data) > maxFrame {
		return types.Errorf(types.ErrInvalid, "Send", "", "event %d has %d bytes and %d are allowed", seq, len(data), maxFrame)
	}
	return st.add(seq, kind, data)
}

// Missed tells the client that the events from to to, both included, are lost to it.
func (st *Stream) Missed(from, to uint64) error {
	data, _ := json.Marshal(Missed{from, to})
	return st.add(to, kindMissed, data)
}

func (st *Stream) add(seq uint64, kind string, data []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	for st.err == nil && len(st.buf) >= maxPending {
		st.room.Wait()
	}
	if err := st.startLocked(); err != nil {
		return err
	}
	st.putLocked(seq, kind, data)
	return nil
}

// putLocked appends an event and wakes the pump if it may be asleep.
//
// +checklocks:st.mu
func (st *Stream) putLocked(seq uint64, kind string, data []byte) {
	had := len(st.buf)
	st.buf = appendFrame(st.buf, seq, kind, data)
	if had == 0 || had < flushSize && len(st.buf) >= flushSize {
		st.poke()
	}
}

func (st *Stream) poke() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// startLocked takes the connection over from net/http, whose framing would cost two more writes for
// each of ours, and begins the response. The body ends with the connection.
//
// +checklocks:st.mu
func (st *Stream) startLocked() error {
	if st.err != nil || st.conn != nil {
		return st.err
	}
	conn, _, err := http.NewResponseController(st.w).Hijack()
	if err != nil {
		st.err, st.gone = types.Errorf(types.ErrDisconnected, "Send", "", "%w", err), true
		return st.err
	}
	st.conn = conn
	st.buf = append(st.buf, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n"+
		instanceHeader+": "+st.srv.instance+"\r\n\r\n"...)
	st.poke()
	st.tasks.Go(func() { st.watch(conn) }) // owned by serveStream; ends when finish closes the connection
	return nil
}

// watch waits until the client closes the connection. What it may say until then is ignored.
func (st *Stream) watch(conn net.Conn) {
	var b [512]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			st.lose(types.Errorf(types.ErrCancelled, "Send", "", "the client has left"))
			return
		}
	}
}

// cut ends the stream from our side: Send returns cause from now on, and the client is given a moment
// to take what is still to be said.
func (st *Stream) cut(cause error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.err == nil {
		st.err = cause
	}
	st.hurry = true
	if st.conn != nil {
		_ = st.conn.SetWriteDeadline(time.Now().Add(lastWords))
	}
	st.room.Broadcast()
}

// lose records that the connection is of no use any more.
func (st *Stream) lose(err error) {
	st.mu.Lock()
	st.gone, st.buf = true, nil
	if st.err == nil {
		st.err = err
	}
	st.room.Broadcast()
	st.mu.Unlock()
	st.cancel(err)
}

// finish ends the stream with err as its outcome, waits for its goroutines and closes the connection.
// It returns false, and has sent nothing, if the stream had not begun and err is to be sent as an
// ordinary response.
func (st *Stream) finish(ctx context.Context, err error) bool {
	st.mu.Lock()
	st.done = true
	plain := st.conn == nil && err != nil
	if !plain && (st.conn != nil || st.startLocked() == nil) && !st.gone {
		if err == nil {
			st.putLocked(0, kindEnd, []byte("{}"))
		} else {
			data, _ := json.Marshal(wireOf(ctx, err))
			st.putLocked(0, kindError, data)
		}
	}
	conn := st.conn
	st.mu.Unlock()
	close(st.over)
	if conn == nil {
		st.tasks.Wait()
		return !plain
	}
	// The pump ends after its last write, the watcher when the connection is closed, and a connection
	// that a hard stop closes ends both.
	defer context.AfterFunc(st.srv.hard, func() { _ = conn.Close() })()
	<-st.pumped
	_ = conn.Close()
	st.tasks.Wait()
	return true
}
