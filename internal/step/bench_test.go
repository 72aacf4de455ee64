package step

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/durable"
	"rnix/types"
)

// A step of two commits beside two bare writes of as many bytes.
func BenchmarkStep(b *testing.B) {
	text := strings.Repeat("some text of a tool. ", 20)
	for name, d := range map[string]Durability{"unsynced": Unsynced, "synced": Synced} {
		b.Run(name, func(b *testing.B) {
			j, err := OpenLocal(durable.OS, b.TempDir(), d)
			must(b, err)
			defer j.Close()
			w := newWriter(b, j, types.NewUUID())
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				writeStep(b, w, n, text)
			}
			j.mu.Lock()
			defer j.mu.Unlock()
			b.SetBytes(j.owned[w.id].size.Load() / int64(n))
		})
		b.Run("bare_"+name, func(b *testing.B) {
			f, err := durable.OS.OpenFile(filepath.Join(b.TempDir(), "f"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			must(b, err)
			defer f.Close()
			part := make([]byte, 1400)
			for b.Loop() {
				for range 2 {
					f.Write(part)
					if d == Synced {
						f.Sync()
					}
				}
			}
		})
	}
}

func BenchmarkReadThousandSteps(b *testing.B) {
	j, err := OpenLocal(durable.OS, b.TempDir(), Unsynced)
	must(b, err)
	defer j.Close()
	id := types.NewUUID()
	w := newWriter(b, j, id)
	text := strings.Repeat("some text of a tool. ", 20)
	for n := range 1000 {
		writeStep(b, w, n+1, text)
	}
	b.ReportAllocs()
	for b.Loop() {
		h, err := ReadHistory(b.Context(), j, id)
		if err != nil || len(h.Steps) != 1000 {
			b.Fatal(err)
		}
	}
}

// BenchmarkFork forks a history of 1,000 steps, beside writing and syncing as many bytes.
func BenchmarkFork(b *testing.B) {
	j, err := OpenLocal(durable.OS, b.TempDir(), Synced)
	must(b, err)
	defer j.Close()
	origin := types.NewUUID()
	w := newWriter(b, j, origin)
	text := strings.Repeat("some text of a tool. ", 20)
	for n := range 1000 {
		writeStep(b, w, n+1, text)
	}
	last := w.Next() - 1
	must(b, w.Close(b.Context()))
	b.Run("fork", func(b *testing.B) {
		for b.Loop() {
			id := types.NewUUID()
			lease, err := j.Acquire(b.Context(), id, "benchmark")
			must(b, err)
			lease, err = Fork(b.Context(), j, id, lease, origin, last, 1000)
			must(b, err, j.Release(b.Context(), id, lease.Epoch))
			b.StopTimer()
			must(b, j.Discard(id))
			b.StartTimer()
		}
	})
	bytes, err := os.ReadFile(filepath.Join(j.Dir(origin), StepsFile))
	must(b, err)
	b.Run("bytes", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "f")
		for b.Loop() {
			must(b, durable.WriteFile(durable.OS, path, bytes, durable.Durable))
		}
	})
}

func BenchmarkOpenIndex(b *testing.B) {
	dir := b.TempDir()
	j, err := OpenLocal(durable.OS, dir, Unsynced)
	must(b, err)
	fill(b, j, 10_000)
	must(b, j.Close())
	b.Run("clean", func(b *testing.B) {
		for b.Loop() {
			x, err := OpenIndex(durable.OS, dir)
			must(b, err, x.Close())
		}
	})
	b.Run("rebuild", func(b *testing.B) {
		for b.Loop() {
			os.Remove(filepath.Join(dir, IndexFile))
			x, err := OpenIndex(durable.OS, dir)
			must(b, err, x.Close())
		}
	})
}
