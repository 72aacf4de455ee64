package kernelmcp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"rnix/types"
)

func TestAllWhoHaveAConnectionWorkForOneProcess(t *testing.T) {
	for name, c := range map[string]struct {
		has, still []int
		owners     map[int]types.PID
		want       types.PID
		known      bool
	}{
		"one":                    {has: []int{1}, still: []int{1}, owners: map[int]types.PID{1: 7}, want: 7, known: true},
		"two of it":              {has: []int{1, 2}, still: []int{1, 2}, owners: map[int]types.PID{1: 7, 2: 7}, want: 7, known: true},
		"none":                   {},
		"another's":              {has: []int{1, 2}, still: []int{1, 2}, owners: map[int]types.PID{1: 7, 2: 8}},
		"one that is nobody's":   {has: []int{1, 2}, still: []int{1, 2}, owners: map[int]types.PID{1: 0, 2: 7}},
		"one that has ended":     {has: []int{1, 2}, still: []int{2}, owners: map[int]types.PID{1: 7, 2: 7}},
		"one that is no agent's": {has: []int{1, 2}, still: []int{1, 2}, owners: map[int]types.PID{1: 7}},
	} {
		who, known := ownerOf(func(among []int) []int {
			if among != nil {
				return c.still
			}
			return c.has
		}, func(pid int) (types.PID, bool) { who, ok := c.owners[pid]; return who, ok })
		if known != c.known || known && who != c.want {
			t.Errorf("%s: %d %v", name, who, known)
		}
	}
}

// A program starts another while it is looked who has its connection: it is looked again, now and at the next request.
func TestACallerIsLookedAtAgain(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the test ends
	mine, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close() // the test ends
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close() // the test ends
	c, asked := &caller{conn: theirs}, 0
	ended := func(int) (types.PID, bool) { asked++; return 7, asked == looks+2 }
	if c.worksFor(7, ended) || asked != looks {
		t.Errorf("asked %d times", asked)
	}
	if !c.worksFor(7, ended) || !c.worksFor(7, nil) || c.worksFor(8, nil) {
		t.Error("it is not known when it could be told, or not from then on")
	}
}

// Who may not call does not keep a connection, and what is no whole request gets an answer and no events.
func TestConnectionsAreNotKeptForNothing(t *testing.T) {
	k := serve(t, 7, true)
	for _, c := range []struct {
		credential, length, body string
		want                     int
	}{
		{"none", "0", "", http.StatusUnauthorized}, {"seven", "9000000", strings.Repeat(" ", maxBody+1), http.StatusRequestEntityTooLarge},
	} {
		d, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(k.address, "http://"), "/mcp"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { // ends when the server closes the connection
			_, _ = io.WriteString(d, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+c.credential+"\r\nContent-Type: application/json\r\nContent-Length: "+c.length+"\r\n\r\n"+c.body)
		}()
		resp, err := http.ReadResponse(bufio.NewReader(d), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != c.want || !resp.Close {
			t.Errorf("%s: %d, close %v", c.credential, resp.StatusCode, resp.Close)
		}
		_, _ = resp.Body.Close(), d.Close()
	}
}

func TestSoManyConnectionsAtOnce(t *testing.T) {
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &limited{Listener: inner, room: make(chan struct{}, 1)}
	for range 3 {
		d, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil || len(l.room) != 1 {
			t.Fatalf("%v, %d are counted", err, len(l.room))
		}
		if _, _ = c.Close(), c.Close(); len(l.room) != 0 {
			t.Error("one that is closed is counted")
		}
		_ = d.Close()
	}
	_ = inner.Close()
	if _, err := l.Accept(); err == nil || len(l.room) != 0 {
		t.Errorf("%v, %d are counted", err, len(l.room))
	}
}
