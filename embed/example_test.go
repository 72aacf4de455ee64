package embed_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The example is a module of its own: what it needs is public, or it does not compile.
func TestTheExampleRunsInAModuleOfItsOwn(t *testing.T) {
	dir, err := filepath.Abs("../examples/embed")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(dir, "output.txt"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "go", "run", ".")
	c.Dir, c.Env, c.Stderr = dir, append(os.Environ(), "GOWORK=off"), os.Stderr
	got, err := c.Output()
	if err != nil || string(got) != string(want) {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
}
