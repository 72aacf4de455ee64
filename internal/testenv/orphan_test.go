package testenv

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rnix/ipc"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// victimEnv makes the test of a killed test start a system and wait for its end.
const victimEnv = "RNIX_TESTENV_VICTIM"

// victim is what a test that is about to be killed says of its daemon.
type victim struct{ Dir, Data string }

// A test that is killed has no time to stop its daemon, which has to know by itself.
func TestDaemonEndsWhenItsTestIsKilled(t *testing.T) {
	if os.Getenv(victimEnv) != "" {
		s := New(t)
		if err := json.NewEncoder(os.Stdout).Encode(&victim{s.Dir, s.Data}); err != nil {
			t.Fatal(err)
		}
		select {} // until it is killed
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), victimEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var v victim
	err = json.NewDecoder(out).Decode(&v)
	t.Cleanup(func() { _ = os.RemoveAll(v.Dir) })
	holder, held, lerr := ipc.LockHolder(ipc.DataLock(v.Data))
	fd, perr := unix.PidfdOpen(holder.Warden, 0)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if err != nil || lerr != nil || perr != nil || !held {
		t.Fatalf("%v, %v, %v, held %v", err, lerr, perr, held)
	}
	defer unix.Close(fd)
	for end := time.Now().Add(30 * time.Second); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(end).Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if n != 1 || err != nil {
			_ = unix.Kill(holder.PID, unix.SIGKILL)
			t.Fatalf("the daemon lives on: %d %v", n, err)
		}
		break
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(holder.PID)); err == nil {
		t.Errorf("the daemon %d outlives its warden", holder.PID)
	}
}
