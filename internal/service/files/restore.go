package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/service"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

const opRestore = "RestoreFiles"

func (s *Service) restore(ctx context.Context, peer *ipc.Peer, req ipc.RestoreRequest) (ipc.RestoreResponse, error) {
	none := ipc.RestoreResponse{}
	if err := service.People(s.Callers, peer, opRestore, "not put files back; tell the person who runs it to use: rnix restore"); err != nil {
		return none, err
	}
	if err := checkRestore(&req); err != nil {
		return none, err
	}
	p, err := s.find(ctx, peer, opRestore, req.Target)
	if err != nil {
		return none, err
	}
	what, err := s.wanted(ctx, p, &req)
	if err != nil {
		return none, err
	}
	r := ipc.RestoreResponse{PID: p.PID, UUID: p.UUID, Files: filesAt(what.ref.Step, what)}
	if req.Step != nil {
		r.Files.Step = *req.Step
	}
	if req.To != "" {
		return r, s.writeOut(ctx, p, what, &req, &r)
	}
	return r, s.putBack(ctx, p, what, &req, &r)
}

// checkRestore refuses what cannot be meant.
func checkRestore(req *ipc.RestoreRequest) error {
	bad := func(format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, opRestore, req.Target, format, args...)
	}
	switch {
	case (req.Step == nil) == (req.Snapshot == ""):
		return bad("say which files: a step or a snapshot, and not both")
	case req.Snapshot != "" && (len(req.Snapshot) < service.MinPrefix || strings.Trim(req.Snapshot, "0123456789abcdef") != ""):
		return bad("%q is not the beginning of the id of a snapshot: at least %d characters of 0-9 and a-f", req.Snapshot, service.MinPrefix)
	case req.To != "" && !filepath.IsAbs(req.To):
		return bad("the directory %s is not an absolute path", req.To)
	case req.To != "" && req.DryRun:
		return bad("a dry run is for the work directory: what is written to a new one is everything")
	}
	return nil
}

// wanted returns the snapshot that a request names.
func (s *Service) wanted(ctx context.Context, p *past, req *ipc.RestoreRequest) (snapshot, error) {
	var steps []int
	if req.Step != nil {
		steps = []int{*req.Step}
	}
	t, stored, err := s.Snapshots.timeline(ctx, p, opRestore, req.Target, steps...)
	if req.Step != nil {
		if err == nil {
			err = t.check(opRestore, req.Target, *req.Step)
		}
		if err != nil {
			return snapshot{}, err
		}
		return t.at(*req.Step), nil
	}
	var found *workspace.Stored
	for i := range stored {
		one := &stored[i]
		if !strings.HasPrefix(one.ID, req.Snapshot) {
			continue
		}
		if found != nil && found.ID != one.ID {
			return snapshot{}, types.Errorf(types.ErrAmbiguous, opRestore, req.Snapshot, "several snapshots begin so: %s and %s", found.ID, one.ID)
		}
		found = one
	}
	if found == nil {
		return snapshot{}, types.Errorf(types.ErrNotFound, opRestore, req.Snapshot, "PID %d has no snapshot that begins so", p.PID)
	}
	return snapshot{found.Ref, found.Limited}, nil
}

// putBack brings the work directory of a process into the state of a snapshot, behind a rescue.
func (s *Service) putBack(ctx context.Context, p *past, what snapshot, req *ipc.RestoreRequest, r *ipc.RestoreResponse) error {
	r.Dir = p.workDir(s.Histories)
	dir, top := resolved(r.Dir), s.Snapshots.topOf(p, r.Dir, what.ref)
	if top == "" {
		return types.Errorf(types.ErrInvalid, opRestore, r.Dir, "these files were in %s, and the process works elsewhere: give a new directory for them with --to DIR", what.ref.Root)
	}
	if err := busy(s.Kernel, dir); err != nil {
		return err
	}
	only, err := below(opRestore, top, dir, req.Paths)
	if err == nil && len(only) == 0 { // the work directory may be a part of what was kept
		only, err = below(opRestore, top, dir, []string{dir})
	}
	if err != nil {
		return err
	}
	_, changes, err := s.Snapshots.keeper.Diff(ctx, workspace.Now(p.UUID, dir), what.ref, workspace.DiffOpts{NamesOnly: true, Paths: only})
	if err != nil {
		return err
	}
	if gone := unknown(top, only, changes); len(gone) > 0 && len(gone) == len(only) {
		return types.Errorf(types.ErrNotFound, opRestore, strings.Join(gone, ", "), "neither among the files of this step nor in %s; --dry-run without a path shows what would come back", top)
	}
	if r.Changes = wireChanges(changes); req.DryRun {
		return nil
	}
	ref := what.ref
	ref.UUID, ref.Root = p.UUID, top // whose rescue it is, also where a fork has the files of its origin
	var rep workspace.Report
	if len(only) == 0 {
		rep, err = s.Snapshots.keeper.Restore(ctx, ref, top, workspace.RestoreOpts{Overwrite: true})
	} else {
		abs := make([]string, len(only))
		for i, path := range only {
			abs[i] = filepath.Join(top, path)
		}
		rep, err = s.Snapshots.keeper.RestorePaths(ctx, ref, dir, abs)
	}
	r.Written, r.Removed, r.Dirs, r.Kept = rep.Written, rep.Removed, rep.Dirs, rep.Kept
	if rescue := rep.Rescue; rescue != nil {
		r.Rescue, r.RescuePin = rescue.ID, rescue.Pin
		if r.Undo = undoOf(rescue, req.Paths); err != nil {
			err = types.Errorf(types.CodeOf(err), opRestore, r.Dir, "not finished: %w; what was there before comes back with: %s", err, r.Undo)
		}
	}
	return err
}

