package mcpserve

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/internal/kernelmcp"
	"rnix/types"
)

// Path is where the server answers over HTTP.
const Path = "/mcp"

// Limits of the server over HTTP.
const (
	maxBody     = 8 << 20          // of a request in bytes, as ipc has it
	headTimeout = 10 * time.Second // for the header of a request
	idleSession = time.Hour        // after which a client that says nothing is forgotten
	minToken    = 16               // bytes
)

// UnixPrefix begins the address of a Unix socket.
const UnixPrefix = "unix:"

// Listen listens on an address of this machine alone, such as 127.0.0.1:8137, where port 0 is any that is free, or on a Unix socket that only
// this user can open, such as unix:/run/user/1000/rnix-mcp.sock. Any other address is refused with the code INVALID.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	const op = "Listen"
	if path, ok := strings.CutPrefix(address, UnixPrefix); ok {
		return listenUnix(ctx, path)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, op, address, "is no address; write it like 127.0.0.1:8137 or unix:PATH")
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return nil, types.Errorf(types.ErrInvalid, op, address, "only this machine may connect: use 127.0.0.1 or [::1]")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		var at *net.OpError
		if errors.As(err, &at) {
			err = at.Err
		}
		return nil, types.Errorf(types.ErrUnavailable, op, address, "%w", err)
	}
	return l, nil
}

// listenUnix listens on a socket at a path. What a server that is gone has left there makes way.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	const op = "Listen"
	const most = 107 // bytes of the path of a socket, see unix(7)
	if path == "" || len(path) > most {
		return nil, types.Errorf(types.ErrInvalid, op, UnixPrefix+path, "the path of a socket has 1 to %d bytes; write it like unix:/run/user/1000/rnix-mcp.sock", most)
	}
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return nil, types.Errorf(types.ErrInvalid, op, path, "is there and is no socket: name another path")
	case err == nil:
		c, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, types.Errorf(types.ErrUnavailable, op, path, "another server listens there: end it, or name another path")
		}
		if err := os.Remove(path); err != nil {
			return nil, types.Errorf(types.ErrStorage, op, path, "%w", err)
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err == nil {
		if err = os.Chmod(path, 0o600); err == nil { // until then other users are refused by their UID
			return l, nil
		}
		err = errors.Join(err, l.Close())
	}
	var at *net.OpError
	if errors.As(err, &at) {
		err = at.Err
	}
	return nil, types.Errorf(types.ErrUnavailable, op, path, "%w", err)
}

// NewToken returns a token that nobody can guess.
func NewToken() string { return rand.Text() + rand.Text() }

// CheckToken refuses a token that somebody could guess, or that fits in no header, with the code INVALID.
func CheckToken(token string) error {
	if len(token) < minToken {
		return types.Errorf(types.ErrInvalid, "Token", "", "the token has %d characters; it needs %d or more", len(token), minToken)
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' {
			return types.Errorf(types.ErrInvalid, "Token", "", "character %d of the token fits in no header; use letters and digits", i+1)
		}
	}
	return nil
}

// HTTP serves clients on a listener, which it closes, until ctx ends; then it returns its cause. Who connects has to be a process of this user
// that calls as this server does, as same says; has to know the token, unless that is empty; has to have called this machine by a name of its
// own; and must not be a page from elsewhere.
func HTTP(ctx context.Context, src Source, version string, l net.Listener, token string, same Same) error {
	s := newServer(ctx, src, version)
	mux := http.NewServeMux()
	mux.Handle(Path, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{SessionTimeout: idleSession, MaxRequestBodyBytes: maxBody}))
	srv := &http.Server{Handler: guard(token, same, mux), ConnContext: withCaller, ReadHeaderTimeout: headTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	err := srv.Serve(l)
	for ss := range s.Sessions() {
		_ = ss.Close()
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return types.Errorf(types.ErrInternal, "Serve", l.Addr().String(), "%w", err)
}

// guard lets requests through whose sender may send them.
func guard(token string, same Same, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !kernelmcp.Loopback(r.Host):
			// A name that was made to lead here: the page of another site.
			http.Error(w, "call this server 127.0.0.1, [::1] or localhost", http.StatusForbidden)
		case !kernelmcp.OwnOrigin(r.Header.Get("Origin")):
			http.Error(w, "pages of other sites may not call this server", http.StatusForbidden)
		case token != "" && !bears(r.Header.Get("Authorization"), token):
			w.Header().Set("WWW-Authenticate", `Bearer realm="rnix"`)
			http.Error(w, "send the header Authorization: Bearer TOKEN, with the token that the server has shown at its start", http.StatusUnauthorized)
		default:
			who, ok := r.Context().Value(callerKey{}).(*caller)
			if !ok {
				refuse(w, errHidden)
			} else if err := who.check(r.Context(), same); err != nil {
				refuse(w, err)
			} else {
				next.ServeHTTP(w, r)
			}
		}
	})
}

// bears reports whether a header has the token. It takes as long whether it is nearly right or not at all.
func bears(header, token string) bool {
	kind, got, _ := strings.Cut(header, " ")
	return strings.EqualFold(kind, "Bearer") && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(got)), []byte(token)) == 1
}
