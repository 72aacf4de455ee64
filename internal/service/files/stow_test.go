package files

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"rnix/internal/step"
	"rnix/types"
)

// forgetful is a platform that forgets whatever it is told to.
type forgetful struct{}

func (forgetful) Forget(types.UUID) error { return nil }

// A deletion, or an archiving, that is cut off behind the removal of the work tree: the next start gives it back, work and all, to a history that is
// there; of one that is archived it stays away.
func TestADirectoryComesBackWhoseHistoryWasNotDeletedAfterAll(t *testing.T) {
	for name, c := range map[string]struct {
		away     func(context.Context, Clearing, types.UUID) error
		archived bool
		back     bool
	}{
		"a deletion was cut off":   {away: func(ctx context.Context, c Clearing, id types.UUID) error { _, err := c.Remove(ctx, id); return err }, back: true},
		"an archiving was cut off": {away: func(ctx context.Context, c Clearing, id types.UUID) error { _, err := c.Stow(ctx, id); return err }, back: true},
		"it is archived":           {away: func(ctx context.Context, c Clearing, id types.UUID) error { _, err := c.Stow(ctx, id); return err }, archived: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Archived = func(types.UUID) (step.Archived, bool) { return step.Archived{}, c.archived }
			id, tree := w.tree(1, "it", w.repo())
			work := filepath.Join(tree.Dir, "work.txt")
			if err := os.WriteFile(work, []byte("in no commit\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.stored = nil // it is about to leave the list, and nothing else works there
			if err := c.away(t.Context(), Clearing{Files: w.Service, Platforms: forgetful{}}, id); err != nil || exists(tree.Dir) {
				t.Fatalf("it is there: %v, %v", exists(tree.Dir), err)
			}
			if notes := w.TakeUp(t.Context()); len(notes) != 0 {
				t.Errorf("people are told %q", notes)
			}
			text, _ := os.ReadFile(work)
			if back := string(text) == "in no commit\n"; back != c.back {
				t.Errorf("it is back: %v", back)
			}
		})
	}
}
