package room

import (
	"rnix/internal/step"
	"rnix/types"
)

// CutBy reports whether a history is suspended until its record can be written again.
func (*Room) CutBy(info *step.ProcInfo) bool {
	why := info.Why()
	return info.Suspended && (why == types.SuspendNoRoom || why == types.SuspendReadOnly)
}

// CutOff notes a process that has ended this run because its record could not be written on a full disk, or a read-only one.
func (r *Room) CutOff(id types.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = append(r.cut, id)
}

func (r *Room) takeCut() []types.UUID {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := r.cut
	r.cut = nil
	return ids
}
