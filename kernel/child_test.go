package kernel

import (
	"context"
	"strings"
	"testing"
	"time"

	"rnix/agent"
	"rnix/types"
	"rnix/vfs"
)

func TestTheSmallestLimitOfAChildCounts(t *testing.T) {
	n := func(v int) *int { return &v }
	for _, c := range []struct {
		limits []*int
		want   *int
	}{
		{nil, nil},
		{[]*int{nil, nil}, nil},
		{[]*int{nil, n(0)}, n(0)},
		{[]*int{n(0), n(5)}, n(5)},
		{[]*int{n(5), n(0)}, n(5)},
		{[]*int{n(7), nil, n(3), n(9)}, n(3)},
	} {
		got := least(c.limits...)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%v: got %v", c.limits, got)
		}
	}
}

func TestAModelCannotRaiseTheLimitsOfItsChild(t *testing.T) {
	steps, budget := 4, 20
	s := newSys(t, func(c *Config) {
		c.Catalog = agents{load: func(*Process, string) (*agent.Agent, SpawnOpts, error) {
			return &agent.Agent{Manifest: agent.Manifest{MaxSteps: &steps, ContextBudget: &budget}}, SpawnOpts{}, nil
		}}
	})
	s.model = func(_ context.Context, c vfs.Caller, turn int) (reply, error) {
		if c.PID == 1 && turn == 1 {
			return reply{Calls: []string{`spawn {"intent":"kid","max_steps":0}`, `spawn {"intent":"kid","max_steps":900}`, `spawn {"intent":"kid","max_steps":2}`}}, nil
		}
		return reply{Content: "end"}, nil
	}
	pid := s.spawn(func(o *SpawnOpts) { b := 1000; o.ContextBudget = &b })
	if i, err := s.WaitInfo(t.Context(), pid); err != nil || i.Exit.Code != types.ExitOK {
		t.Fatalf("%+v %v", i, err)
	}
	got := map[int]bool{}
	for _, kid := range []types.PID{2, 3} {
		i, err := s.Info(kid)
		if err != nil || i.ContextBudget != 20 {
			t.Errorf("%+v %v", i, err)
		}
		got[i.MaxSteps] = true
	}
	if !got[4] || !got[2] {
		t.Errorf("step limits %v", got)
	}
	if _, err := s.Info(4); err == nil {
		t.Error("a child without any step limit was started")
	}
}

func TestProcShowsEveryLimit(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	ag := &agent.Agent{Manifest: agent.Manifest{StepTimeout: agent.Duration(3 * time.Minute)}}
	pid, err := s.Spawn("x", ag, opts(func(o *SpawnOpts) { o.DeniedDevices, o.Timeout = []string{"/dev/shell"}, time.Hour }))
	if err != nil {
		t.Fatal(err)
	}
	f, err := vfs.NewProcFS(s.Proc(), s.VFS()).Open("/"+pid.String()+"/limits", vfs.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.(vfs.CallerBinder).BindCaller(vfs.Caller{}); err != nil {
		t.Fatal(err)
	}
	text, err := f.Read(0)
	for _, want := range []string{"timeout:\t1h0m0s\n", "step_timeout:\t3m0s\n", "denied_devices:\t/dev/shell\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in %s (%v)", want, text, err)
		}
	}
	_ = s.Kill(pid, types.SIGKILL)
}
