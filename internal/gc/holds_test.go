package gc

import (
	"strings"
	"testing"

	"rnix/types"
)

func TestAHistoryIsHeldAloneOrShared(t *testing.T) {
	var h Holds
	id, other := types.UUID{1}, types.UUID{2}
	take := func(by func(types.UUID, string) (func(), error), id types.UUID, who string) func() {
		t.Helper()
		release, err := by(id, who)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	refused := func(by func(types.UUID, string) (func(), error), who string) {
		t.Helper()
		if _, err := by(id, "x"); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), who+" is at this history") {
			t.Errorf("%v; want that %s is there", err, who)
		}
	}
	first := take(h.Share, id, "rnix resume")
	second := take(h.Share, id, "rnix fork")
	take(h.Hold, other, "rnix gc")()
	first()
	first() // again is nothing
	refused(h.Hold, "rnix resume")
	third := take(h.Share, id, "rnix fsck")
	second()
	refused(h.Hold, "rnix resume")
	third()
	alone := take(h.Hold, id, "rnix rm")
	refused(h.Hold, "rnix rm")
	refused(h.Share, "rnix rm")
	alone()
	alone()
	again := take(h.Share, id, "rnix resume")
	alone() // of somebody who has left
	refused(h.Hold, "rnix resume")
	again()
	if len(h.at) > 0 {
		t.Errorf("%d are still held", len(h.at))
	}
}
