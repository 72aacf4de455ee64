package daemon

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"rnix/drivers/fs"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/kernel"
	"rnix/types"
)

// keeping keeps the files of workspaces, and makes workspaces of them.
type keeping struct{ *Daemon }

// snapshot keeps the files of a process's workspace after a step. It implements kernel.Config.Snapshot.
func (d keeping) snapshot(ctx context.Context, p *kernel.Process, n int) (*step.Snapshot, bool, error) {
	if p.WorkDir == "" {
		return nil, false, nil
	}
	if err := d.journal.Claim.Check(); err != nil { // it would make anew what is gone
		return nil, false, err
	}
	s, err := d.keeper.Take(ctx, p.WorkDir, p.UUID, n)
	if err != nil || s.ID == "" {
		return nil, false, err
	}
	return &step.Snapshot{Step: n, Kind: string(s.Kind), ID: s.ID, Root: s.Root, Limited: s.Limited}, s.Changed, nil
}

// refOf names a snapshot of a history.
func refOf(d *Daemon, id types.UUID, s *step.Snapshot) workspace.Ref {
	return workspace.Ref{UUID: id, Step: s.Step, Kind: workspace.Kind(s.Kind), ID: s.ID, Root: here(d, s.Root)}
}

// undo puts the files back that an interrupted call may have changed: those that its input names. It
// implements kernel.Config.Undo.
func (d keeping) undo(ctx context.Context, p *kernel.Process, call *step.Intent) error {
	paths := pathsOf(call.Input)
	if len(paths) == 0 || call.Before == nil {
		return types.Errorf(types.ErrInDoubt, "Undo", call.Tool, "it does not say which files it changes")
	}
	for i, path := range paths {
		if !filepath.IsAbs(path) {
			paths[i] = filepath.Join(p.WorkDir, path)
		}
		paths[i] = here(d.Daemon, paths[i])
	}
	report, err := d.keeper.RestorePaths(ctx, refOf(d.Daemon, p.UUID, call.Before), p.WorkDir, paths)
	if err != nil {
		return err
	}
	d.log.Info("undone", "pid", p.PID, "call", call.CallID, "paths", paths, "way back", report.Undo)
	for _, path := range paths {
		d.knows(p.PID, path)
	}
	return nil
}

// knows notes that a process knows what is in a file: it stands as the process had it.
func (d keeping) knows(pid types.PID, path string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return // it is not there
	}
	if st, err := os.Lstat(real); err != nil || !st.Mode().IsRegular() || st.Size() > maxKnown {
		return // it must be read again before it can be overwritten
	}
	if content, err := os.ReadFile(real); err == nil {
		d.seen.Read(pid, real, fs.SumOf(content))
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
func (d keeping) takenBy(ctx context.Context, id types.UUID, s *step.Snapshot) types.UUID {
	for up, n := id, 0; up != (types.UUID{}) && n < service.MaxAncestors; n++ {
		all, err := d.keeper.List(ctx, up)
		if err == nil && slices.ContainsFunc(all, func(k workspace.Stored) bool { return k.ID == s.ID }) {
			return up
		}
		info, ok := d.journal.Index().Get(up)
		if !ok {
			break
		}
		up = info.OriginUUID
	}
	return id
}

// forksDir holds the workspaces of forks.
func forksDir(d *Daemon) string { return filepath.Join(d.places.DataDir, "workspaces") }

// forkDir is where the workspace of a fork is.
func (d *Daemon) forkDir(id types.UUID) string { return filepath.Join(forksDir(d), id.String()) }
