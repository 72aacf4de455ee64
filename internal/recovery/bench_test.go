package recovery

import (
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/recovery/recoverytest"
	"rnix/internal/step"
	"rnix/internal/store"
)

// BenchmarkRecover folds histories of so many steps of three calls each, on a real disk, beside reading
// their bytes and nothing more.
func BenchmarkRecover(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		data := b.TempDir()
		j, err := store.Open(durable.OS, data, step.Unsynced)
		must(b, err)
		defer j.Close()
		s := writeTo(b, j, durable.OS, data, rand.New(rand.NewPCG(1, 1)), recoverytest.Options{Steps: n, Plain: true})
		path := filepath.Join(s.dir, step.StepsFile)
		info, err := os.Stat(path)
		must(b, err)
		src := func(from uint64) iter.Seq2[step.Record, error] { return j.Replay(b.Context(), s.id, from) }
		state := folded(s.onDisk[:len(s.onDisk)-20])
		cp := through(b, s, state)
		kept, err := os.Stat(filepath.Join(s.dir, step.CheckpointFile))
		must(b, err)

		b.Run(fmt.Sprint("bytes/", n), func(b *testing.B) {
			b.SetBytes(info.Size())
			for b.Loop() {
				f, err := os.Open(path)
				must(b, err)
				_, err = io.Copy(io.Discard, f)
				must(b, err, f.Close())
			}
		})
		read := func(cp func() *step.Checkpoint) func(b *testing.B) {
			return func(b *testing.B) {
				b.SetBytes(info.Size())
				b.ReportAllocs()
				for b.Loop() {
					s, _, damage, err := Read(src, cp())
					must(b, err)
					if s.Step != n || damage != "" {
						b.Fatal(s.Step, damage)
					}
				}
			}
		}
		b.Run(fmt.Sprint("whole/", n), read(func() *step.Checkpoint { return nil }))
		b.Run(fmt.Sprint("checkpoint/", n), func(b *testing.B) {
			read(func() *step.Checkpoint {
				cp, err := step.ReadCheckpoint(s.fs, s.dir)
				must(b, err)
				return cp
			})(b)
			b.ReportMetric(float64(kept.Size())/float64(n), "B/step")
		})
		b.Run(fmt.Sprint("fold/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				folded(s.onDisk)
			}
		})
		b.Run(fmt.Sprint("make/", n), func(b *testing.B) {
			for b.Loop() {
				_, err := state.Checkpoint(cp.UUID)
				must(b, err)
			}
		})
	}
}
