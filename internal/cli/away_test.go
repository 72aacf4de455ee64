package cli

import (
	"testing"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// Only a daemon that has crashed is started again, and only for data that is there; nothing is waited for longer than was said.
func TestOnlyADaemonThatHasCrashedIsStartedAgain(t *testing.T) {
	const limit = time.Second
	for _, c := range []struct {
		is   absence
		want awayMove
	}{
		{absence{data: true, limit: limit}, awayStart},
		{absence{data: true, limit: limit, waited: time.Hour}, awayStart}, // how often, the caller bounds
		{absence{data: true, stopped: true, limit: limit}, awayWait},
		{absence{data: true, stopped: true, limit: limit, waited: limit - 1}, awayWait},
		{absence{data: true, stopped: true, limit: limit, waited: limit}, awayEnd},
		{absence{limit: limit}, awayWait},
		{absence{limit: limit, waited: limit}, awayEnd},
		{absence{stopped: true, limit: limit, waited: limit}, awayEnd},
		{absence{data: true}, awayEnd},
		{absence{data: true, stopped: true}, awayEnd},
		{absence{}, awayEnd},
	} {
		if got := c.is.next(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.is, got, c.want)
		}
	}
}

func TestHowLongADaemonIsWaitedFor(t *testing.T) {
	for text, want := range map[string]time.Duration{"": defaultDaemonWait, "0": 0, "0s": 0, "5": 5 * time.Second, "200ms": 200 * time.Millisecond, "2m": 2 * time.Minute} {
		if got, err := daemonWait(text); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"-1", "-1s", "soon", "1e9", "99999999999999", " 3"} {
		if got, err := daemonWait(text); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

// The next daemon is asked from a little before the last event on, and what was shown is not shown again, also at the same moment.
func TestEventsAreShownOnceOverDaemons(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(process byte, seq uint64, after time.Duration) *ipc.Event {
		return &ipc.Event{UUID: id(process), Seq: seq, Time: start.Add(after)}
	}
	var s seenEvents
	asked := ipc.EventsRequest{Target: "x", From: 7, Tail: 3, Follow: true, Since: start.Add(-time.Hour)}
	if r := s.rest(asked); r.From != 0 || !r.History || r.Tail != 3 || !r.Since.Equal(asked.Since) {
		t.Errorf("before any event: %+v", r)
	}
	for _, e := range []*ipc.Event{at(1, 7, 0), at(1, 8, time.Second), at(2, 9, time.Second), at(2, 6, 0), at(1, 10, 10*time.Second)} { // as they come, whatever their order
		if !s.take(e) {
			t.Errorf("the first daemon: %+v is not shown", e)
		}
	}
	if r := s.rest(asked); r.From != 0 || !r.History || r.Tail != 0 || !r.Since.Equal(start.Add(10*time.Second-overlap)) {
		t.Errorf("the next daemon is asked for %+v", r)
	}
	for _, c := range []struct {
		e    *ipc.Event
		want bool
	}{
		{at(1, 6, -time.Second), false}, // before the first that was asked for
		{at(1, 8, time.Second), false},
		{at(1, 10, 10*time.Second), false},
		{at(1, 11, 10*time.Second), true}, // at the same moment, and behind it
		{at(2, 12, 9*time.Second), true},  // of another process, which was not read so far
		{at(3, 13, 9*time.Second), true},  // of one that was not known
		{at(1, 1, 11*time.Second), true},  // the next daemon numbers from the beginning
		{at(1, 2, 11*time.Second), true},
	} {
		if got := s.take(c.e); got != c.want {
			t.Errorf("the next daemon: %+v: %t", c.e, got)
		}
	}
}
