//go:build amd64 || arm64

package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// The Go runtime raises the limit of open files of the program that starts a box. The command begins with what was before, as it does without a box.
func TestLimitOfOpenFilesIsNotRaised(t *testing.T) {
	const name = "TestLimitOfOpenFilesIsNotRaised"
	if os.Getenv("RNIX_TEST_FILES") == "" { // a program that the runtime finds with less than it could have
		again := exec.CommandContext(t.Context(), "/bin/sh", "-c", `ulimit -Sn 256 && ulimit -Hn 4000 && exec "$0" "$@"`, os.Args[0], "-test.run=^"+name+"$", "-test.v")
		again.Env = append(os.Environ(), "RNIX_TEST_FILES=1")
		out, err := again.CombinedOutput()
		t.Logf("%s", out)
		if err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
			t.Error(err)
		}
		return
	}
	eachRung(t, func(t *testing.T, h Host, _ Rung) {
		for most, want := range map[int64]string{65536: "256 4000\n", 1000: "256 1000\n", 100: "100 100\n"} {
			p := place(t)
			policy := Standard(p)
			policy.Limits.OpenFiles = most
			out, _ := shell(t, policy, h, p.Work, `echo "$(ulimit -Sn) $(ulimit -Hn)"`)
			if out.stdout != want {
				t.Errorf("at most %d: %q %q, want %q", most, out.stdout, out.stderr, want)
			}
		}
	})
}

func TestWithoutDescriptorsTheLimitIsAskedForAgain(t *testing.T) { // alone: the limit is that of the test program
	openFiles = filesLimit{}
	p := Plan{Rung: RungLandlock, Policy: Standard(place(t))}
	c := Command{Path: "/bin/true", Dir: "/"}
	var was unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
	_, err := p.Open(c)
	if rerr := unix.Prlimit(0, unix.RLIMIT_NOFILE, &was, nil); rerr != nil {
		t.Fatal(rerr)
	}
	if types.CodeOf(err) != types.ErrExhausted {
		t.Errorf("%v", err)
	}
	if _, err := openFiles.limit(); err != nil {
		t.Error(err)
	}
}
