package proc

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rnix/internal/durable"
	"rnix/runtime/env"
	"rnix/types"
)

// helpers are programs that the tests run as processes of their own, in a directory.
var helpers = map[string]func(dir string){
	"daemon":          daemonThatIsKilled,
	"guarded":         guardedDaemon,
	"passing":         passingDaemon,
	"bombed":          bombedDaemon,
	"loaded":          loadedDaemon,
	"deep":            deepDaemon,
	"headless":        headless,
	"subreaper":       subreaper,
	"managers-of-one": managersOfOne,
}

func runHelper(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), "PROC_TEST_ROLE="+role, "PROC_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// daemonThatIsKilled starts children whose parts print their pids, and waits to be killed.
func daemonThatIsKilled(dir string) {
	m, err := NewManager(dir, nil)
	if err != nil {
		panic(err)
	}
	for range 3 {
		spec := sh(`setsid sh -c 'echo $$; exec sleep 1000' & (setsid sh -c 'echo $$; exec sleep 1000' &) ; trap "" TERM; echo $$; wait`, os.Stdout)
		spec.Kind = KindMCP
		if _, err := m.Start(context.Background(), spec); err != nil {
			panic(err)
		}
	}
	select {}
}

// killedAfter runs a daemon until it has printed n pids, kills it, and returns whose they are.
func killedAfter(t *testing.T, role, dir string, n int) (ids []identity) {
	t.Helper()
	cmd := runHelper(t, role, dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); len(ids) < n && lines.Scan(); {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("not a pid: %q", lines.Text())
		}
		ids = append(ids, identityOf(pid))
	}
	_ = cmd.Process.Kill() // SIGKILL, as a crash
	_ = cmd.Wait()
	if len(ids) != n {
		t.Fatalf("got %d of %d pids", len(ids), n)
	}
	return ids
}

func TestKilledDaemonLeavesNoSurvivors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "children")
	ids := killedAfter(t, "daemon", dir, 9)
	m, err := NewManager(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	found, err := m.ReapSurvivors()
	if err != nil || len(found) != 3 {
		t.Fatalf("survivors %+v, %v", found, err)
	}
	killed := 0
	for _, s := range found {
		if s.Err != nil || s.Recycled || s.Kind != KindMCP || s.Owner != 7 || !strings.HasPrefix(s.Command, "sh -c") {
			t.Errorf("survivor %+v", s)
		}
		killed += len(s.Killed)
	}
	if killed < 6 { // the leaders have died with the daemon
		t.Errorf("only %d processes were killed", killed)
	}
	mustBeGone(t, ids...)
	if again, err := m.ReapSurvivors(); err != nil || len(again) != 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}

// stranger starts a process that the manager did not start.
func stranger(t *testing.T, env ...string) identity {
	t.Helper()
	cmd := exec.Command(lookup(t, "sleep"), "1000")
	cmd.Env = env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return identityOf(cmd.Process.Pid)
}

func TestRecycledPidIsLeftAlone(t *testing.T) {
	m := newManager(t)
	ours, foreign, rebooted, forking := stranger(t), stranger(t), stranger(t), stranger(t, env.OwnerVar+"=forking")
	register := func(token string, leader identity, boot string) {
		e := m.registry.entry(token, Spec{Kind: KindShell}, "sleep 1000")
		e.Daemon, e.Leader, e.Boot = identity{PID: os.Getpid(), Start: 1}, leader, boot
		if err := m.registry.write(e); err != nil {
			t.Fatal(err)
		}
	}
	register("ours", ours, m.registry.boot)
	register("foreign", identity{PID: foreign.PID, Start: foreign.Start - 1}, m.registry.boot)
	register("rebooted", rebooted, "another boot")
	register("forking", identity{}, m.registry.boot)
	live := start(t, m, sh("sleep 1000", nil))

	found, err := m.ReapSurvivors()
	if err != nil || len(found) != 4 {
		t.Fatalf("survivors %+v, %v", found, err)
	}
	var killed []int
	recycled := 0
	for _, s := range found {
		killed = append(killed, s.Killed...)
		if s.Recycled {
			recycled++
		}
	}
	slices.Sort(killed)
	want := []int{ours.PID, forking.PID}
	slices.Sort(want)
	if !slices.Equal(killed, want) || recycled != 1 {
		t.Errorf("killed %v, want %v; %d recycled", killed, want, recycled)
	}
	mustBeGone(t, ours, forking)
	if !alive(foreign) || !alive(rebooted) || !alive(identityOf(live.PID())) {
		t.Error("a process that is not a survivor was killed")
	}
}

// The daemon may stand still before it has said which pid the child has that it has just started.
func TestWhatActsForASessionIsEndedByItsTokenBeforeItsPidIsKnown(t *testing.T) {
	m := newManager(t)
	forking, other, free := stranger(t, env.OwnerVar+"=forking"), stranger(t, env.OwnerVar+"=other"), stranger(t, env.OwnerVar+"=free")
	session := types.NewUUID()
	for token, lease := range map[string]types.UUID{"forking": session, "other": types.NewUUID(), "free": {}, "started": session} {
		e := m.registry.entry(token, Spec{Kind: KindShell}, "sleep 1000")
		if e.Lease = lease; token == "started" { // and was found by nobody
			e.Boot = "another boot"
		}
		if err := m.registry.write(e); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.registry.forget(e, m.log) })
	}
	if killed := m.registry.endLeased(session); !slices.Equal(killed, []identity{forking}) {
		t.Errorf("%v was ended, want %v", killed, forking)
	}
	mustBeGone(t, forking)
	if !alive(other) || !alive(free) {
		t.Error("what does not act for the session was ended")
	}
}

