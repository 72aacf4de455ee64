package step

import (
	"encoding/json"
	"testing"

	"rnix/internal/permit"
	"rnix/types"
)

// What a person was asked, and has granted, about the origin says nothing of a fork.
func TestAForkHasNoAsksOfItsOrigin(t *testing.T) {
	detail := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ask, grant := detail(Ask{Number: 3, CallID: "a"}), detail(permit.Grant{Number: 2, Scope: permit.ForFamily, Tool: "shell"})
	markers := []Marker{
		{Name: MarkerFork, Detail: detail(ForkDetail{Origin: types.UUID{7}, Records: 3})},
		{Name: MarkerGrant, Detail: grant}, {Name: MarkerAsk, Detail: ask}, {Name: MarkerDenied, Detail: detail(types.Denial{Tool: "shell"})}, // of the origin
		{Name: MarkerResumed}, {Name: MarkerAsk, Detail: detail(Ask{Number: 4, CallID: "a"})},
	}
	for of, want := range map[string]struct {
		skip         int
		asks, grants int
	}{"a fork": {0, 1, 0}, "no fork": {1, 2, 1}} {
		var l Life
		for i := range markers[want.skip:] {
			l.Apply(&Record{Kind: KindMarker, Seq: uint64(i + 1), Marker: &markers[want.skip+i]})
		}
		if len(l.Asks) != want.asks || len(l.Grants) != want.grants || l.Asks[len(l.Asks)-1].Number != 4 {
			t.Errorf("%s has asks %+v and grants %+v", of, l.Asks, l.Grants)
		}
	}
}
