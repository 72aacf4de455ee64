package controlplane_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/runtime/controlplane"
	"rnix/runtime/heartbeat"
	"rnix/types"
)

// serve serves a control plane at an address until the test ends.
func serve(t *testing.T, address string) *controlplane.Listener {
	t.Helper()
	l, err := controlplane.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, nil, nil)
	life, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- s.Serve(life, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestALeaseIsKeptOverRealSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "cp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	for _, address := range []string{"127.0.0.1:0", "unix:" + socket} {
		l := serve(t, address)
		if !l.Local {
			t.Errorf("%s is not local", l.URL)
		}
		cfg := heartbeat.Config{SessionID: "a/b", WorkerID: "w", BaseURL: l.URL, AuthToken: secret, Logger: quiet}
		lease, err := heartbeat.Claim(ctx, cfg)
		if err != nil || lease.FencingToken != 1 || lease.TTL != time.Minute || lease.Owner != "w" {
			t.Fatalf("%s: %+v, %v", l.URL, lease, err)
		}
		other := cfg
		other.WorkerID = "v"
		if _, err := heartbeat.Claim(ctx, other); types.CodeOf(err) != types.ErrConflict {
			t.Errorf("a second claim: %v", err)
		}
		if owned, err := heartbeat.Probe(ctx, cfg); err != nil || !owned {
			t.Errorf("Probe = %v, %v", owned, err)
		}
		if owned, err := heartbeat.Probe(ctx, other); err != nil || owned {
			t.Errorf("Probe of another = %v, %v", owned, err)
		}
		cfg.FencingToken = lease.FencingToken
		p, err := heartbeat.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(ctx); err != nil || p.Check() != nil || p.Token() != 1 {
			t.Errorf("Start = %v, Check = %v", err, p.Check())
		}
		p.Stop()
		if err := p.Release(ctx); err != nil {
			t.Error(err)
		}
		if _, err := heartbeat.Claim(ctx, other); err != nil {
			t.Errorf("after the release: %v", err)
		}
		if err := p.Release(ctx); err != nil {
			t.Errorf("a second release: %v", err)
		}
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
}

func TestListenRefusesWhatIsTakenOrNoAddress(t *testing.T) {
	l := serve(t, "127.0.0.1:0")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for address, code := range map[string]types.ErrCode{
		l.Addr().String(): types.ErrConflict, file: types.ErrConflict, "nothing": types.ErrInvalid, "127.0.0.1:port": types.ErrInvalid,
		"unix:/" + strings.Repeat("x", 200): types.ErrInvalid,
	} {
		if l, err := controlplane.Listen(address); types.CodeOf(err) != code {
			t.Errorf("%s: %v", address, err)
			if l != nil {
				l.Close()
			}
		}
	}
	dir, err := os.MkdirTemp("", "cp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	stale, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	again, err := controlplane.Listen(filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := controlplane.Listen(filepath.Join(dir, "s")); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("a socket that is served: %v", err)
	}
	again.Close()
	everywhere, err := controlplane.Listen("0.0.0.0:0")
	if err != nil || everywhere.Local {
		t.Fatalf("0.0.0.0: %+v, %v", everywhere, err)
	}
	everywhere.Close()
}

func TestATokenFileIsMadeOnceAndIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "token")
	first, err := controlplane.TokenFile(path)
	if err != nil || len(first) != 64 {
		t.Fatalf("TokenFile = %q, %v", first, err)
	}
	if again, err := controlplane.TokenFile(path); err != nil || again != first {
		t.Errorf("TokenFile = %q, %v", again, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := controlplane.TokenFile(path); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others can read: %v", err)
	}
	if err := os.WriteFile(path, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := controlplane.TokenFile(path); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a token of one letter: %v", err)
	}
}
