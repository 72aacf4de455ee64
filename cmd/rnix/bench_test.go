package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkPs is a short command from fork to exit, with a daemon that runs and is warm, beside a Go
// program that does nothing and the system's true.
func BenchmarkPs(b *testing.B) {
	dir, err := os.MkdirTemp("", "rnix") // b.TempDir is too long for a socket
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	empty := filepath.Join(dir, "empty.go")
	if err := os.WriteFile(empty, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	rnix := compile(b, filepath.Join(dir, "bin", "rnix"), ".")
	env := []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "RNIX_DATA_DIR=" + filepath.Join(dir, "data"), "XDG_RUNTIME_DIR=" + dir}
	run := func(name string, args ...string) error {
		c := exec.Command(name, args...)
		c.Env, c.Dir = env, dir
		var said bytes.Buffer
		c.Stderr = &said
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, said.Bytes())
		}
		return nil
	}
	if err := run(rnix, "daemon", "start"); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := run(rnix, "daemon", "stop"); err != nil {
			b.Error(err)
		}
	})
	for _, c := range []struct {
		name, program string
		args          []string
	}{
		{"true", "true", nil},
		{"empty", compile(b, filepath.Join(dir, "bin", "empty"), empty), nil},
		{"version", rnix, []string{"version"}}, // starts and asks nobody
		{"ps", rnix, []string{"ps"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := run(c.program, c.args...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// compile builds a program as "make build" does, and returns it.
func compile(b *testing.B, out, source string) string {
	b.Helper()
	c := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", out, source)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, text)
	}
	return out
}
