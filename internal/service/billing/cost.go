package billing

import (
	"cmp"
	"context"
	"slices"
	"time"

	"rnix/internal/price"
	"rnix/internal/procview"
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
		k := kinshipOf(all)
		all = k.picked(k.tree(t.UUID))
	}
	if !req.Since.IsZero() {
		resp.Since = req.Since.UTC().Format(time.DateOnly)
	}
	resp.Lines, _ = addUp(all, req.By, resp.Since)
	resp.Total = sum(all, resp.Since)
	return resp, nil
}

// spender is a history that has used something.
type spender struct {
	uuid, parent, origin types.UUID
	pid                  types.PID
	name, agent          string
	intent               string
	active               time.Duration
	spending             []step.Spending
	failed               int  // of its own calls
	uncounted            bool // there may be more of these
	open                 bool // it has not ended
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
		put(spender{uuid: i.UUID, parent: i.ParentUUID, origin: i.Origin, pid: i.PID, name: i.Name, agent: i.Agent, intent: i.Intent, active: i.Elapsed, spending: i.Spending,
			failed: i.FailedCalls - i.Taken, open: i.State < types.StateZombie || i.Suspended})
	}
	info := func(i *step.ProcInfo, open bool) {
		failed, counted := i.OwnFailed()
		put(spender{uuid: i.UUID, parent: i.ParentUUID, origin: i.OriginUUID, pid: i.PID, name: i.Name, agent: i.Agent, intent: i.Intent, active: procview.Elapsed(i), spending: spendingOf(i),
			failed: failed, uncounted: !counted, open: open})
	}
	stored := d.Index.List()
	for n := range stored {
		info(&stored[n], !stored[n].Over())
	}
	archived := d.Removed.Archived()
	for n := range archived {
		info(&archived[n].Info, false)
	}
	for _, t := range d.Removed.Deleted() {
		put(spender{uuid: t.UUID, parent: t.Parent, origin: t.Origin, pid: t.PID, name: t.Name, agent: t.Agent, intent: t.Intent, spending: t.Spending,
			failed: t.Failed, uncounted: !t.FailedCounted && len(t.Spending) > 0})
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
		if since == "" {
			failures(&total, s)
			if len(counted) == 1 && (by == "agent" || by == "process") {
				failures(groups[counted[0]], s)
			}
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
		sum := (price.FromFloat(usdOf(l)) + price.FromFloat(p.CostUSD)).Float()
		l.CostUSD = &sum
	}
}

// failures adds the failed calls of a process.
func failures(l *ipc.CostLine, s *spender) {
	l.FailedCalls += s.failed
	if s.uncounted {
		l.FailedUnknown++
	}
}

func usdOf(l *ipc.CostLine) float64 {
	if l.CostUSD == nil {
		return 0
	}
	return *l.CostUSD
}
