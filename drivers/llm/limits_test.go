package llm_test

import (
	"context"
	"fmt"
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
