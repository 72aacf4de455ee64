package step

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"rnix/internal/durable"
	"rnix/internal/permit"
	"rnix/types"
)

// With a lost or a damaged counter no ask has the number of another one, of which a grant may still count.
func TestNumbersOfAsksDoNotComeBackAfterTheirCounterIsLost(t *testing.T) {
	for what, harm := range map[string]func(file string) error{
		"lost":    os.Remove,
		"damaged": func(file string) error { return os.WriteFile(file, []byte(`{"v":1,"next":2,"sum":7}`), 0o600) },
	} {
		dir := t.TempDir()
		l := openLocal(t, durable.OS, dir)
		id := types.NewUUID()
		w := newWriter(t, l, id)
		must(t, l.Index().Put(ProcInfo{ProcStatus: types.ProcStatus{UUID: id, PID: 1}}))
		add := func(m Marker, err error) {
			t.Helper()
			if err == nil {
				err = w.Marker(&m)
			}
			if err == nil {
				err = w.Commit(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		add(Marker{Name: MarkerSpawn, PID: 1, Text: `"ask" and "grant"`}, nil)
		add(AskMarker(1, &Ask{Number: 41, CallID: "c"}))
		add(AnswerMarker(1, &Answered{Number: 41, CallID: "c", Allow: true}))
		add(GrantMarker(1, &permit.Grant{Number: 40}))
		add(GrantMarker(1, &permit.Grant{Number: durable.MaxCounter}))
		next := func() uint64 {
			t.Helper()
			c, err := AskNumbers(l)
			if err != nil {
				t.Fatal(err)
			}
			n, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := next(); n != 42 {
			t.Errorf("without a counter: %d", n)
		}
		if err := harm(filepath.Join(dir, askFile)); err != nil {
			t.Fatal(err)
		}
		if n := next(); n != 42 {
			t.Errorf("%s: %d, want 42", what, n)
		}
		// What was archived or deleted cannot be looked at.
		if err := OpenTombs(l.fs, l.dir).Add(Tomb{UUID: types.NewUUID(), PID: 7}); err != nil {
			t.Fatal(err)
		}
		if err := harm(filepath.Join(dir, askFile)); err != nil {
			t.Fatal(err)
		}
		if n, least := next(), uint64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()); n < least {
			t.Errorf("%s, with what is gone: %d", what, n)
		}
	}
}
