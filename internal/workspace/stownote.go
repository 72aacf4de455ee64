package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/moved"
	"rnix/types"
)

// stowVersion is the format of the notes on workspaces that were put away that this program writes.
const stowVersion = 1

// What a workspace that is put away is at. Part of the on-disk format.
const (
	stowLeaving  = "leaving"  // everything is kept; it may be there as it was, or under the name aside
	stowGoing    = "going"    // it has the name aside, and is removed
	stowAway     = "away"     // it is gone
	stowComing   = "coming"   // it is being made again; nobody works there yet
	stowReleased = "released" // it will not come back: the work in it is a rescue like any other
)

// stowed is the note on a workspace that was put away: snapshots/stowed/<uuid>/note.json. Beside it, in git/, are the files that its repository had for
// it. Part of the on-disk format.
type stowed struct {
	Version int    `json:"v"`
	Desk    desk   `json:"desk"`
	State   string `json:"state"`
	// Device and Inode say which directory is meant by leaving and coming.
	Device uint64 `json:"device,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
	// Seal is what lay in it when it was rescued, see seal; notes of earlier versions have none.
	Seal string `json:"seal,omitempty"`

	Files   string                 `json:"files"`             // the rescue that has all files
	Work    string                 `json:"work"`              // the one that stays if it never comes back: without large files that git ignores
	Head    string                 `json:"head,omitempty"`    // git: the commit that was checked out
	Branch  string                 `json:"branch,omitempty"`  // git: the branch; "" = none was
	Commits []string               `json:"commits,omitempty"` // git: those that no other reference of the repository held
	Modes   map[string]fs.FileMode `json:"modes,omitempty"`   // permissions that a rescue does not say
	Empty   []string               `json:"empty,omitempty"`   // git: empty directories
	Owners  map[string]owner       `json:"owners,omitempty"`  // of files that are not the user's, or not of the user's group
	// Attributes are the extended attributes that files have: those of users, access lists and capabilities.
	Attributes map[string]map[string][]byte `json:"attributes,omitempty"`

	attributes int    // bytes in Attributes
	lacks      string // what of it is not as it was when it came back
}

// aside is the name of a workspace from the moment when nothing keeps it from going.
func (n *stowed) aside() string {
	return filepath.Join(filepath.Dir(n.Desk.Dir), ".gone-"+filepath.Base(n.Desk.Dir))
}

// there reports whether the directory that the note means is in its place.
func (n *stowed) there() bool {
	device, inode := placeOf(n.Desk.Dir)
	return n.Inode != 0 && inode == n.Inode && device == n.Device
}

// stowDir holds a directory for each history whose workspace is put away.
func stowDir(k *git) string { return filepath.Join(k.base, "stowed") }

// backPrefix is what the names of directories begin with in which there is nothing any more that is needed.
const backPrefix = ".back-"

// read returns the note; nil = there is none.
func (s stower) read() (*stowed, error) {
	b, err := durable.ReadFile(durable.OS, s.note)
	if types.CodeOf(err) == types.ErrNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := new(stowed)
	if err := json.Unmarshal(b, n); err != nil || n.Version < 1 || n.Desk.Dir == "" {
		return nil, types.Errorf(types.ErrStorage, "Stow", s.note, "not the note on a workspace that was put away: move it away")
	}
	if n.Version > stowVersion {
		return nil, types.Errorf(types.ErrVersion, "Stow", s.note, "written in format %d by a newer program, this one reads up to %d", n.Version, stowVersion)
	}
	data := s.k.desks.dataDir()
	n.Desk.Dir, n.Desk.Ref.Root = moved.Here(data, n.Desk.Dir), moved.Here(data, n.Desk.Ref.Root)
	return n, nil
}

func (s stower) write(n *stowed) error {
	b, err := json.Marshal(n)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Stow", s.note, "%w", err)
	}
	return durable.WriteFile(durable.OS, s.note, append(b, '\n'), durable.Durable)
}

// settle brings what was cut off to one of its two ends.
func (s stower) settle(ctx context.Context) error {
	_, berr := os.Lstat(s.back)
	_, derr := os.Lstat(s.dir)
	n, err := s.read()
	switch {
	case err != nil:
		return err
	case n == nil && berr != nil && derr != nil:
		return nil
	case n == nil, n.State == stowLeaving && n.there():
		return s.forget(ctx)
	case n.State == stowLeaving:
		err := s.shut(n)
		if types.CodeOf(err) == types.ErrConflict {
			return s.open(ctx, n)
		}
		if err != nil {
			return err
		}
		return s.depart(ctx, n)
	case n.State == stowGoing:
		return s.depart(ctx, n)
	case n.State == stowComing:
		return s.undo(ctx, n)
	case n.State == stowReleased:
		return s.finishRelease(ctx, n)
	}
	return nil
}

// forget removes the note and what it needs: the workspace is there, or was not put away.
func (s stower) forget(ctx context.Context) error {
	if err := os.Rename(s.dir, s.back); err == nil {
		err = durable.OS.SyncDir(filepath.Dir(s.dir))
		if err != nil {
			return storage(s.dir, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return storage(s.dir, err)
	}
	all, err := s.k.list(s.id)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Away {
			if err := s.dropRescue(ctx, &all[i]); err != nil {
				return err
			}
		}
	}
	if err := os.RemoveAll(s.back); err != nil {
		return storage(s.back, err)
	}
	return nil
}

// dropRescue forgets one rescue; its bytes go with the next Sweep.
func (s stower) dropRescue(ctx context.Context, rec *Stored) error {
	if rec.Pin != "" {
		st, err := s.k.storeOf(ctx, s.id, rec.Common, formatOf(rec.ID))
		if err != nil {
			return err
		}
		if err := durable.WriteFile(durable.OS, st.dropped(), nil, durable.Cached); err != nil {
			return err
		}
		if _, err := s.k.run(ctx, s.id, call{args: st.args("update-ref", "--no-deref", "-d", rec.Pin)}); err != nil {
			return err
		}
	}
	path := filepath.Join(s.k.recordDir(s.id), rec.name+".json")
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storage(path, err)
	}
	_ = os.Remove(s.k.recordDir(s.id)) // stays if others are in it
	return nil
}

// SettleStowed finishes or takes back what a crash has cut off of putting workspaces away and back. It returns what it could not, a line each.
func SettleStowed(ctx context.Context, k *Keeper) (notes []string) {
	for _, id := range stowedIDs(k) {
		if err := withStower(ctx, k, id, func(s stower) error { return s.settle(ctx) }); err != nil {
			notes = append(notes, "a directory that was put away with its history is not in order: "+err.Error())
		}
	}
	return notes
}

// StowedDirs returns the directories that were put away, by their histories. What cannot be read is left out.
func StowedDirs(k *Keeper) map[types.UUID]string {
	out := map[types.UUID]string{}
	for _, id := range stowedIDs(k) {
		if n, err := newStower(k, nil, id).read(); err == nil && n != nil && n.State != stowReleased {
			out[id] = n.Desk.Dir
		}
	}
	return out
}

// StowedWork returns the rescue that stays of a workspace that is put away if it is given up; nil = none is put away.
func StowedWork(k *Keeper, id types.UUID) *Stored {
	s := newStower(k, nil, id)
	n, err := s.read()
	if err != nil || n == nil {
		return nil
	}
	rec, err := s.rescued(n.Work)
	if err != nil {
		return nil
	}
	return rec
}

// stowedIDs returns the histories of which something is put away.
func stowedIDs(k *Keeper) (ids []types.UUID) {
	entries, _ := os.ReadDir(stowDir(k.git)) // none were
	for _, e := range entries {
		var id types.UUID
		if id.UnmarshalText([]byte(strings.TrimPrefix(e.Name(), backPrefix))) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// withStower does something with the turn of a history.
func withStower(ctx context.Context, k *Keeper, id types.UUID, do func(stower) error) error {
	h, err := k.enter(ctx, id)
	if err != nil {
		return err
	}
	k.awaitSweep(h)
	defer k.leave(h)
	return do(newStower(k, h, id))
}
