package supervisor

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"rnix/agent"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

func TestSpecThatMakesNoSenseIsRefusedByName(t *testing.T) {
	s := newSys(t)
	low := func(spec Spec) ChildSpec { return ChildSpec{Name: "low", Supervisor: &spec} }
	one := func(f func(*ChildSpec)) Spec { return Spec{Children: []ChildSpec{child("a", f)}} }
	for name, c := range map[string]struct {
		spec Spec
		at   string
		says string
	}{
		"strategy":           {Spec{Strategy: "all"}, "", `"all"; use one_for_one`},
		"restarts":           {Spec{Intensity: Intensity{MaxRestarts: -1}}, "", "-1 restarts"},
		"period":             {Spec{Intensity: Intensity{Period: -time.Second}}, "", "-1s"},
		"two of a name":      {Spec{Children: []ChildSpec{child("a"), child("a")}}, "", `"a"`},
		"no name":            {Spec{Children: []ChildSpec{child("a"), child(" ")}}, "", "child 2 has no name"},
		"two templates":      {Spec{Strategy: SimpleOneForOne, Children: []ChildSpec{child("a"), child("b")}}, "", "2 are given"},
		"no template":        {Spec{Strategy: SimpleOneForOne}, "", "0 are given"},
		"a model":            {Spec{Opts: opts()}, "", "no model"},
		"restart type":       {one(func(c *ChildSpec) { c.Restart = "always" }), "a", `"always"; use permanent`},
		"time to shut down":  {one(func(c *ChildSpec) { c.Shutdown = -time.Second }), "a", "-1s"},
		"delay":              {one(func(c *ChildSpec) { c.Backoff.Initial = -1 }), "a", "-1ns"},
		"factor":             {one(func(c *ChildSpec) { c.Backoff.Factor = 0.5 }), "a", "0.5"},
		"no factor":          {one(func(c *ChildSpec) { c.Backoff.Factor = math.NaN() }), "a", "NaN"},
		"most below initial": {one(func(c *ChildSpec) { c.Backoff = Backoff{Initial: 2, Max: 1} }), "a", "1ns at most"},
		"uuid":               {one(func(c *ChildSpec) { c.Opts.UUID = types.NewUUID() }), "a", "UUID"},
		"parent":             {one(func(c *ChildSpec) { c.Opts.ParentPID = 3 }), "a", "parent"},
		"intent":             {one(func(c *ChildSpec) { c.Intent = "" }), "a", "the intent is empty"},
		"both":               {one(func(c *ChildSpec) { c.Supervisor = &Spec{} }), "a", "a supervisor and an agent"},
		"a name below":       {Spec{Children: []ChildSpec{low(Spec{Name: "x"})}}, "low", "name"},
		"deep": {Spec{Children: []ChildSpec{low(one(func(c *ChildSpec) {
			c.Restart = "never"
		}))}}, "low/a", `"never"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.SpawnSupervisor(c.spec)
			if types.CodeOf(err) != types.ErrInvalid || !strings.HasPrefix(err.Error(), strings.TrimSpace("SpawnSupervisor "+c.at)+": ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
	if n := len(s.List()); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestWhatIsNoSupervisorIsToldSo(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	pid := s.spawn()
	if _, err := Info(s, pid); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("an agent: %v", err)
	}
	if _, err := StartChild(s, 99, "x"); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("nobody: %v", err)
	}
	sup, err := s.SpawnSupervisor(Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := StartChild(s, sup, "x"); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("one that takes none: %v", err)
	}
	for _, p := range []types.PID{pid, sup} {
		if err := s.Kill(p, types.SIGTERM); err != nil {
			t.Error(err)
		}
	}
}

func TestHistoryOfASupervisorBeginsWithItsSpecAndNoSecrets(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	steps := 7
	pid, err := s.SpawnSupervisor(Spec{Name: "sup", Strategy: RestForOne, Opts: kernel.SpawnOpts{Env: []string{"TOKEN=hidden"}}, Children: []ChildSpec{
		{Name: "low", Supervisor: &Spec{Strategy: SimpleOneForOne, Children: []ChildSpec{child("w", kind(Temporary))}}},
		child("a", func(c *ChildSpec) {
			c.Agent, c.Backoff, c.Opts.MaxSteps, c.Opts.Env = &agent.Agent{Manifest: agent.Manifest{Name: "clerk"}}, Backoff{Initial: time.Second}, &steps, []string{"KEY=hidden"}
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	i, err := s.Info(pid)
	if err != nil {
		t.Fatal(err)
	}
	rec := s.stores.of(i.UUID)
	rec.mu.Lock()
	detail := rec.committed[0].Marker.Detail
	rec.mu.Unlock()
	var got step.Settled
	if err := json.Unmarshal(detail, &got); err != nil || strings.Contains(string(detail), "hidden") {
		t.Fatalf("%v in %s", err, detail)
	}
	if got.UUID != i.UUID || got.Intent != "keep running: low, a" || got.Agent != "supervisor (rest_for_one)" || got.V != step.FormatVersion {
		t.Errorf("%+v", got.ProcInfo)
	}
	want := `{"strategy":"rest_for_one","max_restarts":3,"period_ns":60000000000,"children":[` +
		`{"name":"low","restart":"permanent","shutdown_ns":-2,"allowed_devices":null,"supervisor":{"strategy":"simple_one_for_one","max_restarts":3,"period_ns":60000000000,"children":[` +
		`{"name":"w","restart":"temporary","shutdown_ns":5000000000,"intent":"be w","provider":"m","allowed_devices":null,"work_dir":"/"}]}},` +
		`{"name":"a","restart":"permanent","shutdown_ns":5000000000,"backoff_ns":1000000000,"intent":"be a","agent":"clerk","provider":"m","max_steps":7,"allowed_devices":null,"work_dir":"/"}]}`
	if got.Body == nil || got.Body.Kind != Kind || string(got.Body.Spec) != want {
		t.Errorf("%+v\nwant %s", got.Body, want)
	}
	if err := s.Kill(pid, types.SIGTERM); err != nil {
		t.Error(err)
	}
}
