package mcpserve

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"rnix/internal/testenv"
	"rnix/ipc"
)

// asServer is the variable that makes the test's binary a server for the daemon on this socket.
const asServer = "MCPSERVE_TEST_SOCKET"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asServer) != "":
		p := processesOn(os.Getenv(asServer), os.Environ(), os.TempDir())
		if err := Stdio(context.Background(), p, "test", os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if code, asked := testenv.Daemon(); asked {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// processesOn offers the processes of the daemon on a socket.
func processesOn(socket string, env []string, dir string) *Processes {
	return &Processes{Connect: func(ctx context.Context) (*ipc.Client, error) { return ipc.Connect(ctx, socket) }, Environ: env, Dir: dir}
}

// fakeDaemon serves what add registers on a fresh socket until the test ends, and returns the socket.
func fakeDaemon(t *testing.T, add func(*ipc.Server)) (socket string, srv *ipc.Server) {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcps") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := ipc.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	srv = ipc.NewServer(ipc.ServerOptions{})
	add(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }() // ends with Shutdown below
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return socket, srv
}

// bridge is a server on pipes.
type bridge struct {
	in   *io.PipeWriter // what the client writes
	out  *io.PipeReader
	done chan error // how Stdio ended
}

// start runs Stdio over pipes until the test ends.
func start(t *testing.T, src Source) *bridge {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	b := &bridge{in: inW, out: outR, done: make(chan error, 1)}
	gone := make(chan struct{})
	go func() { // ends when in is closed, at the latest by the cleanup
		defer close(gone)
		b.done <- Stdio(context.Background(), src, "test", inR, outW)
		_ = outW.Close()
		_ = inR.Close()
	}()
	t.Cleanup(func() { _, _ = inW.Close(), outR.Close(); <-gone })
	return b
}

// connect connects the protocol's own client to a bridge.
func (b *bridge) connect(t *testing.T, opt *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opt)
	cs, err := c.Connect(context.Background(), &mcp.IOTransport{Reader: b.out, Writer: b.in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// words returns the text of an answer.
func words(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("%d pieces of content", len(r.Content))
	}
	c, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("content is a %T", r.Content[0])
	}
	return c.Text
}
