package records

import (
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/recovery/recoverytest"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/types"
)

// countingFS counts the bytes that are written to checkpoints.
type countingFS struct {
	durable.FS
	checkpoints *atomic.Int64
}

func (c countingFS) OpenFile(name string, flag int, perm fs.FileMode) (durable.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err == nil && strings.Contains(filepath.Base(name), step.CheckpointFile) {
		f = countingFile{f, c.checkpoints}
	}
	return f, err
}

type countingFile struct {
	durable.File
	written *atomic.Int64
}

func (c countingFile) Write(b []byte) (int, error) {
	n, err := c.File.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// BenchmarkCheckpoints measures what the recorder of a history writes into checkpoints over so many steps,
// each of which is waited for, beside what it writes into the history itself.
func BenchmarkCheckpoints(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		written, history := new(atomic.Int64), int64(0)
		fsys := countingFS{durable.OS, written}
		j, err := store.Open(fsys, b.TempDir(), step.Unsynced)
		if err != nil {
			b.Fatal(err)
		}
		defer j.Close()
		told := types.NewUUID()
		lease, err := j.Acquire(b.Context(), told, "benchmark")
		if err != nil {
			b.Fatal(err)
		}
		w := step.NewWriter(j, told, lease)
		story, err := recoverytest.Write(b.Context(), w, rand.New(rand.NewPCG(1, 1)), recoverytest.Options{Steps: n, Plain: true})
		if err == nil {
			err = w.Close(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
		cfg := config.Checkpoint{EverySteps: config.Value[int]{V: config.DefaultCheckpointSteps}}
		s := New(j, "benchmark", cfg, slog.New(slog.DiscardHandler))
		measure := func(b *testing.B) {
			written.Store(0)
			id := types.NewUUID()
			r, err := s.Create(id)
			if err != nil {
				b.Fatal(err)
			}
			for i := range story.Records {
				rec := &story.Records[i]
				if err := r.Add(*rec); err != nil {
					b.Fatal(err)
				}
				if rec.Kind == step.KindStep {
					if err := r.Commit(); err != nil {
						b.Fatal(err)
					}
					s.checkpoints.close() // waits: else a fast history has fewer
				}
			}
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
			s.checkpoints.close()
			info, err := durable.OS.Stat(filepath.Join(j.Dir(id), step.StepsFile))
			if err != nil {
				b.Fatal(err)
			}
			history = info.Size()
		}
		for name, figure := range map[string]func() int64{"written": written.Load, "history": func() int64 { return history }} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					measure(b)
				}
				b.ReportMetric(float64(figure())/float64(n), "B/step")
			})
		}
	}
}
