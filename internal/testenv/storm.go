package testenv

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rnix/internal/daemon/storm"
	"rnix/internal/event"
	"rnix/ipc"
	"rnix/kernel"
)

// stormEnv is the variable that makes the daemon of a system listen for storms, on the socket that it names.
const stormEnv = "RNIX_TESTENV_STORM"

// stormRequest asks for a storm. With Rate 0 it only starts processes.
type stormRequest struct {
	Procs int
	Tree  bool // all below the first
	Rate  int  // events in a second
	Span  time.Duration
}

// Blew is what a storm came to in the daemon.
type Blew struct {
	storm.Blown
	Last uint64 // place in the log of the event behind it
}

// stormAnswer is the answer to a request.
type stormAnswer struct {
	Blew
	Error string
}

// Storm is a system in which many processes make a noise; see package storm.
type Storm struct {
	*System
	socket string
}

// NewStorm starts a system with so many processes that do nothing.
func NewStorm(t testing.TB, procs int, env ...string) *Storm {
	t.Helper()
	return newStorm(t, stormRequest{Procs: procs}, env)
}

// NewStormTree is NewStorm with all processes below the first, p0.
func NewStormTree(t testing.TB, procs int, env ...string) *Storm {
	t.Helper()
	return newStorm(t, stormRequest{Procs: procs, Tree: true}, env)
}

func newStorm(t testing.TB, r stormRequest, env []string) *Storm {
	t.Helper()
	dir, err := os.MkdirTemp("", "storm") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Storm{socket: filepath.Join(dir, "s")}
	s.System = NewAlone(t, append(env, stormEnv+"="+s.socket)...)
	if _, err := s.ask(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return s
}

// Blow makes the noise for so long, once, and returns what came of it in the daemon.
func (s *Storm) Blow(ctx context.Context, rate int, span time.Duration) (*Blew, error) {
	return s.ask(ctx, stormRequest{Rate: rate, Span: span})
}

func (s *Storm) ask(ctx context.Context, r stormRequest) (*Blew, error) {
	var c net.Conn
	for { // the daemon answers before it listens for storms
		var err error
		if c, err = new(net.Dialer).DialContext(ctx, "unix", s.socket); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(5 * time.Millisecond):
		}
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if err := json.NewEncoder(c).Encode(&r); err != nil {
		return nil, err
	}
	var said stormAnswer
	if err := json.NewDecoder(c).Decode(&said); err != nil {
		return nil, err
	}
	if said.Error != "" {
		return nil, errors.New(said.Error)
	}
	return &said.Blew, nil
}

// Crowd is clients that read all events while a storm blows, every fifth of them slowly.
type Crowd struct {
	Read, Missed atomic.Int64 // events that were read, and that the readers were told they had missed

	over atomic.Bool // they need not be slow any more
	errs chan error
	wg   sync.WaitGroup
}

// Watch has n clients read until Over. The error of the first that is not told something exactly comes from there.
func (s *Storm) Watch(ctx context.Context, n int) *Crowd {
	c := &Crowd{errs: make(chan error, n)}
	for i := range n {
		c.wg.Go(func() { // ends when it has seen the end of the storm, or with ctx
			cl := ipc.NewClient(s.Socket())
			defer cl.Close()
			read, missed, err := storm.ReadEvents(ctx, cl, func(n int) {
				if i%5 == 0 && n%20 == 0 && !c.over.Load() {
					<-time.After(100 * time.Millisecond)
				}
			})
			c.Read.Add(read)
			c.Missed.Add(missed)
			if err != nil {
				c.errs <- err
			}
		})
	}
	return c
}

// Over lets the clients read to the end of a storm, and returns what was wrong with the first.
func (c *Crowd) Over() error {
	c.over.Store(true)
	c.wg.Wait()
	select {
	case err := <-c.errs:
		return err
	default:
		return nil
	}
}

// storms serves requests for storms until ctx ends.
func storms(ctx context.Context, socket string, k *kernel.KernelImpl, events *event.Log) error {
	l, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	go func() { // ends with the daemon
		<-ctx.Done()
		_ = l.Close()
	}()
	go func() { // ends with the listener
		var procs []*kernel.Process
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var r stormRequest
			var said stormAnswer
			err = json.NewDecoder(c).Decode(&r)
			switch {
			case err != nil:
			case r.Procs > 0:
				procs, err = storm.Spawn(ctx, k, r.Procs, filepath.Dir(socket), r.Tree)
			case len(procs) > 0:
				said.Blown, said.Last = *storm.Blow(ctx, k, events, procs, r.Rate, r.Span, true), storm.End(events)
			}
			if err != nil {
				said.Error = err.Error()
			}
			_ = json.NewEncoder(c).Encode(&said) // who asked may have left
			_ = c.Close()
		}
	}()
	return nil
}
