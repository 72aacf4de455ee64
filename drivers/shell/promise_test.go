package shell_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"rnix/drivers/shell"
	"rnix/types"
	"rnix/vfs"
)

// There is no list of forbidden words. What bounds a command is what it may use: its directory, its
// environment, its time, and the rights of who runs it.
func TestNoWordIsForbidden(t *testing.T) {
	b := newBench(t, shell.Options{})
	for _, command := range []string{
		"grep -c shutdown /dev/null; true", "echo rm -rf /", "echo 'sudo reboot'", "printf mkfs.ext4", "git log --grep=':(){ :|:& };:' 2>/dev/null; true",
		"# dd if=/dev/zero of=/dev/sda", "echo 'DROP TABLE users' | cat", "man halt >/dev/null 2>&1; true", "echo curl http://x.invalid/ | wc -c",
	} {
		f := b.open(t, "/text")
		if err := f.Write(context.Background(), []byte(command)); err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		if got, _ := f.Read(0); !strings.Contains(string(got), "[exit code 0, ") {
			t.Errorf("%s: %s", command, got)
		}
	}
}

// The limits are those of the caller, whatever the command line says.
func TestLimitsAreTheCallers(t *testing.T) {
	own := time.Duration(0)
	b := newBench(t, shell.Options{Timeout: time.Hour, TimeoutOf: func(c vfs.Caller) time.Duration {
		return map[types.PID]time.Duration{9: own, 10: 1 << 62}[c.PID]
	}})
	inTime(t, func(limit time.Duration) bool {
		own = limit
		got := b.run(t, `{"command":"echo begun; exec sleep 1000"}`)
		told := fmt.Sprintf("[timed out after %g s; killed]\n", limit.Seconds())
		if got != "begun\n"+told && got != told {
			t.Errorf("its own limit: %q", got)
		}
		return got != told
	})
	own = 300 * time.Millisecond
	if got := b.run(t, `{"command":"sleep 0.5; echo built","timeout_ms":60000}`); !strings.HasPrefix(got, "built\n[exit code 0, ") {
		t.Errorf("a command that asks for longer: %q", got)
	}
	for _, pid := range []types.PID{10, 11} { // as long as there is; none of its own
		b.caller.PID = pid
		if got := b.run(t, `{"command":"sleep 0.5; echo built"}`); !strings.HasPrefix(got, "built\n[exit code 0, ") {
			t.Errorf("caller %d: %q", pid, got)
		}
	}
	b.caller.WorkDir = ""
	if err := b.open(t, "").Write(context.Background(), []byte(`{"command":"true"}`)); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("without a directory: %v", err)
	}
}
