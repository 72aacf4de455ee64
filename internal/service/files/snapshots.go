package files

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"rnix/drivers/fs"
	"rnix/internal/moved"
	"rnix/internal/plumbing"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/types"
)

// Snapshots are the files of processes as they were at the end of their steps. The fields are set before the first process runs.
type Snapshots struct {
	Histories Histories
	Known     Known

	keeper *workspace.Keeper
	off    bool
	data   string // the data directory
	log    *slog.Logger
}

// Known notes what processes know of files. *fs.Seen is one.
type Known interface {
	// Read notes that a process knows what is in a file.
	Read(pid types.PID, path string, sum fs.Sum)
}

// NewSnapshots returns the snapshots of a data directory, which a keeper keeps. off says that none is taken, and none is shown or put back of
// those that were; their bytes are counted, and go with their histories, all the same.
func NewSnapshots(k *workspace.Keeper, off bool, data string, log *slog.Logger) *Snapshots {
	return &Snapshots{keeper: k, off: off, data: data, log: log}
}

// Off reports that none is taken.
func (s *Snapshots) Off() bool { return s.off }

// Worker is a process at work in its directory.
type Worker struct {
	PID     types.PID
	UUID    types.UUID
	WorkDir string // "" = none
}

// Take keeps the files of a process's workspace after a step, and reports whether they have changed since the last time; nil = there is nothing
// to keep.
func (s *Snapshots) Take(ctx context.Context, p Worker, n int) (*step.Snapshot, bool, error) {
	if p.WorkDir == "" {
		return nil, false, nil
	}
	if err := s.Histories.Claimed(); err != nil { // it would make anew what is gone
		return nil, false, err
	}
	now, err := s.keeper.Take(ctx, p.WorkDir, p.UUID, n)
	if err != nil || now.ID == "" {
		return nil, false, err
	}
	return &step.Snapshot{Step: n, Kind: string(now.Kind), ID: now.ID, Root: now.Root, Limited: now.Limited}, now.Changed, nil
}

// refOf names a snapshot of a history in a data directory.
func refOf(data string, id types.UUID, s *step.Snapshot) workspace.Ref {
	return workspace.Ref{UUID: id, Step: s.Step, Kind: workspace.Kind(s.Kind), ID: s.ID, Root: moved.Here(data, s.Root)}
}

// Undo puts the files back that an interrupted call may have changed: those that its input names.
func (s *Snapshots) Undo(ctx context.Context, p Worker, call *step.Intent) error {
	paths := pathsOf(call.Input)
	if len(paths) == 0 || call.Before == nil {
		return types.Errorf(types.ErrInDoubt, "Undo", call.Tool, "it does not say which files it changes")
	}
	for i, path := range paths {
		if !filepath.IsAbs(path) {
			paths[i] = filepath.Join(p.WorkDir, path)
		}
		paths[i] = moved.Here(s.data, paths[i])
	}
	report, err := s.keeper.RestorePaths(ctx, refOf(s.data, p.UUID, call.Before), p.WorkDir, paths)
	if err != nil {
		return err
	}
	s.log.Info("undone", "pid", p.PID, "call", call.CallID, "paths", paths, "way back", report.Undo)
	for _, path := range paths {
		s.knows(p.PID, path)
	}
	return nil
}

// knows notes that a process knows what is in a file: it stands as the process had it.
func (s *Snapshots) knows(pid types.PID, path string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return // it is not there
	}
	if st, err := os.Lstat(real); err != nil || !st.Mode().IsRegular() || st.Size() > maxKnown {
		return // it must be read again before it can be overwritten
	}
	if content, _, err := plumbing.ReadFile(real, maxKnown); err == nil {
		s.Known.Read(pid, real, fs.SumOf(content))
	}
}

// maxKnown is the largest file of which it is noted that a process knows it.
const maxKnown = 64 << 20

// pathsOf returns the files that a call on a workspace names.
func pathsOf(input json.RawMessage) []string {
	var in struct {
		Path string `json:"path"`
		From string `json:"from"`
		To   string `json:"to"`
	}
	if json.Unmarshal(input, &in) != nil {
		return nil
	}
	var out []string
	for _, p := range []string{in.Path, in.From, in.To} {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

// takenBy returns the history that has taken a snapshot: id, or the one of which it is a fork, and so on.
func (s *Snapshots) takenBy(ctx context.Context, id types.UUID, snap *step.Snapshot) types.UUID {
	for up, n := id, 0; up != (types.UUID{}) && n < service.MaxAncestors; n++ {
		all, err := s.keeper.List(ctx, up)
		if err == nil && slices.ContainsFunc(all, func(one workspace.Stored) bool { return one.ID == snap.ID }) {
			return up
		}
		info, ok := s.Histories.Get(up)
		if !ok {
			break
		}
		up = info.OriginUUID
	}
	return id
}

// Check returns a function that says whether a snapshot is there and can be read. It asks once
// for each; nil where snapshots are switched off.
func (s *Snapshots) Check(ctx context.Context) func(types.UUID, step.Snapshot) error {
	if s.off {
		return nil
	}
	known := map[string]error{}
	return func(id types.UUID, snap step.Snapshot) error {
		key := snap.Kind + " " + snap.ID
		err, asked := known[key]
		if !asked {
			ref := refOf(s.data, s.takenBy(ctx, id, &snap), &snap)
			_, _, err = s.keeper.Diff(ctx, ref, ref, workspace.DiffOpts{NamesOnly: true})
			known[key] = err
		}
		return err
	}
}

// Forget releases the memory that a process takes up which has ended.
func (s *Snapshots) Forget(id types.UUID) { s.keeper.Forget(id) }

// Sweep removes the snapshots that no history has any more.
func (s *Snapshots) Sweep(ctx context.Context) (workspace.Swept, error) { return s.keeper.Sweep(ctx) }

// Room returns the room that snapshots take up.
func (s *Snapshots) Room(ctx context.Context) (workspace.Room, error) { return s.keeper.Room(ctx) }

// Drop forgets the snapshots of a history; their bytes go with the next sweep.
func (s *Snapshots) Drop(ctx context.Context, id types.UUID) error {
	err := s.keeper.Drop(ctx, id)
	s.keeper.Forget(id)
	return err
}
