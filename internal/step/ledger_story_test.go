package step_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	rnixctx "rnix/context"
	"rnix/internal/durable/faultfs"
	"rnix/internal/recovery/recoverytest"
	"rnix/internal/step"
	"rnix/types"
)

// TestLedgerLeavesNothingOut compares the ledger of histories at random with what their records say in
// number: an entry for each intent and for each call that has none, an end for each result.
func TestLedgerLeavesNothingOut(t *testing.T) {
	seen := map[step.LedgerVerdict]int{}
	verdicts := []step.LedgerVerdict{step.LedgerDone, step.LedgerFailed, step.LedgerInDoubt, step.LedgerAgain, step.LedgerUndone,
		step.LedgerTold, step.LedgerSkipped, step.LedgerAttached, step.LedgerNotBegun}
	unseen := func(v step.LedgerVerdict) bool { return seen[v] == 0 }
	for n := 0; n == 0 || n < 10 && slices.ContainsFunc(verdicts, unseen); n++ { // some are rare
		storiesOf(t, seen)
	}
	for _, v := range verdicts {
		if unseen(v) {
			t.Errorf("no call was %q: the histories are too tame", v)
		}
	}
}

func storiesOf(t *testing.T, seen map[step.LedgerVerdict]int) {
	rapid.Check(t, func(rt *rapid.T) {
		fsys := faultfs.New("/data")
		j, err := step.OpenLocal(fsys, "/data", step.Synced)
		if err != nil {
			rt.Fatal(err)
		}
		defer j.Close()
		id := types.NewUUID()
		lease, err := j.Acquire(t.Context(), id, "test")
		if err != nil {
			rt.Fatal(err)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		w := step.NewWriter(j, id, lease)
		if _, err := recoverytest.Write(t.Context(), w, r, recoverytest.Options{Steps: rapid.IntRange(1, 10).Draw(rt, "steps")}); err != nil {
			rt.Fatal(err)
		}
		h, err := step.ReadHistory(t.Context(), j, id)
		if err != nil || h.Damage != "" {
			rt.Fatal(err, h.Damage)
		}
		compare(rt, h, seen)
	})
}

func compare(rt *rapid.T, h *step.History, seen map[step.LedgerVerdict]int) {
	type call struct {
		step int
		id   string
	}
	intents, results, asked, runs := map[call]int{}, 0, 0, 0
	var answer []rnixctx.ToolCall
	for _, r := range h.Records {
		switch {
		case r.Intent != nil:
			intents[call{r.Intent.Step, r.Intent.CallID}]++
		case r.Result != nil:
			results++
		case r.Marker != nil && (r.Marker.Name == step.MarkerSpawn || r.Marker.Name == step.MarkerResumed):
			runs++
		case r.Message != nil && r.Message.Role == rnixctx.RoleAssistant:
			answer = r.Message.ToolCalls
			asked += len(answer)
		}
	}
	entries := h.Ledger()
	begun, ended, calls, doubt := 0, 0, 0, 0
	for i, e := range entries {
		seen[e.Verdict]++
		if e.Attempt <= 1 {
			calls++
		}
		if e.Attempt > 0 {
			begun++
			intents[call{e.Step, e.CallID}]--
		}
		if !e.Ended.IsZero() {
			ended++
			if e.Ended.Before(e.Began) {
				rt.Fatal("entry", i, "has ended before it began")
			}
		}
		if e.Run < 1 || e.Run > runs || e.Tool == "" || (e.Attempt > 0) == e.Began.IsZero() {
			rt.Fatal("entry", i, e)
		}
		if e.Verdict == step.LedgerInDoubt {
			doubt++
		}
	}
	for c, n := range intents {
		if n != 0 {
			rt.Fatal("call", c, "has", n, "intents more than attempts")
		}
	}
	if calls != asked || ended != results || doubt > len(h.Interrupted) {
		rt.Fatal(calls, "calls of", asked, ended, "ends of", results, doubt, "in doubt of", len(h.Interrupted), begun, "begun")
	}
}
