package histories

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
	"rnix/vfs"
)

// Bounds of what is handed out of a run.
const (
	maxExported   = 256       // processes
	exportedBytes = 256 << 10 // of the output of one call
	exportedAll   = 128 << 20 // of all texts
)

const opExport = "ExportRun"

func (d *Service) export(ctx context.Context, peer *ipc.Peer, req ipc.TargetRequest) (ipc.ExportResponse, error) {
	none := ipc.ExportResponse{}
	p, err := d.past(ctx, peer, opExport, req.Target)
	if err != nil {
		return none, err
	}
	r := ipc.ExportResponse{Procs: []ipc.ExportedProc{}}
	one, err := d.one(p)
	if err != nil {
		return none, err
	}
	r.Procs = append(r.Procs, one)
	size := textsOf(&one)
	below := family(p.UUID, d.Index.List())
	if id, is := archivedBelow(d.Archive.Archived(), p.UUID, below); is {
		return none, types.Errorf(types.ErrNotFound, opExport, req.Target, "a process below it, %s, is archived: put it back with rnix unarchive %s", id, id)
	}
	for _, id := range below {
		if size > exportedAll {
			break
		}
		if len(r.Procs) == maxExported {
			return none, types.Errorf(types.ErrExhausted, opExport, req.Target, "more than %d processes were started below it: take one of those", maxExported)
		}
		c, err := d.past(ctx, peer, opExport, id.String())
		if err != nil {
			return none, err
		}
		if one, err = d.one(c); err != nil {
			return none, err
		}
		r.Procs, size = append(r.Procs, one), size+textsOf(&one)
	}
	if size > exportedAll {
		return none, types.Errorf(types.ErrExhausted, opExport, req.Target, "what was said and answered is more than %d MiB: take a shorter run, or one of the processes below it", exportedAll>>20)
	}
	return r, nil
}

// textsOf is about how many bytes of texts a process has in an answer.
func textsOf(x *ipc.ExportedProc) int {
	n := len(x.First) + len(x.Result) + len(x.Intent)
	for _, t := range x.Turns {
		n += len(t.Content)
		for _, c := range t.Calls {
			n += len(c.Input) + len(c.Output)
		}
	}
	return n
}

// archivedBelow returns an archived history that a process or one below it has started, if there is one.
func archivedBelow(archived []step.Archived, root types.UUID, below []types.UUID) (types.UUID, bool) {
	for _, a := range archived {
		if p := a.Info.ParentUUID; p == root || slices.Contains(below, p) {
			return a.Info.UUID, true
		}
	}
	return types.UUID{}, false
}

// family returns the descendants of a process, in the order of when they were started. A clock that was set back
// may make a child seem older than its parent.
func family(root types.UUID, list []step.ProcInfo) []types.UUID {
	kids := map[types.UUID][]*step.ProcInfo{}
	for i := range list {
		kids[list[i].ParentUUID] = append(kids[list[i].ParentUUID], &list[i])
	}
	known := map[types.UUID]bool{root: true}
	var all []*step.ProcInfo
	take := func(parent types.UUID) {
		for _, s := range kids[parent] {
			if !known[s.UUID] {
				known[s.UUID] = true
				all = append(all, s)
			}
		}
	}
	take(root)
	for n := 0; n < len(all); n++ {
		take(all[n].UUID)
	}
	slices.SortStableFunc(all, func(a, b *step.ProcInfo) int { return a.CreatedAt.Compare(b.CreatedAt) })
	out := make([]types.UUID, len(all))
	for i, s := range all {
		out[i] = s.UUID
	}
	return out
}

