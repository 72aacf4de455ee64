package histories

import (
	"context"
	"sync"
	"sync/atomic"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/types"
)

// outlines keeps where the messages of the conversations stand that were asked for last, so that a page costs the reading of
// its own messages and of what is new. Safe for concurrent use.
type outlines struct {
	mu sync.Mutex
	// +checklocks:mu
	list []*outlined // the latest first
}

// outlined is the outline of one history.
type outlined struct {
	id types.UUID

	mu  sync.Mutex    // held while it is read; taken alone
	out *step.Outline // +checklocks:mu
	// +checklocks:mu
	at step.Stamp // of the records, before it was brought up to date

	size atomic.Int64 // places of out
}

// What bounds the outlines that are kept, but for the one that was asked for last. A place takes some 150 bytes.
const (
	maxOutlines = 16
	maxPlaces   = 1 << 20 // of all together
)

// of returns the place for the outline of a history.
func (o *outlines) of(id types.UUID) *outlined {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, one := range o.list {
		if one.id == id {
			copy(o.list[1:i+1], o.list[:i])
			o.list[0] = one
			return one
		}
	}
	one := &outlined{id: id}
	o.list = append([]*outlined{one}, o.list...)
	o.list = o.list[:min(len(o.list), maxOutlines)]
	return one
}

// trim lets go of those that were not asked for lately, where all together are large.
func (o *outlines) trim() {
	o.mu.Lock()
	defer o.mu.Unlock()
	sum := int64(0)
	for i, one := range o.list {
		if sum += one.size.Load(); sum > maxPlaces && i > 0 {
			clear(o.list[i:])
			o.list = o.list[:i]
			return
		}
	}
}

// upToDate brings the outline up to what is on the disk.
//
// +checklocks:one.mu
func (one *outlined) upToDate(ctx context.Context, j Journal) error {
	for load := j.Derived().Outline; ; load = func(types.UUID) *step.Outline { return step.NewOutline() } {
		if one.out == nil {
			one.out = load(one.id)
		}
		one.at = j.Derived().Stamp(one.id)
		same, err := one.out.Extend(ctx, j, one.id)
		if same && err == nil {
			return nil
		}
		one.out = nil // it may be half of it
		if same {
			return err
		}
	}
}

// outline calls look with the outline of a history, up to date, which is look's until it returns. A history is read whole for it once;
// then what is new of it is. Of one that is long it is kept in a file.
func (d *Service) outline(ctx context.Context, t *service.Target, text string, look func(*step.Outline) error) error {
	one := d.outlines.of(t.UUID)
	one.mu.Lock()
	defer one.mu.Unlock()
	if err := one.upToDate(ctx, d.Journal); err != nil {
		return d.Finder.Lost(t, text, err)
	}
	one.size.Store(int64(one.out.Places()))
	d.outlines.trim()
	if one.out.Worth() {
		d.keep(one)
	}
	return look(one.out)
}

// Trail is what the outline of a history has besides the conversation, and why no more can be read, if so.
func (d *Service) Trail(ctx context.Context, t *service.Target, text string) (trail step.Trail, damage string, err error) {
	err = d.outline(ctx, t, text, func(out *step.Outline) error {
		trail, damage = out.Trail(), out.Damage
		return nil
	})
	return trail, damage, err
}

// keep writes outline.json, unless the history is just being taken away. It is a cache: a failure is only noted.
//
// +checklocks:one.mu
func (d *Service) keep(one *outlined) {
	release, err := d.Finder.Hold(one.id)
	if err != nil {
		return
	}
	defer release()
	if err := d.Journal.Derived().SaveOutline(one.id, one.out, one.at); err != nil {
		d.Log.Warn(step.OutlineFile, "uuid", one.id, "err", err)
	}
}
