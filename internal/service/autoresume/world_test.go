package autoresume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/launch"
	"rnix/internal/records"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// world is a data directory with histories, and whoever else is asked for them.
type world struct {
	t    *testing.T
	ids  map[string]types.UUID
	pids map[types.UUID]types.PID // of those that run
	fail map[string]error         // why a history cannot be resumed, by its name

	mu     sync.Mutex
	done   []string // what was done to which history, in its order
	notes  []string
	begun  []<-chan struct{}               // the holds of those that were started
	budget map[types.UUID]kernel.Amount    // limits
	left   map[types.UUID][]types.UUID     // what is to be ended with an ended one
	ending map[types.UUID]types.ExitStatus // runs that were ending
	*Service
}

// newWorld makes one. Under synctest its files are written while its time stands still.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ids: map[string]types.UUID{}, pids: map[types.UUID]types.PID{}, fail: map[string]error{}, budget: map[types.UUID]kernel.Amount{},
		left: map[types.UUID][]types.UUID{}, ending: map[types.UUID]types.ExitStatus{}, Service: New()}
	j, err := store.Open(durable.OS, t.TempDir(), step.Unsynced)
	if err != nil {
		t.Fatal(err)
	}
	store := records.New(j, "test", config.Checkpoint{}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := errors.Join(store.Close(), j.Close()); err != nil {
			t.Error(err)
		}
	})
	w.Note = func(format string, args ...any) { w.notes = append(w.notes, fmt.Sprintf(format, args...)) }
	w.Stored = &launch.Stored{Cards: &launch.Cards{Journal: j, Note: w.Note}, Kernel: table{w: w}, Store: store, Ground: holds{}, Forked: func(types.UUID, string) bool { return false }}
	w.Resumer, w.Launcher, w.Flows, w.Budgets, w.Ground, w.Room, w.Forks = w, starter{w}, w, w, w, w, w
	w.Max, w.Background = 99, new(sync.WaitGroup)
	return w
}

// The ends of runs, as histories say them.
var (
	stopped = step.Marker{Name: step.MarkerDaemonStop}
	paused  = step.Marker{Name: step.MarkerPause}
	exited  = step.Marker{Name: step.MarkerExit, Exit: new(types.ExitStatus)}
	crashed = step.Marker{Name: step.MarkerInterrupted}
	resumed = step.Marker{Name: step.MarkerResumed}
)

// write writes a history with a name, below another one, and returns what lists show of it.
func (w *world) write(name, above string, more ...step.Marker) step.ProcInfo {
	return w.writeAs(step.ProcInfo{ProcStatus: types.ProcStatus{Name: name}}, above, more...)
}

func (w *world) writeAs(info step.ProcInfo, above string, more ...step.Marker) step.ProcInfo {
	w.t.Helper()
	id := info.UUID
	if id == (types.UUID{}) {
		id = types.NewUUID()
	}
	w.ids[info.Name] = id
	info.UUID, info.PID, info.ParentUUID, info.Intent = id, types.PID(len(w.ids)), w.ids[above], "do"
	detail, err := json.Marshal(step.Settled{ProcInfo: info})
	if err != nil {
		w.t.Fatal(err)
	}
	j, ctx := w.Stored.Cards.Journal, context.Background()
	lease, err := j.Acquire(ctx, id, "test")
	if err != nil {
		w.t.Fatal(err)
	}
	h := step.NewWriter(j, id, lease)
	for _, m := range append([]step.Marker{{Name: step.MarkerSpawn, PID: info.PID, Text: "do", Detail: detail}}, more...) {
		if m.Name == step.MarkerResumed {
			m.Detail = detail
		}
		if err := h.Marker(&m); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := h.Close(ctx); err != nil {
		w.t.Fatal(err)
	}
	read, err := step.ReadHistory(ctx, j, id)
	if err != nil {
		w.t.Fatal(err)
	}
	was := info
	if info = read.Info(); len(more) == 0 { // it looked as if it ran
		info.Suspended = false
	}
	info.WakeAt, info.Purse = was.WakeAt, was.Purse
	if err := j.Index().Save(&info); err != nil {
		w.t.Fatal(err)
	}
	return info
}

// shown is why lists say that a history is suspended.
func (w *world) shown(name string) string {
	info, ok := w.Stored.Get(w.ids[name])
	if !ok {
		return "gone"
	}
	if info.Over() {
		return "over: " + info.Exit.Reason
	}
	return info.SuspendReason
}

func (w *world) nameOf(id types.UUID) string {
	for name, is := range w.ids {
		if is == id {
			return name
		}
	}
	return id.String()
}

// does notes that something is done to a history, unless it fails.
func (w *world) does(what string, id types.UUID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := w.nameOf(id)
	if err := w.fail[name]; err != nil {
		return err
	}
	w.done = append(w.done, what+name)
	return nil
}

// did returns what was done since it was asked last.
func (w *world) did() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.done
	w.done = nil
	return out
}

