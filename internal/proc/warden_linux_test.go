package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// underWarden makes a helper a daemon with a warden, and starts a script as its child. When the warden is lost it says so and ends.
func underWarden(dir, script string) *Manager {
	g, err := Warded()
	if err != nil {
		panic(err)
	}
	if err := BecomeSubreaper(); err != nil {
		panic(err)
	}
	m, err := NewManager(dir, nil)
	if err != nil {
		panic(err)
	}
	err = m.Guard(g, func() { fmt.Println("lost"); os.Exit(8) })
	if err != nil {
		panic(err)
	}
	fmt.Println(os.Getpid())
	if script != "" {
		if _, err := m.Start(context.Background(), sh(script, os.Stdout)); err != nil {
			panic(err)
		}
	}
	return m
}

// guardedDaemon has a child that leaves somebody of each kind behind, and stays. Each one says its pid.
func guardedDaemon(dir string) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	underWarden(dir, `setsid sh -c 'echo $$; exec sleep 1000' & (setsid sh -c 'trap "" TERM HUP; echo $$; while :; do sleep 1; done' &)
(env -i PATH="$PATH" setsid nohup sh -c 'echo $$; exec sleep 1000' &)
(env -i PROC_TEST_ROLE=headless setsid `+self+` &)
wait`)
	select {}
}

// headless is a process whose first thread has ended, which the system calls a zombie though it runs on.
func headless(string) {
	go func() {
		fmt.Println(os.Getpid())
		<-time.After(1000 * time.Second)
	}()
	<-time.After(50 * time.Millisecond)            // until there is another thread
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // of this thread alone
}

// passingDaemon says which signals it gets, and ends by SIGTERM with 7, and as everybody does by SIGINT.
func passingDaemon(dir string) {
	got := make(chan os.Signal, 8)
	ossignal.Notify(got, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP)
	underWarden(dir, "")
	fmt.Println(len(os.Getenv(wardVar)))
	for sig := range got {
		fmt.Println(unix.SignalName(sig.(syscall.Signal)))
		if sig == syscall.SIGTERM {
			os.Exit(7)
		}
	}
}

// bombedDaemon has a child that fills the machine, within bounds, with processes that start others and end, and bear no mark.
// bombMark stands in the environment of what bombedDaemon starts, with its directory: other tests may run the same.
const bombMark = "bomb_of="

func bombedDaemon(dir string) {
	underWarden(dir, strings.ReplaceAll(`for i in 1 2 3; do
(env -i PATH="$PATH" MARK n=0 x='n=$((n+1)); export n; [ $n -lt 300 ] && sh -c "$x" & sleep 1000 &' setsid sh -c 'eval "$x"' &)
(env -i PATH="$PATH" MARK n=0 y='n=$((n+1)); export n; [ $n -lt 30000 ] && sh -c "$y" & exit' setsid sh -c 'eval "$y"' &)
done; sleep 0.5; echo 1; sleep 1000`, "MARK", "'"+bombMark+dir+"'"))
	select {}
}

// guarded is a daemon of a test with its warden.
type guardedRun struct {
	*exec.Cmd    // the warden
	t            *testing.T
	out          *bufio.Scanner
	daemon, ward identity
}

// runGuarded starts a helper that is a daemon with a warden.
func runGuarded(t *testing.T, role, dir string) *guardedRun {
	t.Helper()
	g := &guardedRun{Cmd: runHelper(t, role, dir), t: t}
	out, err := g.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	g.out = bufio.NewScanner(out)
	g.ward, g.daemon = identityOf(g.Process.Pid), g.pid()
	return g
}

func (g *guardedRun) line() string {
	g.t.Helper()
	if !g.out.Scan() {
		g.t.Fatalf("it says nothing more: %v", g.out.Err())
	}
	return g.out.Text()
}

func (g *guardedRun) pid() identity {
	g.t.Helper()
	line := g.line()
	pid, err := strconv.Atoi(line)
	if err != nil {
		g.t.Fatalf("not a pid: %q", line)
	}
	return identityOf(pid)
}

// end waits for the end of the warden, of which nothing that it has started may hold the output open.
func (g *guardedRun) end() *os.ProcessState {
	g.t.Helper()
	for g.out.Scan() {
	}
	var exit *exec.ExitError
	if err := g.Wait(); err != nil && !errors.As(err, &exit) {
		g.t.Fatal(err)
	}
	return g.ProcessState
}

