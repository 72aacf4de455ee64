package llm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/types"
	"rnix/vfs"
)

// described is a driver that describes itself otherwise.
type described struct {
	llm.LLMDriver
	info llm.DriverInfo
}

func (d described) Info() llm.DriverInfo { return d.info }

func TestACallThatMayBeBilledSaysSo(t *testing.T) {
	text := strings.Repeat("four", 3000)
	for _, c := range []struct {
		name   string
		turn   llmtest.Turn
		info   llm.DriverInfo
		code   types.ErrCode
		billed bool
		answer int
	}{
		{"cut off before anything came", llmtest.Hang(""), llm.DriverInfo{}, types.ErrTimeout, true, 0},
		{"cut off in the middle", llmtest.Hang(text), llm.DriverInfo{}, types.ErrTimeout, true, 3000},
		{"broken off by the provider", llmtest.CutOff(text), llm.DriverInfo{}, types.ErrUnavailable, true, 3000},
		{"no word from the provider", llmtest.Fail(types.ErrTimeout, "no answer within 2m"), llm.DriverInfo{}, types.ErrTimeout, true, 0},
		{"refused", llmtest.Fail(types.ErrAuth, "bad key"), llm.DriverInfo{}, types.ErrAuth, false, 0},
		{"refused in the words of an answer", llmtest.Turn{Text: text, Err: types.Errorf(types.ErrAuth, "Call", "", "bad key")}, llm.DriverInfo{}, types.ErrAuth, false, 0},
		{"refused for its length", llmtest.Fail(types.ErrInvalid, "prompt is too long"), llm.DriverInfo{}, types.ErrInvalid, false, 0},
		{"not there", llmtest.Fail(types.ErrUnavailable, "connection refused"), llm.DriverInfo{}, types.ErrUnavailable, false, 0},
		{"limited", llmtest.Limited(time.Hour), llm.DriverInfo{}, types.ErrRateLimited, false, 0},
		{"free", llmtest.Hang(text), llm.DriverInfo{Free: true}, types.ErrTimeout, false, 0},
		{"told later", llmtest.Hang(text), llm.DriverInfo{CountsOn: true}, types.ErrTimeout, false, 0},
		{"answered", llmtest.Say("x"), llm.DriverInfo{}, "", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.info.Name, c.info.Model = "p", "m"
				d := llm.NewRecord(llm.NewRetry(llm.NewGate(described{shared(c.turn), c.info}, 1), llm.RetryConfig{Tries: 1, LimitMax: -1}), func(llm.Exchange) {})
				f := open(t, d, vfs.Caller{})
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				err := f.Write(ctx, []byte(`{"intent":"x","model":"asked"}`))
				cut, billed := errors.AsType[*vfs.CutOff](err)
				if types.CodeOf(err) != c.code || billed != c.billed {
					t.Fatalf("%v, billed: %t", err, billed)
				}
				if billed && (cut.Provider != "p" || cut.Model != "asked" || cut.Answer != c.answer || cut.Error() == "") {
					t.Errorf("%+v", cut)
				}
			})
		})
	}
}

func TestWhoWaitedForItsTurnIsNotBilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := llm.NewGate(shared(llmtest.Hang("")), 1)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := g.Stream(ctx, llm.LLMRequest{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_, err := g.Call(ctx, llm.LLMRequest{})
		if _, billed := errors.AsType[*vfs.CutOff](err); billed || types.CodeOf(err) != types.ErrTimeout {
			t.Errorf("%v, billed: %t", err, billed)
		}
		limited := llm.NewRetry(llm.NewGate(shared(llmtest.Limited(time.Hour)), 1), llm.RetryConfig{LimitMax: 2 * time.Hour})
		short, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		_, err = limited.Call(short, llm.LLMRequest{})
		if _, billed := errors.AsType[*vfs.CutOff](err); billed || types.CodeOf(err) != types.ErrTimeout {
			t.Errorf("%v, billed: %t", err, billed)
		}
	})
}
