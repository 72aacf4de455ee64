package asks

import (
	"context"

	"rnix/internal/launch"
	"rnix/internal/records"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

// Histories are those of a launcher.
type Histories struct{ Stored *launch.Stored }

var _ Stored = Histories{}

// Read implements Stored.
func (h Histories) Read(ctx context.Context, id types.UUID) (*recovery.State, error) {
	s, _, _, err := h.Stored.Store.Read(ctx, id)
	return s, err
}

// Answer implements Stored.
func (h Histories) Answer(ctx context.Context, id types.UUID, r step.Answered) error {
	return h.Stored.Answer(ctx, id, r)
}

// Mark implements Stored.
func (h Histories) Mark(ctx context.Context, id types.UUID, make func(pid types.PID) (step.Marker, error)) error {
	return h.Stored.Mark(ctx, id, make)
}

// Past implements Stored.
func (h Histories) Past(ctx context.Context, id types.UUID) ([]step.PastAsk, map[uint64]step.PastGrant, error) {
	return records.PastAsks(ctx, h.Stored.Store, id)
}
