package files

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// The files of a fork at a step that it has of its origin are those that the origin had then, also of the fork of a fork, and also where none of
// them tells of its first snapshot.
func TestFilesOfAStepAreFoundThroughAllOrigins(t *testing.T) {
	w := newWorld(t)
	dir := w.dir(map[string]string{"a.txt": "zero"})
	first := w.ended(1, "first", dir)
	for n, text := range []string{"zero", "one", "two", "three"} {
		w.write(filepath.Join(dir, "a.txt"), text)
		w.take(first, dir, n)
	}
	second, third := w.ended(2, "second", dir), w.ended(3, "third", dir)
	for n, origin := range map[int]types.UUID{1: first, 2: second} { // each has forked at the end of step 2
		w.stored[n].OriginUUID, w.stored[n].OriginStep = origin, 2
		id := w.stored[n].UUID
		w.trails[id] = step.Trail{Last: 2, Origin: &step.ForkDetail{Origin: origin, Step: 2}}
	}
	for at, want := range map[int]string{0: "zero", 1: "one", 2: "two"} {
		for _, id := range []types.UUID{second, third} {
			fork := types.NewUUID()
			of, err := w.Resolve(id.String())
			if err != nil {
				t.Fatal(err)
			}
			made, limited, err := w.Snapshots.Fork(t.Context(), fork, &of, at, dir)
			if err != nil || limited != "" || made != w.Snapshots.ForkDir(fork) {
				t.Fatalf("step %d: %s, %q, %v", at, made, limited, err)
			}
			w.holds(filepath.Join(made, "a.txt"), want)
		}
	}
	if _, err := w.diff(t.Context(), nil, ipc.DiffRequest{Target: "third", To: new(3)}); types.CodeOf(err) != types.ErrNotFound { // its origin has it, and it has not
		t.Errorf("a step after the fork: %v", err)
	}
	diff, err := w.diff(t.Context(), nil, ipc.DiffRequest{Target: "third", From: 1, To: new(2)})
	if text := string(diff.Text()); err != nil || !strings.Contains(text, "-one") || !strings.Contains(text, "+two") {
		t.Errorf("%+v, %v", diff, err)
	}
}

// A fork is made while its origin begins to change files: what it looked at meanwhile is no snapshot of its own, so a fork of it from there gets
// the same files as it.
func TestAForkOfAForkThatWasMadeAtTheFirstChangeHasTheSameFiles(t *testing.T) {
	w := newWorld(t)
	dir := w.dir(map[string]string{"a.txt": "before"})
	origin := w.ended(1, "origin", dir)
	of, err := w.Resolve(origin.String())
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	w.onTrail = func() {
		switch reads++; reads {
		case 1: // the origin has kept nothing yet; what the fork looks at next has the change in it
			w.write(filepath.Join(dir, "a.txt"), "changed")
		case 2: // the origin had kept it before
			w.write(filepath.Join(dir, "a.txt"), "before")
			w.take(origin, dir, 0)
			w.write(filepath.Join(dir, "a.txt"), "changed")
		}
	}
	fork := w.ended(2, "fork", "")
	made, _, err := w.Snapshots.Fork(t.Context(), fork, &of, 0, dir)
	if err != nil || reads != 2 {
		t.Fatalf("%v, the history was read %d times", err, reads)
	}
	w.holds(filepath.Join(made, "a.txt"), "before")
	w.stored[1].OriginUUID, w.stored[1].WorkDir = origin, made
	w.trails[fork] = step.Trail{Origin: &step.ForkDetail{Origin: origin}}
	w.take(fork, made, 0)
	w.write(filepath.Join(made, "a.txt"), "changed")
	w.take(fork, made, 1)
	if of, err = w.Resolve(fork.String()); err != nil {
		t.Fatal(err)
	}
	again, _, err := w.Snapshots.Fork(t.Context(), types.NewUUID(), &of, 0, made)
	if err != nil {
		t.Fatal(err)
	}
	w.holds(filepath.Join(again, "a.txt"), "before")
}