func TestRegistrationThatCannotBeReadIsReportedAndKept(t *testing.T) {
	m, err := NewManager(filepath.Join(t.TempDir(), "children"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for name, text := range map[string]string{"torn.json": `{"v":1,"tok`, "newer.json": `{"v":99,"token":"newer"}`} {
		if err := os.WriteFile(filepath.Join(m.registry.dir, name), []byte(text), durable.FilePerm); err != nil {
			t.Fatal(err)
		}
	}
	found, err := m.ReapSurvivors()
	if len(found) != 0 || !strings.Contains(fmt.Sprint(err), "newer program") || !strings.Contains(fmt.Sprint(err), "torn.json") {
		t.Errorf("%+v, %v", found, err)
	}
	if names, _ := m.registry.names(); len(names) != 2 {
		t.Errorf("files are %v", names)
	}
	if types.CodeOf(err) == "" {
		t.Error("the error has no code")
	}
}

// subreaper adopts orphans, and checks that their zombies go and that nobody's status is stolen.
func subreaper(dir string) {
	if err := BecomeSubreaper(); err != nil {
		panic(err)
	}
	m, err := NewManager(dir, nil)
	if err != nil {
		panic(err)
	}
	var out bytes.Buffer
	for range 3 {
		start := sh("(sleep 0.05 &); (setsid true &); (true &); sleep 0.1; echo x", &out)
		c, err := m.Start(context.Background(), start)
		if err != nil {
			panic(err)
		}
		if e := c.Wait(); e.Code != 0 {
			panic(fmt.Sprintf("%+v", e))
		}
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if err := exec.Command("true").Run(); err != nil { // one that the manager knows nothing of
			panic("a status was stolen: " + err.Error())
		}
		zombies := 0
		for _, p := range processTable() {
			if p.parent == os.Getpid() && p.state == 'Z' {
				zombies++
			}
		}
		if zombies == 0 {
			break
		}
		if time.Now().After(deadline) {
			panic(fmt.Sprintf("%d zombies are left", zombies))
		}
	}
	m.Close()
	fmt.Println("clean")
}

func TestOrphansAreReapedAndNoStatusIsStolen(t *testing.T) {
	t.Parallel() // it is a program of its own
	out, err := runHelper(t, "subreaper", filepath.Join(t.TempDir(), "children")).Output()
	if err != nil || string(out) != "clean\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// behind is a command that leaves a process behind which sleeps, in a session and with an environment of its own: a file says
// that it has both.
func behind(seconds, file string) string {
	return "(env -i setsid sh -c 'echo > " + file + "; exec sleep " + seconds + "' &); until [ -e " + file + " ]; do sleep 0.01; done"
}

// straysOfOld leaves a process behind that no child can be found by, beside a child that could have started
// it and then without one, and checks when it goes. No child adopts.
func straysOfOld(dir string) {
	if err := BecomeSubreaper(); err != nil {
		panic(err)
	}
	m, err := NewManager(dir, nil)
	if err != nil {
		panic(err)
	}
	unhoused(m)
	older, err := m.Start(context.Background(), sh("sleep 1000", nil))
	if err != nil {
		panic(err)
	}
	c, err := m.Start(context.Background(), sh(behind("1000", filepath.Join(dir, "..", "one")), nil))
	if err != nil {
		panic(err)
	}
	c.Wait()
	self := statOrPanic(os.Getpid())
	var left stat
	for _, p := range processTable() {
		if p.parent == self.PID && p.PID != older.PID() && !p.dead() {
			left = p
		}
	}
	if left.PID == 0 {
		panic("nothing is left behind: the test tests nothing")
	}
	if owner, inside := m.Owner(left.PID); owner != 0 || !inside {
		panic(fmt.Sprintf("what an agent has left behind is taken for the user: %d %v", owner, inside))
	}
	if stray(left, self.session) {
		panic("a process is ended while the child lives that may have started it")
	}
	older.Kill()
	for deadline := time.Now().Add(time.Minute); alive(left.identity); {
		if time.Now().After(deadline) {
			panic("it lives on, and belongs to nobody")
		}
		_ = exec.Command("true").Run() // time passes, and a child ends
	}
	if c, err = m.Start(context.Background(), sh(behind("1001", filepath.Join(dir, "..", "two")), nil)); err != nil {
		panic(err)
	}
	c.Wait()
	m.Close()
	for _, p := range processTable() {
		if p.parent == self.PID && !p.dead() {
			panic(fmt.Sprintf("%d outlives the manager", p.PID))
		}
	}
	fmt.Println("clean")
}

func statOrPanic(pid int) stat {
	s, ok := statOf(pid)
	if !ok {
		panic("cannot be seen")
	}
	return s
}

func TestProcessThatShakesOffItsChildIsEndedAllTheSame(t *testing.T) {
	t.Parallel() // it is a program of its own
	out, err := runHelper(t, "strays-of-old", filepath.Join(t.TempDir(), "children")).Output()
	if err != nil || string(out) != "clean\n" {
		t.Errorf("%q, %v", out, err)
	}
}
