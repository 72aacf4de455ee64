package step

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// A record goes to a file that is open, so that one look at the data directory is good for all records of a millisecond; the first after it is refused
// when the directory is gone, and whatever goes by a path is refused at once.
func TestADirectoryThatIsTakenAwayIsNoticed(t *testing.T) {
	for name, take := range map[string]func(dir string) error{
		"removed": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "data", stepsDir)) },
		"moved":   func(dir string) error { return os.Rename(filepath.Join(dir, "data"), filepath.Join(dir, "away")) },
		"replaced": func(dir string) error {
			if err := os.Rename(filepath.Join(dir, "data"), filepath.Join(dir, "away")); err != nil {
				return err
			}
			return os.MkdirAll(filepath.Join(dir, "data", stepsDir), 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Second)
				c, err := TakeClaim(durable.OS, filepath.Join(dir, "data"))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				time.Sleep(time.Second)
				if err := c.CheckOpen(); err != nil {
					t.Fatal(err)
				}
				if err := take(dir); err != nil {
					t.Fatal(err)
				}
				time.Sleep(glance - 1)
				if err := c.CheckOpen(); err != nil {
					t.Errorf("within the moment: %v", err)
				}
				time.Sleep(time.Nanosecond)
				if err := c.CheckOpen(); types.CodeOf(err) != types.ErrConflict {
					t.Errorf("after it: %v, want CONFLICT", err)
				}
				if err := c.Check(); types.CodeOf(err) != types.ErrConflict {
					t.Errorf("Check: %v, want CONFLICT", err)
				}
				select {
				case <-c.Lost():
				default:
					t.Error("nobody is told that the directory is gone")
				}
			})
		})
	}
}

func TestWhatGoesByAPathIsCheckedEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		c, err := TakeClaim(durable.OS, dir)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		time.Sleep(time.Second)
		if err := c.CheckOpen(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		if err := c.Check(); types.CodeOf(err) != types.ErrConflict {
			t.Errorf("a moment later: %v, want CONFLICT", err)
		}
		if err := c.CheckOpen(); types.CodeOf(err) != types.ErrConflict {
			t.Errorf("for a record after it: %v, want CONFLICT", err)
		}
	})
}
