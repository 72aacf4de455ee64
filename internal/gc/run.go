package gc

import (
	"context"
	"math/rand/v2"
	"time"
)

// Run collects again and again until ctx ends: first after one interval, then after each, and every time
// up to a tenth later, so that several daemons do not work at once. It returns at once if the policy
// keeps everything or there is no interval. Options.Report is told of each run but one that ctx ends.
func (c *Collector) Run(ctx context.Context) {
	if c.o.Policy.Off() || c.o.Interval <= 0 {
		return
	}
	for {
		timer := time.NewTimer(c.o.Interval + rand.N(c.o.Interval/10+1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		r, err := c.Collect(ctx, Request{})
		if ctx.Err() != nil {
			return
		}
		if c.o.Report != nil {
			c.o.Report(r, err)
		}
	}
}
