package ipc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rnix/internal/sandbox"
)

// The test binary plays other programs when this variable says so.
const envRole = "IPC_TEST_ROLE"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Word { // the helper of a box
		os.Exit(sandbox.Helper(os.Args[2:]))
	}
	switch role, arg, _ := strings.Cut(os.Getenv(envRole), "="); role {
	case "":
		goleak.VerifyTestMain(m)
	case "daemon":
		os.Exit(playDaemon(arg))
	case "client":
		os.Exit(playClient(arg))
	case "channel":
		os.Exit(playChannel(arg))
	case "connect":
		os.Exit(playConnect(arg))
	case "broken":
		fmt.Println("the disk is made of cheese")
		os.Exit(7)
	}
}

// playDaemon notes that it was started, and serves until SIGTERM, a minute at most.
func playDaemon(socket string) int {
	f, err := os.OpenFile(socket+".launches", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 1
	}
	fmt.Fprintln(f, os.Getpid())
	f.Close()
	l, err := Listen(socket)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s := NewServer(ServerOptions{})
	Handle(s, Ping, func(context.Context, *Peer, Empty) (PingResponse, error) {
		wd, _ := os.Getwd()
		return PingResponse{PID: os.Getpid(), Version: wd}, nil
	})
	context.AfterFunc(ctx, func() { _ = s.Shutdown(context.Background()) })
	if err := s.Serve(l); err != nil {
		return 1
	}
	return 0
}

// playClient starts the daemon if need be and says its PID.
func playClient(socket string) int {
	c, err := Ensure(context.Background(), daemonAt(socket))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	p, err := Call(context.Background(), c, Ping, Empty{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Print(p.PID)
	return 0
}

func daemonAt(socket string) EnsureOptions {
	return EnsureOptions{Socket: socket, Env: append(os.Environ(), envRole+"=daemon="+socket, "GORACE=atexit_sleep_ms=0"), Args: []string{},
		Log: filepath.Join(filepath.Dir(socket), "log", "daemon.log"), Patience: 30 * time.Second}
}

// tempSocket returns a path in a private directory whose name is short enough.
func tempSocket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ipc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "s")
}

type echoRequest struct {
	Text  string `json:"text"`
	Times int    `json:"times,omitempty"`
}

type echoResponse struct {
	Text string `json:"text"`
	UID  uint32 `json:"uid"`
}

var (
	echo  = Method[echoRequest, echoResponse]{Name: "echo", Doc: "echo says it again"}
	hang  = Method[Empty, Empty]{Name: "hang", Doc: "hang waits for the end"}
	crash = Method[Empty, Empty]{Name: "crash", Doc: "crash panics"}
	count = Method[EventsRequest, int]{Name: "count", Doc: "count streams numbers", Stream: true}
)

var errEmpty = errors.New("nothing to say")

// serveOn runs a server on a fresh socket until the test ends, and returns a client of it. Add may
// register more methods.
func serveOn(t testing.TB, opt ServerOptions, add func(s *Server)) (*Client, *Server) {
	t.Helper()
	socket := tempSocket(t)
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(opt)
	Handle(s, echo, func(_ context.Context, p *Peer, r echoRequest) (echoResponse, error) {
		return echoResponse{strings.Repeat(r.Text, max(1, r.Times)), p.UID}, nil
	})
	Handle(s, hang, func(ctx context.Context, _ *Peer, _ Empty) (Empty, error) {
		<-ctx.Done()
		return Empty{}, ctx.Err()
	})
	Handle(s, crash, func(context.Context, *Peer, Empty) (Empty, error) { panic("oh no") })
	if add != nil {
		add(s)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }() // ends with Shutdown below
	c := NewClient(socket)
	t.Cleanup(func() {
		_ = c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c, s
}
