package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// streamEvents sends events: first those of the past that were asked for, from the file of the
// history, then those of the log as they come.
func (d processes) streamEvents(ctx context.Context, _ *ipc.Peer, req ipc.EventsRequest, out *ipc.Stream) error {
	f := &filter{req: &req, pids: map[types.PID]bool{}}
	ended := false
	if req.Target != "" {
		t, err := d.resolve(req.Target)
		if err != nil {
			return err
		}
		f.uuid, ended = t.uuid, t.live == nil || t.live.State >= types.StateZombie
		f.pids[t.pid] = true
		if req.Tree && t.live != nil {
			if tree, err := d.kernel.Subtree(t.pid); err == nil {
				for _, p := range tree {
					f.pids[p] = true
				}
			}
		}
	}
	if err := out.Start(); err != nil {
		return err
	}
	from := req.From
	if from == 0 {
		from = d.events.Last() + 1
		if req.History && req.Target == "" {
			from = d.events.Oldest()
		}
	}
	cur := d.events.Cursor(from)
	if req.History && req.From == 0 && req.Target != "" {
		last, over, err := d.sendPast(ctx, f, out)
		if err != nil {
			return err
		}
		if over && (ended || req.UntilEnd) { // it may have ended since we looked
			return nil
		}
		f.over = ended // what the file does not have yet is in the log
		// what was in the file comes no second time, and what came after it is still in the log
		if last > 0 {
			cur = d.events.Cursor(last + 1)
		} else {
			cur = d.events.Cursor(d.events.Oldest())
		}
	}
	if req.UntilEnd && ended {
		f.over = true // its end is in the log, or is no longer there: either way it is behind us
	}
	return d.sendLive(ctx, cur, f, out)
}

// sendLive sends what the log has and gets, until the request is served.
func (d processes) sendLive(ctx context.Context, cur *event.Cursor, f *filter, out *ipc.Stream) error {
	stop := d.events.Last()
	var buf []byte
	for {
		if (!f.req.Follow || f.over) && cur.Pos() > stop {
			return nil
		}
		e, err := cur.Next(ctx)
		var missed *event.Missed
		switch {
		case errors.As(err, &missed):
			if err := out.Missed(missed.From, missed.To); err != nil {
				return err
			}
			if f.req.UntilEnd && !f.over && d.ended(f.uuid) { // its end may be among what was missed
				f.over, stop = true, d.events.Last()
			}
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if !f.wants(&e) {
			continue
		}
		if f.kind(e.Kind) {
			buf = event.AppendJSON(buf[:0], &e)
			if err := out.SendRaw(e.Seq, string(e.Kind), buf); err != nil {
				return err
			}
		}
		if f.req.UntilEnd && e.Kind == event.Exited && e.UUID == f.uuid {
			return nil
		}
	}
}

// ended reports whether a process is over.
func (d processes) ended(id types.UUID) bool {
	t, err := d.resolve(id.String())
	return err != nil || t.live == nil || t.live.State >= types.StateZombie
}

// filter picks the events of a request.
type filter struct {
	req  *ipc.EventsRequest
	uuid types.UUID
	pids map[types.PID]bool
	over bool // the process has ended: nothing more is to come
}

// wants reports whether an event belongs to the processes that were asked for. It learns of their
// children as they are born.
func (f *filter) wants(e *event.Event) bool {
	if f.req.Target == "" {
		return true
	}
	if f.req.Tree && e.Kind == event.Spawned && f.pids[e.PPID] {
		f.pids[e.PID] = true
	}
	return e.UUID == f.uuid || f.req.Tree && f.pids[e.PID]
}

func (f *filter) kind(k event.Kind) bool {
	return len(f.req.Kinds) == 0 || slices.Contains(f.req.Kinds, k)
}

// sendPast sends the events in the file of a history. It returns the sequence number of the last one
// that this daemon has written, 0 if there is none, and whether the end of the process is among these.
func (d processes) sendPast(ctx context.Context, f *filter, out *ipc.Stream) (last uint64, over bool, err error) {
	file, err := os.Open(filepath.Join(d.journal.Dir(f.uuid), step.EventsFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, types.Errorf(types.ErrStorage, "Open", step.EventsFile, "%w", err)
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 64<<10)
	for ctx.Err() == nil {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return last, over, nil // the last line may be half written; the log has it
		}
		var e event.Event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if !e.Time.Before(d.started) {
			last = max(last, e.Seq)
			over = over || e.Kind == event.Exited
		}
		if !f.kind(e.Kind) {
			continue
		}
		if err := out.SendRaw(e.Seq, string(e.Kind), line[:len(line)-1]); err != nil {
			return last, over, err
		}
	}
	return last, over, context.Cause(ctx)
}
