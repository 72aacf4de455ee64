package worktree

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnix/types"
)

// SessionRootV1 is the layout of the directory of a session with several repositories: one directory
// for each of them, beside each other. Part of the on-disk format.
const SessionRootV1 = "session-root-v1"

// IsolatedReadOnlyV1 is what has to be true of whoever runs a session that has read-only repositories:
// it keeps the session from writing in these. Nothing here does.
const IsolatedReadOnlyV1 = "isolated-read-only-v1"

// RootMode says whether further sessions can join a root.
type RootMode string

// The modes. Part of the on-disk format.
const (
	RootExclusive RootMode = "exclusive" // nobody; also what "" means
	RootShared    RootMode = "shared"
)

// The limits of a root.
const (
	maxRepositories   = 64
	maxRepositoryName = 64 // bytes
)

// ErrUnknownWorkarea says that there is no root with an id.
var ErrUnknownWorkarea = errors.New("no such root")

// RootSpec says which repositories a session is to get.
type RootSpec struct {
	SessionID    string
	LeafName     string // the name of the root's directory; "" = SessionID
	Mode         RootMode
	Repositories []Repository
	Selected     string   // the name of the repository in which the session works; "" = the first
	Attests      []string // what the caller knows of whoever runs the session, such as IsolatedReadOnlyV1

	// ParentWorkareaID joins the session to the root with this id, which is shared. All but SessionID is
	// left out then: the root stays as it is.
	ParentWorkareaID string
}

// Repository is one of the repositories of a session.
type Repository struct {
	Name     string        // of its directory in the root
	ReadOnly bool          // only to be looked at: where it cannot be had, the session begins without it, unless it is selected
	Checkout ProvisionSpec // without SessionID and LeafName
}

// Root is a directory with the checkouts of one session, or of several that share it.
type Root struct {
	ID       string // no two roots have the same, also when they have the same place one after the other
	Path     string
	Dir      string // the checkout of the selected repository: where a session works
	Mode     RootMode
	Sessions []string // that have it
	Leaves   []Leaf
	Skipped  []SkippedRepository
}

// Leaf is one checkout of a root.
type Leaf struct {
	Name     string
	ReadOnly bool
	ProvisionResult
}

// SkippedRepository is one without which a session has begun.
type SkippedRepository struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// rootMark ends the name of the record of a root, and stands in those of its checkouts between the name
// of the root and their own. No session can have it in its name.
const rootMark = "~"

// rootRecord is what is known of one root. It is written before anything of it is made, with all that
// is to be made. Part of the on-disk format.
type rootRecord struct {
	Version  int                 `json:"v"`
	Layout   string              `json:"layout"`
	ID       string              `json:"id"`
	Key      string              `json:"key"` // the name of the record
	State    string              `json:"state"`
	Path     string              `json:"path"`
	Mode     RootMode            `json:"mode"`
	Sessions []string            `json:"sessions"`
	Selected string              `json:"selected"`
	Leaves   []rootLeaf          `json:"leaves"`
	Skipped  []SkippedRepository `json:"skipped,omitempty"`
	Device   uint64              `json:"device,omitempty"`
	Inode    uint64              `json:"inode,omitempty"`
	Time     time.Time           `json:"time"`
}

type rootLeaf struct {
	Name     string `json:"name"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// isThere is that of record.
func (r *rootRecord) isThere() bool {
	dev, ino, ok := identity(r.Path)
	return ok && dev == r.Device && ino == r.Inode
}

func (l ledger) readRoot(key string) (*rootRecord, error) {
	var r rootRecord
	there, err := l.load(l.path(key), &r, func() (int, bool) {
		return r.Version, r.Key == key && r.Layout == SessionRootV1 && r.ID != "" && filepath.IsAbs(r.Path)
	})
	if err != nil || !there {
		return nil, err
	}
	return &r, nil
}

func (l ledger) writeRoot(r *rootRecord) error {
	r.Version, r.Time = recordVersion, time.Now().UTC()
	return l.save(l.path(r.Key), r)
}

// roots returns the records of all roots that are ready and can be read, and an error if there are others.
func (l ledger) roots() (out []*rootRecord, err error) {
	entries, err := l.fs.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "Roots", l.dir, "%w", err)
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), rootMark+".json"); ok {
			r, bad := l.readRoot(name + rootMark)
			err = errors.Join(err, bad)
			if r != nil && r.State == stateReady {
				out = append(out, r)
			}
		}
	}
	return out, err
}

// rootByID returns the record of a root; nil if there is none. One that cannot be read may be it.
func (l ledger) rootByID(id string) (*rootRecord, error) {
	all, err := l.roots()
	if i := slices.IndexFunc(all, func(r *rootRecord) bool { return r.ID == id }); i >= 0 {
		return all[i], nil
	}
	return nil, err
}

// Roots makes and removes the roots of a Manager: directories with the checkouts of several repositories.
// Safe for concurrent use, as the Manager is.
type Roots struct{ m *Manager }

// NewRoots returns the roots of a manager.
func NewRoots(m *Manager) Roots { return Roots{m} }

// root returns a root as callers see it.
func (o Roots) root(r *rootRecord) (Root, error) {
	out := Root{ID: r.ID, Path: r.Path, Dir: filepath.Join(r.Path, r.Selected), Mode: r.Mode, Sessions: slices.Clone(r.Sessions), Skipped: slices.Clone(r.Skipped)}
	for _, l := range r.Leaves {
		rec, err := o.m.ledger.read(r.Key + l.Name)
		if err != nil {
			return Root{}, err
		}
		if rec != nil {
			out.Leaves = append(out.Leaves, Leaf{Name: l.Name, ReadOnly: l.ReadOnly, ProvisionResult: rec.result()})
		}
	}
	return out, nil
}

// Get returns what Provision has made. ErrUnknownWorkarea if there is no root with an id.
func (o Roots) Get(id string) (Root, error) {
	r, err := o.m.ledger.rootByID(id)
	if err != nil {
		return Root{}, err
	}
	if r == nil {
		return Root{}, types.Errorf(types.ErrNotFound, "Get", id, "%w", ErrUnknownWorkarea)
	}
	return o.root(r)
}

// All returns all roots, in the order of their places.
func (o Roots) All() ([]Root, error) {
	all, err := o.m.ledger.roots()
	if err != nil {
		return nil, err
	}
	out := make([]Root, 0, len(all))
	for _, r := range all {
		one, err := o.root(r)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Root) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// newWorkareaID returns an id that nothing has had before.
func newWorkareaID() string { return "wac_" + strings.ToLower(rand.Text()) }
