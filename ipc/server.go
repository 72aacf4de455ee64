package ipc

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"rnix/types"
)

// Limits of a server, where ServerOptions does not say otherwise.
const (
	headerTimeout = 10 * time.Second // from the connection, or from the first byte, to the end of the header
	bodyTimeout   = 30 * time.Second // for the whole body of a request
	idleTimeout   = 2 * time.Minute  // of a connection between two calls
	writeTimeout  = time.Minute      // for a client to take an answer
	stallTimeout  = 2 * time.Minute  // for a client to take the next part of a stream
	maxHeader     = 64 << 10         // bytes
)

// errStopping is the cause with which all calls and streams end when the server shuts down.
var errStopping = types.Errorf(types.ErrUnavailable, "", "", "the daemon is stopping")

// ServerOptions are the choices of a server. The zero value is ready for use.
type ServerOptions struct {
	Logger       *slog.Logger  // nil = nothing is logged
	KeepAlive    time.Duration // between the signs of life of a silent stream; 0 = 15 s
	StallTimeout time.Duration // after which a stream's client that reads nothing is cut off; 0 = 2 min
}

// Server answers the methods that were given to Handle and HandleStream. Only the user that runs the
// server is served.
type Server struct {
	opt      ServerOptions
	log      *slog.Logger
	http     *http.Server
	uid      uint32 // whom we serve
	instance string // names this run of the server, so that a client does not resume a stream of another

	life context.Context // of all calls; ends when Shutdown begins
	stop context.CancelCauseFunc
	hard context.Context // of all connections; ends when Shutdown has no more time
	kill context.CancelFunc

	routes  map[string]*route  // written by Handle and HandleStream before Serve, then only read
	mounts  map[string]Mounted // likewise, by Mount
	streams sync.WaitGroup     // of the streams that have taken over their connection

	mu sync.Mutex
	// +checklocks:mu
	fresh map[net.Conn]struct{} // the connections on which nothing has been said yet
}

// NewServer returns a server without methods.
func NewServer(opt ServerOptions) *Server {
	s := &Server{opt: opt, log: opt.Logger, uid: uint32(os.Geteuid()), instance: rand.Text()[:16], routes: map[string]*route{}, mounts: map[string]Mounted{}, fresh: map[net.Conn]struct{}{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.opt.KeepAlive == 0 {
		s.opt.KeepAlive = 15 * time.Second
	}
	if s.opt.StallTimeout == 0 {
		s.opt.StallTimeout = stallTimeout
	}
	s.life, s.stop = context.WithCancelCause(context.Background())
	s.hard, s.kill = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:                      http.HandlerFunc(s.serve),
		BaseContext:                  func(net.Listener) context.Context { return s.life },
		ConnContext:                  withPeer,
		ConnState:                    s.note,
		ReadHeaderTimeout:            headerTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		// No ReadTimeout and no WriteTimeout: they would end a call that waits for hours. The
		// deadlines for bodies and answers are set where these are read and written.
	}
	return s
}

// Serve answers the connections that l accepts, until Shutdown, after which it returns nil. It closes
// l. A server serves any number of listeners.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return types.Errorf(types.ErrInternal, "Serve", l.Addr().String(), "%w", err)
	}
	return nil
}

// Shutdown stops the server: no connection is accepted any more, the contexts of all calls and
// streams end with an error of code SERVICE_UNAVAILABLE as their cause, and what they then answer is
// still delivered. It returns when all handlers have returned. When ctx ends before that, all
// connections are closed and the error is ctx's.
//
// A handler must not call Shutdown and wait for it: it would wait for itself.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop(errStopping)
	defer s.kill()
	s.closeFresh()
	err := s.http.Shutdown(ctx)
	if err == nil {
		quiet := make(chan struct{})
		// Started here, where no stream can begin any more; ends with the last of their handlers.
		go func() { s.streams.Wait(); close(quiet) }()
		select {
		case <-quiet:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	s.kill()
	_ = s.http.Close()
	return types.Errorf(types.ErrTimeout, "Shutdown", "", "not every call had ended: %w", err)
}

// note keeps track of the connections on which nothing has been said yet. net/http gives these five
// seconds at a shutdown, which a client that has connected for later does not need.
func (s *Server) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateNew {
		s.fresh[c] = struct{}{}
	} else {
		delete(s.fresh, c)
	}
}

func (s *Server) closeFresh() {
	s.mu.Lock()
	fresh := slices.Collect(maps.Keys(s.fresh))
	s.mu.Unlock()
	for _, c := range fresh {
		_ = c.Close()
	}
}
