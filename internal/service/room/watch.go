package room

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// Watch makes the commands of all processes stand still while there is too little room, and resumes those that a full disk has cut off.
type Watch struct {
	Room   *Room
	Kernel Kernel
	Cut    Cut
	Now    func() config.Disk // what the user has configured at this moment
	Log    *slog.Logger
}

// Kernel has the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	List() []kernel.Info
	// Hold makes the commands of a process stand still, or lets them continue.
	Hold(pid types.PID, still bool) error
}

// Cut resumes the histories that a full disk has cut off.
type Cut interface {
	// Suspended describes a history that does not run; false if it runs, or is not there any more.
	Suspended(id types.UUID) (step.ProcInfo, bool)
	// Resume resumes one, and reports whether it could, or need not any more.
	Resume(ctx context.Context, info step.ProcInfo) bool
}

// Run looks at the disk until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := ""
	for {
		short, _ := w.Room.Look(w.Now)
		if !short {
			w.wake(ctx)
		}
		reason := w.Room.Reason()
		changed := reason != told
		if told = reason; changed && short {
			w.Log.Warn("agents wait for "+reason, "why", w.Room.Why())
		} else if changed {
			w.Log.Info("the disk can be written again; agents resume")
		}
		if changed || short { // somebody may have gone on from disk meanwhile
			for _, i := range w.Kernel.List() {
				if i.State < types.StateZombie && w.Kernel.Hold(i.PID, short) != nil {
					continue // it has ended meanwhile
				}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// probeBytes is how much must be possible to write before those resume whose records could not be written: a few steps of an agent.
const probeBytes = 256 << 10

// wake resumes those whose records could not be written, when something can be written again.
func (w *Watch) wake(ctx context.Context) {
	ids := w.Room.takeCut()
	if len(ids) == 0 {
		return
	}
	probe := filepath.Join(w.Room.dir, "room")
	err := durable.WriteFile(durable.OS, probe, make([]byte, probeBytes), durable.Durable)
	if err == nil {
		err = durable.OS.Remove(probe)
	}
	for _, id := range ids {
		switch info, ok := w.Cut.Suspended(id); {
		case !ok, !w.Room.CutBy(&info): // a person was quicker
		case err != nil:
			w.Room.CutOff(id)
		default:
			if w.Log.Info("resumes: the disk can be written again", "uuid", id); !w.Cut.Resume(ctx, info) {
				w.Room.CutOff(id)
			}
		}
	}
}
