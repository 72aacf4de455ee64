package kernelmcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/ipc"
)

// Mounted serves the sessions of agents' command lines, for ipc.Server.Mount. Each request says in its header Authorization which session it is for.
// open finds the session that a credential opens for the peer that asks, which has to work for the session's process, and how its calls are run (see
// NewSession). Nothing is kept between requests.
func Mounted(version string, open func(peer *ipc.Peer, credential string) (ipc.SessionToolsResponse, Run, error)) ipc.Mounted {
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		s, _ := r.Context().Value(sessionKey{}).(*Session)
		return NewServer(r.Context(), version, s.Options(), s.Install)
	}, &mcp.StreamableHTTPOptions{Stateless: true, MaxRequestBodyBytes: maxBody})
	return func(w http.ResponseWriter, r *http.Request, peer *ipc.Peer) {
		kind, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		has, run, err := open(peer, strings.TrimSpace(credential))
		if err != nil { // those who may not call keep no connection
			w.Header().Set("Connection", "close")
		}
		switch {
		case !Loopback(r.Host) || !OwnOrigin(r.Header.Get("Origin")):
			http.Error(w, "pages may not call this server", http.StatusForbidden)
		case !strings.EqualFold(kind, "Bearer") || err != nil:
			http.Error(w, "this server is for the sessions of agents' command lines, each with its own credential", http.StatusUnauthorized)
		case !whole(w, r):
		default:
			alive := keepAlive(w)
			defer alive.stop()
			handler.ServeHTTP(alive, r.WithContext(context.WithValue(r.Context(), sessionKey{}, NewSession(has.Tools, run))))
		}
	}
}

type sessionKey struct{}

const (
	maxBody     = 8 << 20     // of a request in bytes, as ipc has it
	bodyTimeout = time.Minute // for the body of a request
)

// whole reads the body of a request, or answers why it cannot. What is silent from then on is a call that the kernel runs.
func whole(w http.ResponseWriter, r *http.Request) bool {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // every connection of a server has one
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = control.SetReadDeadline(time.Time{})
	if err != nil {
		status := http.StatusBadRequest
		if _, long := errors.AsType[*http.MaxBytesError](err); long {
			status = http.StatusRequestEntityTooLarge
		}
		w.Header().Set("Connection", "close")
		http.Error(w, "the request cannot be read: "+err.Error(), status)
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
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
