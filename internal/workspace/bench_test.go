package workspace

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"rnix/types"
)

// filesOf returns so many files of about a KiB.
func filesOf(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		text := fmt.Sprintf("file %d\n", i)
		for len(text) < 1000 {
			text += fmt.Sprintf("line %d of it, which is like the others\n", len(text))
		}
		files[fmt.Sprintf("d%02d/e%d/f%d.txt", i%100, i%7, i)] = text
	}
	return files
}

// age makes all files of a directory old enough for their times to be believed.
func age(b *bench, dir string) {
	old := time.Now().Add(-time.Hour).Format("200601021504")
	if out, err := exec.Command("find", dir, "-name", ".git", "-prune", "-o", "-exec", "touch", "-h", "-t", old, "{}", "+").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// BenchmarkTake measures a snapshot of 10,000 files and one of 50, unchanged and with one file changed,
// beside git status in the same work tree.
func BenchmarkTake(b *testing.B) {
	for _, n := range []int{10_000, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { take(b, n) })
	}
}

func take(b *testing.B, n int) {
	w := newBench(b)
	files := filesOf(n)
	repo, plain := w.dir(), w.dir()
	w.user(repo, "init", "-q")
	w.write(repo, files)
	w.write(plain, files)
	age(w, repo)
	w.user(repo, "add", "-A")
	w.user(repo, "commit", "-q", "-m", "first")
	step := 0
	for _, at := range []struct{ name, dir string }{{"git", repo}, {"copy", plain}} {
		run := &bench{b, w.Keeper, w.home, types.NewUUID()}
		took := time.Now()
		run.take(at.dir, step)
		b.Logf("first snapshot, %s: %v", at.name, time.Since(took))
		for until := time.Now().Add(2500 * time.Millisecond); time.Now().Before(until); {
			step++
			run.take(at.dir, step) // until the times of the last files read are believed
		}
		b.Run(at.name+"/unchanged", func(b *testing.B) {
			for b.Loop() {
				step++
				run.take(at.dir, step)
			}
		})
		b.Run(at.name+"/one changed", func(b *testing.B) {
			n := 0
			for b.Loop() {
				n, step = n+1, step+1
				run.write(at.dir, map[string]string{"d00/e0/f0.txt": fmt.Sprint("changed ", n, " ", step)})
				if s := run.take(at.dir, step); !s.Changed {
					b.Fatal("the change was not seen")
				}
			}
		})
	}
	b.Run("git/status", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command("git", "status", "--porcelain")
			cmd.Dir = repo
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	})
	b.Run("start/ours", func(b *testing.B) {
		for b.Loop() {
			if _, err := w.git.run(b.Context(), w.id, call{args: []string{"--version"}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("start/bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("git", "--version").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
