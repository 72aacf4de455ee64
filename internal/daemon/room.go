package daemon

import (
	"context"
	"strings"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/service/room"
	"rnix/internal/step"
	"rnix/types"
)

// onReadOnly says of a call that the data directory did not take what it had to write; any other error goes through as it is.
func onReadOnly(d *Daemon, err error) error {
	if !durable.ReadOnly(err) || strings.Contains(err.Error(), room.WriteAgain) || !durable.OnReadOnly(d.places.DataDir) {
		return err
	}
	return types.Errorf(types.ErrStorage, "Write", d.places.DataDir, "nothing can be changed: the file system of the data directory is read-only; %s", room.WriteAgain)
}

// diskNow is what the user has configured now; what it was at the start, as long as that has a mistake.
func diskNow(d *Daemon) config.Disk {
	if cfg := d.profiles.Own(); len(cfg.MistakesAtStart()) == 0 {
		return cfg.Disk
	}
	return d.room.Disk()
}

// noteCut is told of each end of a run.
func noteCut(d *Daemon, id types.UUID) {
	if info, ok := d.journal.Index().Get(id); ok && d.room.CutBy(&info) {
		d.room.CutOff(id)
	}
}

// cutOff resumes the histories that a full disk has cut off.
type cutOff struct{ daemon *Daemon }

func (c cutOff) Suspended(id types.UUID) (step.ProcInfo, bool) {
	if _, alive := c.daemon.stored.Running(id); alive {
		return step.ProcInfo{}, false
	}
	return c.daemon.journal.Index().Get(id)
}

func (c cutOff) Resume(ctx context.Context, info step.ProcInfo) bool {
	return c.daemon.auto.ContinueQuietly(ctx, info)
}
