package lifecycle

import (
	"context"
	"time"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// maxFocus is how long the words of a person about what a compaction keeps may be, in bytes: they are in the record and in the question.
const maxFocus = 10_000

// compact has the conversation of a process compacted, wherever it lies.
func (d *Service) compact(ctx context.Context, peer *ipc.Peer, req ipc.CompactRequest) (resp ipc.CompactResponse, err error) {
	if len(req.Focus) > maxFocus {
		return resp, types.Errorf(types.ErrInvalid, "Compact", "", "what is to be kept has %d bytes: say it in at most %d", len(req.Focus), maxFocus)
	}
	if err := d.Ground.Settled(ctx); err != nil {
		return resp, err
	}
	t, err := d.Names.Resolve(req.Target)
	if err == nil {
		err = d.Access.MayChange(peer, "Compact", t)
	}
	if err == nil && t.Kind() != "" {
		err = &types.SyscallError{Syscall: "Compact", PID: t.PID, Code: types.ErrInvalid, Err: kernel.ErrNoConversation}
	}
	if err != nil {
		return resp, err
	}
	resp.UUID = t.UUID
	for began := time.Now(); ; {
		resp.PID = t.PID
		if resp.Running = t.Place() == service.Runs; resp.Running {
			err = d.Kernel.Compact(t.PID, req.Focus)
		} else {
			err = d.Stored.Mark(ctx, t.UUID, func(pid types.PID) (step.Marker, error) {
				return step.Marker{Name: step.MarkerCompact, PID: pid, Text: req.Focus}, nil
			})
		}
		if types.CodeOf(err) != types.ErrConflict && !kernel.Passing(err) || time.Since(began) > renameTime {
			return resp, err
		}
		select {
		case <-time.After(renameAgain):
		case <-ctx.Done():
			return resp, err
		}
		if now, ok := d.Names.ByUUID(t.UUID); ok {
			t = now
		}
	}
}
