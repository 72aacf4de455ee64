package billing

import (
	"cmp"
	"context"
	"slices"
	"time"

	"rnix/internal/procview"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// cost adds up what was used, from what the index says of each history; no history is read.
func (d *Service) cost(ctx context.Context, _ *ipc.Peer, req ipc.CostRequest) (ipc.CostResponse, error) {
	resp := ipc.CostResponse{Lines: []ipc.CostLine{}}
	if !slices.Contains([]string{"agent", "model", "day", "process"}, req.By) {
		return resp, types.Errorf(types.ErrInvalid, "Cost", req.By, "costs are shown by agent, model, day or process")
	}
	if err := d.Finder.Settled(ctx); err != nil {
		return resp, err
	}
	all := d.spenders()
	if req.Under != "" {
		t, err := d.Finder.Resolve(req.Under)
		if err != nil {
			return resp, err
		}
		all = descending(all, t.UUID)
	}
	if !req.Since.IsZero() {
		resp.Since = req.Since.UTC().Format(time.DateOnly)
	}
	resp.Lines, resp.Total = addUp(all, req.By, resp.Since)
	for i := range all {
		if resp.Since == "" {
			resp.Total.ActiveMs += all[i].active.Milliseconds()
		}
	}
	return resp, nil
}

// spender is a history that has used something.
type spender struct {
	uuid, parent types.UUID
	pid          types.PID
	name, agent  string
	intent       string
	active       time.Duration
	spending     []step.Spending
}

// spenders returns all histories: living, stored, archived and deleted ones.
func (d *Service) spenders() []spender {
	seen := map[types.UUID]bool{}
	var out []spender
	put := func(s spender) {
		if !seen[s.uuid] {
			seen[s.uuid] = true
			out = append(out, s)
		}
	}
	for _, i := range d.Kernel.List() {
		put(spender{i.UUID, i.ParentUUID, i.PID, i.Name, i.Agent, i.Intent, i.Elapsed, i.Spending})
	}
	info := func(i *step.ProcInfo) {
		put(spender{i.UUID, i.ParentUUID, i.PID, i.Name, i.Agent, i.Intent, procview.Elapsed(i), spendingOf(i)})
	}
	stored := d.Index.List()
	for n := range stored {
		info(&stored[n])
	}
	archived := d.Removed.Archived()
	for n := range archived {
		info(&archived[n].Info)
	}
	for _, t := range d.Removed.Deleted() {
		put(spender{t.UUID, t.Parent, t.PID, t.Name, t.Agent, t.Intent, 0, t.Spending})
	}
	return out
}

// spendingOf returns what a history has used. Of one that an earlier version has written, only the sum is
// known.
func spendingOf(i *step.ProcInfo) []step.Spending {
	if len(i.Spending) > 0 || i.OriginUUID != (types.UUID{}) || i.TokensUsed == 0 || i.Provider == "" {
		return i.Spending
	}
	s := step.Spending{Day: i.CreatedAt.UTC().Format(time.DateOnly), Provider: i.Provider, Model: i.Model, Input: i.TokensUsed, CostUSD: i.CostUSD}
	if s.CostUSD == 0 {
		s.Unpriced = i.TokensUsed
	}
	return []step.Spending{s}
}

// descending returns a history and its descendants.
func descending(all []spender, root types.UUID) []spender {
	parent := make(map[types.UUID]types.UUID, len(all))
	for i := range all {
		parent[all[i].uuid] = all[i].parent
	}
	return slices.DeleteFunc(all, func(s spender) bool {
		id := s.uuid
		for range service.MaxAncestors {
			if id == root {
				return false
			}
			id = parent[id]
		}
		return true
	})
}

// addUp groups what was used from a day on, the most expensive first; days in their order.
func addUp(all []spender, by, since string) ([]ipc.CostLine, ipc.CostLine) {
	groups := map[string]*ipc.CostLine{}
	var total ipc.CostLine
	for i := range all {
		s := &all[i]
		var counted []string // the groups in which the process is
		for j := range s.spending {
			p := &s.spending[j]
			if p.Day < since {
				continue
			}
			key := keyOf(s, p, by)
			g := groups[key]
			if g == nil {
				g = &ipc.CostLine{Key: key}
				if by == "process" {
					g.PID, g.UUID, g.Name, g.Intent = s.pid, s.uuid, s.name, s.intent
				}
				groups[key] = g
			}
			if !slices.Contains(counted, key) {
				counted = append(counted, key)
				g.Processes++
			}
			spend(g, p)
			spend(&total, p)
		}
		if len(counted) > 0 {
			total.Processes++
		}
	}
	lines := make([]ipc.CostLine, 0, len(groups))
	for _, g := range groups {
		lines = append(lines, *g)
	}
	slices.SortFunc(lines, func(a, b ipc.CostLine) int {
		if by == "day" {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(usdOf(&b), usdOf(&a)), cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Key, b.Key))
	})
	return lines, total
}

// keyOf returns the group to which a part of what a process has used belongs.
func keyOf(s *spender, p *step.Spending, by string) string {
	switch by {
	case "agent":
		return cmp.Or(s.agent, "-")
	case "model":
		return p.Provider + "/" + cmp.Or(p.Model, "-")
	case "day":
		return p.Day
	}
	return s.uuid.String()
}

// spend adds to a line. Its cost stays null as long as nothing in it has a known price.
func spend(l *ipc.CostLine, p *step.Spending) {
	l.Answers += p.Answers
	l.Input, l.Output, l.CacheRead, l.CacheWrite = l.Input+p.Input, l.Output+p.Output, l.CacheRead+p.CacheRead, l.CacheWrite+p.CacheWrite
	l.Tokens += p.Tokens()
	l.Unpriced += p.Unpriced
	l.Estimated = l.Estimated || p.Estimated
	if p.CostUSD > 0 || p.Unpriced < p.Tokens() {
		sum := usdOf(l) + p.CostUSD
		l.CostUSD = &sum
	}
}

func usdOf(l *ipc.CostLine) float64 {
	if l.CostUSD == nil {
		return 0
	}
	return *l.CostUSD
}