func TestRestoredFilesComeBackWithTheUndoThatIsNamed(t *testing.T) {
	w := newWorld(t)
	dir := w.dir(map[string]string{"a.txt": "old", "mine.txt": "m"})
	id := w.ended(1, "it", dir)
	w.take(id, dir, 0)
	w.write(filepath.Join(dir, "a.txt"), "new")
	w.take(id, dir, 1)
	w.write(filepath.Join(dir, "mine.txt"), "since then")
	r, err := w.restore(t.Context(), nil, ipc.RestoreRequest{Target: "it", Step: new(0)})
	if err != nil {
		t.Fatal(err)
	}
	w.holds(filepath.Join(dir, "a.txt"), "old")
	w.holds(filepath.Join(dir, "mine.txt"), "m")
	_, snap, _ := strings.Cut(r.Undo, "--snapshot ")
	if _, err := w.restore(t.Context(), nil, ipc.RestoreRequest{Target: "it", Snapshot: snap}); err != nil {
		t.Fatalf("%s: %v", r.Undo, err)
	}
	w.holds(filepath.Join(dir, "a.txt"), "new")
	w.holds(filepath.Join(dir, "mine.txt"), "since then")
}

// Who works in a directory, above it or below it, keeps files from being put back there; who is paused does not.
func TestNoFilesArePutBackBelowWhoWorksThere(t *testing.T) {
	w := newWorld(t)
	dir := w.dir(map[string]string{"a.txt": "old"})
	w.take(w.ended(1, "it", dir), dir, 0)
	req := ipc.RestoreRequest{Target: "it", Step: new(0)}
	w.write(filepath.Join(dir, "a.txt"), "new")
	for where, c := range map[string]struct {
		i    kernel.Info
		free bool
	}{
		"there":     {kernel.Info{ProcStatus: types.ProcStatus{WorkDir: dir}, State: types.StateRunning}, false},
		"above":     {kernel.Info{ProcStatus: types.ProcStatus{WorkDir: filepath.Dir(dir)}, State: types.StateRunning}, false},
		"below":     {kernel.Info{ProcStatus: types.ProcStatus{WorkDir: filepath.Join(dir, "sub")}, State: types.StateRunning}, false},
		"beside":    {kernel.Info{ProcStatus: types.ProcStatus{WorkDir: dir + "x"}, State: types.StateRunning}, true},
		"paused":    {kernel.Info{ProcStatus: types.ProcStatus{WorkDir: dir}, State: types.StateRunning, Paused: true}, true},
		"ended":     {kernel.Info{ProcStatus: types.ProcStatus{WorkDir: dir}, State: types.StateDead}, true},
		"elsewhere": {kernel.Info{State: types.StateRunning}, true},
	} {
		c.i.PID, c.i.UUID = 7, types.NewUUID()
		w.live = []kernel.Info{c.i}
		if _, err := w.restore(t.Context(), nil, req); (err == nil) != c.free || err != nil && types.CodeOf(err) != types.ErrConflict {
			t.Errorf("%s: %v", where, err)
		}
	}
	w.inside = 7
	if _, err := w.restore(t.Context(), nil, req); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("an agent puts files back: %v", err)
	}
}

