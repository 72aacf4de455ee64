package gc

import (
	"time"

	"rnix/internal/step"
	"rnix/types"
)

// Keep marks a history so that it never goes, or not before until; the zero time is for ever. Note is
// for people. A mark that was there is replaced.
func (c *Collector) Keep(id types.UUID, note string, until time.Time) error {
	release, err := c.there("Keep", id)
	if err != nil {
		return err
	}
	defer release()
	now := time.Now().UTC()
	if !until.IsZero() && !until.After(now) {
		return types.Errorf(types.ErrInvalid, "Keep", id.String(), "%s is past", until.Format(time.RFC3339))
	}
	return step.WritePin(c.fs, c.dir(id), &step.Pin{At: now, Until: until, Note: step.FirstLine(note)})
}

// Unkeep takes the mark of a history away, and reports whether there was one.
func (c *Collector) Unkeep(id types.UUID) (bool, error) {
	release, err := c.there("Unkeep", id)
	if err != nil {
		return false, err
	}
	defer release()
	return step.RemovePin(c.fs, c.dir(id))
}

// Kept returns the mark of a history; nil if it has none that is in force.
func (c *Collector) Kept(id types.UUID) (*step.Pin, error) {
	pin, err := step.ReadPin(c.fs, c.dir(id))
	if err != nil || !pin.Holds(time.Now()) {
		return nil, err
	}
	return pin, nil
}

// there holds a history that has its directory.
func (c *Collector) there(op string, id types.UUID) (release func(), err error) {
	release, err = c.Hold(id, "rnix keep")
	if err != nil {
		return nil, err
	}
	if c.present(id) {
		return release, nil
	}
	defer release()
	if err := c.Explain(id); err != nil {
		return nil, err
	}
	return nil, types.Errorf(types.ErrNotFound, op, id.String(), "there is no history of this UUID")
}
