package histories

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/durable"
	"rnix/internal/event"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/trace"
	"rnix/ipc"
	"rnix/types"
)

const (
	maxTraced  = 2000    // processes of one trace
	manyTraced = 300_000 // spans of a trace to which no further process is added
	fewSpans   = 5_000   // of an answer, if nobody says how many
	mostSpans  = 50_000  // of an answer
	maxMissing = 20      // processes that an answer names
)

// tracer shows where the time of processes went.
type tracer struct {
	past    func(ctx context.Context, peer *ipc.Peer, op, text string) (*past, error)
	journal Journal
	index   Index
	kernel  Kernel
	archive Archive
	log     *slog.Logger
}

// trace answers with the spans of a process and of those below it.
func (t tracer) trace(ctx context.Context, peer *ipc.Peer, req ipc.TraceRequest) (ipc.TraceResponse, error) {
	if req.Limit < 0 || req.Limit > mostSpans {
		return ipc.TraceResponse{}, types.Errorf(types.ErrInvalid, "Trace", req.Target, "limit %d is not between 0 and %d", req.Limit, mostSpans)
	}
	p, err := t.past(ctx, peer, "Trace", req.Target)
	if err != nil {
		return ipc.TraceResponse{}, err
	}
	now := time.Now()
	m := trace.NewMaker(now)
	spans := m.Add(t.source(p.h, types.UUID{}, p.living(), req.Content))
	r := ipc.TraceResponse{Root: p.UUID, PID: p.PID, Live: p.living()}
	if req.Children == nil || *req.Children {
		if r.Missing, err = t.below(ctx, m, spans, p.h, req.Content); err != nil {
			return r, err
		}
	}
	all := m.Trace()
	r.Cut = all.Shorten(cmp.Or(req.Limit, fewSpans))
	r.Withheld = all.Withheld
	r.Spans, r.Critical, r.Blame = nonNil(service.Each(all.Spans, wireSpan)), nonNil(service.Each(all.Critical, wirePart)), nonNil(service.Each(all.Blame, wireBlame))
	if root := all.Root(); root != nil {
		r.Start, r.End = root.Start, root.End()
	}
	for i := range r.Spans {
		if end := r.Spans[i].End(); end.After(r.End) {
			r.End = end
		}
	}
	return r, nil
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// source is a history, with what its events say.
func (t tracer) source(h *step.History, parent types.UUID, live, content bool) *trace.Source {
	return &trace.Source{History: h, Parent: parent, Live: live, Content: content, Events: t.tracedEvents(h.UUID), Nodes: nodesOf(h)}
}

// below adds the processes that descend from root, those above before those below, and keeps no history but that
// of root. spans is how many there are already. missing names those whose histories are not there, or cannot be read.
func (t tracer) below(ctx context.Context, m *trace.Maker, spans int, root *step.History, content bool) (missing []string, err error) {
	kids, archived, living := map[types.UUID][]types.UUID{}, map[types.UUID][]types.UUID{}, map[types.UUID]bool{}
	for _, info := range t.index.List() {
		kids[info.ParentUUID] = append(kids[info.ParentUUID], info.UUID)
	}
	for _, a := range t.archive.Archived() {
		archived[a.Info.ParentUUID] = append(archived[a.Info.ParentUUID], a.Info.UUID)
	}
	miss := func(id types.UUID, why string) {
		if len(missing) < maxMissing {
			missing = append(missing, id.String()+": "+why)
		}
	}
	known := map[types.UUID]bool{root.UUID: true}
	for _, i := range t.kernel.List() {
		living[i.UUID] = i.State < types.StateZombie
	}
	type above struct {
		id    types.UUID
		after map[types.UUID][]types.UUID
	}
	queue := []above{{root.UUID, after(root)}}
	for n := 0; n < len(queue); n++ {
		up := queue[n]
		queue[n].after = nil
		for _, id := range archived[up.id] {
			miss(id, "is archived; put it back with: rnix unarchive "+id.String())
		}
		for _, id := range kids[up.id] {
			if known[id] {
				continue
			}
			known[id] = true
			if len(queue) == maxTraced || spans > manyTraced {
				return append(missing, fmt.Sprintf("more than %d processes or %d spans: the other processes are left out", maxTraced, manyTraced)), nil
			}
			child, err := step.ReadHistory(ctx, t.journal, id)
			if err != nil {
				if ctx.Err() != nil {
					return nil, err
				}
				miss(id, err.Error())
				continue
			}
			s := t.source(child, up.id, living[id], content)
			s.After = up.after[id]
			spans = m.Add(s)
			queue = append(queue, above{id, after(child)})
		}
	}
	return missing, nil
}

// after returns for each process that a run of a workflow has started those whose end it waited for: the nodes
// that it depends on, and the attempt before it.
func after(h *step.History) map[types.UUID][]types.UUID {
	spec := specOf(h)
	if spec == nil {
		return nil
	}
	latest := map[compose.Key]types.UUID{}
	out := map[types.UUID][]types.UUID{}
	for i := range h.Markers {
		m := &h.Markers[i]
		key, ok := compose.ParseKey(m.Text)
		node := spec.File.Agents[key.Node]
		var n compose.Note
		if m.Name != step.MarkerNote || !ok || node == nil || json.Unmarshal(m.Detail, &n) != nil || n.Phase != compose.Running || n.UUID == (types.UUID{}) {
			continue
		}
		if before, again := latest[key]; again && before != n.UUID {
			out[n.UUID] = append(out[n.UUID], before)
		}
		above := node.Above()
		for k, id := range latest {
			if slices.Contains(above, k.Node) {
				out[n.UUID] = append(out[n.UUID], id)
			}
		}
		latest[key] = n.UUID
	}
	return out
}

// nodesOf returns what became of the nodes of a run of a workflow, as its history says; nil if it is none.
func nodesOf(h *step.History) []compose.Status {
	spec := specOf(h)
	if spec == nil {
		return nil
	}
	notes := map[string]json.RawMessage{}
	for i := range h.Markers {
		if m := &h.Markers[i]; m.Name == step.MarkerNote {
			notes[m.Text] = m.Detail
		}
	}
	state, err := compose.NewState(spec.File.Plan(), spec.Rounds, notes)
	if err != nil {
		return nil // the spans say the rest
	}
	return state.Report()
}

// specOf returns of what workflow a history is a run, as it was last; nil if it is none.
func specOf(h *step.History) (spec *run.Spec) {
	for i := range h.Markers {
		m := &h.Markers[i]
		if m.Name != step.MarkerSpawn && m.Name != step.MarkerResumed {
			continue
		}
		var s step.Settled
		if json.Unmarshal(m.Detail, &s) != nil || s.Body == nil || s.Body.Kind != run.Kind {
			continue
		}
		if parsed, err := run.ParseSpec(s.Body.Spec); err == nil {
			spec = &parsed
		}
	}
	return spec
}

// tracedEvents returns what a trace needs of the events of a history: starts of steps, waits, and the last sign of
// life of each run. What cannot be read is left out: the records say the rest.
func (t tracer) tracedEvents(id types.UUID) (out []event.Event) {
	file, err := durable.OS.OpenFile(filepath.Join(t.journal.Dir(id), step.EventsFile), os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 64<<10)
	var last []byte
	add := func(line []byte) {
		var e event.Event
		if json.Unmarshal(line, &e) == nil {
			out = append(out, e)
		}
	}
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) { // none of those that we look for is that long
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
			if err == nil {
				continue
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.log.Warn("events of a trace", "uuid", id, "err", err)
			}
			break
		}
		switch {
		case ofKind(line, event.StepStarted), ofKind(line, event.Waiting):
			add(line)
		case ofKind(line, event.LogLine), ofKind(line, event.Syscall), ofKind(line, event.SyscallBegun):
			last = append(last[:0], line...)
		case ofKind(line, event.Spawned):
			if len(last) > 0 {
				add(last)
			}
			last = last[:0]
		}
	}
	if len(last) > 0 {
		add(last)
	}
	return out
}

// ofKind reports whether an encoded event may be of a kind: its beginning says so.
func ofKind(line []byte, k event.Kind) bool {
	return bytes.Contains(line[:min(len(line), 200)], []byte(`"kind":"`+string(k)+`"`))
}
