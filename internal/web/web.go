// Package web serves the dashboard to a browser on this machine: the static files of the page, the exchange of a
// one-time link for a session, and the wire of the daemon, of which it passes on an explicit list of methods and
// changes no answer. It owns the listener, the links and the sessions, all in memory. It knows no processes: what
// the page shows, it asks the daemon for, as any client does.
//
// Two secrets make a session: a cookie, which scripts cannot read, and a key, which the page sends with each call.
// The cookie alone would not do, since a browser sends it to every port of this machine, so to servers of other
// users too; the key alone could be read by a script.
package web

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// DefaultPort is where the dashboard is, unless another program is there.
const DefaultPort = 7718

// Limits of the server.
const (
	headTimeout  = 10 * time.Second // for the header of a request
	bodyTimeout  = 30 * time.Second // for the whole body of a request; for its next part, of a browser that was let in
	idleTimeout  = 2 * time.Minute  // of a connection between two requests
	stallTimeout = 2 * time.Minute  // for a browser to take the next part of an answer
	maxHead      = 64 << 10         // bytes
)

// Options say whose dashboard it is.
type Options struct {
	Socket  string   // of the daemon
	DataDir string   // whose daemon that is, absolute: one that listens elsewhere, as after a start in another kind of session, is found by it. "" = none is
	Env     []string // "KEY=value": what processes that go on are given, as from any client; the page cannot say any
	Dir     string   // absolute; whose configuration is shown

	// Doctor makes the checks of rnix doctor, until ctx ends; it may start nothing. It is not called by two at once. nil = the page has none.
	Doctor func(ctx context.Context) []Finding
}

// Server is one dashboard. Its methods may be called by several goroutines.
type Server struct {
	opt   Options
	hosts []string // by which it may be called, with the port
	doors *doors
	exam  *examiner
	wire  *http.Transport // to the daemon
	http  *http.Server
	l     *entrance

	patience time.Duration // bodyTimeout
}

// Listen listens on a port of 127.0.0.1; 0 is any that is free. If the port is taken the error has the code CONFLICT.
func Listen(ctx context.Context, port int) (net.Listener, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, types.Errorf(types.ErrConflict, "Listen", address, "another program is there; choose another port, or --port 0 for any that is free")
	case errors.Is(err, syscall.EACCES):
		return nil, types.Errorf(types.ErrPermission, "Listen", address, "ports below 1024 are not yours; choose another one, or --port 0 for any that is free")
	}
	var at *net.OpError
	if errors.As(err, &at) {
		err = at.Err
	}
	return nil, types.Errorf(types.ErrUnavailable, "Listen", address, "%w", err)
}

// New returns a server on a listener of Listen, which Serve closes.
func New(o Options, l net.Listener) *Server {
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	s := &Server{
		opt:   o,
		hosts: []string{"127.0.0.1:" + port, "localhost:" + port},
		doors: newDoors("rnix_" + port),
		exam:  newExaminer(o.Doctor),
		l:     &entrance{Listener: l},

		patience: bodyTimeout,
		wire: &http.Transport{
			DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return o.dial(ctx) },
			DisableCompression: true,
			DisableKeepAlives:  true, // a kept connection may be hung up on in the moment of a call, which is then neither made nor sent again
		},
	}
	s.http = &http.Server{
		Handler:           s.guard(s.routes()),
		ReadHeaderTimeout: headTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHead,
		ConnContext:       markLate,
		ErrorLog:          log.New(discard{}, "", 0), // what browsers do wrong interests nobody
	}
	return s
}

// dial connects to the daemon, wherever it listens.
func (o *Options) dial(ctx context.Context) (net.Conn, error) {
	c, err := ipc.Dial(ctx, o.Socket)
	if types.CodeOf(err) != types.ErrUnavailable || o.DataDir == "" {
		return c, err
	}
	if h, held, lerr := ipc.LockHolder(ipc.DataLock(o.DataDir)); lerr == nil && held && h.Socket != "" && h.Socket != o.Socket && !h.Ended() {
		return ipc.Dial(ctx, h.Socket)
	}
	return nil, err
}

// Address returns the URL of the dashboard, which is good for browsers that have a session.
func (s *Server) Address() string { return "http://" + s.hosts[0] + "/" }

// Link returns a URL that lets one browser in, once. Only the latest few that were not used are good.
func (s *Server) Link() string {
	token, _ := s.doors.token()
	return s.Address() + "login?token=" + token
}

// Serve serves until ctx ends, and then returns its cause. Requests under way are cut off then: the daemon has each of
// them whole, or not at all.
func (s *Server) Serve(ctx context.Context) error {
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	defer s.exam.end()
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() })
	defer stop()
	err := s.http.Serve(s.l)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return types.Errorf(types.ErrInternal, "Serve", s.l.Addr().String(), "%w", err)
}

// routes is everything that there is. What is not in it is not found.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, f := range files() {
		mux.HandleFunc(f.path, f.serve)
	}
	mux.HandleFunc("/login", s.login)
	mux.HandleFunc("/logout", s.logout)
	mux.HandleFunc("/api/"+ipc.Version+"/{method}", s.api)
	return mux
}

// discard takes what is said and forgets it.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
