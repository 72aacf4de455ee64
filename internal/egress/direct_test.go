package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"rnix/internal/hosts"
	"rnix/internal/sandbox"
)

func TestDirectConnectsByTheRulesAndTellsRefusalsOnce(t *testing.T) {
	w := &world{names: map[string][]string{"a.test": {public}, "b.test": {public}}}
	w.listen(public+":443", echo(t))
	rules, err := hosts.ParseAll([]string{"a.test"})
	if err != nil {
		t.Fatal(err)
	}
	told, ended := 0, false
	c := &Client{Who: "web_fetch", Rules: rules, Counts: new(Counts), Refused: func(sandbox.Refusal) { told++ }, End: func() { ended = true }}
	d := w.proxy().Direct(c)
	conn, err := d.Dial(t.Context(), "tcp", "a.test:443")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, "hello")
	line := make([]byte, 6)
	if _, err := conn.Read(line); err != nil || string(line) != "hello\n" {
		t.Errorf("%q %v", line, err)
	}
	for range 2 {
		_, err = d.Dial(t.Context(), "tcp", "b.test:443")
	}
	if text, no := Refusal(err); !no || told != 1 || text[:58] != "the sandbox does not let web_fetch reach b.test:443, which" {
		t.Errorf("told %d times: %s", told, text)
	}
	if _, no := Refusal(errors.New("x")); no {
		t.Error("any error is a refusal")
	}
	d.Close()
	if _, err := conn.Read(line); err == nil || !ended {
		t.Errorf("the connection goes on: %v, ended %v", err, ended)
	}
	if _, err := d.Dial(t.Context(), "tcp", "a.test:443"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if got := c.Counts.Totals(); len(got) != 2 || got[0].Host != "a.test:443" || got[0].Requests != 1 || got[1].Refused != 2 {
		t.Errorf("%+v", got)
	}
}

// Who waits for a decision is not waited for when all is closed.
func TestClosingEndsWhatWaitsForADecision(t *testing.T) {
	began := make(chan struct{})
	d := new(Proxy).Direct(&Client{Judge: func(ctx context.Context, _ hosts.Target, _ bool) Verdict {
		close(began)
		<-ctx.Done()
		return Verdict{Over: ctx.Err()}
	}})
	failed := make(chan error, 1)
	go func() {
		_, err := d.Dial(t.Context(), "tcp", "a.test:443")
		failed <- err
	}()
	<-began
	d.Close()
	select {
	case err := <-failed:
		if err == nil {
			t.Error("it is connected")
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits on")
	}
}
