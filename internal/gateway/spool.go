package gateway

import (
	"context"
	"sync"
)

// spool is what has come of an answer and was not passed on yet. One goroutine puts, and one takes.
type spool struct {
	more chan struct{} // has room for one: something was put, or it has ended
	room chan struct{} // likewise: something was taken

	mu    sync.Mutex
	parts []byte // +checklocks:mu
	over  bool   // +checklocks:mu
	err   error  // +checklocks:mu
}

func newSpool() *spool { return &spool{more: make(chan struct{}, 1), room: make(chan struct{}, 1)} }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// put adds a part. While there is too much it waits, at most until ctx ends, whose error it returns then.
func (s *spool) put(ctx context.Context, part []byte) error {
	for len(part) > 0 {
		s.mu.Lock()
		if len(s.parts) < maxSpool {
			s.parts = append(s.parts, part...)
			part = nil
		}
		s.mu.Unlock()
		signal(s.more)
		if part == nil {
			break
		}
		select {
		case <-s.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// end says that nothing more comes, and why not.
func (s *spool) end(err error) {
	s.mu.Lock()
	s.over, s.err = true, err
	s.mu.Unlock()
	signal(s.more)
}

// take waits for what has come and returns all of it; nil = the end has come, for err.
func (s *spool) take() (parts []byte, err error) {
	for {
		s.mu.Lock()
		parts, s.parts = s.parts, nil
		over, err := s.over, s.err
		s.mu.Unlock()
		if len(parts) > 0 {
			signal(s.room)
			return parts, nil
		}
		if over {
			return nil, err
		}
		<-s.more
	}
}