// one is what one process did.
func (d *Service) one(p *past) (ipc.ExportedProc, error) {
	i := p.h.Info()
	x := ipc.ExportedProc{ProcStatus: i.ProcStatus, State: "dead", Dir: d.Journal.Dir(p.UUID), AllowedDevices: i.AllowedDevices,
		DeniedDevices: i.DeniedDevices, MCPMounts: i.MCPMounts, OriginUUID: i.OriginUUID, OriginStep: i.OriginStep, Turns: []ipc.Turn{}, Result: i.Result, Damage: p.h.Damage}
	x.PID, x.UUID, x.WorkDir = p.PID, p.UUID, d.WorkDir(&p.Target, i.WorkDir)
	switch {
	case p.Live != nil:
		x.State = p.Live.StateName()
	case i.Suspended:
		x.State = "suspended"
	}
	if m := d.meta(p.UUID); m != nil && m.Model != nil {
		x.Driver, x.Window = m.Model.Driver, m.Model.ContextWindow
	}
	for _, ref := range refsOf(p.h) {
		text, err := d.Journal.Blobs().Input(p.UUID, ref)
		if err != nil {
			return x, err
		}
		x.Inputs = append(x.Inputs, ipc.Input{Name: ref.Name, Text: text, Broken: ref.Broken})
	}
	turns(p.h, &x)
	return x, nil
}

// refsOf returns what a process was given with its intent.
func refsOf(h *step.History) []step.InputRef {
	for i := range h.Markers {
		if m := &h.Markers[i]; m.Name == step.MarkerSpawn {
			var s step.Settled
			if json.Unmarshal(m.Detail, &s) == nil {
				return s.Inputs
			}
		}
	}
	return nil
}

// turns reads the answers of a history, and what came of their calls.
func turns(h *step.History, x *ipc.ExportedProc) {
	first := true
	last := func(id string) *ipc.TurnCall {
		if len(x.Turns) == 0 {
			return nil
		}
		calls := x.Turns[len(x.Turns)-1].Calls
		if i := slices.IndexFunc(calls, func(c ipc.TurnCall) bool { return c.ID == id }); i >= 0 {
			return &calls[i]
		}
		return nil
	}
	for i := range h.Records {
		r := &h.Records[i]
		switch {
		case r.Marker != nil && (r.Marker.Name == step.MarkerSpawn || r.Marker.Name == step.MarkerResumed):
			x.Runs++
		case r.Intent != nil:
			x.Changes = x.Changes || r.Intent.Effect != string(vfs.EffectNone)
		case r.Result != nil:
			if c := last(r.Result.CallID); c != nil {
				c.Code = r.Result.Code
			}
		case r.Message == nil:
		case r.Message.Role == rnixctx.RoleUser && first:
			x.First, x.Attached, first = r.Message.Content, len(r.Message.Attachments), false
		case r.Message.Role == rnixctx.RoleUser:
			x.Said++
		case r.Message.Role == rnixctx.RoleAssistant:
			x.Turns = append(x.Turns, turn(r))
		case r.Message.Role == rnixctx.RoleTool:
			if c := last(r.Message.ToolCallID); c != nil {
				c.Ended, c.Failed, c.Output = true, r.Message.IsError, r.Message.Content
				if len(c.Output) > exportedBytes {
					c.Cut = len(c.Output) - exportedBytes
					c.Output = c.Output[:exportedBytes]
				}
				if c.Failed {
					c.Code = cmp.Or(c.Code, types.ErrDriver)
				}
			}
		}
	}
}

func turn(r *step.Record) ipc.Turn {
	t := ipc.Turn{Content: r.Message.Content}
	if a := r.Answer; a != nil {
		t.Step, t.StopReason, t.Input, t.Output, t.CacheRead, t.CacheWrite, t.Estimated = a.Step, a.StopReason, a.Input, a.Output, a.CacheRead, a.CacheWrite, a.Estimated
	}
	for _, c := range r.Message.ToolCalls {
		text := string(c.Input)
		if c.ParseError != "" { // it is kept as a text that holds what the model wrote
			var wrote string
			if json.Unmarshal(c.Input, &wrote) == nil {
				text = wrote
			}
		}
		t.Calls = append(t.Calls, ipc.TurnCall{ID: c.ID, Name: c.Name, Input: text})
	}
	return t
}