func TestNothingOfAKilledDaemonLivesWhenItsWardenHasEnded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "children")
	g := runGuarded(t, "guarded", dir)
	var left []identity
	for range 4 {
		left = append(left, g.pid())
	}
	for _, id := range left {
		if s := statOrPanic(id.PID); s.dead() {
			t.Errorf("%d is dead before: the test tests nothing", id.PID)
		}
	}
	signal9(g.daemon)
	state := g.end()
	for _, id := range left {
		if alive(id) {
			t.Errorf("%d lives on", id.PID)
		}
	}
	if status := state.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("the warden has not ended as its daemon did: %v", state)
	}
	m := managerOf(t, dir)
	found, err := m.ReapSurvivors()
	if err != nil || len(found) == 0 {
		t.Fatalf("the next daemon is told %+v, %v", found, err)
	}
	// What had shaken everything off is told with its child if that was still there when the warden looked, else apart.
	told := map[int]bool{}
	for _, f := range found {
		if f.Err != nil || f.Kind != "" && (f.Kind != KindShell || f.Owner != 7) {
			t.Errorf("it is told %+v", f)
		}
		for _, pid := range f.Killed {
			told[pid] = true
		}
	}
	for _, id := range left {
		if !told[id.PID] {
			t.Errorf("of %d it is told nothing: %+v", id.PID, found)
		}
	}
	if last := found[len(found)-1]; len(found) > 2 || !slices.ContainsFunc(found, func(f Survivor) bool { return f.Kind == KindShell }) {
		t.Errorf("%d are told, the last as %+v", len(found), last)
	}
	if again, err := m.ReapSurvivors(); err != nil || len(again) != 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}

func signal9(id identity) { signal(id, syscall.SIGKILL) }

func managerOf(t *testing.T, dir string) *Manager {
	t.Helper()
	m, err := NewManager(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func TestWhatForksFasterThanItIsFoundEndsWithItsDaemon(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "children")
	g := runGuarded(t, "bombed", dir)
	g.line()
	table := below(processTable(), g.ward.PID)
	if len(table) < 20 {
		t.Errorf("there are %d processes: the test tests nothing", len(table))
	}
	signal9(g.daemon)
	g.end()
	for _, p := range append(table, processTable()...) {
		if env, _ := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/environ"); strings.Contains(string(env), bombMark+dir) {
			t.Errorf("%+v lives on", p)
		}
	}
}

func TestAWardenPassesSignalsOnAndEndsAsItsDaemonDoes(t *testing.T) {
	for _, c := range []struct {
		sig    syscall.Signal
		code   int
		signal syscall.Signal
		says   string
	}{
		{sig: syscall.SIGTERM, code: 7, says: "SIGTERM"},
		{sig: syscall.SIGINT, code: -1, signal: syscall.SIGINT},
	} {
		g := runGuarded(t, "passing", filepath.Join(t.TempDir(), "children"))
		if n := g.line(); n != "0" {
			t.Errorf("the daemon, and so what it starts, sees %s", wardVar)
		}
		for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP} {
			if err := g.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if got := g.line(); got != unix.SignalName(sig) {
				t.Errorf("the daemon gets %q for %v", got, sig)
			}
		}
		if err := g.Process.Signal(c.sig); err != nil {
			t.Fatal(err)
		}
		if c.says != "" {
			if got := g.line(); got != c.says {
				t.Errorf("the daemon gets %q for %v", got, c.sig)
			}
		}
		state := g.end()
		if status := state.Sys().(syscall.WaitStatus); state.ExitCode() != c.code || status.Signaled() && status.Signal() != c.signal {
			t.Errorf("%v: the warden ends with %v", c.sig, state)
		}
	}
}

func TestADaemonWhoseWardenIsKilledEndsWhatItHasAdoptedAndStops(t *testing.T) {
	g := runGuarded(t, "guarded", filepath.Join(t.TempDir(), "children"))
	var left []identity
	for range 4 {
		left = append(left, g.pid())
	}
	adopted := slices.DeleteFunc(slices.Clone(left), func(id identity) bool { return tokenOf(id.PID) != "" })
	if len(adopted) < 2 {
		t.Fatalf("%v of %v have dropped their mark", adopted, left)
	}
	signal9(g.ward)
	if got := g.line(); got != "lost" {
		t.Errorf("the daemon says %q", got)
	}
	for _, id := range adopted {
		if alive(id) {
			t.Errorf("%d lives on", id.PID)
		}
	}
	mustBeGone(t, g.daemon)
	for _, id := range left { // one was in the session of the child; a daemon would have stopped that
		signal9(id)
	}
	g.end()
}

// TestWhatTheStarterHadRunningOutlivesTheDaemon starts a daemon at the end of a script that has started something else.
func TestWhatTheStarterHadRunningOutlivesTheDaemon(t *testing.T) {
	g := &guardedRun{Cmd: runHelper(t, "guarded", filepath.Join(t.TempDir(), "children")), t: t}
	g.Args = []string{"sh", "-c", `sleep 1000 >/dev/null & echo $!; exec "$0"`, g.Path}
	g.Path = lookup(t, "sh")
	out, err := g.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	g.out = bufio.NewScanner(out)
	service := g.pid()
	defer signal9(service)
	g.daemon = g.pid()
	var left []identity
	for range 4 {
		left = append(left, g.pid())
	}
	signal9(g.daemon)
	if state := g.end(); state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ends with %v", state)
	}
	mustBeGone(t, left...)
	if !alive(service) {
		t.Error("what had nothing to do with the daemon was ended with it")
	}
}

