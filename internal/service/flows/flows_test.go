package flows

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/initfile"
	"rnix/internal/procview"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/internal/supervisor"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

func TestNodesOfARunOnDiskAreAsTheirOwnHistoriesSay(t *testing.T) {
	w := workflow(t, step.ProcInfo{ProcStatus: types.ProcStatus{Name: "well", Exit: exited(types.ExitOK), TokensUsed: 7}}, step.ProcInfo{ProcStatus: types.ProcStatus{Name: "badly", Exit: exited(types.ExitError)}},
		step.ProcInfo{ProcStatus: types.ProcStatus{Name: "waits"}, Suspended: true, Suspension: types.SuspendFor(types.SuspendLimit, "quota")}, step.ProcInfo{ProcStatus: types.ProcStatus{Name: "alive"}}, step.ProcInfo{ProcStatus: types.ProcStatus{Name: "unborn"}}, step.ProcInfo{ProcStatus: types.ProcStatus{Name: "ended", Exit: exited(types.ExitCancelled)}})
	w.live[id(5)] = kernel.Info{ProcStatus: types.ProcStatus{UUID: id(5), PID: 50}, State: types.StateRunning, Paused: true}
	delete(w.disk, id(6))
	for phase, ended := range map[recovery.Phase]string{recovery.Suspended: "failed", recovery.Ended: "stopped"} {
		w.states[id(1)].Phase = phase
		r, err := w.service().Status(t.Context(), nil, ipc.TargetRequest{Target: "flow"})
		if err != nil || r.TokensUsed != 7 || r.State != procview.Suspended {
			t.Fatalf("%+v, %v", r, err)
		}
		got := map[string]string{}
		for _, n := range r.Nodes {
			got[n.Name] = n.State
		}
		if want := map[string]string{"well": "succeeded", "badly": "failed", "waits": "suspended", "alive": "paused", "unborn": "waiting", "ended": ended}; !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", phase, got, want)
		}
	}
}

func TestARunOnDiskIsEndedAndPausedWhateverTheKernelRemembersOfIt(t *testing.T) {
	for name, known := range map[string]bool{"forgotten": false, "remembered": true} {
		for _, target := range []string{"1", "flow", id(1).String()} {
			w := workflow(t, step.ProcInfo{ProcStatus: types.ProcStatus{Name: "node"}, Suspended: true})
			if known {
				w.live[id(1)] = kernel.Info{ProcStatus: types.ProcStatus{UUID: id(1), PID: 1, Name: "flow", Kind: run.Kind}, State: types.StateDead, Suspended: true}
			}
			stop := stopper{w.service().runs(), w, finder{w}, w}
			if _, err := stop.down(t.Context(), nil, ipc.ComposeDownRequest{Target: target, Pause: true}); err != nil || !slices.Equal(w.done, []string{"pause flow", "pause node"}) {
				t.Errorf("%s, %s: %q, %v", name, target, w.done, err)
			}
			w.done = nil
			if _, err := stop.down(t.Context(), new(ipc.Peer), ipc.ComposeDownRequest{Target: target}); types.CodeOf(err) != types.ErrPermission || w.done != nil {
				t.Errorf("%s, %s, by an agent: %q, %v", name, target, w.done, err)
			}
			if _, err := stop.down(t.Context(), nil, ipc.ComposeDownRequest{Target: target}); err != nil || !slices.Equal(w.done, []string{"dismiss flow"}) {
				t.Errorf("%s, %s: %q, %v", name, target, w.done, err)
			}
		}
	}
}

