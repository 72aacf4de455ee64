package room

import (
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// CutBy reports whether a history is suspended until its record can be written again.
func (*Room) CutBy(info *step.ProcInfo) bool {
	return info.Suspended && (info.SuspendReason == kernel.WaitsForRoom || info.SuspendReason == kernel.WaitsForWrite)
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
