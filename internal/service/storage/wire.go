package storage

import (
	"slices"

	"rnix/internal/gc"
	"rnix/ipc"
	"rnix/types"
)

func wireRef(r *gc.Ref) ipc.HistoryRef { return ipc.HistoryRef(*r) }

// wireGC is the result of a run on the wire. sizes is what is known of those that have not gone.
func wireGC(r *gc.Result, sizes map[types.UUID]int64) ipc.GCResponse {
	resp := ipc.GCResponse{Mode: string(r.Mode), DryRun: r.DryRun, Started: r.Started, TookNs: r.Took, Examined: r.Examined, Kept: r.Kept, Freed: r.Freed,
		Warnings: r.Warnings, Candidates: []ipc.GCCandidate{}, Skipped: []ipc.GCSkip{}, Stay: []ipc.GCSkip{}, Exempt: []ipc.GCExempt{}}
	for i := range r.Candidates {
		c := &r.Candidates[i]
		resp.Candidates = append(resp.Candidates, ipc.GCCandidate{HistoryRef: wireRef(&c.Ref), Bytes: sizes[c.UUID], Why: c.Why, Archived: c.Archived})
	}
	done := func(list []gc.Done) []ipc.GCDone {
		out := []ipc.GCDone{}
		for i := range list {
			d := &list[i]
			out = append(out, ipc.GCDone{GCCandidate: ipc.GCCandidate{HistoryRef: wireRef(&d.Ref), Bytes: d.Bytes, Why: d.Why, Archived: d.Candidate.Archived},
				ArchiveBytes: d.ArchiveSize, Archive: d.Archive, Rescued: d.Rescued})
		}
		return out
	}
	resp.Archived, resp.Deleted = done(r.Archived), done(r.Deleted)
	for i := range r.Skipped {
		s := &r.Skipped[i]
		resp.Skipped = append(resp.Skipped, ipc.GCSkip{HistoryRef: wireRef(&s.Ref), Code: s.Code, Reason: s.Reason})
	}
	for i := range r.Stay {
		s := &r.Stay[i]
		resp.Stay = append(resp.Stay, ipc.GCSkip{HistoryRef: wireRef(&s.Ref), Code: s.Code, Reason: s.Reason})
	}
	for i := range r.Exempt {
		e := &r.Exempt[i]
		resp.Exempt = append(resp.Exempt, ipc.GCExempt{HistoryRef: wireRef(&e.Ref), Reason: e.Reason})
	}
	for i := range resp.Candidates { // those that went are known better
		for _, list := range [][]ipc.GCDone{resp.Archived, resp.Deleted} {
			if n := slices.IndexFunc(list, func(d ipc.GCDone) bool { return d.UUID == resp.Candidates[i].UUID }); n >= 0 {
				resp.Candidates[i].Bytes = list[n].Bytes
			}
		}
	}
	return resp
}

// wireUsage is the room on the wire: of the histories in only, or of all if that is empty.
func wireUsage(u *gc.Usage, only map[types.UUID]bool, dataDir string) ipc.DUResponse {
	resp := ipc.DUResponse{Histories: []ipc.HistoryUsage{}, Shared: ipc.BytesUsed(u.Shared), Total: ipc.BytesUsed(u.Total), Warnings: u.Warnings, DataDir: dataDir}
	if len(only) > 0 {
		resp.Shared, resp.Total = ipc.BytesUsed{}, ipc.BytesUsed{}
	}
	for i := range u.Histories {
		h := &u.Histories[i]
		if len(only) > 0 && !only[h.UUID] {
			continue
		}
		resp.Histories = append(resp.Histories, ipc.HistoryUsage{HistoryRef: wireRef(&h.Ref), State: h.State, BytesUsed: ipc.BytesUsed(h.Bytes)})
		if t := &resp.Total; len(only) > 0 {
			t.Steps += h.Steps
			t.Events += h.Events
			t.Scratch += h.Scratch
			t.Other += h.Other
			t.Snapshots += h.Snapshots
			t.Workspace += h.Workspace
			t.Archive += h.Archive
			t.Total += h.Total
		}
	}
	return resp
}
