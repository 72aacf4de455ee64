package worktree

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// leaseDir is where the leases are, below the parent directory. No session or leaf can have its name.
const leaseDir = ".terminal-leases"

// ErrWorkareaLeased says that the checkout of a session that has ended is kept for somebody who has not
// got its results yet.
var ErrWorkareaLeased = errors.New("the checkout is leased")

// LeaseState says how far a lease is.
type LeaseState string

// The states. What is released has no lease any more. Part of the on-disk format.
const (
	LeaseActive         LeaseState = "active"
	LeaseReleasePending LeaseState = "release-pending"
)

// Lease is a terminal lease: it keeps the checkout of a session that has ended, or a whole root, until
// somebody has taken over what it has brought, or until nobody waits for that any longer. It is not the
// lease of a session at its platform, and gives no right to write.
type Lease struct {
	ID      string     `json:"id"`
	For     string     `json:"for"` // the session, or the id of the root
	Path    string     `json:"path"`
	State   LeaseState `json:"state"`
	Expires time.Time  `json:"expires"` // by the clock of the machine

	// ReleaseRequested says that Teardown was called meanwhile: the end of the lease is then the
	// removal, if Teardown would remove it. Else the end of the lease changes nothing about it.
	ReleaseRequested bool `json:"release_requested,omitempty"`

	Tries int       `json:"tries,omitempty"` // to remove it, that have failed
	Next  time.Time `json:"next,omitzero"`   // when the next try is due
}

// over reports whether a lease has ended, and its checkout is to be seen to.
func (l *Lease) over(now time.Time) bool {
	return (l.State == LeaseReleasePending || !now.Before(l.Expires)) && !now.Before(l.Next)
}

// leaseRecord is a lease on disk. Part of the on-disk format.
type leaseRecord struct {
	Version int    `json:"v"`
	Key     string `json:"key"` // the name of the record of what is leased
	Lease
}

func (l ledger) leasePath(key string) string {
	return filepath.Join(filepath.Dir(l.dir), leaseDir, key+".json")
}

func (l ledger) readLease(key string) (*leaseRecord, error) {
	var r leaseRecord
	there, err := l.load(l.leasePath(key), &r, func() (int, bool) { return r.Version, r.Key == key && r.ID != "" && !r.Expires.IsZero() })
	if err != nil || !there {
		return nil, err
	}
	return &r, nil
}

func (l ledger) writeLease(r *leaseRecord) error {
	r.Version = recordVersion
	if err := durable.MkdirAll(l.fs, filepath.Dir(l.leasePath(""))); err != nil {
		return err
	}
	return l.save(l.leasePath(r.Key), r)
}

// leases returns the records of all leases that can be read, and an error if there are others.
func (l ledger) leases() (out []*leaseRecord, err error) {
	entries, err := l.fs.ReadDir(filepath.Dir(l.leasePath("")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "Leases", leaseDir, "%w", err)
	}
	for _, e := range entries {
		key, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || checkSession("Leases", strings.TrimSuffix(key, rootMark)) != nil {
			continue
		}
		r, bad := l.readLease(key)
		err = errors.Join(err, bad)
		if r != nil {
			out = append(out, r)
		}
	}
	return out, err
}

// Leases are those of the checkouts and roots of a Manager. Safe for concurrent use, as the Manager is.
type Leases struct{ m *Manager }

// NewLeases returns the leases of a manager.
func NewLeases(m *Manager) Leases { return Leases{m} }

// All returns all leases that have not been released, in the order of what they are for, and an error if some cannot
// be read.
func (o Leases) All() ([]Lease, error) {
	all, err := o.m.ledger.leases()
	out := make([]Lease, 0, len(all))
	for _, r := range all {
		out = append(out, r.Lease)
	}
	return out, err
}

