package recovery

import (
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/recovery/recoverytest"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tb is what testing and rapid have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
}

func must(t tb, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// stored is a history on a disk.
type stored struct {
	id     types.UUID
	fs     durable.FS
	dir    string
	j      *store.Files
	given  []step.Record // as they were given to the writer
	onDisk []step.Record
	pid    types.PID
}

// write writes a history at random; every third is a fork of another one.
func write(t testing.TB, seed uint64, o recoverytest.Options) *stored {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	fsys := faultfs.New("/data")
	j, err := store.Open(fsys, "/data", step.Synced)
	must(t, err)
	t.Cleanup(func() { j.Close() })
	if !o.Plain && r.IntN(3) == 0 {
		origin := writeTo(t, j, fsys, "/data", r, o)
		o.Origin, o.OriginID = origin.given, origin.id
	}
	return writeTo(t, j, fsys, "/data", r, o)
}

func writeTo(t testing.TB, j *store.Files, fsys durable.FS, data string, r *rand.Rand, o recoverytest.Options) *stored {
	t.Helper()
	id := types.NewUUID()
	lease, err := j.Acquire(t.Context(), id, "test")
	must(t, err)
	w := step.NewWriter(j, id, lease)
	story, err := recoverytest.Write(t.Context(), w, r, o)
	must(t, err, w.Close(t.Context()))
	h, err := step.ReadHistory(t.Context(), j, id)
	must(t, err)
	if h.Damage != "" || len(h.Records) != len(story.Records) {
		t.Fatalf("%d records were written, %d read: %s", len(story.Records), len(h.Records), h.Damage)
	}
	s := &stored{id: id, fs: fsys, dir: step.Dir(data, id), j: j, given: story.Records, pid: story.PID}
	for rec, err := range j.Replay(t.Context(), id, 1) {
		must(t, err)
		s.onDisk = append(s.onDisk, rec)
	}
	for i := range s.given { // the writer gives the time
		s.given[i].Time = s.onDisk[i].Time
	}
	return s
}
