package ipc

import (
	"context"
	"os"
	"sync"
	"testing"
)

// A server that serves a socket and the one that took its place ends in order: nothing is cut off, whichever is closed first.
func TestAServerOfASocketThatWasMadeAgainEndsInOrder(t *testing.T) {
	for range 20 {
		socket := tempSocket(t)
		l, err := Listen(socket)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Relisten(l); again != nil || err != nil {
			t.Fatalf("nothing has happened to the socket: %v, %v", again, err)
		}
		if err := os.Remove(socket); err != nil {
			t.Fatal(err)
		}
		again, err := Relisten(l)
		if err != nil || again == nil {
			t.Fatalf("%v, %v", again, err)
		}
		s := NewServer(ServerOptions{})
		Handle(s, Ping, func(context.Context, *Peer, Empty) (PingResponse, error) { return PingResponse{PID: 7}, nil })
		var serving sync.WaitGroup
		serving.Go(func() { _ = s.Serve(l) })
		serving.Go(func() { _ = s.Serve(again) })
		c, err := Connect(t.Context(), socket)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Call(t.Context(), c, Ping, Empty{}); err != nil || r.PID != 7 {
			t.Errorf("%+v, %v", r, err)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("nothing runs any more: %v", err)
		}
		_ = c.Close()
		serving.Wait()
	}
}
