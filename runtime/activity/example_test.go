package activity_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"rnix/agent"
	"rnix/runtime/activity"
	"rnix/runtime/journal"
)

type lease struct{}

func (lease) Token() uint64 { return 4 }

func perform(ctx context.Context, platform, token string, j *journal.Journal, pulse lease) error {
	p, err := activity.New(activity.Config{
		SessionID: "s1", WorkerID: "w1", BaseURL: platform, AuthToken: token,
		Journal: j,           // what is not told yet outlives this process
		Token:   pulse.Token, // the lease's: whoever has lost the session tells nothing
	})
	if err != nil {
		return err
	}
	p.Start(ctx)
	defer p.Stop()
	p.Send(ctx, agent.AssistantTextEvent{Text: "I will run the tests."})
	p.Send(ctx, agent.ResultEvent{Success: true, Message: "All tests pass."})
	return nil
}

func Example() {
	platform := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL.Path, r.Header.Get("X-Fencing-Token"))
	}))
	defer platform.Close()
	j, err := journal.Open(journal.Options{Session: "s1"})
	if err != nil {
		panic(err)
	}
	defer j.Close()
	fmt.Println(perform(context.Background(), platform.URL, "secret", j, lease{}))
	// Output:
	// /api/sessions/s1/activity 4
	// /api/sessions/s1/status 4
	// /api/sessions/s1/activity 4
	// <nil>
}
