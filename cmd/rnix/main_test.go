package main

import (
	"cmp"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"rnix/internal/event"
	"rnix/internal/sandbox"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/runtime/statehome"
	"rnix/types"
)

var update = flag.Bool("update", false, "write what the scripts compare with anew")

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Word { // as main does
		os.Exit(sandbox.Helper(os.Args[2:]))
	}
	if filepath.Base(os.Args[0]) == "codex" {
		spend()
		return
	}
	if code, asked := testenv.Daemon(); asked {
		os.Exit(code)
	}
	testscript.Main(withProgram{m}, map[string]func(){"rnix": main})
}

// withProgram runs the tests with the program of programEnv before the test's binary in PATH.
type withProgram struct{ *testing.M }

func (m withProgram) Run() int {
	if built := os.Getenv(programEnv); built != "" && !soak.On() {
		if err := os.Setenv("PATH", filepath.Dir(built)+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
			panic(err)
		}
	}
	return m.M.Run()
}

// programEnv is the variable that names the program "rnix" that the scripts run: "./test" builds it without the race
// detector, with which it takes three times as long. Without the variable, and in a soak, it is the test's binary.
const programEnv = "RNIX_TEST_PROGRAM"

// TestScripts runs the program with a daemon of its own for each script, which is stopped at the end.
func TestScripts(t *testing.T) {
	family := soak.Pick(t, "agents in a family that a person answers once", 8, 20)
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			run, err := os.MkdirTemp("", "rnix") // a short name: a socket lies in it
			if err != nil {
				return err
			}
			home := filepath.Join(e.WorkDir, "home")
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			other, err := os.Executable()
			if err != nil {
				return err
			}
			pages := filepath.Join(e.WorkDir, "pages") // the guides, one after the other
			if err := writeGuides(pages); err != nil {
				return err
			}
			readme, err := filepath.Abs(filepath.Join("..", "..", "README.md"))
			if err != nil {
				return err
			}
			for k, v := range map[string]string{"FAMILY": strconv.Itoa(family), "FAMILY_CALLS": strconv.Itoa(3 * family), "README": readme, "GUIDES": pages, "OTHER_DAEMON": cmp.Or(os.Getenv(testenv.ProgramEnv), other), "HOME": home, "XDG_RUNTIME_DIR": run, "XDG_CONFIG_HOME": "", "RNIX_DATA_DIR": filepath.Join(home, "data"),
				"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "", "TERM": "dumb", "GORACE": "atexit_sleep_ms=0", "RNIX_DAEMON_WAIT": "0"} {
				e.Setenv(k, v)
			}
			e.Defer(func() { stopDaemon(t, e.Vars, filepath.Join(home, "data"), run) })
			return nil
		},
		// namespaces: whoever may make name spaces of users may forbid it to those inside
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "cgroup":
				return limited(), nil
			case "tmp": // what tests write lies where every sandbox has a directory of its own
				dir, err := filepath.EvalSymlinks(os.TempDir())
				return err == nil && strings.HasPrefix(dir+"/", "/tmp/"), nil
			}
			return cond == "namespaces" && exec.Command("unshare", "-Ur", "sh", "-c", "echo 0 >/proc/sys/user/max_user_namespaces").Run() == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code, "using": using, "crash": crash, "recovered": recovered, "claim": claim, "advised": advised, "vendor": vendor, "web": web, "connected": connected},
	})
}

// limited reports whether the daemon of a script can limit what agents use: these tests are in the cgroup above all, which gives its controllers also while
// there are other processes in it.
func limited() bool {
	own, _ := os.ReadFile("/proc/self/cgroup")
	has, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	_, err := os.Lstat("/sys/fs/cgroup/cgroup.type") // the one above all has none
	words := strings.Fields(string(has))
	return slices.Contains(strings.Split(string(own), "\n"), "0::/") && os.IsNotExist(err) && slices.Contains(words, "memory") && slices.Contains(words, "pids") && unix.Access("/sys/fs/cgroup/cgroup.procs", unix.W_OK) == nil
}

