package daemon_test

import (
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// TestLabelsAreThereAfterEveryKill says that a process has its labels in each list and wherever it lies: running, paused, ended and forked, after a
// restart, a kill, and the loss of all but the records.
func TestLabelsAreThereAfterEveryKill(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if strings.Contains(r.Messages[0].Text, "end") {
			return llmtest.Reply{Text: "done"}
		}
		return llmtest.Reply{Hang: true}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	start := func(name string, l types.Labels, parent string) types.UUID {
		return s.Spawn(ipc.SpawnRequest{Intent: name, ProcSpec: types.ProcSpec{Name: name, Model: "fake", Labels: l}, Parent: parent}).UUID
	}
	want := map[types.UUID]string{
		start("run", types.Labels{"env": "prod", "place": "runs"}, ""):  "env=prod place=runs",
		start("hold", types.Labels{"env": "test", "place": "held"}, ""): "env=test place=held",
		start("end", types.Labels{"env": "prod", "place": "over"}, ""):  "env=prod place=over",
		start("plain", nil, ""): "",
	}
	want[start("kid", nil, "run")] = "" // children inherit none
	s.Await(0, event.Exited, nil)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: "hold", Signal: types.SIGPAUSE}); err != nil {
		t.Fatal(err)
	}
	f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: "end", Fork: true, Cwd: s.Dir, Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	want[f.UUID] = "env=prod place=over"
	s.Await(f.PID, event.Exited, nil)
	var all []types.UUID
	for id := range want {
		all = append(all, id)
	}
	for _, again := range []func(){
		func() {},
		func() { s.Kill(); s.Start() },
		func() { s.Stop(); s.Start() },
		func() { s.Kill(); forget(t, s, all); s.Start() },
	} {
		again()
		s.Settle()
		for id, l := range want {
			if d := detail(t, s, id.String()); d.Labels.String() != l {
				t.Errorf("%s has the labels %q, want %q", d.Name, d.Labels, l)
			}
		}
		for selectors, n := range map[string]int{"env": 4, "env=prod": 3, "env=prod place=over": 2, "env=prod place=held": 0, "": len(want)} {
			r, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true, Labels: strings.Fields(selectors)})
			if err != nil || len(r.Procs) != n {
				t.Errorf("%q selects %d of %d processes, %v", selectors, len(r.Procs), n, err)
			}
			for _, p := range r.Procs {
				if p.Labels.String() != want[p.UUID] {
					t.Errorf("the list says %q of %s, want %q", p.Labels, p.Name, want[p.UUID])
				}
			}
			if r, err := ipc.Call(t.Context(), s.Client, ipc.ListResumable, ipc.ListRequest{Labels: []string{"place=over"}}); err != nil || len(r.Procs) != 2 {
				t.Errorf("%d can be resumed, %v", len(r.Procs), err)
			}
		}
		x, err := ipc.Call(t.Context(), s.Client, ipc.ExportRun, ipc.TargetRequest{Target: "run"})
		if err != nil || len(x.Procs) != 2 || x.Procs[0].Labels.String() != "env=prod place=runs" || x.Procs[1].Labels != nil {
			t.Errorf("the export: %+v %v", x.Procs, err)
		}
	}
}

func TestBadLabelsAreRefusedOnTheWire(t *testing.T) {
	s := testenv.New(t, "RNIX_PROVIDER=offline")
	spec := types.ProcSpec{Labels: types.Labels{"a b": "x"}}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Spawn, ipc.SpawnRequest{Intent: "work", ProcSpec: spec, Cwd: s.Work, Env: s.Env}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "invalid label key") {
		t.Error(err)
	}
	for name, m := range map[string]ipc.Method[ipc.ListRequest, ipc.ListResponse]{"list_procs": ipc.ListProcs, "list_resumable": ipc.ListResumable} {
		if _, err := ipc.Call(t.Context(), s.Client, m, ipc.ListRequest{Labels: []string{"a b"}}); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.ComposeList, ipc.ListRequest{Labels: []string{"a"}}); types.CodeOf(err) != types.ErrInvalid {
		t.Error(err)
	}
	if r, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true}); err != nil || len(r.Procs) != 0 {
		t.Errorf("%d processes, %v", len(r.Procs), err)
	}
}
