// Package testenv runs a whole Rnix in a test: a daemon in a separate process, with a home, a data
// directory and a workspace for this test alone, and a client on its socket. Tests that use it run beside each
// other.
//
// The daemon's program is the test's binary, unless ProgramEnv names another one: "./test" builds one without
// the race detector, which starts and works several times quicker. Tests whose promise needs the race detector
// inside of the daemon add Checked to its environment.
//
// A package that uses it calls Main from its TestMain.
package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/internal/daemon"
	"rnix/internal/event"
	"rnix/internal/parallel"
	"rnix/internal/proc"
	"rnix/internal/soak"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// asDaemon is the variable that makes a test's binary a daemon.
const asDaemon = "RNIX_TESTENV_DAEMON"

// Main runs the tests, or the daemon if this process was started as one. It returns the exit status.
func Main(m *testing.M) int {
	if code, asked := Daemon(); asked {
		return code
	}
	return m.Run()
}

// Daemon runs the daemon, under a warden, if this process was started as one, or the inner helper of a sandbox, and returns the exit status.
func Daemon() (code int, asked bool) {
	if code, asked := boxed(); asked {
		return code, true
	}
	if os.Getenv(asDaemon) == "" {
		return 0, false
	}
	return runDaemon(), true
}

// ProgramEnv is the variable that names the program of internal/testenv/testdaemon; without it, the test's binary
// is the daemon.
const ProgramEnv = "RNIX_TEST_DAEMON"

// Checked, in the environment of a system, makes its daemon the test's binary, with the race detector if the test
// has it. RNIX_SOAK makes all daemons checked.
const Checked = "RNIX_TESTENV_CHECKED=1"

// program returns the daemon's program.
func (s *System) program() (string, error) {
	if p := os.Getenv(ProgramEnv); p != "" && os.Getenv(soak.Env) == "" && !slices.Contains(s.Env, Checked) {
		return p, nil
	}
	return os.Executable()
}

// noTests is the first argument of a daemon's program: if that does not know what a daemon is, it does nothing.
const noTests = "-test.run=^$"