// unknown returns the paths below a directory that are not there, and would not be after changes.
func unknown(top string, only []string, changes []workspace.FileChange) (gone []string) {
	for _, path := range only {
		if _, err := os.Lstat(filepath.Join(top, path)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if !slices.ContainsFunc(changes, func(c workspace.FileChange) bool { return under(c.Path, path) }) {
			gone = append(gone, path)
		}
	}
	return gone
}

// undoOf is the command that takes a restore back.
func undoOf(s *workspace.Stored, paths []string) string {
	cmd := fmt.Sprintf("rnix restore %s --snapshot %s", s.UUID, s.ID[:min(len(s.ID), 12)])
	if len(paths) > 0 {
		cmd += " --"
	}
	for _, p := range paths {
		cmd += " '" + strings.ReplaceAll(p, "'", `'\''`) + "'"
	}
	return cmd
}

// busy refuses to change files with which a process is at work.
func busy(k Kernel, dir string) error {
	for _, i := range k.List() {
		if i.State >= types.StateZombie || i.Paused || i.WorkDir == "" {
			continue
		}
		if at := resolved(i.WorkDir); under(at, dir) || under(dir, at) {
			return &types.SyscallError{Syscall: opRestore, PID: i.PID, Device: dir, Code: types.ErrConflict,
				Err: fmt.Errorf("PID %d is at work in %s; pause it first with: rnix pause %d, or give a new directory with --to DIR", i.PID, i.WorkDir, i.PID)}
		}
	}
	return nil
}

// writeOut writes a snapshot, or some paths of it, into a new directory.
func (s *Service) writeOut(ctx context.Context, p *past, what snapshot, req *ipc.RestoreRequest, r *ipc.RestoreResponse) error {
	r.Dir = filepath.Clean(req.To)
	dir := p.workDir(s.Histories)
	top := s.Snapshots.topOf(p, dir, what.ref)
	if top == "" {
		top, dir = resolved(what.ref.Root), what.ref.Root
	}
	only, err := below(opRestore, top, dir, req.Paths)
	if err != nil {
		return err
	}
	if len(only) == 0 {
		rep, err := s.Snapshots.keeper.Restore(ctx, what.ref, r.Dir, workspace.RestoreOpts{})
		r.Written, r.Kept = rep.Written, rep.Kept
		return err
	}
	names, err := os.ReadDir(r.Dir)
	switch {
	case len(names) > 0:
		return types.Errorf(types.ErrConflict, opRestore, r.Dir, "the directory is not empty: name a new one")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return types.Errorf(types.ErrInvalid, opRestore, r.Dir, "%w", err)
	}
	stage := filepath.Join(r.Dir, ".rnix-restore")
	rep, err := s.Snapshots.keeper.Restore(ctx, what.ref, stage, workspace.RestoreOpts{})
	r.Kept = rep.Kept
	if err == nil {
		err = take(r, only)
	}
	return errors.Join(err, os.RemoveAll(stage))
}

// take moves some paths out of the stage of a restore to where they belong, and counts their files.
func take(r *ipc.RestoreResponse, only []string) error {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return types.Errorf(types.ErrStorage, opRestore, r.Dir, "%w", err)
	}
	defer root.Close()
	moved := 0
	for _, path := range only {
		if parent := filepath.Dir(path); parent != "." {
			err = root.MkdirAll(parent, 0o777)
		}
		if err == nil {
			err = root.Rename(filepath.Join(".rnix-restore", path), path)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.Kept = append(r.Kept, fmt.Sprintf("%q: is not among the files of this step", path))
			err = nil
			continue
		case err != nil:
			return types.Errorf(types.ErrStorage, opRestore, filepath.Join(r.Dir, path), "%w", err)
		}
		moved++
		err = fs.WalkDir(root.FS(), path, func(_ string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				r.Written++
			}
			return err
		})
		if err != nil {
			return types.Errorf(types.ErrStorage, opRestore, filepath.Join(r.Dir, path), "%w", err)
		}
	}
	if moved == 0 {
		return types.Errorf(types.ErrNotFound, opRestore, strings.Join(only, ", "), "not among the files of this step")
	}
	return nil
}
