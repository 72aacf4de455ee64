package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/types"
)

// BenchmarkStart starts a daemon over so many histories that have ended, until it serves, and asks it for
// all of them: ps-ns is that command alone, answer-ns both together.
func BenchmarkStart(b *testing.B) {
	dir, err := os.MkdirTemp("", "rnix") // b.TempDir is too long for a socket
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	rnix := compile(b, filepath.Join(dir, "rnix"), ".")
	for _, n := range []int{0, 10_000} {
		home := filepath.Join(dir, fmt.Sprint(n))
		stored(b, filepath.Join(home, "data"), n)
		env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "RNIX_DATA_DIR=" + filepath.Join(home, "data"), "XDG_RUNTIME_DIR=" + home}
		run := func(b *testing.B, args ...string) []byte {
			c := exec.Command(rnix, args...)
			c.Env, c.Dir = env, home
			var said bytes.Buffer
			c.Stderr = &said
			out, err := c.Output()
			if err != nil {
				b.Fatalf("%v: %v: %s", args, err, said.Bytes())
			}
			return out
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var both, ps time.Duration
			for b.Loop() {
				began := time.Now()
				run(b, "daemon", "start")
				ready := time.Now()
				b.StopTimer()
				out := run(b, "ps", "-a", "--json")
				ps, both = ps+time.Since(ready), both+time.Since(began)
				if got := bytes.Count(out, []byte("\n")); got < n {
					b.Fatalf("ps -a shows %d of %d histories", got, n)
				}
				run(b, "daemon", "stop")
				b.StartTimer()
			}
			b.ReportMetric(float64(ps)/float64(b.N), "ps-ns")
			b.ReportMetric(float64(both)/float64(b.N), "answer-ns")
		})
	}
}

// stored makes a data directory with histories that have ended.
func stored(b *testing.B, data string, n int) {
	b.Helper()
	j, err := store.Open(durable.OS, data, step.Unsynced)
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now().UTC()
	for i := range n {
		info := step.ProcInfo{ProcStatus: types.ProcStatus{UUID: types.NewUUID(), PID: types.PID(i + 1), Intent: fmt.Sprint("intent ", i), Provider: "p", CreatedAt: now, UpdatedAt: now, Exit: &types.ExitStatus{Reason: types.ReasonCompleted}}, State: types.StateDead, DeadAt: now}
		if err := j.Index().Save(&info); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
}
