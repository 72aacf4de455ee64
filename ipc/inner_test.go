package ipc

import (
	"net"
	"testing"

	"rnix/types"
)

// insideOf has a listener as one in a box of process 5, until the test ends or end is called, which waits.
func insideOf(t *testing.T, l *Channels) (address string, end func()) {
	t.Helper()
	at, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends with the listener; waited for by end
		defer close(ended)
		l.Inside(5, at)
	}()
	end = func() {
		_ = at.Close() // again is no news
		<-ended
	}
	t.Cleanup(end)
	return roadPrefix + at.Addr().String(), end
}

// Who connects inside of a box is not looked up, and its connections end with it.
func TestWhoCallsInsideOfABoxIsItsProcess(t *testing.T) {
	l := roadOn(t, func(int) (types.PID, bool) {
		t.Error("it was looked up")
		return 0, false
	})
	address, end := insideOf(t, l)
	c, err := Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	askWho(t, address, 5)
	if got, err := Call(t.Context(), c, who, Empty{}); err != nil || got.Owner != 5 {
		t.Errorf("%+v %v", got, err)
	}
	end()
	if _, err := Call(t.Context(), c, who, Empty{}); err == nil {
		t.Error("it acts for the process after the box has ended")
	}
}

func TestConnectionsInsideOfABoxAreBounded(t *testing.T) {
	address, end := insideOf(t, roadOn(t, nil))
	for range maxPerRoad {
		conn, err := net.Dial("tcp4", address[len(roadPrefix):])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	refusedOver(t, address, types.ErrExhausted, "as many connections")
	end()
}
