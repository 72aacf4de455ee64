package files

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

func (s *Service) diff(ctx context.Context, peer *ipc.Peer, req ipc.DiffRequest) (ipc.DiffResponse, error) {
	const op = "DiffFiles"
	none := ipc.DiffResponse{}
	if req.To != nil && req.Now {
		return none, types.Errorf(types.ErrInvalid, op, req.Target, "to is step %d, and now says the files as they are: give one of them", *req.To)
	}
	if req.MaxBytes < 0 {
		return none, types.Errorf(types.ErrInvalid, op, req.Target, "max_bytes %d is negative", req.MaxBytes)
	}
	p, err := s.find(ctx, peer, op, req.Target)
	if err != nil {
		return none, err
	}
	if tree, terr := s.Trees.Of(p.UUID); terr == nil && req.To == nil && req.From == 0 && exists(tree.Dir) {
		return s.diffTree(ctx, p, tree, req)
	}
	if req.To == nil {
		tree := s.Trees.last(p.Trail)
		gone := s.Trees.remains(ctx, op, p.UUID, tree)
		if gone != nil && req.Removed {
			left := workspace.LeftoverOf(ctx, s.Trees.git, p.UUID, *tree)
			return ipc.DiffResponse{PID: p.PID, UUID: p.UUID, Files: []ipc.FileChange{}, Removed: &ipc.RemovedTree{Repo: tree.Repo, Branch: left.Branch, Head: left.Head, Commits: left.Commits, Kept: left.Rescues}}, ctx.Err()
		}
		if gone != nil {
			return none, gone
		}
	}
	broken, asked := 0, req.To
	if last := p.Last; req.To == nil && !req.Now && p.ended() && last > 0 {
		req.To = &last
		if p.Acts > last {
			broken = p.Acts
		}
	}
	steps := []int{req.From}
	if req.To != nil {
		steps = append(steps, *req.To)
	}
	t, _, err := s.Snapshots.timeline(ctx, p, op, req.Target, steps...)
	if err == nil && req.To != nil {
		err = t.check(op, req.Target, *req.To)
	}
	if err == nil {
		err = t.check(op, req.Target, req.From)
	}
	if err != nil {
		return none, err
	}
	from, dir := t.at(req.From), p.workDir(s.Histories)
	to := snapshot{ref: workspace.Now(p.UUID, dir)}
	r := ipc.DiffResponse{PID: p.PID, UUID: p.UUID, From: filesAt(req.From, from), To: ipc.FilesAt{Now: true, Step: t.last, Kept: t.last, Root: dir}, Files: []ipc.FileChange{}}
	if req.To != nil {
		to = t.at(*req.To)
		r.To = filesAt(*req.To, to)
		r.To.Broken = broken
	}
	// What is outside of the snapshots is known for the beginning only.
	changed := func(changes []workspace.FileChange) []ipc.AutorunFile {
		if whole := req.From == 0 && asked == nil; whole {
			return autoruns(ctx, s, p.UUID, dir, workspace.Tree{}, changes)
		}
		return withStarts(nil, changes)
	}
	if to.ref.ID == from.ref.ID {
		r.Autorun = changed(nil)
		return r, nil
	}
	top := cmp.Or(s.Snapshots.topOf(p, dir, from.ref), resolved(dir))
	opts := workspace.DiffOpts{NamesOnly: req.Stat, MaxBytes: min(cmp.Or(req.MaxBytes, ipc.DiffBytes), ipc.MaxDiffBytes)}
	if opts.Paths, err = below(op, top, dir, req.Paths); err != nil {
		return none, err
	}
	text, changes, err := s.Snapshots.keeper.Diff(ctx, from.ref, to.ref, opts)
	if err != nil {
		return none, err
	}
	r.Files, r.Autorun = wireChanges(changes), changed(changes)
	text, r.Missing = whole(text)
	r.SetText(text)
	return r, nil
}

func wireChanges(list []workspace.FileChange) []ipc.FileChange {
	out := make([]ipc.FileChange, len(list))
	for i, c := range list {
		out[i] = ipc.FileChange{Path: c.Path, Status: c.Status, Added: c.Added, Deleted: c.Deleted, Binary: c.Binary}
	}
	return out
}

// whole takes the note off a text that was cut, and returns how many bytes are missing. No line of a
// unified diff begins as the note does.
func whole(text []byte) ([]byte, int64) {
	start := bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n') + 1
	var missing int64
	if _, err := fmt.Sscanf(string(text[start:]), "[%d bytes more: ", &missing); err != nil || missing <= 0 {
		return text, 0
	}
	return text[:start], missing
}
