package worktree

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// How the ends of leases are seen to.
const (
	reapEvery    = 30 * time.Second
	reapMost     = 32 // at once
	reapParallel = 4
	reapTimeout  = 30 * time.Second // for one
	retryFirst   = 30 * time.Second
	retryMost    = 5 * time.Minute
)

// leaseRetry returns how long after some tries that have failed the next one comes.
func leaseRetry(tries int) time.Duration {
	return min(retryFirst<<min(tries, 10), retryMost)
}

// Reap sees to the leases that have ended, those first that have waited longest, and returns how
// many are not there any more. At most 32 are looked at; the rest is for the next call. What fails is
// tried again by a later call, after 30 seconds first and 5 minutes at most. A lease that cannot be read is an error,
// and keeps nobody from seeing to the others.
func (o Leases) Reap(ctx context.Context) (ended int, err error) {
	all, err := o.m.ledger.leases()
	now := time.Now()
	all = slices.DeleteFunc(all, func(r *leaseRecord) bool { return !r.over(now) })
	slices.SortStableFunc(all, func(a, b *leaseRecord) int { return a.due().Compare(b.due()) })
	all = all[:min(len(all), reapMost)]
	errs := make([]error, len(all))
	room := make(chan struct{}, reapParallel)
	var group sync.WaitGroup
	for i, l := range all {
		room <- struct{}{}
		group.Go(func() { // ends with its lease, or after reapTimeout; waited for below
			defer func() { <-room }()
			each, cancel := context.WithTimeout(ctx, reapTimeout)
			defer cancel()
			errs[i] = o.change(each, l, func(each context.Context, r *leaseRecord) error {
				if !r.over(time.Now()) { // somebody was faster, and has failed
					return errNotYet
				}
				return o.end(each, r)
			})
		})
	}
	group.Wait()
	for i, e := range errs {
		if e == nil {
			ended++
		} else if errors.Is(e, errNotYet) {
			errs[i] = nil
		}
	}
	return ended, errors.Join(err, errors.Join(errs...))
}

// errNotYet says that a lease is not to be seen to now.
var errNotYet = errors.New("not yet")

// due is when a lease was first to be seen to.
func (l *Lease) due() time.Time {
	if !l.Next.IsZero() {
		return l.Next
	}
	return l.Expires
}

// KeepReaping calls Reap every 30 seconds until ctx ends, and logs what fails. It returns then.
func (o Leases) KeepReaping(ctx context.Context) {
	t := time.NewTicker(reapEvery)
	defer t.Stop()
	for {
		if _, err := o.Reap(ctx); err != nil && ctx.Err() == nil {
			o.m.log.Warn("checkouts of ended leases are still there", "error", err)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}
