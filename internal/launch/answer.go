package launch

import (
	"context"

	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

// Answer writes the answer of a person into the record of a history that does not run. NOT_FOUND: it does not wait for that. CONFLICT: it was
// answered already, or it runs.
func (h *Stored) Answer(ctx context.Context, id types.UUID, r step.Answered) error {
	return h.mark(ctx, id, func(pid types.PID, s *recovery.State) (step.Marker, error) {
		if s.Phase != recovery.Ended && s.Open != nil {
			for _, c := range s.Open.Calls {
				switch {
				case c.Ask == nil || c.Ask.Number != r.Number:
					continue
				case c.Reply != nil:
					return step.Marker{}, types.Errorf(types.ErrConflict, "Answer", id.String(), "it was answered already")
				}
				r.CallID = c.ID
				return step.AnswerMarker(pid, &r)
			}
		}
		return step.Marker{}, types.Errorf(types.ErrNotFound, "Answer", id.String(), "nothing of that number is asked there any more")
	})
}

// Mark writes a marker into the record of a history that does not run.
func (h *Stored) Mark(ctx context.Context, id types.UUID, make func(pid types.PID) (step.Marker, error)) error {
	return h.mark(ctx, id, func(pid types.PID, _ *recovery.State) (step.Marker, error) { return make(pid) })
}

// mark writes what is made of its state into the record of a history, and then into what lists show of it.
func (h *Stored) mark(ctx context.Context, id types.UUID, make func(pid types.PID, s *recovery.State) (step.Marker, error)) error {
	a, err := h.Open(ctx, id)
	if err != nil {
		return err
	}
	defer a.Close()
	m, err := make(a.Was.PID, a.State)
	if err != nil {
		return err
	}
	if err := a.Rec.Add(step.Record{Kind: step.KindMarker, Marker: &m}); err != nil {
		return err
	}
	if err := a.Rec.Commit(); err != nil {
		return err
	}
	if info, ok := h.Cards.Journal.Index().Get(id); ok && !info.Over() {
		info = h.Cards.Refreshed(info, a.Rec.State())
		h.Cards.Put(&info)
	}
	return nil
}
