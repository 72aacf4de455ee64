package autoresume

import (
	"context"
	"time"

	"rnix/types"
)

// maxKeyPause is how long it is not looked again, at most, whether a process has its key: its command may show a dialog each time.
const maxKeyPause = 15 * time.Minute

// keyPause is when it is looked next whether a process has its key, and how long the pause before that is.
type keyPause struct {
	next  time.Time
	pause time.Duration
}

// keyPauses are those of the processes that wait for keys. One goroutine has them.
type keyPauses map[types.UUID]keyPause

// due reports whether it is to be looked now, and doubles the pause, up to maxKeyPause. Who has not waited for as long begins anew.
func (k keyPauses) due(id types.UUID, now time.Time) bool {
	one, ok := k[id]
	if ok && now.Before(one.next) {
		return false
	}
	pause := min(2*one.pause, maxKeyPause)
	if !ok || now.Sub(one.next) > maxKeyPause {
		pause = wakeEvery
	}
	k[id] = keyPause{now.Add(pause), pause}
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
	for pauses := (keyPauses{}); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, info := range d.Stored.Cards.Index().Open() {
			if _, alive := d.Stored.Running(info.UUID); info.Why() != types.SuspendKey || alive || ctx.Err() != nil || !pauses.due(info.UUID, time.Now()) {
				continue
			}
			state, _, _, err := d.Stored.Store.Read(ctx, info.UUID)
			if err != nil {
				continue
			}
			if was, err := d.Stored.WasOf(state, info.UUID); err == nil && d.Keys.There(&was) {
				d.ContinueQuietly(ctx, info)
			}
		}
	}
}
