package faultfs

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/soak"
)

// Share returns 1, or n with the race detector: a long test then tries one case of n, in turn.
func Share(n int) int {
	if raceDetector && os.Getenv("RNIX_CRASH_SEEDS") == "" && !soak.On() {
		return n
	}
	return 1
}

// size says how much Test tries.
type size struct {
	seeds  int // for each crash
	points int // first crashes, of crashes during recovery
	share  int // one of so many errors at each call
}

// Test tries every crash and every error on each operation, side by side, in bubbles of synctest.
// RNIX_CRASH_SEEDS=N takes N seeds for each crash and tries all errors, instead of a few; a soak takes 50. The race detector,
// which makes it ten times slower, has fewer still: it needs to see each line run, not each state.
func Test(t *testing.T, ops ...*Op) {
	sz := size{seeds: 16, points: 4, share: 2}
	if raceDetector {
		sz = size{seeds: 2, points: 1, share: 16}
	}
	if n := soak.Number(t, "RNIX_CRASH_SEEDS", "seeds for each crash", sz.seeds, 50); n != sz.seeds {
		sz = size{seeds: n, points: 10, share: 1}
	}
	layers := map[string]func(*Op) Report{
		"crash":       func(op *Op) Report { return op.Crash(sz.seeds) },
		"errors":      func(op *Op) Report { return op.Errors(sz.share) },
		"crash again": func(op *Op) Report { return op.CrashAgain(sz.points, 1+sz.seeds/32) },
	}
	for _, op := range ops {
		for name, explore := range layers {
			t.Run(op.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				start := time.Now()
				var r Report
				synctest.Test(t, func(*testing.T) { r = explore(op) })
				took := time.Since(start)
				t.Logf("%d states, %d distinct, in %v: %.0f states/s", r.States, r.Distinct, took.Round(time.Millisecond), float64(r.States)/took.Seconds())
				for _, p := range r.Problems {
					t.Error(p)
				}
				if r.Distinct == 0 {
					t.Error("no state was checked")
				}
			})
		}
	}
}
