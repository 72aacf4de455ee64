package step

import (
	"bufio"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// crowd is a file system on which every history of the index has its directory, without their being made:
// a million of them would measure the file system.
type crowd struct {
	durable.FS
	names []fs.DirEntry
}

func (c crowd) ReadDir(name string) ([]fs.DirEntry, error) {
	if filepath.Base(name) == stepsDir {
		return c.names, nil
	}
	return c.FS.ReadDir(name)
}

// home is one such directory.
type home string

func (h home) Name() string               { return string(h) }
func (h home) IsDir() bool                { return true }
func (h home) Type() fs.FileMode          { return fs.ModeDir }
func (h home) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

// Row 2b: a million suspended processes are a million entries of the index. Run it alone, once.
func BenchmarkMillionSuspended(b *testing.B) {
	const n = 1_000_000
	dir := b.TempDir()
	path := filepath.Join(dir, IndexFile)
	names := writeCrowd(b, path, n)
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			f, err := os.Open(path)
			must(b, err)
			_, err = io.Copy(io.Discard, struct{ io.Reader }{f})
			must(b, err, f.Close())
		}
	})
	b.Run("open", func(b *testing.B) {
		for range b.N {
			debug.FreeOSMemory() // what writing it has left behind
			resident, heap := weight()
			start := time.Now()
			x, err := OpenIndex(crowd{durable.OS, names}, dir)
			must(b, err)
			opened := time.Since(start)
			debug.FreeOSMemory()
			resident2, heap2 := weight()
			start = time.Now()
			if got := len(x.List()); got != n {
				b.Fatalf("%d are listed", got)
			}
			b.ReportMetric(float64(time.Since(start).Nanoseconds()), "list-ns")
			b.ReportMetric(float64(opened.Nanoseconds()), "ns/op")
			b.ReportMetric(float64(resident2-resident)/n, "RSS-B/proc")
			b.ReportMetric(float64(heap2-heap)/n, "heap-B/proc")
			must(b, x.Close())
		}
	})
}

// writeCrowd writes the index of n suspended histories, well closed, and returns their directories.
func writeCrowd(b *testing.B, path string, n int) []fs.DirEntry {
	f, err := os.Create(path)
	must(b, err)
	w := bufio.NewWriterSize(f, 1<<20)
	enc := json.NewEncoder(w)
	names := make([]fs.DirEntry, n)
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		id := types.NewUUID()
		names[i] = home(id.String())
		must(b, enc.Encode(indexLine{V: FormatVersion, Info: &ProcInfo{V: FormatVersion, ProcStatus: types.ProcStatus{UUID: id, PID: types.PID(i + 1), Name: "worker " + strconv.Itoa(i), Intent: "look into number " + strconv.Itoa(i), Agent: "analyst", Provider: "replay", Model: "m", CreatedAt: at, UpdatedAt: at, Step: 7, MaxSteps: 50, TokensUsed: 12345, WorkDir: "/work"}, State: types.StateRunning, Suspended: true, Suspension: types.Suspend(types.SuspendStopped)}}))
	}
	must(b, enc.Encode(indexLine{V: FormatVersion, Closed: true}), w.Flush(), f.Close())
	return names
}

// weight is the resident set and the heap of this program in bytes.
func weight() (resident, heap int64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b, _ := os.ReadFile("/proc/self/statm")
	if f := strings.Fields(string(b)); len(f) > 1 {
		pages, _ := strconv.ParseInt(f[1], 10, 64)
		resident = pages * int64(os.Getpagesize())
	}
	return resident, int64(m.HeapAlloc)
}
