package cli

import (
	"time"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// seenEvents are the events that a command has shown, so that it shows none twice when it asks the next daemon for them. The events of a
// process come in the order of their times and, at the same time, of their numbers; each daemon numbers from the beginning.
type seenEvents struct {
	first, last time.Time // of all
	again       time.Time // up to which a daemon was asked before; zero = it is the first one
	marks       map[types.UUID]mark
}

// mark is the last event of a process that was shown.
type mark struct {
	at  time.Time
	seq uint64
}

// overlap is how far before the last event the next daemon is asked: the events of several processes come from several files.
const overlap = 2 * time.Second

// take notes an event, and reports whether it is new.
func (s *seenEvents) take(e *ipc.Event) bool {
	if e.Kind == event.Piece {
		return true // it has its place by itself
	}
	if s.marks == nil {
		s.marks, s.first = map[types.UUID]mark{}, e.Time
	}
	if !e.Time.After(s.again) {
		m, ok := s.marks[e.UUID]
		if e.Time.Before(s.first) || ok && (e.Time.Before(m.at) || e.Time.Equal(m.at) && e.Seq <= m.seq) {
			return false
		}
	}
	s.marks[e.UUID] = mark{e.Time, e.Seq}
	if e.Time.After(s.last) {
		s.last = e.Time
	}
	return true
}

// rest returns the request, to the next daemon, for what has not been shown yet of what req asks for.
func (s *seenEvents) rest(req ipc.EventsRequest) ipc.EventsRequest {
	req.From, req.History = 0, true // numbers are those of the daemon that is gone
	if s.marks == nil {
		return req
	}
	s.again, req.Tail = s.last, 0
	for _, from := range []time.Time{s.last.Add(-overlap), s.first} {
		if from.After(req.Since) {
			req.Since = from
		}
	}
	return req
}
