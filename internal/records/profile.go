package records

import (
	"time"

	"rnix/internal/step"
	"rnix/types"
)

// profile writes ctx-profile.json of a history.
func (s *Store) profile(h *step.History, id types.UUID) error {
	p, err := h.Profile(step.ProfileOptions{Now: time.Now(), Meta: s.meta(id)})
	if err != nil {
		return err
	}
	return s.journal.Derived().SaveProfile(id, &p)
}

// meta returns process-meta.json; nil if it cannot be read.
func (s *Store) meta(id types.UUID) *step.Meta {
	m, err := s.journal.Blobs().Meta(id)
	if err != nil {
		return nil
	}
	return m
}
