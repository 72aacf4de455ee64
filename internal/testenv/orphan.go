package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testsEnv is the variable that names the file which a test's process holds locked while the daemon of its system is wanted.
// The kernel lets go of the lock when that process ends, in whatever way.
const testsEnv = "RNIX_TESTENV_TEST"

// DaemonEnv returns the environment in which the test's binary is a daemon of the system: one that ends when the test's
// process is gone.
func (s *System) DaemonEnv() []string {
	return append([]string{asDaemon + "=1", testsEnv + "=" + s.held, "GORACE=atexit_sleep_ms=0"}, s.Env...)
}

// hold locks the file of testsEnv until the end of the test, or of this process.
func (s *System) hold(t testing.TB) {
	t.Helper()
	s.held = filepath.Join(s.Dir, "test")
	f, err := os.OpenFile(s.held, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
}

// whileWanted returns a context that ends when the test's process is gone. A daemon that has not stopped some time after
// that ends all the same; its warden ends what it has started.
func whileWanted(ctx context.Context) (context.Context, error) {
	name := os.Getenv(testsEnv)
	if name == "" {
		return ctx, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	go func() { // ends with the process
		for errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH), unix.EINTR) { // waits while it is held
		}
		stop()
		<-time.After(patience)
		fmt.Fprintln(os.Stderr, "the test is gone, and this daemon does not stop")
		os.Exit(1)
	}()
	return ctx, nil
}
