package daemon_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// hider is a system with an agent whose command has left a process behind that is known by nothing, and has another one under way. It
// returns the pid of the first.
func hider(t *testing.T) (s *testenv.System, hidden int) {
	t.Helper()
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if _, told := r.LastResult(); told {
			return llmtest.Reply{Text: "went on"}
		}
		return tool("shell", `{"command":"(env -i PATH=\"$PATH\" setsid sh -c 'echo $$ >hidden; exec sleep 1000' >/dev/null 2>&1 </dev/null &); sleep 60"}`)
	})
	s = testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.Spawn(ipc.SpawnRequest{Intent: "hide", ProcSpec: types.ProcSpec{Model: "fake"}})
	until(t, "it hides", func() bool {
		b, _ := os.ReadFile(filepath.Join(s.Work, "hidden"))
		return strings.HasSuffix(string(b), "\n")
	})
	return s, number(t, s.Read("hidden"))
}

func holder(t *testing.T, s *testenv.System) ipc.LockInfo {
	t.Helper()
	h, held, err := ipc.LockHolder(ipc.DataLock(s.Data))
	if err != nil || !held || h.PID != s.PID() || h.Warden <= 1 {
		t.Fatalf("the lock is that of %+v, %v, %v", h, held, err)
	}
	return h
}

func TestADaemonWakesAndAwaitsTheWardenOfTheOneBeforeIt(t *testing.T) {
	s, hidden := hider(t)
	first := holder(t, s)
	if err := errors.Join(syscall.Kill(first.Warden, syscall.SIGSTOP), syscall.Kill(first.PID, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	until(t, "the first one has ended", first.Ended) // until then it is one that runs
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	second := exec.Command(exe, "-test.run=^$")
	second.Env = s.DaemonEnv()
	second.Stderr = os.Stderr
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "a second daemon serves", func() bool {
		h, held, err := ipc.LockHolder(ipc.DataLock(s.Data))
		if err == nil && held && h.PID == first.PID {
			return false
		}
		if syscall.Kill(hidden, 0) == nil {
			t.Error("another daemon begins while something of the one before it lives that it could take for a person's")
		}
		return err == nil && held && h.PID > 0
	})
	s.Kill() // waits for the end of the first warden
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the second one ends with %v", err)
	}
}

func TestADaemonWhoseWardenIsKilledIsStoppedAndItsAgentsGoOn(t *testing.T) {
	s, hidden := hider(t)
	first := holder(t, s)
	if err := syscall.Kill(first.Warden, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "the daemon has given its lock back", func() bool {
		_, held, err := ipc.LockHolder(ipc.DataLock(s.Data))
		return err == nil && !held
	})
	if status, err := os.ReadFile("/proc/" + strconv.Itoa(hidden) + "/stat"); err == nil && !strings.Contains(string(status), ") Z ") {
		t.Errorf("what had left its command lives on: %s", status)
	}
	if _, ended := s.Ended(time.Minute); !ended {
		t.Error("the warden was killed, and has not ended")
	}
	s.Start()
	s.Settle()
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil || len(l.Procs) == 0 {
		t.Fatalf("%+v %v", l, err)
	}
	if w := s.Wait(l.Procs[len(l.Procs)-1].PID); w.Exit.Code != 0 || w.Result != "went on" {
		t.Errorf("%+v", w)
	}
}
