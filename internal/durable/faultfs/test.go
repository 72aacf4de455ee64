package faultfs

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// Sizes of Test without RNIX_CRASH_SEEDS.
const (
	defaultSeeds = 24
	crashPoints  = 6
)

// Test tries every crash and every error on each operation, side by side, in bubbles of synctest.
// RNIX_CRASH_SEEDS=N takes N seeds for each crash, instead of a few.
func Test(t *testing.T, ops ...*Op) {
	seeds, points := defaultSeeds, crashPoints
	if n, err := strconv.Atoi(os.Getenv("RNIX_CRASH_SEEDS")); err == nil && n > 0 {
		seeds, points = n, 10
	}
	layers := map[string]func(*Op) Report{
		"crash":       func(op *Op) Report { return op.Crash(seeds) },
		"errors":      (*Op).Errors,
		"crash again": func(op *Op) Report { return op.CrashAgain(points, 1+seeds/32) },
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
