package files

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

// snapshot is what was taken of the files of a process: how they were at the end of a step.
type snapshot struct {
	ref     workspace.Ref // Step: under which step of the process
	limited string
}

// timeline is the snapshots of a process, in the order of their steps.
type timeline struct {
	list []snapshot
	last int // the last step that has ended
}

// timelineOf puts together what a history says of snapshots and what the keeper has: the first one, which
// no step has made, only the keeper knows. stored is that of the process and of its origins, each up to
// the step that the process has of it, the process itself first.
func timelineOf(data string, self types.UUID, trail *step.Trail, stored []workspace.Stored) timeline {
	byStep := map[int]snapshot{}
	owner := map[string]types.UUID{}
	for _, s := range slices.Backward(stored) { // so that the process's own count
		if owner[s.ID] = s.UUID; !s.Rescue {
			byStep[s.Step] = snapshot{s.Ref, s.Limited}
		}
	}
	note := func(n int, s *step.Snapshot) {
		id, ok := owner[s.ID]
		if !ok {
			id = self
		}
		ref := refOf(data, id, s)
		ref.Step = n
		byStep[n] = snapshot{ref, s.Limited}
	}
	for i := range trail.Files {
		f := &trail.Files[i]
		if _, known := byStep[f.Step]; f.Before && !known {
			note(f.Step, &f.Snapshot)
		}
	}
	for i := range trail.Files {
		if f := &trail.Files[i]; !f.Before {
			note(f.Step, &f.Snapshot)
		}
	}
	t := timeline{last: trail.Last}
	for _, k := range byStep {
		t.list = append(t.list, k)
	}
	slices.SortFunc(t.list, func(a, b snapshot) int { return cmp.Compare(a.ref.Step, b.ref.Step) })
	return t
}

// at returns the files at the end of step n: those of the latest snapshot up to it, or, before the first
// change, of the first one.
func (t *timeline) at(n int) snapshot {
	k := t.list[0]
	for _, next := range t.list {
		if next.ref.Step <= n {
			k = next
		}
	}
	return k
}

// check refuses a step that there is not.
func (t *timeline) check(op, target string, n int) error {
	switch {
	case n >= 0 && n <= t.last:
		return nil
	case t.last == 0:
		return types.Errorf(types.ErrNotFound, op, target, "no step %d: no step has ended yet", n)
	}
	return types.Errorf(types.ErrNotFound, op, target, "no step %d: there are steps 1 to %d, and 0 is before the first", n, t.last)
}

// filesAt describes a snapshot for the wire.
func filesAt(n int, k snapshot) ipc.FilesAt {
	return ipc.FilesAt{Step: n, Kept: k.ref.Step, Kind: string(k.ref.Kind), ID: k.ref.ID, Root: k.ref.Root, Limited: k.limited}
}

// timeline returns the snapshots of a process that are needed to tell its files at the end of steps; without steps all, and what the
// keeper has of them. Without any it is an error that says why.
func (s *Snapshots) timeline(ctx context.Context, p *past, op, target string, steps ...int) (t timeline, stored []workspace.Stored, err error) {
	if s.off {
		return t, nil, types.Errorf(types.ErrUnavailable, op, target, "snapshots are switched off, so no files are kept; switch them on with snapshots.enabled in config.yaml and start the daemon again")
	}
	if len(steps) > 0 && tells(p.Trail, slices.Min(steps)) {
		return timelineOf(s.data, p.UUID, p.Trail, nil), nil, nil
	}
	if stored, err = s.stored(ctx, p); err != nil {
		s.log.Warn("records of snapshots", "uuid", p.UUID, "err", err) // what can be read is there
	}
	if t = timelineOf(s.data, p.UUID, p.Trail, stored); len(t.list) > 0 {
		return t, stored, nil
	}
	return t, stored, types.Errorf(types.ErrNotFound, op, target, "no files are kept: %s", s.whyNone(ctx, p))
}

// tells reports whether a history says by itself where its files were kept at the end of a step and of all later ones: it is no fork, and has a
// snapshot that is not younger. Then the records of the keeper, one for each snapshot, need not be read.
func tells(t *step.Trail, n int) bool {
	return t.Origin == nil && slices.ContainsFunc(t.Files, func(f step.FilesMark) bool { return f.Step <= n })
}

// stored returns the keeper's records of a process and of its origins.
func (s *Snapshots) stored(ctx context.Context, p *past) ([]workspace.Stored, error) {
	out, err := s.keeper.List(ctx, p.UUID)
	var f step.ForkDetail
	if p.Origin != nil {
		f = *p.Origin
	}
	id, at := f.Origin, f.Step
	for n := 0; n < service.MaxAncestors && id != (types.UUID{}); n++ {
		more, merr := s.keeper.List(ctx, id)
		err = cmp.Or(err, merr)
		out = append(out, slices.DeleteFunc(more, func(one workspace.Stored) bool { return one.Rescue || one.Step > at })...)
		info, ok := s.Histories.Get(id)
		if !ok {
			break
		}
		id, at = info.OriginUUID, min(at, info.OriginStep)
	}
	return out, err
}

// whyNone says why a process has no snapshots.
func (s *Snapshots) whyNone(ctx context.Context, p *past) string {
	dir := p.workDir(s.Histories)
	now := workspace.Now(p.UUID, dir)
	if dir == "" {
		return "the process has no directory"
	}
	if p.Acts == 0 {
		return "nothing that it has called could change any"
	}
	if _, _, err := s.keeper.Diff(ctx, now, now, workspace.DiffOpts{NamesOnly: true}); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("they were switched off, or could not be made, when it ran; see what failed with: rnix strace %d", p.PID)
}

// topOf returns the directory of a process that stands for the root of a snapshot: that root itself, or the
// workspace that was made for a fork. "" = neither, and the files of the snapshot were elsewhere.
func (s *Snapshots) topOf(p *past, workDir string, ref workspace.Ref) string {
	dir := resolved(workDir)
	for _, top := range []string{resolved(ref.Root), resolved(s.ForkDir(p.UUID))} {
		if under(dir, top) {
			return top
		}
	}
	return ""
}