// writeGuides writes all guides into one file, for scripts that run commands of theirs as they stand there.
func writeGuides(to string) error {
	guides, err := filepath.Glob(filepath.Join("..", "..", "docs", "guides", "*.md"))
	if err != nil {
		return err
	}
	var all []byte
	for _, page := range guides {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		all = append(all, text...)
	}
	return os.WriteFile(to, all, 0o600)
}

// code runs a command and checks its exit code: code 3 rnix run ...
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code number command argument...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// using waits until a process, named by its PID or its name, has opened a device in the time of this
// daemon, so many times if a number is given: using 1 /dev/shell 3
func using(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: using process path [times]")
	}
	times := 1
	if len(args) == 3 {
		var err error
		times, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := ipc.Connect(ctx, placesOf(ts).Socket)
	ts.Check(err)
	defer c.Close()
	var id types.UUID // of a name, which has a history already
	if _, err := types.ParsePID(args[0]); err != nil {
		p, err := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: args[0]})
		ts.Check(err)
		id = p.UUID
	}
	feed, err := ipc.Open(ctx, c, ipc.Events, ipc.EventsRequest{From: 1, Follow: true, Kinds: []event.Kind{event.Syscall}})
	ts.Check(err)
	defer feed.Close()
	for f, err := range feed.All() {
		ts.Check(err)
		if (f.Data.UUID == id || f.Data.PID.String() == args[0]) && f.Data.Name == "Open" && f.Data.Path == args[1] {
			if times--; times == 0 {
				return
			}
		}
	}
	ts.Fatalf("%s has not opened %s", args[0], args[1])
}

func placesOf(ts *testscript.TestScript) statehome.Places {
	places, err := statehome.Find(func(key string) (string, bool) { v := ts.Getenv(key); return v, v != "" }, "")
	ts.Check(err)
	return places
}

// crash ends the daemon of the script without warning, and waits until its lock is free; with "under", a client is there that starts the
// next daemon, and the lock is not waited for: crash [under]
func crash(ts *testscript.TestScript, neg bool, args []string) {
	under := len(args) == 1 && args[0] == "under"
	if neg || len(args) != 0 && !under {
		ts.Fatalf("usage: crash [under]")
	}
	path := ipc.DataLock(placesOf(ts).DataDir)
	h, held, err := ipc.LockHolder(path)
	ts.Check(err)
	if !held || h.PID <= 1 {
		ts.Fatalf("no daemon is running")
	}
	ts.Check(unix.Kill(h.PID, unix.SIGKILL))
	if under {
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	ts.Check(err)
	defer f.Close() // gives the lock back
	ts.Check(unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLKW, &unix.Flock_t{Type: unix.F_WRLCK}))
}

// recovered waits until the daemon has looked at everything that an earlier one has left, and has started, or
// tried to start, so many supervisors of init.yaml: recovered [number]
func recovered(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: recovered [number]")
	}
	supervisors := 0
	if len(args) == 1 {
		var err error
		supervisors, err = strconv.Atoi(args[0])
		ts.Check(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := ipc.Connect(ctx, placesOf(ts).Socket)
	ts.Check(err)
	defer c.Close()
	looked := testenv.Within(2*time.Minute, func() bool {
		s, err := ipc.Call(ctx, c, ipc.DaemonStatus, ipc.Empty{})
		ts.Check(err)
		return !s.Recovering && !s.Starting && len(s.Init) >= supervisors
	})
	if !looked {
		ts.Fatalf("the daemon is still recovering or starting supervisors")
	}
}

// stopDaemon stops the daemon of a script; one that does not listen any more is ended by its PID.
func stopDaemon(t *testing.T, vars []string, data, run string) {
	c := exec.Command("rnix", "daemon", "stop")
	c.Env = vars
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("daemon stop: %v: %s", err, out)
		if h, held, _ := ipc.LockHolder(ipc.DataLock(data)); held && h.PID > 1 {
			if p, err := os.FindProcess(h.PID); err == nil {
				_ = p.Kill()
			}
		}
	}
	if log, err := os.ReadFile(filepath.Join(data, "log", "daemon.log")); err == nil && (strings.Contains(string(log), "panic") || strings.Contains(string(log), "DATA RACE")) {
		t.Errorf("the daemon's log has a panic or a data race:\n%s", log)
	}
	if err := os.RemoveAll(run); err != nil {
		t.Error(err)
	}
}
