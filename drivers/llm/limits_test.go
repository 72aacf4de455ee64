package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/vfs"
)

// asking is a context of a caller with a key.
func asking(ctx context.Context, key string) context.Context {
	return llm.WithCaller(ctx, vfs.Caller{Secret: func(name string) (string, bool) { return key, name == "KEY" }})
}

func TestALimitHoldsAllOfAnAccountAndNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := shared(llmtest.Limited(time.Minute), llmtest.Say("ok"))
		var limits llm.Limits
		retry := func(provider string, max time.Duration) *llm.Retry {
			return llm.NewRetry(m, llm.RetryConfig{Limits: &limits, Provider: provider, KeyEnv: "KEY", LimitMax: max})
		}
		start := time.Now()
		var wg sync.WaitGroup
		took := make([]time.Duration, 20)
		for i := range took { // twenty agents, each with a driver of its own
			r := retry("a", time.Hour)
			wg.Go(func() {
				if _, err := r.Call(asking(t.Context(), "mine"), llm.LLMRequest{}); err != nil {
					t.Error(err)
				}
				took[i] = time.Since(start)
			})
			synctest.Wait()
		}
		if n := len(m.Requests()); n != 1 {
			t.Errorf("while the limit lasts it was asked %d times", n)
		}
		for _, c := range []struct{ provider, key string }{{"a", "other"}, {"b", "mine"}} {
			if _, err := retry(c.provider, 0).Call(asking(t.Context(), c.key), llm.LLMRequest{}); err != nil || time.Since(start) != 0 {
				t.Errorf("%v was held for %v, %v", c, time.Since(start), err)
			}
		}
		wg.Wait()
		for i, d := range took {
			if d < time.Minute || d > time.Minute+time.Second {
				t.Errorf("agent %d went on after %v", i, d)
			}
		}
		for i := range 1000 { // keys that are made anew
			if _, err := retry("a", 0).Call(asking(t.Context(), fmt.Sprint("key ", i)), llm.LLMRequest{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A limit holds the model that has met it, and the others of the same key only if it is of the account.
func TestALimitOfOneModelLetsTheOthersOfItsKeyPass(t *testing.T) {
	for _, c := range []struct {
		name, message string
		claim         string
		held          bool
	}{
		{"model", "This request would exceed your organization's rate limit of 30,000 input tokens per minute (org: x, model: big)", "", false},
		{"account", "This request would exceed your account's rate limit. Please try again later.", "", true},
		{"window of the account", "limited", "five_hour", true},
		{"window of a model", "limited", "seven_day_opus", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := map[string]int{}
			var mu sync.Mutex
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var req struct{ Model string }
				_ = json.NewDecoder(r.Body).Decode(&req)
				mu.Lock()
				defer mu.Unlock()
				asked[req.Model]++
				if req.Model == "big" {
					w.Header().Set("Retry-After", "600")
					if c.claim != "" {
						w.Header().Set("anthropic-ratelimit-unified-representative-claim", c.claim)
					}
					w.WriteHeader(http.StatusTooManyRequests)
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]string{"type": "rate_limit_error", "message": c.message}})
			}))
			defer srv.Close()
			d, err := llm.NewAnthropic(llm.HTTPConfig{Name: "a", BaseURL: srv.URL, APIKeyEnv: "KEY", Model: "big"})
			if err != nil {
				t.Fatal(err)
			}
			var limits llm.Limits
			call := func(model string) { // until it waits
				ctx, cancel := context.WithCancel(asking(t.Context(), "mine"))
				defer cancel()
				events, err := llm.NewRetry(d, llm.RetryConfig{Tries: 1, Limits: &limits, Provider: "a", KeyEnv: "KEY"}).Stream(ctx, llm.LLMRequest{Model: model})
				if err != nil {
					t.Fatal(err)
				}
				for ev := range events {
					if ev.Type == llm.EventWait {
						cancel()
					}
				}
			}
			for _, model := range []string{"", "small", "big"} {
				call(model)
			}
			mu.Lock()
			defer mu.Unlock()
			if asked["big"] != 1 || (asked["small"] == 0) != c.held {
				t.Errorf("asked %v", asked)
			}
		})
	}
}