func TestNobodyIsAGuardBecauseAVariableSaysSo(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	for _, text := range []string{"", "x", "0", "-1", "77777", strconv.Itoa(pair[0])} { // we have made it, not who started us
		t.Setenv(wardVar, text)
		if g := guarded(); g != nil {
			t.Errorf("%q makes a guard of %d", text, g.Warden())
		}
		if _, left := os.LookupEnv(wardVar); left {
			t.Errorf("%q stays for what is started", text)
		}
	}
}

// TestWhatIsToldIsHeldBeforeItIsHeard has a lock held by the message in a warden's socket.
func TestWhatIsToldIsHeldBeforeItIsHeard(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	write := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &write); err != nil {
		t.Fatal(err)
	}
	g := &Guard{socket: os.NewFile(uintptr(pair[1]), "warden")}
	if err := g.tell("/some/where", []*os.File{f}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), g.socket.Close()); err != nil {
		t.Fatal(err)
	}
	free := func() bool {
		other, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		return unix.FcntlFlock(other.Fd(), unix.F_OFD_SETLK, &write) == nil
	}
	if free() {
		t.Error("the lock is free when its holder has ended and the warden has not looked yet")
	}
	told := func() (string, []int) {
		w := &warden{socket: pair[0], heard: make(chan struct{})}
		w.listening()
		return w.dir, w.held
	}
	dir, held := told()
	if dir != "/some/where" || len(held) != 1 || free() {
		t.Fatalf("told %q, %v", dir, held)
	}
	if err := unix.Close(held[0]); err != nil || !free() {
		t.Errorf("it is held on; %v", err)
	}
	if dir, held := told(); dir != "" || held != nil {
		t.Errorf("nothing was told, and it is %q, %v", dir, held)
	}
}

func TestBelowAreAllDescendantsThatLive(t *testing.T) {
	p := func(pid, parent int, state byte, threads int) stat {
		return stat{identity: identity{pid, 1}, parent: parent, state: state, threads: threads}
	}
	table := []stat{p(5, 4, 'S', 1), p(2, 1, 'S', 1), p(3, 2, 'Z', 1), p(4, 3, 'T', 2), p(6, 2, 'Z', 3), p(9, 1, 'S', 1), p(7, 8, 'S', 1), p(8, 7, 'S', 1)}
	var got []int
	for _, s := range below(table, 2) {
		got = append(got, s.PID)
	}
	slices.Sort(got)
	if !slices.Equal(got, []int{4, 5, 6}) {
		t.Errorf("below 2 are %v", got)
	}
	if got := below(table, 7); len(got) != 1 { // parents that go round
		t.Errorf("below 7 are %v", got)
	}
}

// TestStoppedTwiceAtOnceIsStoppedOnce sends what a group and its warden would.
func TestStoppedTwiceAtOnceIsStoppedOnce(t *testing.T) {
	ctx, stop := Stoppable(t.Context())
	got := make(chan os.Signal, 1)
	ossignal.Notify(got, syscall.SIGTERM)
	defer ossignal.Stop(got)
	defer stop()
	for range 3 {
		if err := unix.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-got
		<-ctx.Done()
	}
}

// loadedDaemon starts children without end, which leave all kinds of things behind; all of it works in the directory above dir.
func loadedDaemon(dir string) {
	m := underWarden(dir, "")
	for range 4 {
		go func() {
			for {
				spec := sh(`(env -i PATH="$PATH" setsid sh -c 'sleep 1000 & exec sleep 1000' &); setsid sleep 1000 & (true &) ; (setsid sh -c 'sleep 0.01; exec sleep 1000' &); exit`, nil)
				spec.Dir = filepath.Dir(dir)
				c, err := m.Start(context.Background(), spec)
				if err != nil {
					panic(err)
				}
				if time.Now().UnixNano()%2 == 0 {
					c.Wait()
				}
			}
		}()
	}
	select {}
}

func TestADaemonThatIsKilledAtAnyMomentUnderLoadLeavesNoProcess(t *testing.T) {
	most := 0
	for i := range 12 {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		g := runGuarded(t, "loaded", filepath.Join(dir, "children"))
		<-time.After(time.Duration(i*i) * 3 * time.Millisecond) // any moment is as good as another
		most = max(most, len(below(processTable(), g.daemon.PID)))
		signal9(g.daemon)
		g.end()
		for _, p := range processTable() {
			if cwd, _ := os.Readlink("/proc/" + strconv.Itoa(p.PID) + "/cwd"); cwd == dir && !p.dead() {
				t.Errorf("round %d: %+v lives on", i, p)
			}
		}
		found, err := managerOf(t, filepath.Join(dir, "children")).ReapSurvivors()
		if err != nil {
			t.Errorf("round %d: %v", i, err)
		}
		for _, s := range found {
			if s.Err != nil {
				t.Errorf("round %d: %+v", i, s)
			}
		}
	}
	if most < 10 {
		t.Errorf("there were at most %d processes: the test tests nothing", most)
	}
}
