//go:build amd64 || arm64

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// place makes a work directory beside a directory that no command may see, with a secret in it.
func place(t testing.TB) Place {
	t.Helper()
	dir := directory(t)
	p := Place{Work: filepath.Join(dir, "work"), Temp: filepath.Join(dir, "temp"), Private: []string{filepath.Join(dir, "data")}}
	write(t, filepath.Join(dir, "data", "secret"), "secret")
	for _, d := range []string{p.Work, p.Temp} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// shell runs a command line in a box.
func shell(t testing.TB, policy Policy, h Host, dir, line string, env ...string) (output, []string) {
	t.Helper()
	plan, err := MakePlan(policy, h, Disk{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := plan.Open(self(t), Command{Path: "/bin/sh", Args: []string{"-c", line}, Env: append([]string{"PATH=" + os.Getenv("PATH")}, env...), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	out, err := start(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := b.Close()
	if err != nil {
		t.Fatal(err)
	}
	return out, changed
}

func TestCommandRunsWithItsEnvironmentDirectoryAndStatus(t *testing.T) {
	eachRung(t, func(t *testing.T, h Host, _ Rung) {
		p := place(t)
		write(t, filepath.Join(p.Work, "in"), "x")
		out, _ := shell(t, Standard(p), h, p.Work, `cat in; pwd; printf "$A"; echo y >out; exit 7`, "A=\xff=")
		if want := "x" + p.Work + "\n\xff="; out.stdout != want || out.status != 7 || out.stderr != "" {
			t.Errorf("%d %q %q, want 7 %q", out.status, out.stdout, out.stderr, want)
		}
		if text, err := os.ReadFile(filepath.Join(p.Work, "out")); string(text) != "y\n" {
			t.Errorf("%q %v", text, err)
		}
		names, err := os.ReadDir(p.Work)
		if err != nil || len(names) != 2 {
			t.Errorf("left in the work directory: %v %v", names, err)
		}
	})
}

func TestNothingRunsWhereTheCommandIsHidden(t *testing.T) {
	eachRung(t, func(t *testing.T, h Host, _ Rung) {
		p := place(t)
		program := filepath.Join(p.Private[0], "program")
		write(t, program, "#!/bin/sh\ntouch "+p.Work+"/ran\n")
		if err := os.Chmod(program, 0o755); err != nil {
			t.Fatal(err)
		}
		plan, err := MakePlan(Standard(p), h, Disk{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := plan.Open(self(t), Command{Path: program, Dir: p.Work})
		if err != nil {
			t.Fatal(err)
		}
		out, err := start(t.Context(), b, nil)
		if err != nil || out.status != NotRun || !strings.Contains(out.stderr, "cannot start the command in the sandbox: "+program) {
			t.Errorf("%d %q %v", out.status, out.stderr, err)
		}
		if _, err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(p.Work, "ran")); err == nil {
			t.Error("it ran")
		}
	})
}
