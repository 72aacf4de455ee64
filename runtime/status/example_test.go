package status_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"rnix/runtime/journal"
	"rnix/runtime/status"
)

func finish(ctx context.Context, platform, token string, j *journal.Journal) error {
	p, err := status.New(status.Config{SessionID: "s1", WorkerID: "w1", BaseURL: platform, AuthToken: token, Journal: j})
	if err != nil {
		return err
	}
	p.Start(ctx)
	defer p.Stop()
	if err := p.Set(ctx, status.Status{Status: "running"}); err != nil {
		return err
	}
	return p.Complete(ctx, "All tests pass.", status.Status{Status: "completed", InputTokens: 1200, OutputTokens: 80})
}

func Example() {
	platform := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fmt.Println(r.URL.Path) }))
	defer platform.Close()
	fmt.Println(finish(context.Background(), platform.URL, "secret", nil))
	// Output:
	// /api/sessions/s1/status
	// /api/sessions/s1/completion
	// /api/sessions/s1/status
	// <nil>
}