// noted reports whether people were told of something.
func (w *world) noted(text string) bool {
	return slices.ContainsFunc(w.notes, func(n string) bool { return containsAll(n, text) })
}

// starter starts single histories.
type starter struct{ w *world }

func (s starter) Start(_ context.Context, a *launch.Opened, _ *ipc.ResumeRequest, hold <-chan struct{}) (ipc.ResumeResponse, error) {
	defer a.Close()
	id := a.Rec.ID
	if err := s.w.does("", id); err != nil {
		return ipc.ResumeResponse{}, err
	}
	s.w.begun = append(s.w.begun, hold)
	return s.w.runs(id), nil
}

// runs notes that a history runs.
func (w *world) runs(id types.UUID) ipc.ResumeResponse {
	w.pids[id] = types.PID(100 + len(w.pids))
	return ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{PID: w.pids[id], UUID: id}}
}

func (w *world) Continued(ctx context.Context, id types.UUID, _ *ipc.ResumeRequest, still func(*recovery.State) bool) (ipc.ResumeResponse, error) {
	s, _, _, err := w.Stored.Store.Read(ctx, id)
	if err == nil && !still(s) {
		err = types.Errorf(types.ErrConflict, "Resume", "", "it is not as it was")
	}
	if err == nil {
		err = w.does("with its family ", id)
	}
	if err != nil {
		return ipc.ResumeResponse{}, err
	}
	info, _ := w.Stored.Get(id)
	info.WakeAt = time.Time{}
	return w.runs(id), w.Stored.Cards.Journal.Index().Save(info)
}

func (w *world) Left(_ context.Context, up *step.ProcInfo) []types.UUID { return w.left[up.UUID] }

func (w *world) Ending(s *recovery.State) (types.ExitStatus, []types.UUID, bool) {
	was, err := s.Was()
	if err != nil {
		return types.ExitStatus{}, nil, false
	}
	exit, ok := w.ending[was.UUID]
	return exit, w.left[was.UUID], ok
}

func (w *world) Awaited(json.RawMessage, map[string]json.RawMessage) []types.UUID { return nil }

func (w *world) Balance(id types.UUID) (limit, used kernel.Amount, ok bool) {
	limit, ok = w.budget[id]
	return limit, used, ok
}

func (w *world) Settled(context.Context) error { return nil }

func (w *world) Described(id types.UUID) (*step.ProcInfo, error) {
	info, ok := w.Stored.Get(id)
	if !ok {
		return nil, types.Errorf(types.ErrNotFound, "Find", "", "it was taken away")
	}
	return info, nil
}

func (w *world) CutBy(*step.ProcInfo) bool { return false }

func (w *world) CutOff(id types.UUID) { w.done = append(w.done, "waits for the disk: "+w.nameOf(id)) }

func (w *world) Abandon(_ context.Context, id types.UUID) error { return w.does("abandon ", id) }

// table is the kernel's, as far as it is asked.
type table struct {
	launch.Table
	w *world
}

func (b table) ByUUID(id types.UUID) (*kernel.Process, bool) {
	pid, ok := b.w.pids[id]
	return &kernel.Process{PID: pid, UUID: id}, ok
}

func (b table) Info(pid types.PID) (kernel.Info, error) {
	return kernel.Info{ProcStatus: types.ProcStatus{PID: pid}, State: types.StateRunning}, nil
}

type holds struct{}

func (holds) Hold(types.UUID) (func(), error) { return func() {}, nil }

// after is a time from now.
func after(d time.Duration) time.Time { return time.Now().Add(d).UTC().Round(0) }
