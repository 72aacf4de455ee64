package kernel

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"rnix/internal/redact"
	"rnix/types"
	"rnix/vfs"
)

func TestLabelsAreOfTheProcessAloneAndInItsRecord(t *testing.T) {
	s := newSys(t)
	both := make(chan struct{}) // the parent lives until it has both children
	s.model = func(_ context.Context, c vfs.Caller, turn int) (reply, error) {
		if c.PID == 1 && turn == 1 {
			<-both
			return reply{Calls: []string{`spawn {"intent":"kid"}`}}, nil
		}
		return reply{Content: "end"}, nil
	}
	given := types.Labels{"env": "prod", "title": "two words"}
	pid := s.spawn(func(o *SpawnOpts) { o.Labels = given })
	given["env"] = "changed by its owner"
	below := s.spawn(func(o *SpawnOpts) { o.ParentPID = pid })
	close(both)
	i, err := s.WaitInfo(t.Context(), pid)
	if err != nil || i.Labels.String() != `env=prod title="two words"` {
		t.Errorf("%v %v", i.Labels, err)
	}
	for _, kid := range []types.PID{below, below + 1} {
		if i, err := s.WaitInfo(t.Context(), kid); err != nil || i.Labels != nil {
			t.Errorf("child %d has %v, %v", kid, i.Labels, err)
		}
	}
	var recorded struct{ Labels map[string]string }
	if err := json.Unmarshal(s.stores.of(i.UUID).committed[0].Marker.Detail, &recorded); err != nil || len(recorded.Labels) != 2 || recorded.Labels["env"] != "prod" {
		t.Errorf("%v %v", recorded, err)
	}
}

func TestStatusInProcShowsLabels(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	for _, c := range []struct {
		labels types.Labels
		want   string
	}{{types.Labels{"b": "x", "a": "two words"}, "\nlabels:\ta=\"two words\" b=x\n"}, {nil, "\nlabels:\t\n"}} {
		st, ok := s.Proc().Status(s.spawn(func(o *SpawnOpts) { o.Labels = c.labels }))
		if text := st.String(); !ok || !strings.Contains(text, c.want) {
			t.Errorf("%q is not in:\n%s", c.want, text)
		}
	}
}

func TestABadLabelStartsNothing(t *testing.T) {
	s := newSys(t)
	for _, l := range []types.Labels{{"a b": "x"}, {"a": "\x1b[2J"}, {"a": strings.Repeat("v", 256)}} {
		if _, err := s.Spawn("work", nil, opts(func(o *SpawnOpts) { o.Labels = l })); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", l, err)
		}
	}
	s.model = finish("done")
	if pid := s.spawn(); pid != 1 {
		t.Errorf("PID %d: others were spent", pid)
	}
}

func TestALabelKeepsNoSecret(t *testing.T) {
	set := new(redact.Set)
	set.Add(redact.Secret{Name: "KEY", Value: "sk-canary-4711"})
	s := newSys(t, func(c *Config) { c.Secrets = set })
	s.model = untilKilled
	given := types.Labels{"key": "is sk-canary-4711"}
	i, err := s.Info(s.spawn(func(o *SpawnOpts) { o.Labels = given }))
	if err != nil || i.Labels["key"] != "is [secret KEY]" || given["key"] != "is sk-canary-4711" {
		t.Errorf("%v %v, given %v", i.Labels, err, given)
	}
}
