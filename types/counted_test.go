package types

import "testing"

func TestOneThingIsNotSeveral(t *testing.T) {
	for n, want := range map[int]string{0: "0 lines", 1: "1 line", 2: "2 lines"} {
		if got := Counted(n, "line", "lines"); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
