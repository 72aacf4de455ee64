package daemon

import (
	"context"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// waitsForDisk reports whether a history is suspended until its record can be written again.
func waitsForDisk(info *step.ProcInfo) bool {
	return info.Suspended && (info.SuspendReason == kernel.WaitsForRoom || info.SuspendReason == kernel.WaitsForWrite)
}

// cutOff notes a process that has ended this run because its record could not be written on a full disk, or a read-only one.
func (r *room) cutOff(id types.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = append(r.cut, id)
}

func (r *room) takeCut() []types.UUID {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := r.cut
	r.cut = nil
	return ids
}

// noteCut is told of each end of a run.
func noteCut(d *Daemon, id types.UUID) {
	if info, ok := d.journal.Index().Get(id); ok && waitsForDisk(&info) {
		d.room.cutOff(id)
	}
}

// probeBytes is how much must be possible to write before those resume whose records could not be written: a few steps of an agent.
const probeBytes = 256 << 10

// wakeCut resumes those whose records could not be written, when something can be written again.
func wakeCut(ctx context.Context, d *Daemon) {
	ids := d.room.takeCut()
	if len(ids) == 0 {
		return
	}
	probe := filepath.Join(d.places.DataDir, "room")
	err := durable.WriteFile(durable.OS, probe, make([]byte, probeBytes), durable.Durable)
	if err == nil {
		err = durable.OS.Remove(probe)
	}
	for _, id := range ids {
		info, ok := d.journal.Index().Get(id)
		switch _, alive := d.running(id); {
		case !ok, alive, !waitsForDisk(&info): // a person was quicker
		case err != nil:
			d.room.cutOff(id)
		default:
			if d.log.Info("resumes: the disk can be written again", "uuid", id); !(autoResumer{d}).continueQuietly(ctx, info) {
				d.room.cutOff(id)
			}
		}
	}
}
