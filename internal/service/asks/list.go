package asks

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/permit"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// list lists what waits for an answer. A caller inside an agent sees what is asked about that agent and those below it.
func (d *Service) list(ctx context.Context, peer *ipc.Peer, req ipc.AsksRequest) (resp ipc.AsksResponse, err error) {
	if req.MaxInput < 0 {
		return resp, types.Errorf(types.ErrInvalid, "Asks", "", "max_input is %d, and must not be negative; 0 leaves nothing out", req.MaxInput)
	}
	if err := d.Finder.Settled(ctx); err != nil {
		return resp, err
	}
	var of types.UUID
	if req.Target != "" {
		t, err := d.Finder.Resolve(req.Target)
		if err != nil {
			return resp, err
		}
		of = t.UUID
	}
	owner, inside := d.Finder.AgentOf(peer)
	var within types.UUID
	if inside {
		t, err := d.Finder.Resolve(owner.String())
		if owner == 0 || err != nil {
			return resp, service.Outside("Asks", owner, "see what is asked about itself")
		}
		within = t.UUID
	}
	resp.Asks = []ipc.Ask{}
	if req.All {
		resp.Asks, err = d.past(ctx, func(id types.UUID) bool {
			return (of == (types.UUID{}) || id == of) && (!inside || slices.Contains(d.line(id), within))
		}, req.Limit)
		if err != nil {
			return resp, err
		}
	}
	for _, a := range d.all(ctx, func(n uint64) bool { return req.Number == 0 || n == req.Number }) {
		if of != (types.UUID{}) && a.UUID != of || req.Number != 0 && a.Number != req.Number || inside && !slices.Contains(d.line(a.UUID), within) {
			continue
		}
		if n := len(a.Input); req.MaxInput > 0 && n > req.MaxInput {
			a.Input, a.InputBytes = nil, n
		}
		resp.Asks = append(resp.Asks, a)
	}
	if req.Grants && !inside {
		resp.Grants = d.grantList(of)
	}
	return resp, nil
}

// showTime is how long it is waited at most for processes that were resumed to show what is asked about them: one can be held by a full disk.
const showTime = 2 * time.Second

// all returns what waits for an answer, the oldest first, of those whose number is wanted: the input of each stands in its history.
func (d *Service) all(ctx context.Context, wanted func(number uint64) bool) (out []ipc.Ask) {
	open := d.Index.Open() // first: what is resumed meanwhile is suspended here, or shows its asks below
	wait, cancel := context.WithTimeout(ctx, showTime)
	d.Kernel.AsksShown(wait)
	cancel()
	seen := map[uint64]bool{}
	for _, a := range d.Kernel.Asks() {
		seen[a.Number] = true
		if wanted(a.Number) {
			out = append(out, d.live(&a))
		}
	}
	for _, info := range open {
		for _, a := range info.Asks {
			if !seen[a.Number] && info.Suspended && wanted(a.Number) {
				out = append(out, d.stored(ctx, &info, &a))
			}
		}
	}
	slices.SortFunc(out, func(a, b ipc.Ask) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

func (d *Service) live(a *kernel.Ask) ipc.Ask {
	out := ipc.Ask{Number: a.Number, PID: a.PID, UUID: a.UUID, Tool: a.Tool, Path: a.Path, Text: d.Secrets.String(a.Text), Input: d.Secrets.JSON(a.Call.Input), Rule: a.Rule, Since: a.Since, Fixed: a.Call.Fixed, Paused: a.Paused}
	asksItself(&out, &a.Ask)
	d.relate(&out)
	return out
}

func (d *Service) stored(ctx context.Context, info *step.ProcInfo, a *step.Ask) ipc.Ask {
	out := ipc.Ask{Number: a.Number, PID: info.PID, UUID: info.UUID, Suspended: true, Tool: a.Tool, Path: a.Path, Text: a.Text, Rule: a.Rule, Since: a.Since}
	if s, err := d.Stored.Read(ctx, info.UUID); err == nil {
		out.Input = inputOf(s.Messages, a.CallID)
	}
	asksItself(&out, a)
	d.relate(&out)
	return out
}

// inputOf returns the input of a call of the last answer of a model.
func inputOf(ms []rnixctx.Message, id string) json.RawMessage {
	for _, m := range slices.Backward(ms) {
		for _, c := range m.ToolCalls {
			if c.ID == id {
				return c.Input
			}
		}
		if m.Role == rnixctx.RoleAssistant {
			break
		}
	}
	return nil
}

// relate says how the process is called, and what is above it.
func (d *Service) relate(a *ipc.Ask) {
	line := d.line(a.UUID)
	for i, id := range line {
		info, _ := d.Index.Get(id)
		if i == 0 {
			a.Name = info.Name
			continue
		}
		a.Lineage = append(a.Lineage, ipc.Kin{PID: info.PID, UUID: id, Name: info.Name})
	}
	slices.Reverse(a.Lineage)
}

// grantList returns what is granted, or what is to one process and those above it. What a process that has ended was granted counts when it is resumed:
// of these, only so many histories are read, the latest.
func (d *Service) grantList(of types.UUID) []ipc.Grant {
	out := []ipc.Grant{}
	now := time.Now()
	all := d.Index.List()
	slices.SortStableFunc(all, func(a, b step.ProcInfo) int { return changed(&b).Compare(changed(&a)) })
	ended := 0
	for i := range all {
		info := &all[i]
		if of != (types.UUID{}) && !slices.Contains(d.line(of), info.UUID) {
			continue
		}
		if info.Over() {
			if ended++; ended > mostRead {
				continue
			}
		}
		for _, g := range d.of(info.UUID) {
			if !info.Over() || g.Until.IsZero() || now.Before(g.Until) {
				out = append(out, wireGrant(info, g))
			}
		}
	}
	slices.SortFunc(out, func(a, b ipc.Grant) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

func wireGrant(info *step.ProcInfo, g permit.Grant) ipc.Grant {
	return ipc.Grant{Grant: g, Text: g.String(), PID: info.PID, UUID: info.UUID, Name: info.Name, Ended: info.Over()}
}
