package autoresume

import (
	"errors"
	"strings"
	"sync"

	"rnix/internal/config"
	"rnix/internal/records"
	"rnix/ipc"
	"rnix/types"
)

// wentOn remembers what went on by itself, until a person asks for it: then the answer is how it went on.
type wentOn struct {
	mu sync.Mutex
	by map[types.UUID]ipc.ResumeResponse // +checklocks:mu
}

func (w *wentOn) put(r ipc.ResumeResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[types.UUID]ipc.ResumeResponse{}
	}
	w.by[r.UUID] = r
}

// moved notes that what went on by itself, and that nobody has asked for yet, has gone on by itself once more.
func (w *wentOn) moved(r ipc.ResumeResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, waits := w.by[r.UUID]; waits {
		w.by[r.UUID] = r
	}
}

// take returns how a process went on by itself, once.
func (w *wentOn) take(id types.UUID) (ipc.ResumeResponse, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.by[id]
	delete(w.by, id)
	return r, ok
}

// cause is why a process cannot go on, for a line that says already which one it is.
func cause(err error) string {
	if e, ok := errors.AsType[*types.SyscallError](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// stuck is cause for what was to go on by itself.
func stuck(err error) types.Suspension {
	why := cause(err)
	if _, ok := errors.AsType[*config.NoKey](err); ok {
		return types.SuspendFor(types.SuspendKey, "key: "+why)
	}
	if strings.HasPrefix(why, records.Damaged) { // a person would find the same
		return types.SuspendFor(types.SuspendHeld, why)
	}
	return types.SuspendFor(types.SuspendHeld, "it could not be resumed automatically: "+why)
}
