package autoresume

import (
	"cmp"
	"context"
	"time"

	"rnix/internal/step"
	"rnix/types"
)

// maxKeyPause is how long it is not looked again, at most, whether a process has its key: its command may show a dialog each time.
const maxKeyPause = 15 * time.Minute

// keyPause is when it is looked next whether a source has its key, when that was done last, and how long the pause between them is.
type keyPause struct {
	next, last time.Time
	pause      time.Duration
}

// keyPauses are those of the sources of keys for which processes wait: a command, or the process itself where none prints its key. One goroutine has them.
type keyPauses struct {
	sources map[types.UUID]string // of those that wait
	by      map[string]keyPause
}

// due reports whether it is to be looked now, and doubles the pause, up to maxKeyPause. What was not waited for as long, or has moved since, begins anew.
func (k *keyPauses) due(source string, moved, now time.Time) bool {
	one, ok := k.by[source]
	anew := !ok || moved.After(one.last) || now.Sub(one.next) > maxKeyPause
	if !anew && now.Before(one.next) {
		return false
	}
	pause := min(2*one.pause, maxKeyPause)
	if anew {
		pause = wakeEvery
	}
	k.by[source] = keyPause{now.Add(pause), now, pause}
	return true
}

// wakeKeyed resumes what waits for a key that the daemon can have by now, until ctx ends: in its own environment, in a file, or by a command, which holds
// up nothing else. A key in the environment of a client is for what that client asks for.
func (d *Service) wakeKeyed(ctx context.Context) {
	if d.Max == 0 || d.Keys == nil {
		return
	}
	tick := time.NewTicker(wakeEvery)
	defer tick.Stop()
	for k := (keyPauses{by: map[string]keyPause{}}); ; {
		select {
		case <-tick.C:
			lookForKeys(ctx, d, &k)
		case <-ctx.Done():
			return
		}
	}
}

// lookForKeys looks once after all that wait for keys: each source is asked once, and its answer is for all that wait for it.
func lookForKeys(ctx context.Context, d *Service, k *keyPauses) {
	was, due, none := k.sources, map[string]bool{}, map[string]bool{}
	k.sources = map[types.UUID]string{}
	for _, info := range d.Stored.Cards.Index().Open() {
		if _, alive := d.Stored.Running(info.UUID); info.Why() != types.SuspendKey || alive || ctx.Err() != nil {
			continue
		}
		source, known := was[info.UUID]
		var settled *step.Settled
		if !known {
			if settled = settledOf(ctx, d, info.UUID); settled == nil {
				continue
			}
			source = cmp.Or(d.Keys.KeySource(settled), info.UUID.String())
		}
		k.sources[info.UUID] = source
		if _, decided := due[source]; !decided {
			due[source] = k.due(source, d.Keys.KeyMoved(source), time.Now())
		}
		if !due[source] || none[source] {
			continue
		}
		if settled == nil {
			settled = settledOf(ctx, d, info.UUID)
		}
		if settled == nil {
			continue
		}
		there := d.Keys.There(settled)
		one := k.by[source]
		one.last = time.Now() // what it has brought now is no news
		k.by[source] = one
		if none[source] = !there; there {
			d.ContinueQuietly(ctx, info)
		}
	}
	for source, one := range k.by {
		if time.Since(one.next) > maxKeyPause {
			delete(k.by, source)
		}
	}
}

// settledOf returns what the last run of a history was started with; nil if that cannot be read.
func settledOf(ctx context.Context, d *Service, id types.UUID) *step.Settled {
	state, _, _, err := d.Stored.Store.Read(ctx, id)
	if err != nil {
		return nil
	}
	was, err := d.Stored.WasOf(state, id)
	if err != nil {
		return nil
	}
	return &was
}
