package confine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/sandbox"
)

// What a program refreshes by another file is the user's while the program runs, and what the user refreshes, the program's.
func TestALoginIsTheSameWhileAProgramRuns(t *testing.T) {
	for _, name := range []string{"claude", "opencode"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.can(sandbox.RungBwrap)
				l := lookup(t, name).Login()
				users := filepath.Join(w.Home, l.Dir, l.Files[0])
				put(t, users, `{"a":{"type":"oauth","access":"1"}}`)
				c, err := w.CLI(w.caller, lookup(t, name), name, filepath.Join(w.Data, "session"), false)
				if err != nil {
					t.Fatal(err)
				}
				own := filepath.Join(c.Home, l.Dir, l.Files[0])
				info, err := os.Stat(own) // files have the time outside of the bubble
				if err != nil {
					t.Fatal(err)
				}
				at := info.ModTime().Add(time.Hour)
				replace := func(path, text string) {
					t.Helper()
					put(t, path+".new", text)
					if err := os.Chtimes(path+".new", at, at); err != nil {
						t.Fatal(err)
					}
					if err := os.Rename(path+".new", path); err != nil {
						t.Fatal(err)
					}
					at = at.Add(time.Hour)
				}
				token := func(path string) string {
					t.Helper()
					var login struct{ A struct{ Access string } }
					if err := json.Unmarshal([]byte(has(t, path)), &login); err != nil {
						t.Fatal(err)
					}
					return login.A.Access
				}
				replace(own, `{"a":{"type":"oauth","access":"2"}}`)
				<-time.After(loginTime + time.Second)
				if token(users) != "2" || token(own) != "2" {
					t.Errorf("what it has refreshed: %s, and its own %s", has(t, users), has(t, own))
				}
				replace(users, `{"a":{"type":"oauth","access":"3"}}`)
				<-time.After(loginTime + time.Second)
				if token(own) != "3" {
					t.Errorf("what the user has refreshed: %s", has(t, own))
				}
				replace(own, `{"a":{"type":"oauth","access":"4"}}`)
				if c.Done(); token(users) != "4" {
					t.Errorf("at its end: %s", has(t, users))
				}
				c.Done() // nothing goes on, or the bubble does not end
			})
		})
	}
}
