package heartbeat_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"rnix/runtime/heartbeat"
	"rnix/runtime/internal/wiretest"
)

func perform(ctx context.Context, platform, token string, work []func(token uint64)) error {
	cfg := heartbeat.Config{SessionID: "s1", WorkerID: "w1", BaseURL: platform, AuthToken: token}
	lease, err := heartbeat.Claim(ctx, cfg)
	if err != nil {
		return err // ErrLostOwnership: somebody else has it
	}
	cfg.FencingToken = lease.FencingToken
	p, err := heartbeat.New(cfg)
	if err != nil {
		return err
	}
	if err := p.Start(ctx); err != nil {
		return err
	}
	defer p.Stop()
	for _, piece := range work {
		if err := p.Check(); err != nil {
			return err // whoever has the session now does the rest
		}
		piece(p.Token())
	}
	p.Stop()
	return p.Release(ctx)
}

func Example() {
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"owner":"w1","refreshed":true,"ttlMs":60000,"fencingToken":4}`)
	}))
	defer platform.Close()
	err := perform(context.Background(), platform.URL, "secret", []func(uint64){func(token uint64) { fmt.Println("write under", token) }})
	fmt.Println(err)
	// Output:
	// write under 4
	// <nil>
}

func TestTheExampleOfTheReadmeCompiles(t *testing.T) { wiretest.Readme(t) }
