package kernelmcp

import (
	"context"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/ipc"
	"rnix/types"
)

// Serve serves the sessions of agents' command lines on a listener of the loopback, which it closes, until ctx ends. Each request says in its
// header Authorization which session it is for, and has to come from a process that works for the session's. open finds the session that a
// credential opens, and how its calls are run (see NewSession); owner, for which process a process of the operating system works. Nothing is kept
// between requests.
func Serve(ctx context.Context, l net.Listener, version string, open func(credential string) (ipc.SessionToolsResponse, Run, error), owner func(pid int) (types.PID, bool)) error {
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		s, _ := r.Context().Value(sessionKey{}).(*Session)
		return NewServer(ctx, version, s.Options(), s.Install)
	}, &mcp.StreamableHTTPOptions{Stateless: true, MaxRequestBodyBytes: maxBody})
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		has, run, err := open(strings.TrimSpace(credential))
		if who, ok := r.Context().Value(callerKey{}).(*caller); err == nil && (!ok || !who.worksFor(has.PID, owner)) {
			err = errOther
		}
		switch {
		case !Loopback(r.Host) || !OwnOrigin(r.Header.Get("Origin")):
			http.Error(w, "pages may not call this server", http.StatusForbidden)
		case !strings.EqualFold(kind, "Bearer") || err != nil:
			http.Error(w, "this server is for the sessions of agents' command lines, each with its own credential", http.StatusUnauthorized)
		default:
			alive := keepAlive(w)
			defer alive.stop()
			handler.ServeHTTP(alive, r.WithContext(context.WithValue(r.Context(), sessionKey{}, NewSession(has.Tools, run))))
		}
	})
	srv := &http.Server{Handler: serve, ConnContext: withCaller, ReadHeaderTimeout: headTimeout, MaxHeaderBytes: 64 << 10, BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	err := srv.Serve(l)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return types.Errorf(types.ErrInternal, "Serve", l.Addr().String(), "%w", err)
}

type (
	sessionKey struct{}
	callerKey  struct{}
)

const (
	maxBody     = 8 << 20          // of a request in bytes, as ipc has it
	headTimeout = 10 * time.Second // for the header of a request
)

// caller is who has made a connection. It is looked at once.
type caller struct {
	conn net.Conn

	once  sync.Once
	owner types.PID // for which it works
	known bool      // whether that could be told
}

func withCaller(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{conn: c})
}

var errOther = types.Errorf(types.ErrPermission, "Caller", "", "a command of another process may not call for this session")

// worksFor reports whether all processes that have the other end of a connection work for a process.
func (c *caller) worksFor(pid types.PID, owner func(pid int) (types.PID, bool)) bool {
	c.once.Do(func() {
		inode, err := OtherEnd(c.conn)
		if err != nil {
			return
		}
		pids := Holders(inode, nil)
		for _, p := range pids {
			who, inside := owner(p)
			if !inside || c.owner != 0 && who != c.owner {
				return
			}
			c.owner = who
		}
		c.known = len(pids) > 0 && len(Holders(inode, pids)) == len(pids) // none has ended, and its number is another's
	})
	return c.known && c.owner == pid
}

// quiet is how long the answer to a call may be silent: clients give up after minutes of that.
const quiet = 15 * time.Second

// steady is the answer to a request, in which a comment stands whenever it was silent for long: a call waits as long as the process does that it is for.
type steady struct {
	http.ResponseWriter
	header http.Header // of the handler, until it is written
	timer  *time.Timer

	mu    sync.Mutex
	begun bool // +checklocks:mu
	over  bool // +checklocks:mu
}

// keepAlive returns the answer behind w. The caller calls stop when it is complete.
func keepAlive(w http.ResponseWriter) *steady {
	s := &steady{ResponseWriter: w, header: http.Header{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(quiet, s.breathe)
	return s
}

// breathe writes a comment. Only a call waits so long, and its answer is a stream of events.
func (s *steady) breathe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if !s.begun {
		s.begun = true
		s.ResponseWriter.Header().Set("Content-Type", "text/event-stream")
		s.ResponseWriter.Header().Set("Cache-Control", "no-cache")
		s.ResponseWriter.WriteHeader(http.StatusOK)
	}
	_, err := s.ResponseWriter.Write([]byte(": it is at work\n\n"))
	if err == nil {
		err = http.NewResponseController(s.ResponseWriter).Flush()
	}
	if err == nil {
		s.timer.Reset(quiet)
	}
}

func (s *steady) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.timer.Stop()
}

// Header returns what the handler sets.
func (s *steady) Header() http.Header { return s.header }

func (s *steady) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(status)
}

// begin writes the header, unless a comment has.
//
// +checklocks:s.mu
func (s *steady) begin(status int) {
	if !s.begun {
		s.begun = true
		maps.Copy(s.ResponseWriter.Header(), s.header)
		s.ResponseWriter.WriteHeader(status)
	}
}

func (s *steady) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(http.StatusOK)
	s.timer.Reset(quiet)
	return s.ResponseWriter.Write(b)
}

// Flush sends what was written.
func (s *steady) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = http.NewResponseController(s.ResponseWriter).Flush() // the client may have gone
}
