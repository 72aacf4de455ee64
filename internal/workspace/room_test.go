package workspace

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"rnix/types"
)

// noise returns text that does not become shorter when it is compressed.
func noise(n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b) // it has no errors
	return string(b)
}

func TestRoomCountsWhatHistoriesShareForNoneOfThem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir, big := b.dir(), noise(1<<20)
	b.write(dir, map[string]string{"big": big})
	b.take(dir, 1)
	other := &bench{t, b.Keeper, b.home, types.NewUUID()}
	other.take(dir, 1)
	other.write(dir, map[string]string{"mine": big[:300_000]})
	other.take(dir, 2)
	r, err := b.Room(t.Context())
	if err != nil || r.Own[b.id] > 10_000 || r.Own[other.id] < 300_000 || r.Own[other.id] > 310_000 || len(r.Own) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	must(t, b.Drop(t.Context(), b.id)) // now all of it belongs to the other
	if _, err = b.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err = b.Room(t.Context())
	if all := weigh(filepath.Join(b.opts.Dir, "snapshots")); err != nil || r.Own[other.id] != all || all < 1<<20 {
		t.Errorf("%+v of %d, %v", r, all, err)
	}
}

func TestRoomOfARepositoryBelongsToNoHistoryAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n"})
	b.take(dir, 1)
	b.write(dir, map[string]string{"big": noise(1 << 20)})
	b.take(dir, 2)
	r, err := b.Room(t.Context())
	if err != nil || r.Own[b.id] == 0 || r.Own[b.id] > 100_000 || weigh(filepath.Join(b.git.base, "stores")) < 1<<20 {
		t.Errorf("%+v, %v", r, err)
	}
}
