package controlplane

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"rnix/types"
)

// Listener is where a control plane is reached.
type Listener struct {
	net.Listener
	URL   string // for BaseURL of the runtime packages: http://host:port or unix:/path
	Local bool   // nobody on another machine reaches it
}

// Listen opens an address: HOST:PORT, where port 0 is any that is free, or the path of a Unix socket, which is for
// its owner alone. A socket that nobody serves any more is replaced; one that is served is CONFLICT.
func Listen(address string) (*Listener, error) {
	path, unix := strings.CutPrefix(address, "unix:")
	if unix || strings.Contains(address, "/") {
		return listenUnix(path)
	}
	host, _, err := net.SplitHostPort(address) // the host is shown as it was given: [::] is not what anybody types
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Listen", address, "is no address; write 127.0.0.1:PORT, or the path of a socket")
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, types.Errorf(types.ErrConflict, "Listen", address, "is in use; choose another port, or 0 for any")
	}
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Listen", address, "%w", err)
	}
	ip, err := netip.ParseAddr(strings.TrimSpace(host))
	local := host == "localhost" || err == nil && ip.IsLoopback()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		l.Close()
		return nil, types.Errorf(types.ErrInternal, "Listen", address, "%w", err)
	}
	return &Listener{l, "http://" + net.JoinHostPort(cmp.Or(host, "0.0.0.0"), port), local}, nil
}

func listenUnix(path string) (*Listener, error) {
	if len(path) > 107 {
		return nil, types.Errorf(types.ErrInvalid, "Listen", path, "the path of a socket has at most 107 bytes; choose a shorter one")
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, types.Errorf(types.ErrConflict, "Listen", path, "is there already and is no socket; choose another path")
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, types.Errorf(types.ErrConflict, "Listen", path, "is served already; stop that server, or choose another path")
		}
		if err := os.Remove(path); err != nil {
			return nil, types.Errorf(types.ErrPermission, "Listen", path, "%w", err)
		}
	}
	old := syscall.Umask(0o177) // the socket is closed to others from its first moment
	l, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Listen", path, "%w", err)
	}
	return &Listener{l, "unix:" + path, true}, nil
}

// Serve answers what comes in until ctx ends; then it answers what is under way, for at most 5 s, and returns nil. The listener is
// closed.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }() // ends with Shutdown or Close below
	select {
	case err := <-ended:
		return types.Errorf(types.ErrUnavailable, "Serve", l.Addr().String(), "%w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		srv.Close()
	}
	<-ended
	return nil
}
