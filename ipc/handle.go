package ipc

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/types"
)

// decoder decodes the request of a call into dst, a pointer.
type decoder func(dst any) error

// route is one method as the server keeps it. Exactly one of call and stream is set.
type route struct {
	name, doc     string
	request       reflect.Type
	call          func(ctx context.Context, peer *Peer, decode decoder) (any, error)
	stream        func(ctx context.Context, peer *Peer, decode decoder, out *Stream) error
	resumesItself bool // the request takes the position of Last-Event-ID
}

// Handle makes fn answer m. The context ends when the client leaves or the server stops. Calls run
// side by side. Precondition: Serve has not been called, and m has no handler yet.
func Handle[Req, Resp any](s *Server, m Method[Req, Resp], fn func(ctx context.Context, peer *Peer, req Req) (Resp, error)) {
	if m.Stream {
		panic("ipc: " + m.Name + " is a stream: use HandleStream")
	}
	s.add(&route{name: m.Name, doc: m.Doc, request: reflect.TypeFor[Req](),
		call: func(ctx context.Context, peer *Peer, decode decoder) (any, error) {
			var req Req
			if err := decode(&req); err != nil {
				return nil, err
			}
			return fn(ctx, peer, req)
		}})
}

// HandleStream makes fn answer m with what it sends on out; the stream ends when fn returns. An
// error that fn returns before it has sent anything is an ordinary error response; a later one is the
// last event of the stream. The context ends when the client leaves or the server stops.
// Preconditions as for Handle.
func HandleStream[Req, Resp any](s *Server, m Method[Req, Resp], fn func(ctx context.Context, peer *Peer, req Req, out *Stream) error) {
	if !m.Stream {
		panic("ipc: " + m.Name + " is no stream: use Handle")
	}
	_, resumes := any(new(Req)).(resumer)
	s.add(&route{name: m.Name, doc: m.Doc, request: reflect.TypeFor[Req](), resumesItself: resumes,
		stream: func(ctx context.Context, peer *Peer, decode decoder, out *Stream) error {
			var req Req
			if err := decode(&req); err != nil {
				return err
			}
			return fn(ctx, peer, req, out)
		}})
}

// resumer is a request of a stream that can begin after an event that the client has already seen.
type resumer interface{ resumeAfter(seq uint64) }

func (r *EventsRequest) resumeAfter(seq uint64) { r.From = seq + 1 }

// Mounted answers a request by itself.
type Mounted func(w http.ResponseWriter, r *http.Request, peer *Peer)

// Mount makes answer answer what comes over a road for a path, whatever its method is. It checks itself that no page calls. The context of a request
// ends when the client leaves or the server stops. Precondition as for Handle.
// With a slash at its end, the path stands for all below it.
func (s *Server) Mount(path string, answer Mounted) { s.mounts[path] = answer }

// mounted returns what answers for a path; nil = nothing that is mounted.
func (s *Server) mounted(path string) Mounted {
	if m := s.mounts[path]; m != nil {
		return m
	}
	for prefix, m := range s.mounts {
		if strings.HasSuffix(prefix, "/") && strings.HasPrefix(path, prefix) {
			return m
		}
	}
	return nil
}

func (s *Server) add(r *route) {
	if s.routes[r.name] != nil {
		panic("ipc: " + r.name + " has two handlers")
	}
	s.routes[r.name] = r
}

// serve answers one request. A panic of a handler is logged with its stack and answered with
// INTERNAL.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Time{}) // the one that the last answer on this connection had
	peer, _ := r.Context().Value(peerKey{}).(*Peer)
	if peer == nil || peer.UID != s.uid {
		w.Header().Set("Connection", "close")
		s.fail(w, r, types.Errorf(types.ErrPermission, "", "", "this daemon serves uid %d only", s.uid))
		return
	}
	if answer := s.mounted(r.URL.Path); answer != nil && peer.road {
		answer(w, r, peer)
		return
	}
	if peer.road && (r.Host != wireHost || r.Header.Get("Origin") != "") { // a browser that an agent has started shows pages of others
		w.Header().Set("Connection", "close")
		s.fail(w, r, types.Errorf(types.ErrPermission, "", "", "pages may not call the daemon; a program says so: Host: %s, and no Origin", wireHost))
		return
	}
	rt, err := s.find(w, r)
	switch {
	case err != nil:
		s.fail(w, r, err)
	case rt == nil:
		s.reply(w, r, s.table())
	case rt.stream != nil:
		s.serveStream(w, r, rt, peer)
	default:
		var data any
		err := s.guard(rt.name, func() (err error) {
			data, err = rt.call(r.Context(), peer, s.decoder(w, r, rt))
			return err
		})
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.reply(w, r, data)
	}
}

// find returns the route of r, or nil for the table of all methods.
func (s *Server) find(w http.ResponseWriter, r *http.Request) (*route, error) {
	name, ours := strings.CutPrefix(r.URL.Path, "/"+Version+"/")
	if !ours {
		return nil, types.Errorf(types.ErrNotFound, "", r.URL.Path, "this daemon speaks /%s/<method>; GET /%s/ lists the methods", Version, Version)
	}
	if name == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return nil, nil
	}
	rt := s.routes[name]
	if rt == nil {
		near := nearest(name, slices.Sorted(maps.Keys(s.routes)))
		return nil, types.Errorf(types.ErrNotFound, name, "", "no such method; nearest: %s; GET /%s/ lists all", strings.Join(near, ", "), Version)
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, types.Errorf(types.ErrInvalid, name, "", "use POST, not %s", r.Method)
	}
	return rt, nil
}

// decoder returns the function that reads the request of r, strictly.
func (s *Server) decoder(w http.ResponseWriter, r *http.Request, rt *route) decoder {
	return func(dst any) error {
		body, err := readBody(w, r, rt.name)
		if err != nil {
			return err
		}
		if err := decodeRequest(rt.name, body, dst); err != nil {
			return err
		}
		last := r.Header.Get("Last-Event-ID")
		if last == "" {
			return nil
		}
		seq, err := strconv.ParseUint(last, 10, 64)
		if err != nil || !rt.resumesItself {
			return types.Errorf(types.ErrInvalid, rt.name, "", "cannot continue after event %q", last)
		}
		dst.(resumer).resumeAfter(seq)
		return nil
	}
}

// guard runs f and turns a panic of it into an error.
func (s *Server) guard(name string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("handler panicked", "method", name, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = types.Errorf(types.ErrInternal, name, "", "the daemon made a mistake, and its log has the details: %v", v)
		}
	}()
	return f()
}

// MethodTable is the answer to GET /v1/. Part of the wire format.
type MethodTable struct {
	Version string       `json:"version"`
	Methods []MethodInfo `json:"methods"`
}

// MethodInfo describes a method to people and programs that look.
type MethodInfo struct {
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	Doc     string   `json:"doc"`
	Stream  bool     `json:"stream,omitempty"`
	Request []string `json:"request"` // the fields of the request
	// Types says of which JSON type each field is: string, integer, number, boolean, object, "list of string" and so on.
	Types map[string]string `json:"types,omitempty"`
}

func (s *Server) table() MethodTable {
	t := MethodTable{Version: Version, Methods: []MethodInfo{}}
	for _, name := range slices.Sorted(maps.Keys(s.routes)) {
		r := s.routes[name]
		t.Methods = append(t.Methods, MethodInfo{Name: name, Path: "/" + Version + "/" + name, Doc: r.doc, Stream: r.stream != nil, Request: fieldNames(r.request), Types: fieldTypes(r.request)})
	}
	return t
}
