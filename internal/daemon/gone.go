package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"rnix/internal/service"
	"rnix/internal/service/lifecycle"
	"rnix/internal/step"
	"rnix/types"
)

// departed finds the histories that are archived or were deleted.
type departed struct{ *Daemon }

// by returns the histories that text names and that are archived or were deleted: one, or none.
// Several that match are AMBIGUOUS.
func (d departed) by(text string) ([]types.UUID, error) {
	type gone struct {
		id           types.UUID
		pid          types.PID
		name, intent string
	}
	var all []gone
	for _, a := range d.collector.Archived() {
		all = append(all, gone{a.Info.UUID, a.Info.PID, a.Info.Name, a.Info.Intent})
	}
	for _, t := range d.collector.Deleted() {
		all = append(all, gone{t.UUID, t.PID, t.Name, t.Intent})
	}
	text = strings.TrimSpace(text)
	low := strings.ToLower(text)
	pid, perr := types.ParsePID(text)
	for _, match := range []func(*gone) bool{
		func(g *gone) bool { return perr == nil && g.pid == pid },
		func(g *gone) bool { return g.id.String() == low },
		func(g *gone) bool { return g.name != "" && g.name == text },
		func(g *gone) bool { return len(low) >= lifecycle.MinPrefix && strings.HasPrefix(g.id.String(), low) },
		func(g *gone) bool { return len(low) >= lifecycle.MinPrefix && strings.HasSuffix(g.id.String(), low) },
	} {
		var ids []types.UUID
		list := ""
		for i := range all {
			if g := &all[i]; match(g) {
				if ids = append(ids, g.id); len(ids) <= lifecycle.MaxCandidates {
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

// explain says what became of a history that text names; nil if none is archived or was deleted.
func (d departed) explain(text string) error {
	ids, err := d.by(text)
	if err != nil || len(ids) == 0 {
		return err
	}
	return calledAs(d.collector.Explain(ids[0]), ids[0], text)
}

// lost explains an error about a history that was listed: it was archived or deleted since, or its directory was removed
// by hand, and then it is not listed any more. Any other error goes through as it is.
func (d departed) lost(t *target, text string, err error) error {
	if types.CodeOf(err) != types.ErrNotFound || t.Live != nil && t.Live.State < types.StateZombie {
		return err
	}
	for _, name := range []string{step.StepsFile, step.InfoFile} { // a late checkpoint alone is no history
		if _, serr := os.Stat(filepath.Join(d.journal.Dir(t.UUID), name)); !errors.Is(serr, fs.ErrNotExist) {
			return err
		}
	}
	if why := d.collector.Explain(t.UUID); why != nil {
		return calledAs(why, t.UUID, text)
	}
	if cerr := d.journal.Claim.Check(); cerr != nil { // not this history is gone, but the data directory
		return cerr
	}
	release, herr := storage(d).hold(t.UUID)
	if herr != nil { // it is just being archived, deleted or put back
		return err
	}
	defer release()
	if derr := d.journal.Index().Delete(t.UUID); derr != nil {
		d.log.Warn("index", "err", derr)
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

// holds keep histories where they are while they are resumed or copied. Several may hold the same: who
// may write it, the journal decides.
type holds struct {
	mu   sync.Mutex
	held map[types.UUID]*held // +checklocks:mu
}

type held struct {
	n       int
	release func()
}

// hold keeps a history where it is until release is called, which may be called again. CONFLICT: it is
// just being archived, deleted or put back. NOT_FOUND: it is archived or deleted, and the error says so.
func (d storage) hold(id types.UUID) (release func(), err error) {
	if release, err = d.holds.take(id, func() (func(), error) { return d.collector.Hold(id, "rnix resume") }); err != nil {
		return nil, err
	}
	if err := d.collector.Explain(id); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// take takes a share of the hold on a history, which first makes.
func (h *holds) take(id types.UUID, first func() (func(), error)) (release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.held[id]
	if one == nil {
		one = new(held)
		if one.release, err = first(); err != nil {
			return nil, err
		}
		if h.held == nil {
			h.held = map[types.UUID]*held{}
		}
		h.held[id] = one
	}
	one.n++
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if one.n--; one.n == 0 {
			delete(h.held, id)
			one.release()
		}
	}), nil
}
