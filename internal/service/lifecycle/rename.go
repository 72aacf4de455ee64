package lifecycle

import (
	"context"
	"errors"
	"time"

	"rnix/internal/compose"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// How long a rename is tried while its process neither runs nor lies still, and how often.
const (
	renameTime  = 5 * time.Second
	renameAgain = 10 * time.Millisecond
)

// rename gives a process another name, wherever it lies.
func (d *Service) rename(ctx context.Context, peer *ipc.Peer, req ipc.RenameRequest) (resp ipc.RenameResponse, err error) {
	if err := kernel.CheckName(req.Name); err != nil {
		return resp, renaming(err)
	}
	if err := d.Ground.Settled(ctx); err != nil {
		return resp, err
	}
	t, err := d.Names.Resolve(req.Target)
	if err == nil {
		err = d.Access.MayChange(peer, "Rename", t)
	}
	if err == nil {
		err = d.namedByPeople(t)
	}
	if err != nil {
		return resp, err
	}
	resp = ipc.RenameResponse{UUID: t.UUID, Name: req.Name}
	for began := time.Now(); ; {
		resp.PID = t.PID
		if t.Place() == service.Runs {
			resp.Was, err = d.Kernel.Rename(t.PID, req.Name)
		} else {
			resp.Was, err = d.Stored.Rename(ctx, t.UUID, t.PID, req.Name)
		}
		if types.CodeOf(err) != types.ErrConflict && !kernel.Passing(err) || time.Since(began) > renameTime {
			if err == nil {
				resp.Warnings = warned(d.Names.namesakes(req.Name, t.UUID))
			}
			return resp, err
		}
		select {
		case <-time.After(renameAgain):
		case <-ctx.Done():
			return resp, err
		}
		if now, ok := d.Names.ByUUID(t.UUID); ok {
			t = now
		}
	}
}

// warned is a list of a warning, if there is one.
func warned(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// renaming is an error about a name that says what was asked for.
func renaming(err error) error {
	if e, ok := errors.AsType[*types.SyscallError](err); ok {
		said := *e
		said.Syscall = "Rename"
		return &said
	}
	return err
}

// namedByPeople refuses a process that a file names: what its file says finds it by this name, or gives the next of it the same name.
func (d *Service) namedByPeople(t service.Target) error {
	why := ""
	if t.Kind() != "" {
		why = "a " + kindWord(t.Kind()) + " has its name from its file, which finds it by that name; change it there"
	} else if up, ok := d.Names.ByUUID(parentOf(&t)); ok && up.Kind() != "" {
		why = "its name is that which the file of its " + kindWord(up.Kind()) + " gives it, also after a restart; change it there"
	}
	if why == "" {
		return nil
	}
	return &types.SyscallError{Syscall: "Rename", PID: t.PID, Code: types.ErrInvalid, Err: errors.New(why)}
}

// kindWord is what people call a kind of process that is no agent.
func kindWord(kind string) string {
	if kind == compose.ProcessKind {
		return "run of a workflow"
	}
	return kind
}

// parentOf returns the history of the parent of a process; zero = it has none.
func parentOf(t *service.Target) types.UUID {
	if t.Live != nil {
		return t.Live.ParentUUID
	}
	return t.Info.ParentUUID
}
