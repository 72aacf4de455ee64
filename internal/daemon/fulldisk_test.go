package daemon_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// roomFor lets no file of the daemon grow beyond so many bytes.
func roomFor(t *testing.T, s *testenv.System, bytes uint64) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Prlimit(s.PID(), unix.RLIMIT_FSIZE, nil, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(s.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: old.Max}, nil); err != nil {
		t.Fatal(err)
	}
}

// TestDiskThatTakesNoMoreSuspendsTheProcessAndLosesNothing lets no file of the daemon grow any more, as a full
// disk does, in the middle of a write if it has to be, and then gives the room back: the process resumes.
func TestDiskThatTakesNoMoreSuspendsTheProcessAndLosesNothing(t *testing.T) { // C-3
	w := &worker{steps: 4, call: appends}
	w.hang.Store(3)
	asked := make(chan struct{}, 100)
	release := make(chan struct{})
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if turnOf(r) == 3 && w.hang.Load() == 3 {
			asked <- struct{}{}
			<-release
			w.hang.Store(0)
		}
		return w.reply(r)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	<-asked
	path := filepath.Join(s.Data, "steps", p.UUID.String(), step.StepsFile)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	roomFor(t, s, uint64(len(before))+100) // half a record
	close(release)
	s.Await(p.PID, event.StorageError, func(e *event.Event) bool { return strings.Contains(e.Err, path) }) // that of the events may come before it
	r := s.Wait(p.PID)
	if !r.Suspended || r.Exit.Code == 0 || !strings.HasPrefix(r.Exit.Reason, "storage: ") || strings.Count(r.Exit.Reason, path) != 1 || procsOf(t, s)[p.UUID].Wait != "room on the disk" {
		t.Errorf("%+v, which waits for %q", r, procsOf(t, s)[p.UUID].Wait)
	}
	if got := strings.Join(lines(s, "effects"), " "); got != effects(2) {
		t.Errorf("a call has run whose intent could not be written: %s", got)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(after, before) {
		t.Errorf("what was acknowledged is not there any more: %v", err)
	}
	roomFor(t, s, unix.RLIM_INFINITY)
	var pid types.PID
	until(t, "it resumes", func() bool { pid = procsOf(t, s)[p.UUID].PID; return pid != p.PID })
	if r := s.Wait(pid); r.Exit.Code != 0 || r.Result != "done after 5" || r.Steps != 5 {
		t.Errorf("with room again: %+v", r)
	}
	if got := strings.Join(lines(s, "effects"), " "); got != effects(4) {
		t.Errorf("effects %s", got)
	}
	sound(t, s)
}

// TestAPauseThatCannotBeWrittenHoldsUntilTheDaemonEnds pauses two processes on a full disk. The one that is resumed before the daemon ends comes to its next
// step, which the disk does not take either; the other one stays paused, whatever room there is, and the next daemon resumes it.
func TestAPauseThatCannotBeWrittenHoldsUntilTheDaemonEnds(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if _, told := r.LastResult(); told {
			return llmtest.Reply{Text: "done"}
		}
		return tool("shell", `{"command":"echo up; while [ ! -e go ]; do sleep 0.05; done"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	spawn := func() ipc.SpawnResponse {
		p := s.Spawn(ipc.SpawnRequest{Intent: "wait", ProcSpec: types.ProcSpec{Model: "fake"}})
		up(s, p.PID)
		return p
	}
	stays, leaves := spawn(), spawn()
	unwritten := func(p ipc.SpawnResponse, sig types.Signal, is string) {
		t.Helper()
		for range 2 { // who asks again is not told that it holds
			_, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: p.UUID.String(), Signal: sig})
			if types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), is+", but that could not be written down, and would not hold over the end of the daemon") {
				t.Errorf("%v: %v", sig, err)
			}
		}
	}
	ends := func(p ipc.SpawnResponse) {
		t.Helper()
		var pid types.PID
		until(t, "it resumes", func() bool { pid = procsOf(t, s)[p.UUID].PID; return pid != p.PID })
		if r := s.Wait(pid); r.Exit.Code != 0 || r.Result != "done" {
			t.Errorf("resumed: %+v", r)
		}
	}
	roomFor(t, s, 1)
	unwritten(stays, types.SIGPAUSE, "it is paused")
	unwritten(leaves, types.SIGPAUSE, "it is paused")
	unwritten(leaves, types.SIGRESUME, "it works on")
	s.Write("go", "")
	r := s.Wait(leaves.PID)
	if row := procsOf(t, s)[leaves.UUID]; !r.Suspended || !strings.HasPrefix(r.Exit.Reason, "storage: ") || row.Wait != "room on the disk" {
		t.Errorf("%+v, which waits for %q", r, row.Wait)
	}
	roomFor(t, s, unix.RLIM_INFINITY)
	ends(leaves)
	unwritten(stays, types.SIGPAUSE, "it is paused")
	if row := procsOf(t, s)[stays.UUID]; row.State != "suspended" || row.Wait != "paused" || row.PID != stays.PID {
		t.Errorf("with room again: %+v", row)
	}
	s.Stop()
	s.Start()
	ends(stays)
	sound(t, s)
}

func TestSecondDaemonOnTheSameDataIsRefusedByName(t *testing.T) {
	s := testenv.New(t)
	elsewhere := filepath.Join(s.Dir, "b") // where it would listen: a short name, for a socket
	exe, err := os.Executable()
	if err = errors.Join(err, os.Mkdir(elsewhere, 0o700)); err != nil {
		t.Fatal(err)
	}
	second := exec.Command(exe)
	second.Env = append(s.DaemonEnv(), "XDG_RUNTIME_DIR="+elsewhere)
	var out bytes.Buffer
	second.Stdout, second.Stderr = &out, &out
	began := time.Now()
	err = second.Run()
	if err == nil || second.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), "as pid "+strconv.Itoa(s.PID())) {
		t.Errorf("%v: %s", err, &out)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Ping, ipc.Empty{}); err != nil {
		t.Errorf("the first one: %v", err)
	}
}

func TestCommandThatIsKilledIsToldAndItsAgentGoesOn(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", `{"command":"echo before; echo $$ > pid; exec sleep 60"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	until(t, "the command runs", func() bool { b, _ := os.ReadFile(filepath.Join(s.Work, "pid")); return len(b) > 1 })
	if err := unix.Kill(number(t, s.Read("pid")), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w := s.Wait(p.PID)
	if w.Exit.Code != 0 || w.Steps != 2 || !strings.Contains(w.Result, "before") || !strings.Contains(w.Result, "killed") {
		t.Errorf("%+v", w)
	}
}
