package llm_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/types"
)

func named(name string, d *llmtest.Scripted) *llmtest.Scripted {
	info := d.Info()
	info.Name, info.ContextWindow = name, 1000*len(name)
	return d.WithInfo(info)
}

func TestSecondModelAnswersWhenTheFirstCannot(t *testing.T) {
	for _, c := range []struct {
		turn llmtest.Turn
		by   string
	}{
		{llmtest.Say("x"), "main"},
		{llmtest.Fail(types.ErrAuth, "bad key"), "spare"},
		{unavailable(), "spare"},
		{llmtest.Fail(types.ErrNotFound, "no model of this name"), "spare"},
		{llmtest.Limited(time.Hour), "spare"},
		{llmtest.CutOff("half"), "spare"},
		{llmtest.Fail(types.ErrInvalid, "prompt is too long"), ""},
		{llmtest.Fail(types.ErrCancelled, "stopped"), ""},
	} {
		second := named("spare", shared(llmtest.Say("y")))
		f := llm.NewFallback(named("main", shared(c.turn)), second, "model-2")
		resp, err := f.Call(t.Context(), llm.LLMRequest{Model: "model-1"})
		by := ""
		if err == nil {
			by = resp.Provider
		}
		if by != c.by {
			t.Errorf("%v: answered by %q, want %q", c.turn.Err, by, c.by)
		}
		if by == "spare" && second.Requests()[0].Model != "model-2" {
			t.Errorf("the second was asked for %q", second.Requests()[0].Model)
		}
	}
}

func TestWhenAllFailTheHopefulCodeWins(t *testing.T) {
	f := llm.NewFallback(named("main", shared(llmtest.Limited(time.Hour))), named("spare", shared(llmtest.Fail(types.ErrAuth, "bad key"))), "")
	_, err := f.Call(t.Context(), llm.LLMRequest{})
	var limit *llm.RateLimit
	if types.CodeOf(err) != types.ErrRateLimited || !errors.As(err, &limit) || !strings.Contains(err.Error(), "bad key") {
		t.Errorf("error is %v", err)
	}
	if w := f.Info().ContextWindow; w != 4000 {
		t.Errorf("context window is %d, want the smaller", w)
	}
}

func TestRecordTellsWhatACallCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []llm.Exchange
		turn := llmtest.Turn{Text: "secret text", Delay: 3 * time.Second, Usage: llm.Usage{Input: 5, Output: 2}, CostUSD: 0.5}
		retry := llm.NewRetry(shared(llmtest.Limited(time.Minute), turn, llmtest.Fail(types.ErrAuth, "no")), llm.RetryConfig{})
		d := llm.NewRecord(retry, func(x llm.Exchange) { got = append(got, x) })
		if _, err := d.Call(t.Context(), llm.LLMRequest{Session: "s"}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Call(t.Context(), llm.LLMRequest{}); err == nil {
			t.Fatal("no error")
		}
		if len(got) != 2 {
			t.Fatalf("told %d times", len(got))
		}
		x := got[0]
		if x.Session != "s" || x.Model != "scripted-1" || x.Provider != "scripted" || x.Waited != time.Minute || x.FirstPiece != time.Minute+3*time.Second ||
			x.Total != x.FirstPiece || x.Usage.Total() != 7 || x.CostUSD != 0.5 || x.StopReason != "end_turn" || x.Code != "" {
			t.Errorf("told %+v", x)
		}
		if got[1].Code != types.ErrAuth {
			t.Errorf("told %+v", got[1])
		}
	})
}
