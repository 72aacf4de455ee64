package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/types"
)

// departed returns the histories that text names and that are archived or were deleted: one, or none.
// Several that match are AMBIGUOUS.
func (d *Service) departed(text string) ([]types.UUID, error) {
	type gone struct {
		id           types.UUID
		pid          types.PID
		name, intent string
	}
	var all []gone
	for _, a := range d.Collector.Archived() {
		all = append(all, gone{a.Info.UUID, a.Info.PID, a.Info.Name, a.Info.Intent})
	}
	for _, t := range d.Collector.Deleted() {
		all = append(all, gone{t.UUID, t.PID, t.Name, t.Intent})
	}
	text = strings.TrimSpace(text)
	low := strings.ToLower(text)
	pid, perr := types.ParsePID(text)
	for _, match := range []func(*gone) bool{
		func(g *gone) bool { return perr == nil && g.pid == pid },
		func(g *gone) bool { return g.id.String() == low },
		func(g *gone) bool { return g.name != "" && g.name == text },
		func(g *gone) bool { return len(low) >= service.MinPrefix && strings.HasPrefix(g.id.String(), low) },
		func(g *gone) bool { return len(low) >= service.MinPrefix && strings.HasSuffix(g.id.String(), low) },
	} {
		var ids []types.UUID
		list := ""
		for i := range all {
			if g := &all[i]; match(g) {
				if ids = append(ids, g.id); len(ids) <= service.MaxCandidates {
					list += fmt.Sprintf("\n  PID %-4d %s  %s", g.pid, g.id, service.FirstLine(g.intent, 50))
				}
			}
		}
		switch {
		case len(ids) == 1:
			return ids, nil
		case len(ids) > 1:
			return nil, types.Errorf(types.ErrAmbiguous, "Find", text, "%d histories match that are archived or deleted:%s\nname one of them by a longer UUID", len(ids), list)
		}
	}
	return nil, nil
}

// Explain says what became of a history that text names; nil if none is archived or was deleted.
func (d *Service) Explain(text string) error {
	ids, err := d.departed(text)
	if err != nil || len(ids) == 0 {
		return err
	}
	return calledAs(d.Collector.Explain(ids[0]), ids[0], text)
}

// Lost explains an error about a history that was listed: it was archived or deleted since, or its directory was removed
// by hand, and then it is not listed any more. Any other error goes through as it is.
func (d *Service) Lost(t *service.Target, text string, err error) error {
	if types.CodeOf(err) != types.ErrNotFound || t.Live != nil && t.Live.State < types.StateZombie {
		return err
	}
	for _, name := range []string{step.StepsFile, step.InfoFile} { // a late checkpoint alone is no history
		if _, serr := os.Stat(filepath.Join(d.Journal.Dir(t.UUID), name)); !errors.Is(serr, fs.ErrNotExist) {
			return err
		}
	}
	if why := d.Collector.Explain(t.UUID); why != nil {
		return calledAs(why, t.UUID, text)
	}
	if cerr := d.Held(); cerr != nil { // not this history is gone, but the data directory
		return cerr
	}
	release, herr := d.Hold(t.UUID)
	if herr != nil { // it is just being archived, deleted or put back
		return err
	}
	defer release()
	if derr := d.Journal.Index().Delete(t.UUID); derr != nil {
		d.Log.Warn("index", "err", derr)
	}
	return types.Errorf(types.ErrNotFound, "Find", text, "its record was removed from the disk; `rnix ps -a` lists what is there")
}

// calledAs gives an error about a history the name that the caller knows it by.
func calledAs(err error, id types.UUID, text string) error {
	var e *types.SyscallError
	if !errors.As(err, &e) || e.Device != id.String() { // what puts it back needs the UUID
		return err
	}
	named := *e
	named.Device = text
	return &named
}

// TakenAway describes an archived history for a parent that waits for it: it can be put back, and must
// not begin anew. Of a deleted one the error says so.
func (d *Service) TakenAway(id types.UUID) (*step.ProcInfo, error) {
	for _, a := range d.Collector.Archived() {
		if info := a.Info; info.UUID == id {
			info.Suspended, info.Exit = true, nil
			info.Suspension = types.SuspendFor(types.SuspendOther, "it is archived; put it back with: rnix unarchive "+id.String())
			return &info, nil
		}
	}
	if err := d.Collector.Explain(id); err != nil {
		return nil, types.Errorf(types.ErrInDoubt, "Find", id.String(), "what it has brought is not known any more: %w", err)
	}
	return nil, types.Errorf(types.ErrNotFound, "Find", id.String(), "no such history")
}
