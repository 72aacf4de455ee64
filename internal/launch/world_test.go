package launch

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/profile"
	"rnix/internal/records"
	"rnix/internal/sandbox"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/runtime/env"
	"rnix/types"
)

// world is a data directory with histories, a home with a configuration, and a kernel that only notes what is started.
type world struct {
	t     *testing.T
	dir   string // where processes work
	live  map[types.UUID]kernel.Info
	left  chan struct{} // closed when those that leave have left
	opts  []kernel.SpawnOpts
	fails []error                         // of the next starts
	used  kernel.Amount                   // by each history
	above map[types.UUID][2]kernel.Amount // limits, and what of them is used
	held  atomic.Int32                    // histories that must stay where they are
	told  []string                        // what the platform and the kernel were told
	l     *Launcher
}

// home writes a configuration with two models into a new directory.
func home(t *testing.T, more map[string]string) *profile.Reader {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"providers.yaml": "default_provider: one\nproviders:\n  - {name: one, driver: anthropic, api_key_env: KEY, default_model: a}\n" +
			"  - {name: two, driver: openai-compat, base_url: http://127.0.0.1:1, api_key_env: KEY, default_model: c}\n",
	}
	for name, text := range more {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return &profile.Reader{UserDir: dir, Home: dir, Lookup: func(string) (string, bool) { return "", false }, Learn: func([]env.Secret) {}}
}

func newWorld(t *testing.T) *world { return newWorldOn(t, durable.OS, t.TempDir()) }

// newWorldOn is newWorld with its histories in a directory of a file system.
func newWorldOn(t *testing.T, fsys durable.FS, dir string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), live: map[types.UUID]kernel.Info{}, above: map[types.UUID][2]kernel.Amount{}}
	j, err := store.Open(fsys, dir, step.Unsynced)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	store := records.New(j, "test", config.Checkpoint{}, log)
	t.Cleanup(func() {
		if n := w.held.Load(); n != 0 {
			t.Errorf("%d holds on histories are not given back", n)
		}
		if err := errors.Join(store.Close(), j.Close()); err != nil {
			t.Error(err)
		}
	})
	cards := &Cards{Journal: j, Note: func(format string, args ...any) { t.Errorf(format, args...) }}
	stored := &Stored{Cards: cards, Kernel: w, Store: store, Ground: w, Forked: func(types.UUID, string) bool { return false }}
	w.l = &Launcher{Stored: stored, Spawner: &Spawner{Kernel: w, Sandboxes: w, Log: log}, Kernel: w, Profiles: home(t, nil), Sessions: w, Budgets: w, Seq: func() uint64 { return 7 }}
	w.l.Profiles.Start()
	return w
}

// settled is what most histories were started with.
func (*world) Fits(s sandbox.Settings) (sandbox.Level, []string, error) { return s.Level, nil, nil }

func (*world) Below(types.PID) sandbox.Settings { return sandbox.Usual() }

func (w *world) settled() step.Settled {
	return step.Settled{ProcInfo: step.ProcInfo{ProcStatus: types.ProcStatus{Name: "n", Intent: "do", Provider: "one", Model: "a", WorkDir: w.dir, MaxSteps: 10, ContextBudget: 1000, BudgetUSD: 2}},
		AskedModel: "a", Effort: "high", Timeout: time.Minute}
}

