//go:build amd64 || arm64

package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/types"
)

// kept is the descriptor that commands of these tests keep.
const kept = 200

// startKeeping starts a shell that keeps a descriptor, and is given two more.
func startKeeping(t *testing.T, h Host, line string, keep []int, file *os.File) output {
	t.Helper()
	out, err := tryKeeping(t, h, line, keep, file)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryKeeping(t *testing.T, h Host, line string, keep []int, file *os.File) (output, error) {
	t.Helper()
	p := place(t)
	plan, err := MakePlan(Standard(p), h, Disk{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := plan.Open(Command{Path: "/bin/sh", Args: []string{"-c", line}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: p.Work, Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	out, err := start(t.Context(), b, func(c *exec.Cmd) {
		for len(c.ExtraFiles) < kept-3 {
			c.ExtraFiles = append(c.ExtraFiles, nil)
		}
		c.ExtraFiles[50] = null
		c.ExtraFiles = append(c.ExtraFiles, file, null)
	})
	if _, err := b.Close(); err != nil {
		t.Error(err)
	}
	return out, err
}

func TestCommandKeepsTheDescriptorsThatItIsGiven(t *testing.T) {
	eachRung(t, func(t *testing.T, h Host, _ Rung) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := w.WriteString("from-the-pipe"); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		out := startKeeping(t, h, "cat /proc/self/fd/200 </dev/null; for f in /proc/self/fd/*; do test -e $f && printf ' '${f##*/}; done; true", []int{kept}, r)
		text, list, _ := strings.Cut(out.stdout, " ")
		for _, fd := range []string{"3", "4", "53", "201"} {
			if strings.Contains(" "+list+" ", " "+fd+" ") {
				t.Errorf("descriptor %s is open, of %s", fd, list)
			}
		}
		if out.status != 0 || text != "from-the-pipe" || !strings.Contains(" "+list+" ", " 200 ") {
			t.Errorf("%d %q %q", out.status, out.stdout, out.stderr)
		}
	})
}

func TestWhatACommandKeptEndsWithIt(t *testing.T) {
	eachRung(t, func(t *testing.T, h Host, _ Rung) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		out := startKeeping(t, h, "exit 7", []int{kept}, w)
		_ = w.Close()
		if _, err := io.ReadAll(r); out.status != 7 || err != nil { // it comes to an end
			t.Errorf("%d %s %v", out.status, out.stderr, err)
		}
	})
}

func TestWhatCannotBeKeptIsRefused(t *testing.T) {
	eachRung(t, func(t *testing.T, h Host, _ Rung) {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		if out, err := tryKeeping(t, h, "echo ran", []int{kept, 300}, null); out.status != NotRun || out.stdout != "" || !strings.Contains(err.Error(), "descriptor 300, which the command keeps, did not arrive") {
			t.Errorf("%d %q %v", out.status, out.stdout, err)
		}
		p := place(t)
		plan, err := MakePlan(Standard(p), h, Disk{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Open(Command{Path: "/bin/true", Dir: p.Work, Keep: []int{4}}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "descriptor 4") {
			t.Error(err)
		}
		if names, err := os.ReadDir(filepath.Clean(p.Work)); err != nil || len(names) != 0 {
			t.Errorf("left: %v %v", names, err)
		}
	})
}

// TestNamesThatAnotherBoxHoldsAreHeld opens a box while another one holds the names of what is missing, which ends first.
func TestNamesThatAnotherBoxHoldsAreHeld(t *testing.T) {
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".git/hooks", ".vscode"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(work, ".git/HEAD"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	git := filepath.Join(work, ".git")
	open := func() *Box {
		t.Helper()
		policy := Standard(Place{Work: work, Git: Git{Top: work, Dir: git, Common: git}})
		plan, err := MakePlan(policy, Host{Bwrap: Proof{Proved: true}, Program: "/usr/bin/bwrap"}, Disk{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := plan.Open(Command{Path: "/bin/true", Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	end := func(b *Box) {
		t.Helper()
		if _, err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	first := open()
	held := first.Held()
	second := open()
	if !slices.Equal(second.Held(), held) {
		t.Errorf("one holds %q, the other one %q", held, second.Held())
	}
	end(first)
	for _, path := range held {
		if !IsHeld(path) {
			t.Errorf("%s is free, though a box is open", path)
		}
	}
	end(second)
	for _, path := range held {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	if len(held) < 5 || slices.Contains(held, filepath.Join(work, ".vscode")) || !slices.Contains(held, filepath.Join(git, "info")) {
		t.Errorf("held: %q", held)
	}
}
