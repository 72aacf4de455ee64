package proc

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"rnix/types"
)

func TestALeaseIsDueWhenItsGraceIsOverAndNothingElseWasSaid(t *testing.T) {
	var a, b, c types.UUID
	a[15], b[15], c[15] = 1, 2, 3
	var l leases
	say := func(id types.UUID, until time.Duration) { l.heard(fmt.Sprintf("%s%s %d", leaseMark, id, until)) }
	say(a, time.Minute)
	say(b, time.Minute)
	say(c, time.Hour)
	l.heard(leaseMark + "nonsense")
	begin := time.Now()
	at := func(boot, now time.Duration) []types.UUID { return l.due(boot, begin.Add(now)) }
	if got := at(59*time.Second, 0); len(got) > 0 {
		t.Errorf("too early: %v", got)
	}
	if got := at(9*time.Minute, 0); len(got) > 0 { // the host was asleep
		t.Errorf("the daemon has had no time: %v", got)
	}
	say(a, 0)
	if got := at(9*time.Minute, leaseGrace); !slices.Equal(got, []types.UUID{b}) {
		t.Errorf("%v, want the one of which nothing was said", got)
	}
	if got := at(9*time.Minute, time.Hour); len(got) > 0 {
		t.Errorf("a second time: %v", got)
	}
	say(c, 10*time.Minute)
	at(11*time.Minute, 0)
	say(c, 12*time.Minute)
	if got := at(11*time.Minute, time.Hour); len(got) > 0 {
		t.Errorf("it was confirmed in time: %v", got)
	}
}
