package proc

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMemoryIsHiddenAndThatOfChildrenIsNot(t *testing.T) {
	was, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(was), 0, 0, 0) }()
	if err := HideMemory(); err != nil {
		t.Fatal(err)
	}
	if now, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || now != 0 {
		t.Errorf("it can be read: %d, %v", now, err)
	}
	out, err := exec.Command(lookup(t, "sh"), "-c", "cat /proc/$$/environ >/dev/null && echo read").Output()
	if err != nil || !strings.Contains(string(out), "read") {
		t.Errorf("a child cannot be read: %s %v", out, err)
	}
}