// A run whose parent leaves while it is resumed is opened once more, and made anew.
func TestANodeIsDoneAgainHoweverOftenItsRunIsOpened(t *testing.T) {
	for opened := 1; opened <= 3; opened++ {
		w := workflow(t, step.ProcInfo{ProcStatus: types.ProcStatus{Name: "bad", Exit: exited(types.ExitError)}})
		w.opened = opened
		w.states[id(1)].Phase, w.states[id(1)].Exit = recovery.Ended, exited(types.ExitError)
		s := w.service()
		resp, err := resumer{s.runs(), w, finder{w}, starts{w}, w}.resume(t.Context(), nil, ipc.ComposeResumeRequest{Target: "flow", Node: "bad"})
		if err != nil || resp.PID != 99 || resp.Nodes != 1 || !slices.Equal(resp.Redo, []string{"bad"}) {
			t.Fatalf("%+v, %v", resp, err)
		}
		if last := w.bodies[opened-1].Spec(); !slices.Equal(last.Rounds, []compose.Redo{{Node: "bad"}}) {
			t.Errorf("opened %d times: %+v", opened, last.Rounds)
		}
		if _, err := (resumer{s.runs(), w, finder{w}, starts{w}, w}).resume(t.Context(), nil, ipc.ComposeResumeRequest{Target: "flow", Node: "nosuch"}); types.CodeOf(err) != types.ErrNotFound {
			t.Error(err)
		}
	}
}

// Nodes do not stay suspended for a record that cannot be written, and who asks is told.
func TestARunWhoseResumeCannotBeWrittenGoesOnWithItsNodes(t *testing.T) {
	full := types.Errorf(types.ErrStorage, "Signal", "", "no space left on device")
	for _, unwritten := range []string{"", "1", "one", "two"} {
		w := workflow(t, step.ProcInfo{ProcStatus: types.ProcStatus{Name: "one"}, Suspended: true}, step.ProcInfo{ProcStatus: types.ProcStatus{Name: "two"}, Suspended: true},
			step.ProcInfo{ProcStatus: types.ProcStatus{Name: "bad"}, Suspended: true})
		w.unwritten, w.broken = map[string]error{unwritten: full}, map[string]error{"bad": errors.New("no key")}
		var nodes []run.Node
		for n := range byte(3) {
			nodes = append(nodes, run.Node{Status: compose.Status{Key: compose.Key{Node: w.disk[id(n+2)].Name, Index: -1}, Phase: compose.Suspended, UUID: id(n + 2)}})
		}
		resp := ipc.ComposeUpResponse{PID: 1}
		err := (resumer{w.service().runs(), w, finder{w}, starts{w}, w}).letGo(t.Context(), nodes, &ipc.ResumeRequest{}, &resp)
		if (types.CodeOf(err) == types.ErrStorage) != (unwritten != "") || !slices.Equal(w.done, []string{"SIGRESUME 1", "resume one", "resume two"}) {
			t.Errorf("%q cannot be written: %q, %v", unwritten, w.done, err)
		}
		if !slices.Equal(resp.Warnings, []string{"bad stays suspended: no key"}) {
			t.Errorf("%q cannot be written: %q", unwritten, resp.Warnings)
		}
	}
}

func TestEverythingWrongWithAWorkflowIsSaidBeforeAnythingStarts(t *testing.T) {
	w := &world{broken: map[string]error{"ghost": types.Errorf(types.ErrNotFound, "Spawn", "ghost", "no such agent"), "tree": types.Errorf(types.ErrConflict, "Worktree", "b", "the branch is there already")}}
	_, err := w.service().Up(t.Context(), nil, ipc.ComposeUpRequest{File: "f.yaml", Cwd: t.TempDir(), Text: "agents:\n  a: {intent: x, agent: ghost}\n  b: {intent: x, cwd: gone}\n  c: {intent: x, worktree: {branch: b}}\n  d: {intent: x, agent: \"${item}\", foreach: [ghost]}\n"})
	if err == nil || types.CodeOf(err) != types.ErrConflict {
		t.Fatal(err)
	}
	for _, part := range []string{"f.yaml:2: a: ", "no such agent", "f.yaml:3: b: ", "no such directory", "f.yaml:4: c: ", "the branch is there already"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), ": d: ") || w.started != nil {
		t.Errorf("started %v: %v", w.started, err)
	}
}

const pools = `supervisors:
  - {name: one, children: [{name: c, intent: x}]}
  - {name: two, trust_project: true, children: [{name: c, intent: x, agent: trusted}]}
`

