package daemon

import (
	"testing"
	"time"

	"rnix/internal/step"
	"rnix/types"
)

func TestANameMeansWhatIsNotOverOrTheLatestChild(t *testing.T) {
	now := time.Now()
	of := func(pid types.PID, name string, parent types.PID, suspended bool, age int) target {
		return target{pid: pid, info: &step.ProcInfo{PID: pid, Name: name, PPID: parent, Suspended: suspended, CreatedAt: now.Add(-time.Duration(age) * time.Hour)}}
	}
	for what, c := range map[string]struct {
		in   []target
		want []types.PID
	}{
		"none":                   {nil, nil},
		"one that has ended":     {[]target{of(1, "a", 0, false, 1)}, []types.PID{1}},
		"those of people":        {[]target{of(1, "a", 0, false, 2), of(2, "a", 0, false, 1)}, []types.PID{1, 2}},
		"a child and another":    {[]target{of(1, "a", 0, false, 2), of(2, "a", 1, false, 1)}, []types.PID{1, 2}},
		"children, one by one":   {[]target{of(3, "a", 1, false, 2), of(5, "a", 4, false, 1), of(2, "a", 1, false, 3)}, []types.PID{5}},
		"a suspended one":        {[]target{of(1, "a", 0, false, 2), of(2, "a", 0, true, 3), of(3, "a", 9, false, 1)}, []types.PID{2}},
		"several that go on":     {[]target{of(1, "a", 0, true, 2), of(2, "a", 0, true, 3)}, []types.PID{1, 2}},
		"beginnings of a UUID":   {[]target{of(1, "x", 7, false, 2), of(2, "y", 7, false, 3)}, []types.PID{1, 2}},
		"a beginning, suspended": {[]target{of(1, "x", 7, true, 2), of(2, "y", 7, false, 3)}, []types.PID{1, 2}},
	} {
		got := preferred(c.in, "a")
		if len(got) != len(c.want) {
			t.Errorf("%s: %d processes, want %v", what, len(got), c.want)
			continue
		}
		for i, pid := range c.want {
			if got[i].pid != pid {
				t.Errorf("%s: PID %d, want %v", what, got[i].pid, c.want)
			}
		}
	}
}
