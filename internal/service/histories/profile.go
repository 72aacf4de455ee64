package histories

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// How many of the largest messages a profile on the wire has, and how many bytes are shown of each.
const (
	usualLargest = 20
	maxLargest   = 1000
	previewBytes = 120
)

func (d *Service) profile(ctx context.Context, peer *ipc.Peer, req ipc.ContextRequest) (ipc.ContextResponse, error) {
	if req.Step < 0 || req.Largest < 0 || req.Largest > maxLargest {
		return ipc.ContextResponse{}, types.Errorf(types.ErrInvalid, "ContextProfile", req.Target, "step %d and largest %d: the first is at least 0, the second between 0 and %d", req.Step, req.Largest, maxLargest)
	}
	p, err := d.past(ctx, peer, "ContextProfile", req.Target)
	if err != nil {
		return ipc.ContextResponse{}, err
	}
	prof, err := p.h.Profile(step.ProfileOptions{Now: time.Now(), Meta: d.meta(p.UUID), Step: req.Step, Preview: previewBytes})
	if e, ok := errors.AsType[*types.SyscallError](err); ok {
		e.PID, e.Device = p.PID, req.Target
	}
	if err != nil {
		return ipc.ContextResponse{}, err
	}
	r := ipc.ContextResponse{PID: p.PID, Live: p.living(), Damage: p.h.Damage, Profile: wireProfile(&prof),
		Largest: service.Each(largest(prof.Segments, cmp.Or(req.Largest, usualLargest)), wireSegment)}
	if !req.Segments {
		r.Segments = []ipc.ContextSegment{}
	}
	return r, nil
}

// largest returns the n largest messages of the prompt that is shown, the largest first.
func largest(list []step.Segment, n int) []step.Segment {
	shown := slices.DeleteFunc(slices.Clone(list), func(s step.Segment) bool { return s.N == 0 })
	slices.SortStableFunc(shown, func(a, b step.Segment) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return shown[:min(n, len(shown))]
}

// meta returns process-meta.json; nil if it cannot be read.
func (d *Service) meta(id types.UUID) *step.Meta {
	m, err := d.Journal.Blobs().Meta(id)
	if err != nil {
		return nil
	}
	return m
}