// write writes the history of a process that was started with was, and what else its record says.
func (w *world) write(was *step.Settled, more ...step.Marker) types.UUID {
	w.t.Helper()
	if was.UUID == (types.UUID{}) {
		was.UUID, was.PID = types.NewUUID(), types.PID(len(w.l.Stored.Cards.Index().List())+1)
	}
	detail, err := json.Marshal(was)
	if err != nil {
		w.t.Fatal(err)
	}
	j := w.l.Stored.Cards.Journal
	lease, err := j.Acquire(context.Background(), was.UUID, "test")
	if err != nil {
		w.t.Fatal(err)
	}
	h := step.NewWriter(j, was.UUID, lease)
	for _, m := range append([]step.Marker{{Name: step.MarkerSpawn, PID: was.PID, Text: was.Intent, Detail: detail}}, more...) {
		if err := h.Marker(&m); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := h.Close(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	read, err := step.ReadHistory(context.Background(), j, was.UUID)
	if err != nil {
		w.t.Fatal(err)
	}
	info := read.Info()
	if err := j.Index().Save(&info); err != nil {
		w.t.Fatal(err)
	}
	return was.UUID
}

// open opens a history.
func (w *world) open(id types.UUID) *Opened {
	w.t.Helper()
	a, err := w.l.Stored.Open(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// start starts the process of a history.
func (w *world) start(id types.UUID, req ipc.ResumeRequest) (ipc.ResumeResponse, error) {
	w.t.Helper()
	req.Env = append(req.Env, "KEY=k")
	return w.l.Start(context.Background(), w.open(id), &req, nil)
}

// card is what lists show of a history.
func (w *world) card(id types.UUID) *step.ProcInfo {
	w.t.Helper()
	info, ok := w.l.Stored.Get(id)
	if !ok {
		w.t.Fatal("it is in no list")
	}
	return info
}

// free fails if somebody still holds the record of a history.
func (w *world) free(id types.UUID) {
	w.t.Helper()
	w.open(id).Close()
}

func (w *world) Hold(types.UUID) (func(), error) {
	w.held.Add(1)
	return func() { w.held.Add(-1) }, nil
}

func (w *world) Info(pid types.PID) (kernel.Info, error) {
	for _, i := range w.live {
		if i.PID == pid {
			return i, nil
		}
	}
	return kernel.Info{}, types.Errorf(types.ErrNotFound, "Info", pid.String(), "no such process")
}

func (w *world) ByUUID(id types.UUID) (*kernel.Process, bool) {
	i, ok := w.live[id]
	return &kernel.Process{PID: i.PID, UUID: id}, ok
}

func (w *world) WaitInfo(ctx context.Context, pid types.PID) (kernel.Info, error) {
	i, err := w.Info(pid)
	if err != nil {
		return i, err
	}
	select {
	case <-w.left:
		delete(w.live, i.UUID)
		return i, nil
	case <-ctx.Done():
		return i, types.Errorf(types.ErrTimeout, "Wait", "", "it runs still")
	}
}

func (w *world) SignalTree(pid types.PID, sig types.Signal) (int, error) {
	w.told = append(w.told, sig.String()+" "+pid.String())
	return 1, nil
}

func (w *world) Renamed(types.PID, types.UUID, string) bool { return false }

func (w *world) CheckDevices(allowed, denied []string) error {
	if slices.Contains(append(allowed, denied...), "/dev/ghost") {
		return types.Errorf(types.ErrInvalid, "Spawn", "/dev/ghost", "no such device")
	}
	return nil
}

func (w *world) VoidDenials(denied []string) []string { return denied }

// SpawnContext notes what is started. As in the kernel, the record is closed if that fails.
func (w *world) SpawnContext(_ context.Context, intent string, _ *agent.Agent, o kernel.SpawnOpts) (types.PID, error) {
	if len(w.fails) > 0 {
		err := w.fails[0]
		if w.fails = w.fails[1:]; err != nil {
			return 0, errors.Join(err, o.From.Rec.Close())
		}
	}
	w.opts = append(w.opts, o)
	pid := types.PID(100 + len(w.opts))
	w.live[o.UUID] = kernel.Info{ProcStatus: types.ProcStatus{PID: pid, UUID: o.UUID, Name: o.Name, Intent: intent, WorkDir: o.WorkDir, Model: o.Model}, State: types.StateRunning}
	return pid, nil
}

func (w *world) Open(_ context.Context, _ types.UUID, p *profile.Profile, provider string) error {
	w.told = append(w.told, "session "+p.Member.Session+" "+provider)
	if p.Member.Session == "taken" {
		return types.Errorf(types.ErrConflict, "Claim", "", "the session is taken")
	}
	return nil
}

func (w *world) Begun(types.UUID) { w.told = append(w.told, "begun") }

func (w *world) Ended(types.UUID) { w.told = append(w.told, "ended") }

func (w *world) UsedUnder(_ types.UUID, own kernel.Amount) kernel.Amount {
	return kernel.Amount{Tokens: own.Tokens + w.used.Tokens, USD: own.USD + w.used.USD}
}

func (w *world) Balance(id types.UUID) (limit, used kernel.Amount, ok bool) {
	b, ok := w.above[id]
	return b[0], b[1], ok
}
