package web

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"rnix/ipc"
)

// A daemon hangs up on connections that nobody uses. No call is lost by that: each has a connection of its own.
func TestACallMeetsNoConnectionThatTheDaemonHangsUpOn(t *testing.T) {
	socket, stop := fakeDaemon(t, func(*ipc.Server) {})
	stop()
	l, err := ipc.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	hasty := &http.Server{IdleTimeout: time.Microsecond, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"ok":true,"data":{}}`)
	})}
	served := make(chan error, 1)
	go func() { served <- hasty.Serve(l) }() // ends with Close below
	defer func() {
		_ = hasty.Close()
		<-served
	}()
	b := serve(t, Options{Socket: socket}).inside()
	for n := range 300 {
		if res, body := b.do("POST", "/api/v1/ping", `{}`, nil); res.StatusCode != http.StatusOK {
			t.Fatalf("call %d: %d %s", n, res.StatusCode, body)
		}
	}
}