func TestSupervisorsOfAFileAreStartedAllOrNone(t *testing.T) {
	w := &world{broken: map[string]error{}}
	v := w.service().Supervisors()
	up, err := v.up(t.Context(), nil, ipc.SuperviseRequest{Source: pools})
	if err != nil || !slices.Equal(w.started, []string{"one", "two"}) || len(up.Supervisors) != 2 || w.done != nil {
		t.Errorf("%+v, %v, %v", up, w.started, err)
	}
	w.started, w.broken["two"] = nil, errors.New("too many")
	if _, err := v.up(t.Context(), nil, ipc.SuperviseRequest{Source: pools}); err == nil || !slices.Equal(w.done, []string{"terminate 1"}) {
		t.Errorf("%v, %v, %v", w.started, w.done, err)
	}
	w.started, w.broken = nil, map[string]error{"ghost": errors.New("no such agent")}
	if _, err := v.up(t.Context(), nil, ipc.SuperviseRequest{Source: strings.Replace(pools, "intent: x}", "intent: x, agent: ghost}", 1)}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "no such agent") || w.started != nil {
		t.Errorf("%v, %v", w.started, err)
	}
}

// A supervisor that runs is left alone by the same file, and is a conflict for another one of its name.
func TestASupervisorThatRunsIsLeftAloneByTheSameFile(t *testing.T) {
	w := &world{live: map[types.UUID]kernel.Info{id(1): {ProcStatus: types.ProcStatus{UUID: id(1), PID: 7, Name: "one", Kind: supervisor.Kind}, State: types.StateRunning}}}
	decl := Declared{Spec: initfile.Supervisor{Name: "one", Strategy: "one_for_all"}}
	w.states = map[types.UUID]*recovery.State{id(1): stored(t, supervisor.Kind, decl, nil)}
	v := w.service().Supervisors()
	if pid, was, err := v.Start(t.Context(), client{w: w}, &decl, 0); pid != 7 || !was || err != nil {
		t.Error(pid, was, err)
	}
	if got, err := v.Declared(t.Context(), id(1)); err != nil || got.Init || got.Spec.Name != "one" {
		t.Errorf("%+v, %v", got, err)
	}
	decl.Init = true
	if _, _, err := v.Start(t.Context(), client{w: w}, &decl, 0); types.CodeOf(err) != types.ErrConflict || w.started != nil {
		t.Error(w.started, err)
	}
	if pid, was, err := v.Start(t.Context(), client{w: w}, &decl, 3); pid != 1 || was || err != nil { // below another process
		t.Error(pid, was, err)
	}
}

// What an ended run or supervisor has left was to end with it, and the daemon was killed before.
func TestWhatEndedOnesHaveLeftIsKnownOfTheirHistories(t *testing.T) {
	w := workflow(t, step.ProcInfo{ProcStatus: types.ProcStatus{Name: "a"}}, step.ProcInfo{ProcStatus: types.ProcStatus{Name: "b"}})
	s := w.service()
	up := w.disk[id(1)]
	for _, end := range []struct {
		phase     recovery.Phase
		suspended bool
		exit      *types.ExitStatus
		want      int
	}{{recovery.Ended, false, exited(types.ExitCancelled), 2}, {recovery.Suspended, true, exited(types.ExitError), 0}, {recovery.Running, false, nil, 0}} {
		up.Suspended, up.Exit, w.states[id(1)].Phase = end.suspended, end.exit, end.phase
		if ids := s.Left(t.Context(), &up); len(ids) != end.want {
			t.Errorf("%+v: %v", end, ids)
		}
	}
	if exit, nodes, ending := new(Service).Ending(w.states[id(1)]); ending {
		t.Error(exit, nodes)
	}
	w.states[id(1)].Notes["!ending"] = json.RawMessage(`{"exit":{"code":4,"reason":"killed"}}`)
	if exit, nodes, ending := new(Service).Ending(w.states[id(1)]); !ending || exit.Code != 4 || len(nodes) != 2 {
		t.Error(exit, nodes, ending)
	}
}
