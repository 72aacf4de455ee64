package proc

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// managersOfOne has two managers in one program that adopts orphans: neither takes the other's children for strays, and a child of the
// program itself keeps nobody from seeing that nothing is left behind.
func managersOfOne(dir string) {
	if err := BecomeSubreaper(); err != nil {
		panic(err)
	}
	one, err := NewManager(filepath.Join(dir, "one"), nil)
	if err != nil {
		panic(err)
	}
	two, err := NewManager(filepath.Join(dir, "two"), nil)
	if err != nil {
		panic(err)
	}
	c, err := one.Start(context.Background(), sh("sleep 1000", nil))
	if err != nil {
		panic(err)
	}
	foreign := exec.Command("sleep", "1000")
	if err := foreign.Start(); err != nil {
		panic(err)
	}
	if !noOrphans() {
		if _, ok := childrenOf(c.PID()); ok {
			panic("a child of another manager or of the program is taken for an orphan")
		}
	}
	if unsure := two.tend(two.tend(nil, false), true); len(unsure) > 0 {
		panic(fmt.Sprintf("taken for strays: %v", unsure))
	}
	two.Close()
	if c.tree.over() || !alive(c.entry.Leader) {
		panic("the child of another manager was ended")
	}
	one.Close()
	_ = foreign.Process.Kill()
	if err := foreign.Wait(); err == nil {
		panic("the program's own child had ended")
	}
	fmt.Println("clean")
}

func TestManagersOfOneProgramLeaveEachOthersChildrenAlone(t *testing.T) {
	t.Parallel() // it is a program of its own
	out, err := runHelper(t, "managers-of-one", t.TempDir()).Output()
	if err != nil || string(out) != "clean\n" {
		t.Errorf("%q, %v", out, err)
	}
}
