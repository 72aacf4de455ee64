package mcpserve

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/types"
)

// goodbye is how long a server that ends goes on writing the answers that are there.
const goodbye = 2 * time.Second

// Stdio serves one client, which writes to in and reads from out, a JSON object on each line. It returns
// nil when in has ended, which ends all calls at once; the cause of ctx when that has; and what has
// happened to the source when that is lost, after the calls under way were told. What the client sends
// that is no MCP is an error of code INVALID. It closes neither in nor out, and a Read of in may still be
// under way when it returns.
func Stdio(ctx context.Context, src Source, version string, in io.Reader, out io.Writer) error {
	life, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := &endReader{r: in, ended: make(chan struct{})}
	calls := &answered{Transport: &mcp.IOTransport{Reader: end, Writer: keepOpen{out}}}
	ss, err := newServer(life, src, version).Connect(ctx, calls, nil)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Serve", "", "%w", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- ss.Wait() }() // ends with the session; a client that reads nothing holds it, and we go without
	var why error
	select {
	case err := <-closed:
		return notMCP(err, end)
	case <-end.ended: // the session ends its calls
		within(goodbye, closed)
		return nil
	case <-ctx.Done():
		why = context.Cause(ctx)
	case <-src.lost():
		why = src.why()
		within(goodbye, calls.all())
	}
	cancel(why)
	go ss.Close() // ends when its calls have, which need not be waited for
	return why
}

// within waits for done, though not longer than d.
func within[T any](d time.Duration, done <-chan T) {
	select {
	case <-done:
	case <-time.After(d):
	}
}

// notMCP says why a session has ended by itself.
func notMCP(err error, end *endReader) error {
	select {
	case <-end.ended:
		return nil // the last line was half written
	default:
	}
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return types.Errorf(types.ErrInvalid, "Serve", "", "what came on standard input is no MCP, one JSON object on each line: %w", err)
}

// endReader notices the end of what it reads.
type endReader struct {
	r     io.Reader
	once  sync.Once
	ended chan struct{} // closed when a Read has failed, or found the end
}

func (e *endReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil {
		e.once.Do(func() { close(e.ended) })
	}
	return n, err
}

// Close does nothing: who has opened it closes it.
func (e *endReader) Close() error { return nil }

// keepOpen is a writer that is not closed.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