func runDaemon() int {
	guard, err := proc.Warded()
	ctx, stop := proc.Stoppable(context.Background())
	defer stop()
	if wanted, werr := whileWanted(ctx); werr == nil {
		ctx = wanted
	} else {
		err = errors.Join(err, werr)
	}
	opt := daemon.Options{Version: "test", Guard: guard, Store: overChains()}
	if text, said := os.LookupEnv(IdleEnv); said && err == nil {
		opt.Idle, err = time.ParseDuration(text)
	}
	err = errors.Join(err, network(&opt))
	if text, said := os.LookupEnv(EventsEnv); said && err == nil {
		opt.Events, err = strconv.Atoi(text)
	}
	if err == nil {
		if socket := os.Getenv(stormEnv); socket != "" {
			opt.Inside = func(ctx context.Context, k *kernel.KernelImpl, events *event.Log) error {
				return storms(ctx, socket, k, events)
			}
		}
		err = daemon.Run(ctx, opt)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// IdleEnv is the variable that tells the daemon of a system after how long without work it ends by
// itself, as Go writes a duration; without it, never.
const IdleEnv = "RNIX_TESTENV_IDLE"

// EventsEnv is the variable that tells the daemon of a system how many events it keeps in memory.
const EventsEnv = "RNIX_TESTENV_EVENTS"

// System is a daemon with everything around it.
type System struct {
	*ipc.Client
	Dir   string   // holds everything below
	Home  string   //
	Data  string   // the data directory
	Work  string   // the workspace of the processes, empty at first
	Env   []string // of the daemon and of the clients' requests
	t     testing.TB
	uuids []types.UUID
	held  string // the file of testsEnv

	pid    int                // of the daemon
	ended  chan struct{}      // closed when it has ended
	status syscall.WaitStatus // then
}

// New starts a system, beside those of other tests: it makes the test parallel. env is added to its environment,
// "NAME=value". It is stopped at the end of the test, which fails if an OS child of one of its processes is left then.
func New(t testing.TB, env ...string) *System {
	t.Helper()
	parallel.Test(t)
	return NewAlone(t, env...)
}

// NewAlone is New for a test that measures, or that no other test of its package may disturb: it does not run beside
// others.
func NewAlone(t testing.TB, env ...string) *System {
	t.Helper()
	dir, err := os.MkdirTemp("", "rnix") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &System{Dir: dir, Home: filepath.Join(dir, "home"), Data: filepath.Join(dir, "data"), Work: filepath.Join(dir, "work"), t: t}
	for _, d := range []string{s.Home, s.Work} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.Env = append([]string{"HOME=" + s.Home, "PATH=" + os.Getenv("PATH"), "RNIX_DATA_DIR=" + s.Data, "XDG_RUNTIME_DIR=" + dir, "LANG=C.UTF-8", SandboxOff}, env...)
	for _, kv := range os.Environ() { // what the Go tool needs, for processes that run it
		if name, _, _ := strings.Cut(kv, "="); slices.Contains([]string{"GOCACHE", "GOPATH", "GOMODCACHE", "GOROOT", "GOFLAGS", "GOPROXY", "TMPDIR", ChainsEnv}, name) {
			s.Env = append(s.Env, kv)
		}
	}
	if !slices.ContainsFunc(s.Env, func(kv string) bool { return strings.HasPrefix(kv, "GOCACHE=") }) {
		if cache, err := os.UserCacheDir(); err == nil {
			s.Env = append(s.Env, "GOCACHE="+filepath.Join(cache, "go-build"))
		}
	}
	t.Cleanup(func() {
		s.Stop()
		if left := s.Survivors(); len(left) > 0 {
			t.Errorf("OS children are left: %v", left)
		}
		log, _ := os.ReadFile(filepath.Join(s.Data, "log", "daemon.log")) // may not exist
		if bytes.Contains(log, []byte("WARNING: DATA RACE")) {
			t.Error("the daemon has a data race")
		}
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", log)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s.hold(t)
	s.Start()
	return s
}

// Settle waits until the daemon has looked at what an earlier one has left.
func (s *System) Settle() {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		st, err := ipc.Call(context.Background(), s.Client, ipc.DaemonStatus, ipc.Empty{})
		switch {
		case err != nil:
			s.t.Fatal(err)
		case !st.Recovering:
			return
		case time.Now().After(end):
			s.t.Fatal("the daemon is still recovering")
		}
	}
}

// Start starts the daemon and connects to it.
func (s *System) Start() {
	s.t.Helper()
	if err := s.TryStart(); err != nil {
		s.t.Fatal(err)
	}
}

// TryStart is Start where it may be that the daemon does not start.
func (s *System) TryStart() error {
	s.t.Helper()
	exe, err := s.program()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	socket, err := socketOf(s)
	if err != nil {
		return err
	}
	s.Client, err = ipc.Ensure(ctx, ipc.EnsureOptions{Socket: socket, DataDir: s.Data, Executable: exe, Args: []string{noTests}, Env: s.DaemonEnv()})
	if err != nil {
		return err
	}
	ping, err := ipc.Call(ctx, s.Client, ipc.Ping, ipc.Empty{})
	if err != nil {
		s.t.Fatal(err)
	}
	holder, _, err := ipc.LockHolder(ipc.DataLock(s.Data))
	if err != nil || holder.PID != ping.PID || holder.Warden == 0 {
		s.t.Fatalf("the lock is that of %+v, %v", holder, err)
	}
	s.pid, s.ended = ping.PID, make(chan struct{})
	go func(pid int, ended chan<- struct{}) { // ends with the daemon, at the latest with the test's Stop
		s.status = reap(pid)
		close(ended)
	}(holder.Warden, s.ended)
	return nil
}

// patience is how long a graceful stop may take.
const patience = time.Minute

// Stop stops the daemon gracefully and waits until it is gone. It does nothing if it is not running. A
// daemon that does not stop fails the test, and is killed.
func (s *System) Stop() {
	if s.pid == 0 {
		return
	}
	_ = s.Client.Close()
	_ = syscall.Kill(s.pid, syscall.SIGTERM)
	if _, ended := s.Ended(patience); !ended {
		s.t.Errorf("the daemon has not stopped within %v", patience)
		s.Kill()
	}
}

// Kill ends the daemon with SIGKILL, as a crash would.
func (s *System) Kill() {
	_ = s.Client.Close()
	_ = syscall.Kill(s.pid, syscall.SIGKILL)
	s.gone()
}

// gone waits until the daemon has ended, and then its warden, which is a child of the test's process.
func (s *System) gone() {
	<-s.ended
	s.pid = 0
}

// reap waits for the end of a child of this process.
func reap(pid int) (status syscall.WaitStatus) {
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
			return status
		}
	}
}

// Ended waits until the daemon ends without a Stop or Kill, at most for the given time, and returns
// its exit code; -1 if a signal ended it. It reports false if the daemon is still there.
func (s *System) Ended(within time.Duration) (code int, ended bool) {
	select {
	case <-s.ended:
		_ = s.Client.Close()
		s.pid = 0
		return s.status.ExitStatus(), true
	case <-time.After(within):
		return 0, false
	}
}

// Spawn starts a process in the workspace.
func (s *System) Spawn(req ipc.SpawnRequest) ipc.SpawnResponse {
	s.t.Helper()
	r, err := s.TrySpawn(req)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// TrySpawn is Spawn that may fail.
func (s *System) TrySpawn(req ipc.SpawnRequest) (ipc.SpawnResponse, error) {
	if req.Cwd == "" {
		req.Cwd = s.Work
	}
	if req.Env == nil {
		req.Env = s.Env
	}
	r, err := ipc.Call(context.Background(), s.Client, ipc.Spawn, req)
	if err == nil {
		s.uuids = append(s.uuids, r.UUID)
	}
	return r, err
}

// Wait waits for a process to end.
func (s *System) Wait(pid types.PID) ipc.WaitResponse {
	s.t.Helper()
	r, err := ipc.Call(context.Background(), s.Client, ipc.Wait, ipc.WaitRequest{Target: pid.String(), TimeoutMs: 120_000})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// Await returns the first event of a process, 0 for any, that is of a kind and that match, which may be
// nil, wants.
func (s *System) Await(pid types.PID, kind event.Kind, match func(*event.Event) bool) event.Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	target := ""
	if pid != 0 {
		target = pid.String()
	}
	feed, err := ipc.Open(ctx, s.Client, ipc.Events, ipc.EventsRequest{Target: target, From: 1, Follow: true, Kinds: []event.Kind{kind}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer feed.Close()
	for f, err := range feed.All() {
		if err != nil {
			s.t.Fatalf("waiting for %s of %d: %v", kind, pid, err)
		}
		if e := event.Event(f.Data); f.Missed == nil && (match == nil || match(&e)) {
			return e
		}
	}
	s.t.Fatalf("no %s of %d", kind, pid)
	return event.Event{}
}

// Write puts a file into the workspace.
func (s *System) Write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.Work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Read returns a file of the workspace.
func (s *System) Read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.Work, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// Survivors returns the OS processes that were started for processes of this system and still run.
func (s *System) Survivors() []string {
	var out []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		env, err := os.ReadFile(filepath.Join(d, "environ"))
		if err != nil {
			continue
		}
		for _, id := range s.uuids {
			if strings.Contains(string(env), "RNIX_UUID="+id.String()) {
				cmd, _ := os.ReadFile(filepath.Join(d, "cmdline"))
				out = append(out, filepath.Base(d)+" "+strings.ReplaceAll(string(cmd), "\x00", " "))
			}
		}
	}
	return out
}

// PID returns the OS process id of the daemon, 0 when it has ended.
func (s *System) PID() int { return s.pid }
