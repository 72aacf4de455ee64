package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/types"
)

// shared is a scripted model whose turns are shared by all sessions.
func shared(turns ...llmtest.Turn) *llmtest.Scripted {
	var mu sync.Mutex
	return llmtest.NewScriptedFunc(func(int, llm.LLMRequest) llmtest.Turn {
		mu.Lock()
		defer mu.Unlock()
		t := turns[0]
		if len(turns) > 1 {
			turns = turns[1:]
		}
		return t
	})
}

func unavailable() llmtest.Turn { return llmtest.Fail(types.ErrUnavailable, "overloaded") }

// watch runs a call and returns what it delivered, kind by kind.
func watch(t *testing.T, d llm.LLMDriver, req llm.LLMRequest) (string, *llm.LLMResponse, error) {
	t.Helper()
	ch, err := d.Stream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for ev := range ch {
		k := string(ev.Type)
		if ev.Type == llm.EventWait && ev.Until.IsZero() && ev.Text == "" {
			k = "go"
		}
		kinds = append(kinds, k)
		if ev.Type == llm.EventDone || ev.Type == llm.EventError {
			return strings.Join(kinds, " "), ev.Response, ev.Err
		}
	}
	t.Fatal("no last event")
	return "", nil, nil
}

func TestOutageThatPassesIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := shared(unavailable(), unavailable(), llmtest.Say("hi"))
		start := time.Now()
		kinds, resp, err := watch(t, llm.NewRetry(m, llm.RetryConfig{}), llm.LLMRequest{})
		if err != nil || resp.Content != "hi" || kinds != "wait go wait go text done" {
			t.Errorf("%s: %+v, %v", kinds, resp, err)
		}
		if d := time.Since(start); d < time.Second/2 || d > 3*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

func TestRetryGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			turn llmtest.Turn
			asks int
		}{
			{unavailable(), 3},
			{llmtest.Fail(types.ErrTimeout, "no first byte"), 3},
			{llmtest.Fail(types.ErrInvalid, "prompt is too long"), 1},
			{llmtest.Fail(types.ErrAuth, "no"), 1},
			{llmtest.Fail(types.ErrDriver, "odd"), 1},
			{llmtest.Turn{Text: "half", Err: types.Errorf(types.ErrTimeout, "Call", "", "too slow")}, 3},
		} {
			m := shared(c.turn)
			_, err := llm.NewRetry(m, llm.RetryConfig{}).Call(t.Context(), llm.LLMRequest{})
			if err == nil || len(m.Requests()) != c.asks {
				t.Errorf("%v: asked %d times, want %d", err, len(m.Requests()), c.asks)
			}
		}
	})
}

func TestCutAnswerIsAskedForAgainWithANote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := shared(llmtest.CutOff("half"), llmtest.Say("whole"))
		kinds, resp, err := watch(t, llm.NewRetry(m, llm.RetryConfig{}), llm.LLMRequest{})
		if err != nil || resp.Content != "whole" || kinds != "text wait go reasoning text done" {
			t.Errorf("%s: %+v, %v", kinds, resp, err)
		}
	})
}

func TestRateLimitIsWaitedForVisibly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := shared(llmtest.Limited(2*time.Hour), llmtest.Say("hi"))
		start := time.Now()
		ch, err := llm.NewRetry(m, llm.RetryConfig{LimitMax: 3 * time.Hour}).Stream(t.Context(), llm.LLMRequest{TimeoutMs: 1000})
		if err != nil {
			t.Fatal(err)
		}
		ev := <-ch
		if ev.Type != llm.EventWait || !ev.Until.Equal(start.Add(2*time.Hour)) {
			t.Errorf("first event is %+v", ev)
		}
		resp, err := llm.Collect(ch)
		if err != nil || resp.Content != "hi" || time.Since(start) != 2*time.Hour {
			t.Errorf("%+v, %v after %v", resp, err, time.Since(start))
		}
	})
}

func TestLimitBeyondTheCapIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := llm.NewRetry(shared(llmtest.Limited(7*time.Hour), llmtest.Limited(7*time.Hour), llmtest.Say("lifted")), llm.RetryConfig{})
		for range 2 { // the second call finds the limit known, and asks all the same
			_, err := r.Call(t.Context(), llm.LLMRequest{})
			var limit *llm.RateLimit
			if types.CodeOf(err) != types.ErrRateLimited || !errors.As(err, &limit) || limit.RetryAfter != 7*time.Hour {
				t.Fatalf("error is %v", err)
			}
		}
		if resp, err := r.Call(t.Context(), llm.LLMRequest{}); err != nil || resp.Content != "lifted" {
			t.Errorf("%+v, %v", resp, err)
		}
	})
}

func TestOneCallProbesAndTheOthersFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := shared(llmtest.Limited(time.Minute), llmtest.Limited(time.Minute), llmtest.Say("ok").After(time.Second))
		r := llm.NewRetry(m, llm.RetryConfig{})
		var wg sync.WaitGroup
		start := time.Now()
		for range 10 {
			wg.Go(func() {
				if _, err := r.Call(t.Context(), llm.LLMRequest{}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		// One meets the limit, one probes and meets it again, one probes and passes, nine follow.
		if n := len(m.Requests()); n != 12 {
			t.Errorf("asked %d times, want 12", n)
		}
		if d := time.Since(start); d > 2*time.Minute+5*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

func TestCancelledProbeLeavesTheProbingToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := llm.NewRetry(shared(llmtest.Limited(time.Minute), llmtest.Hang(""), llmtest.Say("ok")), llm.RetryConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { _, err := r.Call(ctx, llm.LLMRequest{}); first <- err }() // ends with ctx
		synctest.Wait()
		second := make(chan error, 1)
		<-time.After(time.Minute + time.Second) // in the bubble: the first call probes now, and hangs
		synctest.Wait()
		go func() { _, err := r.Call(t.Context(), llm.LLMRequest{}); second <- err }() // ends with its answer
		synctest.Wait()
		cancel()
		if err := <-first; types.CodeOf(err) != types.ErrCancelled {
			t.Errorf("first: %v", err)
		}
		if err := <-second; err != nil {
			t.Errorf("second: %v", err)
		}
	})
}

func TestWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, turn := range []llmtest.Turn{llmtest.Limited(time.Minute), unavailable()} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := llm.NewRetry(shared(turn), llm.RetryConfig{}).Call(ctx, llm.LLMRequest{})
			cancel()
			if types.CodeOf(err) != types.ErrTimeout {
				t.Errorf("error is %v", err)
			}
		}
	})
}

func TestGateBoundsCallsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := shared(llmtest.Say("x").After(time.Second))
		g := llm.NewGate(m, 0)
		var mu sync.Mutex
		waits := 0
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				kinds, _, err := watch(t, g, llm.LLMRequest{})
				mu.Lock()
				defer mu.Unlock()
				if strings.HasPrefix(kinds, "wait ") {
					waits++
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if m.Peak() != 4 || waits != 6 {
			t.Errorf("%d at once and %d waited, want 4 and 6", m.Peak(), waits)
		}
	})
}

func TestAGateSaysWhatRunsAndWhatWaitsSinceWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := llm.NewGate(shared(llmtest.Say("x").After(10*time.Second)), 1)
		other := g.Over(shared(llmtest.Say("y").After(10 * time.Second))) // of the same provider
		check := func(when string, running, waiting int, oldest time.Duration) {
			t.Helper()
			tr := g.Traffic()
			if tr != other.Traffic() || tr.Most != 1 || tr.Running != running || tr.Waiting != waiting || waiting > 0 && time.Since(tr.Oldest) != oldest || waiting == 0 && !tr.Oldest.IsZero() {
				t.Errorf("%s: %+v", when, tr)
			}
		}
		check("nothing", 0, 0, 0)
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				d := g
				if i == 1 {
					d = other
				}
				if _, err := d.Call(t.Context(), llm.LLMRequest{}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // in this order
			<-time.After(2 * time.Second)
		}
		check("three", 1, 2, 4*time.Second)
		<-time.After(5 * time.Second)
		check("the first has left", 1, 1, 7*time.Second)
		wg.Wait()
		check("all have left", 0, 0, 0)
		free := llm.NewGate(shared(llmtest.Say("x").After(time.Second)), llm.NoLimit)
		for range 9 {
			wg.Go(func() { _, _ = free.Call(t.Context(), llm.LLMRequest{}) })
		}
		synctest.Wait()
		if tr := free.Traffic(); tr.Running != 9 || tr.Waiting != 0 {
			t.Errorf("without a limit: %+v", tr)
		}
		wg.Wait()
	})
}

func TestCancelledWaiterLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := llm.NewGate(shared(llmtest.Hang("")), 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if _, err := g.Stream(ctx, llm.LLMRequest{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		short, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := g.Call(short, llm.LLMRequest{}); types.CodeOf(err) != types.ErrTimeout {
			t.Errorf("error is %v", err)
		}
	})
}

func TestQueueSaysHowManyAreBeforeACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := llm.NewGate(shared(llmtest.Say("x").After(time.Second)), 2)
		texts := make([]string, 5)
		var wg sync.WaitGroup
		for i := range texts {
			wg.Go(func() {
				ch, err := g.Stream(t.Context(), llm.LLMRequest{})
				if err != nil {
					t.Error(err)
					return
				}
				for ev := range ch {
					if ev.Type == llm.EventWait && !ev.Until.IsZero() {
						t.Errorf("%v is made up", ev.Until)
					}
					if ev.Type == llm.EventWait {
						texts[i] += ev.Text + "; "
					}
				}
			})
			synctest.Wait() // in this order
		}
		wg.Wait()
		say := func(n int) string { return fmt.Sprintf("%d before it in the queue of scripted (2 at once); ", n) }
		want := []string{"", "", say(0) + "; ", say(1), say(2)}
		for i, w := range want {
			if i < 3 && texts[i] != w || !strings.HasPrefix(texts[i], w) {
				t.Errorf("call %d: %q, want %q", i, texts[i], w)
			}
		}
		if !strings.Contains(texts[4], say(0)) {
			t.Errorf("the last was never the next: %q", texts[4])
		}
	})
}

func TestLongQueueIsNotToldOfEachMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := llm.NewGate(shared(llmtest.Say("x").After(time.Second)), 1)
		var told atomic.Int64
		var wg sync.WaitGroup
		for range 300 {
			wg.Go(func() {
				ch, err := g.Stream(t.Context(), llm.LLMRequest{})
				for ev := range ch {
					if ev.Type == llm.EventWait {
						told.Add(1)
					}
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := told.Load(); n < 300 || n > 300*20 {
			t.Errorf("300 calls were told %d times", n)
		}
	})
}
