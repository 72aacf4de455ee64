package kernel

import (
	"errors"

	"rnix/internal/event"
	"rnix/types"
)

// KernelCallbacks is told what happens to processes. It reads the event log: the calls come from one
// goroutine, in order, a moment after the fact, and a slow callback slows nobody.
type KernelCallbacks interface {
	OnSpawn(pid types.PID, intent, provider, model string)
	OnStep(pid types.PID, step int, total int)
	OnComplete(pid types.PID, result string, exit types.ExitStatus)
	OnError(pid types.PID, err error)
}

// watch starts the goroutine that calls callbacks. It ends with the reaper, after the last event.
func (r *reaper) watch(cb KernelCallbacks) {
	cur := r.events.Cursor(0)
	r.wg.Go(func() {
		for {
			e, err := cur.Next(r.ctx)
			var missed *event.Missed
			if errors.As(err, &missed) {
				r.log.Warn("callbacks are too slow", "missed", missed.Error())
				continue
			}
			if err != nil {
				for e, ok, _ := cur.TryNext(); ok; e, ok, _ = cur.TryNext() {
					call(cb, &e)
				}
				return
			}
			call(cb, &e)
		}
	})
}

func call(cb KernelCallbacks, e *event.Event) {
	switch e.Kind {
	case event.Spawned:
		cb.OnSpawn(e.PID, e.Intent, e.Provider, e.Model)
	case event.StepStarted:
		cb.OnStep(e.PID, e.Step, e.Total)
	case event.Exited:
		if e.Exit == nil {
			return // suspended with the kernel
		}
		if e.Exit.Err != nil {
			cb.OnError(e.PID, e.Exit.Err)
		}
		cb.OnComplete(e.PID, e.Text, *e.Exit)
	}
}
