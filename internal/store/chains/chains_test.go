package chains

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/step/journaltest"
	"rnix/internal/store"
	"rnix/types"
)

// node returns a node over files in dir.
func (c *Chains) open(t *testing.T, name, dir string) *Node {
	t.Helper()
	files, err := store.Open(durable.OS, dir, step.Unsynced)
	if err != nil {
		t.Fatal(err)
	}
	n := c.Node(name, files)
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func TestNodeIsAJournal(t *testing.T) {
	lose := map[string]func(c *Chains, n *Node, dir string) (next string){
		"closed": func(_ *Chains, n *Node, dir string) string { _ = n.Close(); return dir },
		"lost with its disk": func(_ *Chains, n *Node, dir string) string {
			n.Expire()
			return filepath.Join(dir, "other")
		},
	}
	for name, lose := range lose {
		t.Run(name, func(t *testing.T) {
			journaltest.Run(t, func(t *testing.T) (step.Journal, func() step.Journal) {
				c, dir := New(), t.TempDir()
				n := c.open(t, "first", dir)
				return n, func() step.Journal {
					dir = lose(c, n, dir)
					n = c.open(t, "next", dir)
					return n
				}
			})
		})
	}
}

func marker(t *testing.T, seq uint64, text string) []byte {
	b, err := step.Encode(nil, &step.Record{V: step.FormatVersion, Kind: step.KindMarker, Seq: seq, Marker: &step.Marker{Name: step.MarkerInput, Text: text}})
	if err != nil {
		t.Error(err)
	}
	return b
}

func texts(t *testing.T, j step.Journal, id types.UUID) (out []string) {
	for r, err := range j.Replay(context.Background(), id, 1) {
		if err != nil {
			t.Error(err)
			return nil
		}
		out = append(out, r.Marker.Text)
	}
	return out
}

func TestAFormerOwnerIsFencedByAnotherNode(t *testing.T) {
	c, id := New(), types.NewUUID()
	a, b := c.open(t, "a", t.TempDir()), c.open(t, "b", t.TempDir())
	old, err := a.Acquire(t.Context(), id, "test")
	if err == nil {
		err = a.Commit(t.Context(), id, old.Epoch, 1, marker(t, 1, "one"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(t.Context(), id, "test"); types.CodeOf(err) != types.ErrConflict {
		t.Fatalf("taken from one that holds it: %v", err)
	}
	a.Expire()
	if err := a.Commit(t.Context(), id, old.Epoch, 2, marker(t, 2, "two")); err != nil {
		t.Fatalf("nobody has taken it: %v", err)
	}
	lease, err := b.Open(t.Context(), id, "test")
	if err != nil || lease.Next != 3 || lease.Epoch <= old.Epoch {
		t.Fatalf("%+v, %v", lease, err)
	}
	for what, err := range map[string]error{
		"Commit": a.Commit(t.Context(), id, old.Epoch, 3, marker(t, 3, "zombie")), "Renew": a.Renew(t.Context(), id, old.Epoch), "Release": a.Release(t.Context(), id, old.Epoch),
	} {
		if !errors.Is(err, step.ErrFenced) || types.CodeOf(err) != types.ErrConflict {
			t.Errorf("%s of the former owner: %v", what, err)
		}
	}
	if err := b.Commit(t.Context(), id, lease.Epoch, 3, marker(t, 3, "three")); err != nil {
		t.Fatal(err)
	}
	want := []string{"one", "two", "three"}
	for _, j := range []step.Journal{a, b, b.Opened} {
		if got := texts(t, j, id); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestNodesThatStealLoseNothing has nodes take histories from each other while they write them. What was acknowledged is there once, in its
// order, and nothing else is.
func TestNodesThatStealLoseNothing(t *testing.T) {
	ctx, c := t.Context(), New()
	nodes := []*Node{c.open(t, "a", t.TempDir()), c.open(t, "b", t.TempDir())}
	for _, n := range nodes {
		n.Expire()
	}
	ids := []types.UUID{types.NewUUID(), types.NewUUID(), types.NewUUID()}
	turns := soak.Pick(t, "turns of each thief", 60, 2000)
	var mu sync.Mutex
	acked := map[types.UUID]map[uint64]string{}
	for _, id := range ids {
		acked[id] = map[uint64]string{}
	}
	var fenced atomic.Int64
	var wg sync.WaitGroup
	for k, n := range nodes {
		for who := range ids {
			wg.Go(func() { // ends after its turns; Wait below
				for turn := range turns {
					id := ids[(who+turn)%len(ids)]
					lease, err := n.Acquire(ctx, id, "thief")
					if types.CodeOf(err) == types.ErrConflict {
						continue // another thief of the same node has it
					}
					if err != nil {
						t.Error(err)
						return
					}
					for i := range uint64(5) {
						seq, text := lease.Next+i, fmt.Sprint(k, who, turn, i)
						if err = n.Commit(ctx, id, lease.Epoch, seq, marker(t, seq, text)); err != nil {
							break
						}
						mu.Lock()
						if was := acked[id][seq]; was != "" {
							t.Errorf("record %d was acknowledged to %s and to %s", seq, was, text)
						}
						acked[id][seq] = text
						mu.Unlock()
					}
					if err == nil {
						err = n.Release(ctx, id, lease.Epoch)
					}
					if errors.Is(err, step.ErrFenced) {
						fenced.Add(1)
					} else if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	if fenced.Load() == 0 {
		t.Error("nobody was fenced")
	}
	for _, id := range ids {
		for _, n := range nodes {
			got := texts(t, n, id)
			if len(got) != len(acked[id]) {
				t.Errorf("%d records, %d were acknowledged", len(got), len(acked[id]))
			}
			for i, text := range got {
				if acked[id][uint64(i)+1] != text {
					t.Errorf("record %d is %s, %s was acknowledged", i+1, text, acked[id][uint64(i)+1])
				}
			}
			lease, err := n.Open(ctx, id, "test") // its copy is brought up to the tail
			if err != nil {
				t.Fatal(err)
			}
			if copied := texts(t, n.Opened, id); !slices.Equal(copied, got) {
				t.Errorf("the copy of %s has %d records, the chain %d", n.name, len(copied), len(got))
			}
			if err := n.Release(ctx, id, lease.Epoch); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAHistoryThatItsOwnerHasRemovedIsGone(t *testing.T) {
	c, id := New(), types.NewUUID()
	n := c.open(t, "a", t.TempDir())
	lease, err := n.Acquire(t.Context(), id, "test")
	if err == nil {
		err = n.Commit(t.Context(), id, lease.Epoch, 1, marker(t, 1, "one"))
	}
	if err == nil {
		err = os.RemoveAll(n.Dir(id)) // as who archives it does
	}
	if err == nil {
		err = n.Release(t.Context(), id, lease.Epoch)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Open(t.Context(), id, "test"); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("Open: %v", err)
	}
	for _, err := range n.Replay(t.Context(), id, 1) {
		if types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("Replay: %v", err)
		}
	}
}
