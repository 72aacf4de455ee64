package mcpserve

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/internal/kernelmcp"
	"rnix/types"
)

// one is a source with one tool, which takes d.
type one struct{ d time.Duration }

func (o one) options() *mcp.ServerOptions { return nil }
func (o one) lost() <-chan struct{}       { return nil }
func (o one) why() error                  { return nil }
func (o one) install(s *mcp.Server) {
	s.AddTool(&mcp.Tool{Name: "work", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-time.After(o.d):
			return kernelmcp.Text("done", false), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

func TestLongCallGivesSignsOfLifeToWhoAsksForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []float64
		opt := &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if r.Params.ProgressToken != "mine" {
				t.Errorf("token %v", r.Params.ProgressToken)
			}
			told = append(told, r.Params.Progress)
		}}
		b := start(t, one{35 * time.Second})
		cs := b.connect(t, opt)
		p := &mcp.CallToolParams{Name: "work"}
		if _, err := cs.CallTool(t.Context(), p); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(told) != 0 {
			t.Errorf("nobody has asked, and was told %v", told)
		}
		p.SetProgressToken("mine")
		if r, err := cs.CallTool(t.Context(), p); err != nil || words(t, r) != "done" {
			t.Errorf("%+v %v", r, err)
		}
		<-time.After(time.Minute) // nothing more may come
		synctest.Wait()
		if len(told) != 3 || told[0] != 10 || told[2] != 30 {
			t.Errorf("told %v", told)
		}
		_ = cs.Close()
	})
}

func TestClientThatReadsNothingDoesNotHoldTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, one{})
		if _, err := io.WriteString(b.in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the answer is being written, and nobody reads it
		began := time.Now()
		_ = b.in.Close()
		if err := <-b.done; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != goodbye {
			t.Errorf("it took %s", took)
		}
	})
}

func TestEndOfTheContextEndsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- Stdio(ctx, one{time.Hour}, "test", inR, outW) }() // ends with ctx
		cs := (&bridge{in: inW, out: outR}).connect(t, nil)
		called := make(chan struct{})
		go func() { // ends with the pipes
			defer close(called)
			_, _ = cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "work"})
		}()
		synctest.Wait()
		began := time.Now()
		cancel(why)
		if err := <-ended; !errors.Is(err, why) || time.Since(began) != 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		_, _ = inW.Close(), outW.Close()
		<-called
	})
}

func TestGarbageIsSaidToBeNoMCP(t *testing.T) {
	b := start(t, one{})
	if _, err := io.WriteString(b.in, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-b.done; types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("it ended with %v", err)
	}
}
