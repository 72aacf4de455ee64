package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// Somebody removes the lock files of a daemon that just does nothing: another one does not begin beside it, and when the first looks
// again, clients find it by its lock as before.
func TestADataDirectoryHasOneDaemonAlsoWithoutItsLockFiles(t *testing.T) {
	_, url := llmtest.NewAPI(t, hangs)
	s := testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake"}})
	pid := s.PID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(os.Remove(filepath.Join(s.Data, "lock")), os.Remove(ipc.DataLock(s.Data)))
	elsewhere := filepath.Join(s.Dir, "b") // where another one would listen: a short name, for a socket
	exe, xerr := os.Executable()
	if err = errors.Join(err, xerr, os.Mkdir(elsewhere, 0o700)); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it would run until it is told to stop
	defer cancel()
	second := exec.CommandContext(ctx, exe, "-test.run=^$")
	second.Env, second.Stderr, second.Stdout = append(s.DaemonEnv(), "XDG_RUNTIME_DIR="+elsewhere), &said, &said
	if err := second.Run(); err == nil || !strings.Contains(said.String(), fmt.Sprintf("pid %d", pid)) {
		t.Errorf("another daemon ends with %v and says: %s", err, said.String())
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "the first has its lock files again", func() bool {
		h, held, err := ipc.LockHolder(ipc.DataLock(s.Data))
		_, lerr := os.Stat(filepath.Join(s.Data, "lock"))
		return err == nil && held && h.PID == pid && lerr == nil
	})
	if p := s.Spawn(ipc.SpawnRequest{Intent: "y", ProcSpec: types.ProcSpec{Model: "fake"}}); p.PID != 2 {
		t.Errorf("the next process is %d", p.PID)
	}
}

// counting is a model that calls a command as often as it is asked; each leaves a line in the file "effects" of the work directory.
func counting(llmtest.Request) llmtest.Reply {
	return tool("shell", `{"command":"echo x >>effects; sleep 0.05"}`)
}

// tallyOf returns how many lines commands have left.
func tallyOf(s *testenv.System) int {
	b, _ := os.ReadFile(filepath.Join(s.Work, "effects"))
	return strings.Count(string(b), "x")
}

// recorded returns the lines that commands have left, and how many of their results are on record.
func recorded(t *testing.T, s *testenv.System, id types.UUID) (left, records int) {
	t.Helper()
	h, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: id.String()})
	if err != nil {
		t.Fatal(err)
	}
	return tallyOf(s), len(h.Steps)
}

// The data directory is taken away from a daemon, or replaced: its agents are ended at once, for nothing that they do can be recorded.
// What is recorded is whole, and goes on when it is where it was.
func TestADaemonWhoseDataDirectoryIsGoneEndsWhatItCannotRecord(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprint("replaced=", replaced), func(t *testing.T) {
			_, url := llmtest.NewAPI(t, counting)
			s := testenv.New(t, testenv.Checked, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
			p := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake"}})
			until(t, "it works", func() bool { return tallyOf(s) > 3 })
			away := s.Data + ".away"
			err := os.Rename(s.Data, away)
			if replaced {
				err = errors.Join(err, os.Mkdir(s.Data, 0o700))
			}
			if err != nil {
				t.Fatal(err)
			}
			code, ended := s.Ended(time.Minute)
			if !ended || code == 0 {
				t.Fatalf("the daemon has ended: %v, with %d", ended, code)
			}
			if left, err := os.ReadDir(s.Data); replaced && (err != nil || len(left) > 0) {
				t.Errorf("it has left %v in what is there now, %v", left, err)
			}
			if err := errors.Join(os.RemoveAll(s.Data), os.Rename(away, s.Data)); err != nil {
				t.Fatal(err)
			}
			done := tallyOf(s)
			s.Start()
			if now, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: p.UUID.String(), Signal: types.SIGPAUSE}); err != nil {
				t.Fatal(now, err)
			}
			until(t, "it pauses", func() bool { return procsOf(t, s)[p.UUID].State == "suspended" })
			left, records := recorded(t, s, p.UUID)
			if done > left || left > records+1 { // one was cut off while it was at work
				t.Errorf("%d lines were there, %d are now, and %d are recorded", done, left, records)
			}
		})
	}
}
