package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/launch"
	"rnix/internal/profile"
	recordings "rnix/internal/records"
	"rnix/internal/sandbox"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/kernel"
	"rnix/runtime/env"
	"rnix/types"
)

// world is a data directory with histories, and a kernel that only notes what it is asked to do.
type world struct {
	Kernel // those of its methods that no test needs

	t    *testing.T
	work string
	disk full
	live []kernel.Info
	lost []types.PID // what is done to these cannot be written
	told []string

	names    *Names
	stored   *launch.Stored
	launcher *launch.Launcher
	shut     func() error
}

// full is a disk on which the record of one history does not grow, once half of what is to be written is there.
type full struct {
	durable.FS
	of types.UUID
}

type fullFile struct{ durable.File }

func (f *full) OpenFile(name string, flag int, perm fs.FileMode) (durable.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err == nil && f.of != (types.UUID{}) && strings.HasSuffix(name, filepath.Join(f.of.String(), step.StepsFile)) {
		return fullFile{file}, nil
	}
	return file, err
}

func (f fullFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b[:len(b)/2])
	return n, errors.Join(err, &fs.PathError{Op: "write", Path: step.StepsFile, Err: syscall.ENOSPC})
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, work: t.TempDir(), disk: full{FS: durable.OS}}
	dir, home := t.TempDir(), t.TempDir()
	const providers = "default_provider: one\nproviders:\n  - {name: one, driver: anthropic, api_key_env: KEY, default_model: a}\n"
	if err := os.WriteFile(filepath.Join(home, "providers.yaml"), []byte(providers), 0o600); err != nil {
		t.Fatal(err)
	}
	profiles := &profile.Reader{UserDir: home, Home: home, Lookup: func(string) (string, bool) { return "", false }, Learn: func([]env.Secret) {}}
	profiles.Start()
	w.launcher = &launch.Launcher{Spawner: &launch.Spawner{Kernel: w, Sandboxes: w, Log: slog.New(slog.DiscardHandler)}, Kernel: w, Profiles: profiles, Sessions: w, Budgets: w, Seq: func() uint64 { return 7 }}
	w.open(dir)
	t.Cleanup(func() {
		if err := w.shut(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// open opens the data directory, as a start does.
func (w *world) open(dir string) {
	w.t.Helper()
	j, err := store.Open(&w.disk, dir, step.Unsynced)
	if err != nil {
		w.t.Fatal(err)
	}
	kept := recordings.New(j, "test", config.Checkpoint{}, slog.New(slog.DiscardHandler))
	w.shut = func() error { return errors.Join(kept.Close(), j.Close()) }
	cards := &launch.Cards{Journal: j, Note: w.t.Logf}
	w.stored = &launch.Stored{Cards: cards, Kernel: w, Store: kept, Ground: w, Forked: func(types.UUID, string) bool { return false }}
	w.names = &Names{Table: w, Index: cards.Index(), Gone: func(string) error { return nil }}
	w.launcher.Stored = w.stored
}

// restart closes the data directory and opens it again.
func (w *world) restart() {
	w.t.Helper()
	dir := filepath.Dir(filepath.Dir(w.stored.Cards.Journal.Dir(types.NewUUID())))
	if err := w.shut(); err != nil {
		w.t.Log(err) // of the record that could not be written
	}
	w.open(dir)
}

// write writes the history of a process below parent, and what else its record says.
func (w *world) write(parent types.UUID, more ...step.Marker) types.UUID {
	w.t.Helper()
	id, pid := types.NewUUID(), types.PID(len(w.stored.Cards.Index().List())+11)
	detail, err := json.Marshal(step.Settled{ProcInfo: step.ProcInfo{ProcStatus: types.ProcStatus{PID: pid, UUID: id, ParentUUID: parent, Intent: "do", Provider: "one", Model: "a", WorkDir: w.work}}, AskedModel: "a"})
	if err != nil {
		w.t.Fatal(err)
	}
	rec, err := w.stored.Store.Create(id)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range append([]step.Marker{{Name: step.MarkerSpawn, PID: pid, Text: "do", Detail: detail}}, more...) {
		if err := rec.Add(step.Record{Kind: step.KindMarker, Marker: &m}); err != nil {
			w.t.Fatal(err)
		}
	}
	info := w.life(id, rec)
	if info.Exit != nil { // as it is written of one that is reaped
		info.State = types.StateDead
	}
	w.stored.Cards.Put(&info)
	return id
}

// life closes the record of a history and returns what that says.
func (w *world) life(id types.UUID, rec kernel.Recorder) step.ProcInfo {
	w.t.Helper()
	if err := rec.Close(); err != nil {
		w.t.Fatal(err)
	}
	h, err := step.ReadHistory(context.Background(), w.stored.Cards.Journal, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return h.Info()
}

// runs lets processes run, each below the one before it, and returns the last.
func (w *world) runs(paused ...bool) service.Target {
	up := kernel.Info{}
	for i, paused := range paused {
		now := kernel.Info{ProcStatus: types.ProcStatus{PID: types.PID(i + 1), PPID: up.PID, UUID: types.NewUUID(), ParentUUID: up.UUID}, State: types.StateRunning, Paused: paused}
		w.live, up = append(w.live, now), now
	}
	return service.Target{UUID: up.UUID, PID: up.PID, Live: &up}
}

func (w *world) chain() *Resumer {
	return &Resumer{Kernel: w, Stored: w.stored, Launcher: w.launcher, Log: slog.New(slog.DiscardHandler)}
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
	for _, i := range w.live {
		if i.UUID == id {
			return &kernel.Process{PID: i.PID, UUID: id}, true
		}
	}
	return nil, false
}

func (w *world) List() []kernel.Info { return slices.Clone(w.live) }

func (w *world) Descends(id, root types.UUID) bool {
	for id != root && id != (types.UUID{}) {
		info, _ := w.stored.Cards.Index().Get(id)
		up := info.ParentUUID
		for _, i := range w.live {
			if i.UUID == id {
				up = i.ParentUUID
			}
		}
		id = up
	}
	return id == root
}

// Subtree knows the process alone: those below it were born later.
func (w *world) Subtree(pid types.PID) ([]types.PID, error) { return []types.PID{pid}, nil }

func (w *world) SignalTree(pid types.PID, sig types.Signal) (int, error) {
	return 1, w.Signal(pid, sig)
}

func (w *world) Signal(pid types.PID, sig types.Signal) error {
	if _, err := w.Info(pid); err != nil {
		return err
	}
	w.told = append(w.told, sig.String()+" "+pid.String())
	if slices.Contains(w.lost, pid) {
		return &types.SyscallError{Syscall: "Signal", PID: pid, Code: types.ErrStorage, Err: errors.New("no space left on device")}
	}
	return nil
}

// SpawnContext starts a process that does nothing.
func (w *world) SpawnContext(_ context.Context, intent string, _ *agent.Agent, o kernel.SpawnOpts) (types.PID, error) {
	pid := types.PID(100 + len(w.live))
	w.live = append(w.live, kernel.Info{ProcStatus: types.ProcStatus{PID: pid, PPID: o.ParentPID, UUID: o.UUID, Intent: intent, WorkDir: o.WorkDir}, State: types.StateRunning})
	return pid, o.From.Rec.Close()
}

func (w *world) Settled(context.Context) error { return nil }

func (w *world) Hold(types.UUID) (func(), error) { return func() {}, nil }

func (w *world) Renamed(types.PID, types.UUID, string) bool { return false }

func (w *world) MaySignal(types.PID) error { return nil }

func (w *world) MaySpawn(types.PID) error { return nil }

func (w *world) CheckDevices(_, _ []string) error { return nil }

func (w *world) VoidDenials(denied []string) []string { return denied }

func (w *world) Fits(s sandbox.Settings) (sandbox.Level, []string, error) { return s.Level, nil, nil }

func (w *world) Below(types.PID) sandbox.Settings { return sandbox.Usual() }

func (w *world) Open(context.Context, types.UUID, *profile.Profile, string) error { return nil }

func (w *world) Begun(types.UUID) {}

func (w *world) Ended(types.UUID) {}

func (w *world) UsedUnder(_ types.UUID, own kernel.Amount) kernel.Amount { return own }

func (w *world) Balance(types.UUID) (limit, used kernel.Amount, ok bool) { return }
