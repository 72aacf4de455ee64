package daemon

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/service"
	"rnix/internal/service/histories"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

// kept is a snapshot of the files of a process: how they were at the end of a step.
type kept struct {
	ref     workspace.Ref // Step: under which step of the process
	limited string
}

// timeline is the snapshots of a process, in the order of their steps.
type timeline struct {
	list []kept
	last int // the last step that has ended
}

// timelineOf puts together what a history says of snapshots and what the keeper has: the first one, which
// no step has made, only the keeper knows. stored is that of the process and of its origins, each up to
// the step that the process has of it, the process itself first.
func timelineOf(d *Daemon, self types.UUID, trail *step.Trail, stored []workspace.Stored) timeline {
	byStep := map[int]kept{}
	owner := map[string]types.UUID{}
	for _, s := range slices.Backward(stored) { // so that the process's own count
		if owner[s.ID] = s.UUID; !s.Rescue {
			byStep[s.Step] = kept{s.Ref, s.Limited}
		}
	}
	note := func(n int, s *step.Snapshot) {
		id, ok := owner[s.ID]
		if !ok {
			id = self
		}
		ref := refOf(d, id, s)
		ref.Step = n
		byStep[n] = kept{ref, s.Limited}
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
	slices.SortFunc(t.list, func(a, b kept) int { return cmp.Compare(a.ref.Step, b.ref.Step) })
	return t
}

// at returns the files at the end of step n: those of the latest snapshot up to it, or, before the first
// change, of the first one.
func (t *timeline) at(n int) kept {
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
func filesAt(n int, k kept) ipc.FilesAt {
	return ipc.FilesAt{Step: n, Kept: k.ref.Step, Kind: string(k.ref.Kind), ID: k.ref.ID, Root: k.ref.Root, Limited: k.limited}
}

// timeline returns the snapshots of a process that somebody needs who asks for its files at the end of steps; without steps all, and what the
// keeper has of them. Without any it is an error that says why.
func (d inspector) timeline(ctx context.Context, p *histories.Past, op, target string, steps ...int) (t timeline, stored []workspace.Stored, err error) {
	if d.keeper == nil {
		return t, nil, types.Errorf(types.ErrUnavailable, op, target, "snapshots are switched off, so no files are kept; switch them on with snapshots.enabled in config.yaml and start the daemon again")
	}
	if len(steps) > 0 && tells(p.Trail, slices.Min(steps)) {
		return timelineOf(d.Daemon, p.UUID, p.Trail, nil), nil, nil
	}
	if stored, err = d.storedFiles(ctx, p); err != nil {
		d.log.Warn("records of snapshots", "uuid", p.UUID, "err", err) // what can be read is there
	}
	if t = timelineOf(d.Daemon, p.UUID, p.Trail, stored); len(t.list) > 0 {
		return t, stored, nil
	}
	return t, stored, types.Errorf(types.ErrNotFound, op, target, "no files are kept: %s", d.whyNone(ctx, p))
}

// tells reports whether a history says by itself where its files were kept at the end of a step and of all later ones: it is no fork, and has a
// snapshot that is not younger. Then the records of the keeper, one for each snapshot, need not be read.
func tells(t *step.Trail, n int) bool {
	return t.Origin == nil && slices.ContainsFunc(t.Files, func(f step.FilesMark) bool { return f.Step <= n })
}

// storedFiles returns the keeper's records of a process and of its origins.
func (d inspector) storedFiles(ctx context.Context, p *histories.Past) ([]workspace.Stored, error) {
	out, err := d.keeper.List(ctx, p.UUID)
	var f step.ForkDetail
	if p.Origin != nil {
		f = *p.Origin
	}
	id, at := f.Origin, f.Step
	for n := 0; n < service.MaxAncestors && id != (types.UUID{}); n++ {
		more, merr := d.keeper.List(ctx, id)
		err = cmp.Or(err, merr)
		out = append(out, slices.DeleteFunc(more, func(s workspace.Stored) bool { return s.Rescue || s.Step > at })...)
		info, ok := d.journal.Index().Get(id)
		if !ok {
			break
		}
		id, at = info.OriginUUID, min(at, info.OriginStep)
	}
	return out, err
}

// whyNone says why a process has no snapshots.
func (d inspector) whyNone(ctx context.Context, p *histories.Past) string {
	dir := d.histories.WorkDir(p)
	now := workspace.Now(p.UUID, dir)
	if dir == "" {
		return "the process has no directory"
	}
	if p.Acts == 0 {
		return "nothing that it has called could change any"
	}
	if _, _, err := d.keeper.Diff(ctx, now, now, workspace.DiffOpts{NamesOnly: true}); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("they were switched off, or could not be made, when it ran; see what failed with: rnix strace %d", p.PID)
}

// resolved returns a path without symbolic links, as far as it is there.
func resolved(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return filepath.Clean(path)
}

// under reports whether a path is a directory or below it. Both are clean.
func under(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// topOf returns the directory of a process that stands for the root of a snapshot: that root itself, or the
// workspace that was made for a fork. "" = neither, and the files of the snapshot were elsewhere.
func (d inspector) topOf(p *histories.Past, workDir string, ref workspace.Ref) string {
	dir := resolved(workDir)
	for _, top := range []string{resolved(ref.Root), resolved(d.forkDir(p.UUID))} {
		if under(dir, top) {
			return top
		}
	}
	return ""
}

// below returns paths, absolute or relative to dir, as ones relative to top. The whole of top is no path.
func below(op, top, dir string, paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		abs := p
		if !filepath.IsAbs(p) {
			abs = filepath.Join(dir, p)
		}
		abs = filepath.Join(resolved(filepath.Dir(abs)), filepath.Base(abs)) // the way there, not the file itself
		if !under(abs, top) {
			abs = resolved(abs)
		}
		switch {
		case p == "" || !under(abs, top) || strings.HasPrefix(p, ":"):
			return nil, types.Errorf(types.ErrInvalid, op, p, "is not a file of the work in %s", top)
		case abs == top:
			return nil, nil
		}
		out = append(out, strings.TrimPrefix(abs, strings.TrimSuffix(top, "/")+"/"))
	}
	return out, nil
}
