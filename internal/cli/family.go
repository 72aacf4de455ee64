package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"rnix/internal/price"
	"rnix/ipc"
	"rnix/types"
)

// familiesOf returns what processes have used together with others, by their UUIDs; nothing if the daemon does not say.
func familiesOf(ctx context.Context, c *ipc.Client, ids ...types.UUID) map[types.UUID]*ipc.Family {
	req := ipc.FamiliesRequest{}
	for _, id := range ids {
		req.Targets = append(req.Targets, id.String())
	}
	out := map[types.UUID]*ipc.Family{}
	if len(ids) == 0 {
		return out
	}
	r, err := ipc.Call(ctx, c, ipc.Families, req)
	if err != nil { // a daemon of an earlier version: what each has used itself is known
		return out
	}
	for i := range r.Families {
		out[r.Families[i].UUID] = &r.Families[i]
	}
	return out
}

// sumText is what processes have used together: 3 processes, 4,000 tokens, $0.40, 2 failed calls.
func sumText(l *ipc.CostLine) string {
	return plural(l.Processes, "process", "processes") + ", " + tokens(l.Tokens, l.Estimated) + " tokens" +
		price.Sum(usdOf(l.CostUSD), l.Tokens, l.Unpriced, number(l.Unpriced)) + failedOf(l)
}

// failedOf says how many calls failed of a sum, and of how many processes that is not known.
func failedOf(l *ipc.CostLine) string {
	s := ""
	if l.FailedCalls > 0 {
		s = ", " + failedCalls(l.FailedCalls)
	}
	if l.FailedUnknown > 0 {
		s += fmt.Sprintf(", failed calls of %s unknown", plural(l.FailedUnknown, "process", "processes"))
	}
	return s
}

// familyLines are the sums of some processes, in their order. The forks of one start have one line.
func familyLines(ids []types.UUID, by map[types.UUID]*ipc.Family) (lines []string) {
	var told []types.UUID
	for _, id := range ids {
		f := by[id]
		if f == nil {
			continue
		}
		if f.Tree != nil {
			lines = append(lines, fmt.Sprintf("PID %s with its descendants: %s", f.PID, sumText(f.Tree)))
		}
		if f.Forks == nil || slices.Contains(told, f.Start) {
			continue
		}
		told = append(told, f.Start)
		var who []string
		for _, other := range ids {
			if o := by[other]; o != nil && o.Forks != nil && o.Start == f.Start {
				who = append(who, o.PID.String())
			}
		}
		whose := "PID " + who[0] + " with all forks of its start"
		if last := len(who) - 1; last > 0 {
			whose = "PIDs " + strings.Join(who[:last], ", ") + " and " + who[last] + ", which have one start, with all its forks"
		}
		lines = append(lines, whose+": "+sumText(f.Forks))
	}
	return lines
}

// below returns the processes of some UUIDs and their descendants, in the order of the list.
func below(procs []ipc.Proc, roots []types.UUID) []ipc.Proc {
	in := map[types.UUID]bool{}
	for _, id := range roots {
		in[id] = true
	}
	for grew := true; grew; {
		grew = false
		for i := range procs {
			if p := &procs[i]; !in[p.UUID] && in[p.ParentUUID] {
				in[p.UUID], grew = true, true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(procs), func(p ipc.Proc) bool { return !in[p.UUID] })
}
