package ash

import (
	"os"
	"testing"
	"time"
)

func TestOnlyAPipeThatStaysOpenMayBringMore(t *testing.T) {
	for name, c := range map[string]struct {
		with func(w *os.File)
		want bool
	}{
		"with something": {func(w *os.File) { _, _ = w.WriteString("x"); w.Close() }, true},
		"open":           {func(*os.File) {}, true},
		"closed":         {func(w *os.File) { w.Close() }, false},
		"closed later":   {func(w *os.File) { time.AfterFunc(20*time.Millisecond, func() { w.Close() }) }, false},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		if c.with(w); mayBring(r) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}
