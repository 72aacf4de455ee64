package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// watching answers who watches the table of processes.
type watching struct{ processes }

// watch sends the table of processes, and then what changes of it.
func (d watching) watch(ctx context.Context, _ *ipc.Peer, req ipc.WatchRequest, out *ipc.Stream) error {
	every, err := watchEvery(&req)
	if err != nil {
		return err
	}
	settledSoon(ctx, d.Daemon)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var had map[types.UUID][]byte
	for {
		l := d.table(ipc.ListRequest{All: req.All, Limit: req.Limit})
		f := ipc.ProcTable{Seq: l.Seq, At: l.At, Whole: had == nil, Procs: []ipc.Proc{}, Hidden: l.Hidden, Totals: l.Totals}
		has := make(map[types.UUID][]byte, len(l.Procs))
		for _, p := range l.Procs {
			q := p
			q.ElapsedMs = 0
			text, err := json.Marshal(&q)
			if err != nil {
				return err
			}
			if has[p.UUID] = text; !bytes.Equal(text, had[p.UUID]) {
				f.Procs = append(f.Procs, p)
			}
		}
		for id := range had {
			if has[id] == nil {
				f.Gone = append(f.Gone, id)
			}
		}
		had = has
		if f.Whole || len(f.Procs)+len(f.Gone) > 0 {
			if err := out.Send(f.Seq, "procs", &f); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func watchEvery(req *ipc.WatchRequest) (time.Duration, error) {
	if req.Limit < 0 {
		return 0, types.Errorf(types.ErrInvalid, "watch_procs", "", "limit %d is negative; 0 means all", req.Limit)
	}
	if req.EveryMs == 0 {
		req.EveryMs = ipc.WatchEvery
	}
	if req.EveryMs < ipc.MinWatchEvery || req.EveryMs > ipc.MaxWatchEvery {
		return 0, types.Errorf(types.ErrInvalid, "watch_procs", "", "every_ms is %d, and may be %d to %d; 0 means %d", req.EveryMs, ipc.MinWatchEvery, ipc.MaxWatchEvery, ipc.WatchEvery)
	}
	return time.Duration(req.EveryMs) * time.Millisecond, nil
}
