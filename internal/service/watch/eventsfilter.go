package watch

import (
	"slices"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// filter picks the events of a request.
type filter struct {
	req     *ipc.EventsRequest
	match   func(*event.Event) bool
	some    bool                // processes were named
	ids     map[types.UUID]bool // that were named, and those below them if that was asked for
	pids    map[types.PID]bool  // of these, whose children belong to it
	named   map[types.UUID]bool
	running map[types.UUID]bool       // that were named and have not ended
	sent    map[types.UUID]uint64     // the last event of this daemon that its file had
	stored  map[types.UUID]storedFrom // where files begin
	heard   *hearing                  // nil = what models say is not asked for but in whole lines
	steps   bool                      // the past is over, and each end of a step is wanted
	buf     []byte
}

// filter reads a request. Targets that cannot be found, or that the caller may not see, and a filter that cannot be are errors.
func (w *Service) filter(peer *ipc.Peer, req *ipc.EventsRequest) (*filter, error) {
	match, err := filterOf(req.Filter).Matcher()
	if err != nil {
		return nil, err
	}
	names := req.Targets
	if req.Target != "" {
		names = append([]string{req.Target}, names...)
	}
	switch {
	case len(names) > maxTargets:
		return nil, types.Errorf(types.ErrInvalid, "Events", "", "%d processes are named, and %d are allowed", len(names), maxTargets)
	case req.Tail < 0 || req.Tail > maxTail:
		return nil, types.Errorf(types.ErrInvalid, "Events", "", "tail %d is not between 0 and %d", req.Tail, maxTail)
	}
	f := &filter{req: req, match: match, some: len(names) > 0, ids: map[types.UUID]bool{}, named: map[types.UUID]bool{}, pids: map[types.PID]bool{}, running: map[types.UUID]bool{},
		sent: map[types.UUID]uint64{}, stored: map[types.UUID]storedFrom{}}
	for _, name := range names {
		t, err := w.Callers.Find(peer, "Events", name)
		if err != nil {
			return nil, err
		}
		f.ids[t.UUID], f.named[t.UUID], f.pids[t.PID] = true, true, true
		if t.Live {
			f.running[t.UUID] = true
		}
	}
	if f.some {
		w.below(f)
	}
	return f, nil
}

// below adds the processes below those that were named, dead ones too, if they were asked for, and where the
// files of all begin.
func (w *Service) below(f *filter) {
	kids, parents := map[types.UUID][]types.UUID{}, map[types.UUID]types.UUID{}
	for _, info := range w.Index.List() {
		kids[info.ParentUUID], parents[info.UUID] = append(kids[info.ParentUUID], info.UUID), info.ParentUUID
		f.stored[info.UUID] = storedFrom{info.CreatedAt, info.PID}
	}
	for _, i := range w.Kernel.List() {
		if p, err := w.Kernel.Info(i.PPID); err == nil && parents[i.UUID] != p.UUID {
			kids[p.UUID] = append(kids[p.UUID], i.UUID)
		}
		f.stored[i.UUID] = storedFrom{f.stored[i.UUID].at, i.PID}
	}
	if !f.req.Tree {
		return
	}
	var add func(id types.UUID)
	add = func(id types.UUID) {
		for _, kid := range kids[id] {
			if !f.ids[kid] {
				f.ids[kid] = true
				f.pids[f.stored[kid].pid] = true
				add(kid)
			}
		}
	}
	for id := range f.running {
		add(id)
	}
	for id := range f.ids {
		add(id)
	}
	delete(f.pids, 0)
}

// wants reports whether an event belongs to the processes that were asked for. It learns of their
// children as they are born.
func (f *filter) wants(e *event.Event) bool {
	if !f.some {
		return true
	}
	if f.req.Tree && e.Kind == event.Spawned && f.pids[e.PPID] {
		f.ids[e.UUID] = true
	}
	if !f.ids[e.UUID] {
		return false
	}
	if e.PID != 0 {
		f.pids[e.PID] = true // another run of it has another one
	}
	return true
}

// picks reports whether an event is one that the client wants to see. A piece is picked as the line would be of which it is a part.
func (f *filter) picks(e *event.Event) bool {
	if e.Kind == event.Piece {
		line := *e
		line.Kind = event.LogLine
		e = &line
	}
	return f.steps && e.Kind == event.StepEnded || (len(f.req.Kinds) == 0 || e.Kind == event.Lag || slices.Contains(f.req.Kinds, e.Kind)) &&
		(f.req.Since.IsZero() || !e.Time.Before(f.req.Since)) && f.match(e)
}

// over reports whether all processes that were named have ended: nothing more is to come.
func (f *filter) over() bool { return f.some && len(f.running) == 0 }

// ended looks anew who has ended.
func (f *filter) ended(over func(types.UUID) bool) {
	for id := range f.running {
		if over(id) {
			delete(f.running, id)
		}
	}
}