// Take keeps the checkout of a session, or the root with an id, from now on for ttl: Teardown
// only notes that it is to go, and Provision of the session is ErrWorkareaLeased. One that is leased
// already is so for longer; no lease gets shorter. ErrUnknownSession if nothing is to be leased.
func (o Leases) Take(ctx context.Context, id string, ttl time.Duration) (Lease, error) {
	const op = "Lease"
	if ttl <= 0 {
		return Lease{}, types.Errorf(types.ErrInvalid, op, id, "a lease of %s is none: name how long it holds", ttl)
	}
	key, err := o.keyOf(id)
	if err != nil {
		return Lease{}, err
	}
	_, unlock, err := o.m.ledger.lock(ctx, key)
	if err != nil {
		return Lease{}, err
	}
	defer unlock()
	if again, err := o.keyOf(id); err != nil || again != key {
		return Lease{}, types.Errorf(types.ErrNotFound, op, id, "%w", ErrUnknownSession)
	}
	r, err := o.m.ledger.readLease(key)
	if err != nil {
		return Lease{}, err
	}
	until := time.Now().Add(ttl).UTC().Round(0)
	switch {
	case r == nil:
		path := filepath.Join(o.m.dir, strings.TrimSuffix(key, rootMark))
		if !strings.HasSuffix(key, rootMark) {
			if path, err = o.m.Path(id); err != nil {
				return Lease{}, err
			}
		}
		r = &leaseRecord{Key: key, Lease: Lease{ID: "wtl_" + strings.ToLower(rand.Text()), For: id, Path: path, State: LeaseActive, Expires: until}}
	case r.State != LeaseActive || !time.Now().Before(r.Expires):
		return Lease{}, types.Errorf(types.ErrConflict, op, id, "%w, and that lease has ended: what it was for is being seen to", ErrWorkareaLeased)
	case until.After(r.Expires):
		r.Expires = until
	default:
		return r.Lease, nil
	}
	return r.Lease, o.m.ledger.writeLease(r)
}

// keyOf returns the name of the record of a session, or of a root with an id.
func (o Leases) keyOf(id string) (string, error) {
	r, err := o.m.ledger.rootByID(id)
	if r != nil {
		return r.Key, nil
	}
	if _, unknown := o.m.Result(id); unknown != nil {
		return id, cmp.Or(err, unknown)
	}
	return id, nil
}

// Release says that what a session has brought is in good hands: its checkout is not kept for that
// any longer. Reap does what is left to do. A lease that is not known has been released before.
func (o Leases) Release(ctx context.Context, leaseID string) error {
	all, err := o.m.ledger.leases()
	for _, l := range all {
		if l.ID == leaseID {
			return o.change(ctx, l, func(_ context.Context, r *leaseRecord) error {
				r.State = LeaseReleasePending
				return o.m.ledger.writeLease(r)
			})
		}
	}
	return err
}

// change does something with a lease that is still the same once its checkout is locked.
func (o Leases) change(ctx context.Context, l *leaseRecord, do func(ctx context.Context, r *leaseRecord) error) error {
	ctx, unlock, err := o.m.ledger.lock(ctx, l.Key)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := o.m.ledger.readLease(l.Key)
	if err != nil || r == nil || r.ID != l.ID {
		return err
	}
	return do(ctx, r)
}

// wantedGone notes in the lease of a checkout, if it has one, that it is to be removed. The caller has
// its lock.
func (o Leases) wantedGone(key string) (leased bool, err error) {
	r, err := o.m.ledger.readLease(key)
	if err != nil || r == nil {
		return false, err
	}
	if r.ReleaseRequested {
		return true, nil
	}
	r.ReleaseRequested = true
	return true, o.m.ledger.writeLease(r)
}

// ended returns nil if a checkout has no lease, or none any longer, and ErrWorkareaLeased while it
// holds. The caller has its lock.
func (o Leases) ended(ctx context.Context, key string) error {
	r, err := o.m.ledger.readLease(key)
	if err != nil || r == nil {
		return err
	}
	if !r.over(time.Now()) {
		return types.Errorf(types.ErrConflict, "Provision", r.Path, "%w to a holder that has not got its results yet, until %s: release lease %s, or wait", ErrWorkareaLeased,
			r.Expires.Format(time.RFC3339), r.ID)
	}
	return o.end(ctx, r)
}

// end does what is to be done when a lease has ended. A checkout that Teardown would park is
// parked: that is the end of its lease too, and no error. The caller has its lock.
func (o Leases) end(ctx context.Context, r *leaseRecord) error {
	if r.ReleaseRequested {
		err := o.removeByKey(ctx, r.Key)
		if errors.Is(err, ErrParked) {
			o.m.log.Warn("a lease has ended, and its checkout is kept", "for", r.For, "error", err)
		} else if err != nil {
			r.State, r.Next, r.Tries = LeaseReleasePending, time.Now().Add(leaseRetry(r.Tries)).UTC().Round(0), r.Tries+1
			return errors.Join(err, o.m.ledger.writeLease(r))
		}
	}
	return o.m.ledger.drop(o.m.ledger.leasePath(r.Key))
}

// removeByKey is Teardown for who has the lock already.
func (o Leases) removeByKey(ctx context.Context, key string) error {
	if strings.HasSuffix(key, rootMark) {
		r, err := o.m.ledger.readRoot(key)
		if err != nil || r == nil {
			return err
		}
		return NewRoots(o.m).remove(ctx, r)
	}
	r, err := o.m.ledger.read(key)
	if err != nil || r == nil {
		return err
	}
	return o.m.remove(ctx, r)
}
