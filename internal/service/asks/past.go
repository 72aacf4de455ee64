package asks

import (
	"cmp"
	"context"
	"slices"
	"time"

	"rnix/internal/permit"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// How many answered asks are listed where nothing is said, and at most, and in how many histories they are looked for: the latest.
const (
	usualPast = 100
	mostPast  = 1000
	mostRead  = 1000
)

// past returns the asks that were answered last, of the histories that are wanted: at most limit, the oldest first. They stand in the records alone, of
// which as few are read as can be.
func (d *Service) past(ctx context.Context, wanted func(types.UUID) bool, limit int) ([]ipc.Ask, error) {
	if limit = min(limit, mostPast); limit <= 0 {
		limit = usualPast
	}
	all := slices.DeleteFunc(d.Index.List(), func(p step.ProcInfo) bool { return !wanted(p.UUID) })
	slices.SortStableFunc(all, func(a, b step.ProcInfo) int { return changed(&b).Compare(changed(&a)) })
	out := []ipc.Ask{}
	g := grantsRead{d: d, of: map[types.UUID]map[uint64]step.PastGrant{}}
	for i := range all[:min(len(all), mostRead)] {
		info := &all[i]
		if len(out) >= limit && changed(info).Before(out[limit-1].Answer.Time) { // all of its answers are older
			break
		}
		list, grants, err := d.Stored.Past(ctx, info.UUID)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil { // it has gone meanwhile, or another version has written it: the others are listed all the same
			continue
		}
		g.of[info.UUID] = grants
		for k := range list {
			out = append(out, d.answered(info, &list[k]))
		}
		slices.SortStableFunc(out, func(a, b ipc.Ask) int { return b.Answer.Time.Compare(a.Answer.Time) })
		out = out[:min(len(out), limit)]
	}
	for i := range out {
		g.fill(ctx, &out[i])
	}
	slices.SortFunc(out, func(a, b ipc.Ask) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}

// grantsRead knows what was granted in the histories that were read.
type grantsRead struct {
	d  *Service
	of map[types.UUID]map[uint64]step.PastGrant
}

// fill says what was granted with the answer to an ask: it stands with the process itself, or, for its family, with one above it.
func (g *grantsRead) fill(ctx context.Context, a *ipc.Ask) {
	if v := permit.Decision(a.Answer.Verdict); v != permit.Allow && v != step.Edited {
		return
	}
	for _, id := range g.d.line(a.UUID) {
		grants, ok := g.of[id]
		if !ok {
			_, grants, _ = g.d.Stored.Past(ctx, id) // what has gone meanwhile grants nothing
			g.of[id] = grants
		}
		if was, ok := grants[a.Number]; ok {
			a.Answer.For, a.Answer.Match, a.Answer.Until, a.Answer.Revoked = was.Scope, was.Match, was.Until, was.Revoked
			return
		}
	}
}

// changed is when a history was written to last; one that has not ended may be written to now.
func changed(p *step.ProcInfo) time.Time {
	if p.Exit == nil {
		return time.Unix(1<<40, 0)
	}
	return p.UpdatedAt
}

// answered describes an ask and its answer.
func (d *Service) answered(info *step.ProcInfo, k *step.PastAsk) ipc.Ask {
	a := &k.Answer
	out := ipc.Ask{Number: k.Number, PID: info.PID, UUID: info.UUID, Tool: k.Tool, Path: k.Path, Text: d.Secrets.String(k.Text), Rule: k.Rule, Since: k.Since,
		Answer: &ipc.Answered{Verdict: string(a.Verdict()), By: ipc.ByPerson, Time: k.Time, Text: d.Secrets.String(cmp.Or(a.Text, a.Because)), Input: d.Secrets.JSON(a.Input)}}
	switch a.Verdict() {
	case step.Defaulted:
		out.Answer.By = ipc.ByDefault
	case step.Withdrawn:
		out.Answer.By = ""
	}
	asksItself(&out, &k.Ask)
	d.relate(&out)
	return out
}