// What is taken back is what the call names and nothing beside it; the process knows these files then, as it does after it has read them.
func TestUndoTouchesWhatTheCallNamesOnly(t *testing.T) {
	w := newWorld(t)
	dir := w.dir(map[string]string{"a.txt": "a", "b.txt": "b"})
	p := Worker{PID: 4, UUID: w.ended(4, "it", dir), WorkDir: dir}
	before, _, err := w.Snapshots.Take(t.Context(), p, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		w.write(filepath.Join(dir, name), "changed")
	}
	for _, bad := range []step.Intent{{Before: before, Input: json.RawMessage(`{"command":"x"}`)}, {Input: json.RawMessage(`{"path":"a.txt"}`)}} {
		if err := w.Snapshots.Undo(t.Context(), p, &bad); types.CodeOf(err) != types.ErrInDoubt {
			t.Errorf("%s: %v", bad.Input, err)
		}
	}
	call := step.Intent{Before: before, Input: json.RawMessage(`{"path":"a.txt","to":` + quoted(filepath.Join(dir, "c.txt")) + `}`)}
	if err := w.Snapshots.Undo(t.Context(), p, &call); err != nil {
		t.Fatal(err)
	}
	w.holds(filepath.Join(dir, "a.txt"), "a")
	w.holds(filepath.Join(dir, "b.txt"), "changed")
	w.holds(filepath.Join(dir, "c.txt"), "")
	if len(w.known) != 1 || w.known[0] != filepath.Join(dir, "a.txt") {
		t.Errorf("it knows %v", w.known)
	}
}

func quoted(s string) string { b, _ := json.Marshal(s); return string(b) }

func TestSnapshotsThatAreOffSayHowTheyAreSwitchedOn(t *testing.T) {
	w := newWorld(t)
	w.Snapshots.off = true
	w.ended(1, "it", w.dir(nil))
	if w.Snapshots.Check(t.Context()) != nil {
		t.Error("snapshots are checked that are switched off")
	}
	of, _ := w.Resolve("it")
	_, _, ferr := w.Snapshots.Fork(t.Context(), types.NewUUID(), &of, 0, "/")
	_, derr := w.diff(t.Context(), nil, ipc.DiffRequest{Target: "it", To: new(0)})
	for _, err := range []error{ferr, derr} {
		if types.CodeOf(err) != types.ErrUnavailable {
			t.Error(err)
		}
	}
}

// A snapshot is checked where it was taken, also if a fork names it, and only once.
func TestASnapshotIsCheckedOnceWhoeverNamesIt(t *testing.T) {
	w := newWorld(t)
	dir := w.dir(map[string]string{"a.txt": "a"})
	origin, fork := w.ended(1, "origin", dir), w.ended(2, "fork", dir)
	w.stored[1].OriginUUID = origin
	w.take(origin, dir, 1)
	snap := w.trails[origin].Files[0].Snapshot
	if got := w.Snapshots.takenBy(t.Context(), fork, &snap); got != origin {
		t.Errorf("taken by %s", got)
	}
	check := w.Snapshots.Check(t.Context())
	if err := check(fork, snap); err != nil {
		t.Error(err)
	}
	if err := w.Snapshots.Drop(t.Context(), origin); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Snapshots.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := check(origin, snap); err != nil {
		t.Errorf("it was asked again: %v", err)
	}
	if err := w.Snapshots.Check(t.Context())(origin, snap); err == nil {
		t.Error("a snapshot that is gone is whole")
	}
}

func TestPathsStayInTheDirectory(t *testing.T) {
	w := newWorld(t)
	top := w.dir(map[string]string{"a": ""})
	for path, want := range map[string]string{"a": "sub/a", "../b": "b", top + "/x/y": "x/y", "../../c": "refused", "/etc/passwd": "refused", "": "refused", ":(top)": "refused"} {
		got, err := below("Test", top, filepath.Join(top, "sub"), []string{path})
		if (err != nil) != (want == "refused") || err == nil && (len(got) != 1 || got[0] != want) {
			t.Errorf("%q is %q, want %s (%v)", path, got, want, err)
		}
	}
	if got, err := below("Test", top, top, []string{"a", "."}); got != nil || err != nil {
		t.Errorf("all of it is %q, %v", got, err)
	}
	if !Within(top, top) || !Within(top+"/a", top) || Within(top+"a", top) || Within(filepath.Dir(top), top) {
		t.Error("within is wrong")
	}
	if ref := (workspace.Ref{Root: top}); w.Snapshots.topOf(&past{Target: service.Target{}}, "/elsewhere", ref) != "" {
		t.Error("files of elsewhere are put back")
	}
}
