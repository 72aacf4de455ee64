package step_test

import (
	"testing"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/internal/step/journaltest"
)

func TestLocalIsAJournal(t *testing.T) {
	open := func(t *testing.T, fsys durable.FS, dir string, lose func(*step.Local)) (step.Journal, func() step.Journal) {
		var j *step.Local
		restart := func() step.Journal {
			if j != nil {
				lose(j)
			}
			var err error
			if j, err = step.OpenLocal(fsys, dir, step.Synced); err != nil {
				t.Fatal(err)
			}
			return j
		}
		t.Cleanup(func() { j.Close() })
		return restart(), restart
	}
	t.Run("disk", func(t *testing.T) {
		journaltest.Run(t, func(t *testing.T) (step.Journal, func() step.Journal) {
			return open(t, durable.OS, t.TempDir(), func(j *step.Local) { j.Close() })
		})
	})
	for seed := range uint64(4) {
		t.Run("power loss", func(t *testing.T) {
			journaltest.Run(t, func(t *testing.T) (step.Journal, func() step.Journal) {
				fsys := faultfs.New("/data")
				return open(t, fsys, "/data", func(*step.Local) { fsys.Crash(seed) })
			})
		})
	}
}
