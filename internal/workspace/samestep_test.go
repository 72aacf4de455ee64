package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"rnix/types"
)

// stepRef is the reference that holds the first snapshot of a step.
func stepRef(id types.UUID, step int) string { return refPrefix(id) + stepName(step) }

// A step can have several snapshots, each of which a record names: before a call that can be taken back, and after it. All of them stay, over
// sweeps too, until the history is dropped; then none does.
func TestEachSnapshotOfAStepStays(t *testing.T) { // R11
	for _, kind := range []Kind{KindGit, KindCopy} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t)
			dir := b.dir()
			if kind == KindGit {
				dir = b.repo(map[string]string{"a": "first\n"})
			}
			var taken []Snapshot
			texts := []string{"one\n", "two\n", "three\n"}
			for _, text := range texts {
				b.write(dir, map[string]string{"a": text})
				taken = append(taken, b.take(dir, 5))
			}
			other := types.NewUUID() // whose end lets a sweep look for what is not needed
			b.write(dir, map[string]string{"a": "of another\n"})
			if _, err := b.Take(t.Context(), dir, other, 1); err != nil {
				t.Fatal(err)
			}
			if err := b.Drop(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i, s := range taken {
				to := b.restored(b.ref(s, 5))
				if got, err := os.ReadFile(filepath.Join(to, "a")); err != nil || string(got) != texts[i] {
					t.Errorf("snapshot %d has %q, %v", i, got, err)
				}
			}
			if err := b.Drop(t.Context(), b.id); err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(b.recordDir(b.id)); err == nil && len(left) > 0 {
				t.Errorf("the records %v are left", left)
			}
		})
	}
}
