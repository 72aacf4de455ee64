package platform

import (
	"testing"

	"rnix/runtime/heartbeat"
)

func TestHowASessionStandsIsItsLastOwnersToSay(t *testing.T) {
	for _, tt := range []struct {
		name  string
		was   tenure
		seen  heartbeat.Lease
		ours  bool
		token uint64 // that the claim gets
		stale bool
	}{
		{name: "nobody else came", was: tenure{Token: 4}, seen: heartbeat.Lease{Owner: "w", FencingToken: 4}, ours: true, token: 5},
		{name: "another came", was: tenure{Token: 4}, seen: heartbeat.Lease{Owner: "x", FencingToken: 5}, token: 6, stale: true},
		{name: "another of our name came", was: tenure{Token: 4}, seen: heartbeat.Lease{Owner: "w", FencingToken: 5}, token: 6, stale: true},
		{name: "another comes between look and claim", was: tenure{Token: 4}, seen: heartbeat.Lease{Owner: "w", FencingToken: 4}, ours: true, token: 6, stale: true},
		{name: "a claim of ours was not answered", was: tenure{Token: 4, Asked: true}, seen: heartbeat.Lease{Owner: "w", FencingToken: 5}, ours: true, token: 6},
		{name: "a claim of ours did not arrive", was: tenure{Token: 4, Asked: true}, seen: heartbeat.Lease{Owner: "w", FencingToken: 4}, ours: true, token: 5},
		{name: "another came after a claim that did not arrive", was: tenure{Token: 4, Asked: true}, seen: heartbeat.Lease{Owner: "x", FencingToken: 5}, token: 6, stale: true},
		{name: "two claims, and we made one", was: tenure{Token: 4, Asked: true}, seen: heartbeat.Lease{Owner: "w", FencingToken: 6}, token: 7, stale: true},
		{name: "once another had it", was: tenure{Token: 6, Stale: true}, seen: heartbeat.Lease{Owner: "w", FencingToken: 6}, ours: true, token: 7, stale: true},
		{name: "of another, and its token is not told", seen: heartbeat.Lease{Owner: "x"}, token: 1},
		{name: "of an older program", seen: heartbeat.Lease{Owner: "w", FencingToken: 9}, ours: true, token: 10},
	} {
		next, ours := tt.was.again("w", tt.seen)
		if ours != tt.ours {
			t.Errorf("%s: ours is %v", tt.name, ours)
		}
		if got := next.claimed(tt.token); got.Stale != tt.stale || got.Token != tt.token || got.Asked {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if got := (tenure{}).claimed(3); got.Stale || got.Token != 3 {
		t.Errorf("the first one: %+v", got)
	}
}
