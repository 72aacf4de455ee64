package files

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"rnix/drivers/fs"
	"rnix/internal/plumbing/gittest"
	"rnix/internal/proc"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a few processes, with a real keeper for their files.
type world struct {
	testing.TB
	*Service
	data      string
	home      string
	live      []kernel.Info
	stored    []step.ProcInfo
	trails    map[types.UUID]step.Trail
	begun     map[types.UUID]bool
	inside    types.PID    // the agent in which callers run; 0 = none
	held      []types.UUID // are reserved
	onReserve func()       // is called when one was reserved
	onTrail   func()       // is called when a history is read
	known     []string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	procs, err := proc.NewManager(filepath.Join(dir, "children"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(procs.Close)
	w := &world{TB: t, data: filepath.Join(dir, "data"), home: filepath.Join(dir, "home"), trails: map[types.UUID]step.Trail{}, begun: map[types.UUID]bool{}, onReserve: func() {}, onTrail: func() {}}
	for _, d := range []string{w.data, w.home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	k := workspace.New(workspace.Options{Procs: procs, Dir: w.data, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home}, Log: log})
	snaps := NewSnapshots(k, false, w.data, log)
	snaps.Histories, snaps.Known = w, w
	w.Service = &Service{Snapshots: snaps, Trees: NewTrees(k, w.data), Kernel: table{w}, Histories: w, Callers: w, Log: log, Archived: func(types.UUID) (step.Archived, bool) { return step.Archived{}, false }}
	return w
}

// table is what lives in a world.
type table struct{ *world }

func (t table) List() []kernel.Info { return t.live }

func (w *world) Get(id types.UUID) (step.ProcInfo, bool) {
	for _, i := range w.stored {
		if i.UUID == id {
			return i, true
		}
	}
	return step.ProcInfo{}, false
}

func (w *world) List() []step.ProcInfo { return w.stored }

func (w *world) Begun(id types.UUID) bool { return w.begun[id] }

func (w *world) Trail(_ context.Context, t *service.Target, text string) (step.Trail, error) {
	w.onTrail()
	trail, ok := w.trails[t.UUID]
	if !ok {
		return trail, types.Errorf(types.ErrNotFound, "Trail", text, "no history")
	}
	return trail, nil
}

func (w *world) WorkDir(t *service.Target, recorded string) string {
	switch {
	case t.Live != nil:
		return t.Live.WorkDir
	case t.Info != nil:
		return t.Info.WorkDir
	}
	return recorded
}

func (w *world) Claimed() error { return nil }

func (w *world) Reserve(id types.UUID, _ string) (func(), error) {
	w.held = append(w.held, id)
	w.onReserve()
	return func() { w.held = slices.DeleteFunc(w.held, func(h types.UUID) bool { return h == id }) }, nil
}

func (w *world) AgentOf(*ipc.Peer) (types.PID, bool) { return w.inside, w.inside != 0 }

func (w *world) Resolve(text string) (service.Target, error) {
	var t service.Target
	for n := range w.stored {
		if i := &w.stored[n]; i.UUID.String() == text || i.Name == text {
			t = service.Target{UUID: i.UUID, PID: i.PID, Info: i}
		}
	}
	for n := range w.live {
		if i := &w.live[n]; i.UUID.String() == text || i.Name == text {
			t.UUID, t.PID, t.Live = i.UUID, i.PID, i
		}
	}
	if t.PID == 0 {
		return t, types.Errorf(types.ErrNotFound, "Find", text, "no such process")
	}
	return t, nil
}

func (w *world) Find(_ *ipc.Peer, _, text string) (service.Target, error) { return w.Resolve(text) }

func (w *world) Below(id types.UUID, top types.PID) bool {
	for _, i := range w.live {
		if i.UUID == id {
			return i.PID == top || i.PPID == top
		}
	}
	return false
}

func (w *world) Read(_ types.PID, path string, _ fs.Sum) { w.known = append(w.known, path) }

// dir returns a new directory with files.
func (w *world) dir(files map[string]string) string {
	w.Helper()
	dir, err := filepath.EvalSymlinks(w.TempDir())
	if err != nil {
		w.Fatal(err)
	}
	for name, text := range files {
		w.write(filepath.Join(dir, name), text)
	}
	return dir
}

func (w *world) write(path, text string) {
	w.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}

// holds fails unless a file is as it is to be; "" = it is not there.
func (w *world) holds(path, want string) {
	w.Helper()
	if b, err := os.ReadFile(path); string(b) != want || (want == "") != (err != nil) {
		w.Errorf("%s is %q, want %q (%v)", path, b, want, err)
	}
}

// take takes a snapshot of a directory at the end of a step of a history, which tells of it.
func (w *world) take(id types.UUID, dir string, n int) {
	w.Helper()
	s, _, err := w.Snapshots.Take(w.Context(), Worker{UUID: id, WorkDir: dir}, n)
	if err != nil || s == nil {
		w.Fatalf("%v, %v", s, err)
	}
	trail := w.trails[id]
	trail.Last, trail.Acts = n, n
	if n > 0 {
		trail.Files = append(trail.Files, step.FilesMark{Step: n, Snapshot: *s})
	}
	w.trails[id] = trail
}

// ended puts a process that has ended into a world.
func (w *world) ended(pid types.PID, name, dir string) types.UUID {
	i := step.ProcInfo{ProcStatus: types.ProcStatus{PID: pid, UUID: types.NewUUID(), Name: name, WorkDir: dir, Exit: &types.ExitStatus{}}, State: types.StateDead}
	w.stored = append(w.stored, i)
	w.trails[i.UUID] = step.Trail{}
	w.begun[i.UUID] = true
	return i.UUID
}

// repo returns a repository with a file, committed.
func (w *world) repo() string {
	w.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		w.Skip("needs git")
	}
	dir := w.dir(map[string]string{"a.txt": "one\n"})
	gittest.Commit(w.TB, dir, "", func(args ...string) { w.git(dir, args...) })
	return dir
}

func (w *world) git(dir string, args ...string) string {
	w.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@x", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@x"}
	c.Env = append(c.Env, gittest.Quiet()...)
	out, err := c.CombinedOutput()
	if err != nil {
		w.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// tree makes a work tree for a process that has ended.
func (w *world) tree(pid types.PID, name, repo string) (types.UUID, workspace.Tree) {
	w.Helper()
	id := w.ended(pid, name, "")
	o := kernel.SpawnOpts{UUID: id, ProcSpec: types.ProcSpec{Name: name}}
	t, _, err := w.Trees.Create(w.Context(), repo, &ipc.WorktreeRequest{}, &o)
	if err != nil {
		w.Fatal(err)
	}
	w.stored[len(w.stored)-1].WorkDir = o.WorkDir
	detail, err := json.Marshal(step.Settled{ProcInfo: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id, WorkDir: o.WorkDir}}, Settings: o.Settings})
	if err != nil {
		w.Fatal(err)
	}
	w.trails[id] = step.Trail{Settled: detail}
	return id, *t
}
