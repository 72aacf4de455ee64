package proc

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/internal/sandbox"
)

func init() { helpers["delegated"] = delegatedDaemon }

// housed returns a manager whose children are born in cgroups.
func housed(t *testing.T) *Manager {
	t.Helper()
	m := newManager(t)
	if home, _ := m.births.home(); home == "" {
		t.Skip("needs a cgroup2 hierarchy in which we may make cgroups")
	}
	return m
}

// cgroupOf returns the cgroup of the unified hierarchy that a process is in.
func cgroupOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return cgroupsOf(string(text))[FreezerCgroup2]
}

// bornIs checks that processes are in the cgroup that a child was born in.
func bornIs(t *testing.T, c *Child, ids ...identity) {
	t.Helper()
	for _, id := range ids {
		if at := cgroupOf(id.PID); !strings.HasSuffix(string(c.cradle), at) || at == "/" {
			t.Errorf("%d is in %s, and its child was born in %q", id.PID, at, c.cradle)
		}
	}
}

func TestChildrenAreBornInACgroupThatEndsWithTheirProcess(t *testing.T) {
	m := housed(t)
	home, _ := m.births.home()
	out := newLines(t)
	var ids []identity
	for range 2 {
		c := start(t, m, sh(`(env -i `+lookup(t, "setsid")+` `+lookup(t, "sh")+` -c 'echo $$; exec sleep 1000' &); sleep 1000`, out))
		id := out.pid(t)
		bornIs(t, c, id, identityOf(c.PID()))
		ids = append(ids, id)
	}
	other := sh("echo $$; sleep 1000", out)
	other.Owner = 8
	c := start(t, m, other)
	stays := out.pid(t)
	m.KillOwner(7)
	mustBeGone(t, ids...)
	if left, err := os.ReadDir(string(home.agent(7))); err == nil {
		t.Errorf("left of the cgroup: %v", left)
	}
	bornIs(t, c, stays)
	if !alive(stays) {
		t.Error("another process's child has ended")
	}
	if e := start(t, m, sh("exit 3", nil)).Wait(); e.Code != 3 { // and it begins anew
		t.Errorf("exit is %+v", e)
	}
	m.Close()
	if _, err := os.Stat(string(home)); err == nil {
		t.Errorf("%s is left", home)
	}
	if left, _ := filepath.Glob(filepath.Join(m.registry.dir, "*"+nurserySuffix)); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestChildThatCannotBeBornInACgroupIsStartedWithoutOne(t *testing.T) {
	m := newManager(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, memberFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.births.places = func() []place { return []place{{FreezerCgroup2, mount{"/", dir}, dir}} } // a directory as any other
	if home, _ := m.births.home(); home != "" {
		t.Errorf("children are to be born in %s", home)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
	var out bytes.Buffer
	if e := start(t, m, sh("echo x", &out)).Wait(); e.Code != 0 || out.String() != "x\n" {
		t.Errorf("%+v %q", e, &out)
	}
	late := housed(t)
	late.births.mu.Lock()
	own := late.births.own
	late.births.mu.Unlock()
	home := own.Dir
	defer func() { own.Dir = home }()
	own.Dir = filepath.Join(dir, "gone") // as if somebody had cleared the hierarchy
	c := start(t, late, sh("echo y; sleep 1000", &out))
	if c.cradle != "" || c.entry.Cgroup != "" {
		t.Errorf("it was born in %q", c.cradle)
	}
	if late.Freeze(7) == 0 {
		t.Error("nothing is frozen")
	}
	late.KillOwner(7)
}

// killBoth kills a warden and its daemon at the same moment.
func (g *guardedRun) killBoth() {
	g.t.Helper()
	signal(g.daemon, syscall.SIGSTOP) // it does not see that the warden ends
	signal9(g.ward)
	signal9(g.daemon)
	_ = g.Wait()
	mustBeGone(g.t, g.daemon)
}

func TestNextDaemonEndsWhatHadShedAllWhenTheWardenWasKilledToo(t *testing.T) {
	housed(t)
	dir := filepath.Join(t.TempDir(), "children")
	g := runGuarded(t, "guarded", dir)
	var left []identity
	for range 4 {
		left = append(left, g.pid())
	}
	g.killBoth()
	lives := slices.DeleteFunc(slices.Clone(left), func(id identity) bool { return !alive(id) })
	if len(lives) == 0 {
		t.Fatal("nothing lives on: the test tests nothing")
	}
	stranger := runGuarded(t, "guarded", filepath.Join(t.TempDir(), "children")) // another daemon on this host
	theirs := stranger.pid()
	found, err := managerOf(t, dir).ReapSurvivors()
	if err != nil || len(found) != 1 || found[0].Owner != 7 || len(found[0].Killed) < len(lives) {
		t.Errorf("%+v, %v; alive were %v", found, err, lives)
	}
	for _, id := range left {
		if alive(id) {
			t.Errorf("%d lives on", id.PID)
		}
	}
	if !alive(theirs) || !alive(stranger.daemon) {
		t.Error("what belongs to another daemon was ended")
	}
	signal9(stranger.daemon)
	stranger.end()
	if again, err := managerOf(t, dir).ReapSurvivors(); err != nil || len(again) != 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}

func TestDaemonAndWardenKilledAtAnyMomentUnderLoadLeaveNoProcess(t *testing.T) {
	housed(t)
	most := 0
	for round := 0; round < 8 || most < 10 && round < 40; round++ { // more where the machine has little time for what is to be ended
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		g := runGuarded(t, "loaded", filepath.Join(dir, "children"))
		<-time.After(time.Duration(rand.IntN(150*(1+round/8))) * time.Millisecond) // any moment is as good as another
		g.killBoth()
		in := func() (out []int) {
			for _, p := range processTable() {
				if cwd, _ := os.Readlink("/proc/" + strconv.Itoa(p.PID) + "/cwd"); cwd == dir && !p.dead() {
					out = append(out, p.PID)
				}
			}
			return out
		}
		most = max(most, len(in()))
		if _, err := managerOf(t, filepath.Join(dir, "children")).ReapSurvivors(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if left := in(); len(left) > 0 {
			t.Errorf("round %d: %v live on", round, left)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "children", "*"+nurserySuffix)); len(left) > 0 {
			t.Errorf("round %d: left are %v", round, left)
		}
	}
	if most < 10 {
		t.Errorf("at most %d processes were left to end: the test tests nothing", most)
	}
}

// standStill freezes the many children of process 7 and lets them go on, three times over: at least so many stand still, and write nothing then.
func standStill(t *testing.T, m *Manager, out *lines, least int) {
	t.Helper()
	for range 3 {
		began := time.Now()
		n := m.Freeze(7)
		t.Logf("%d processes stood still after %v", n, time.Since(began))
		if n < least {
			t.Errorf("%d stand still", n)
		}
		clock(t, m)
		wrote := len(out.bytes)
		clock(t, m)
		if now := len(out.bytes); now != wrote {
			t.Errorf("a frozen process has written %d bytes", now-wrote)
		}
		m.Thaw(7)
		mustRun(t, out)
	}
}

func TestHundredsOfProcessesStandStillAtOnce(t *testing.T) {
	m := housed(t)
	out := newLines(t)
	c := start(t, m, sh(`i=0; while [ $i -lt 400 ]; do setsid sleep 1000 & i=$((i+1)); done; echo $$; `+walker, out))
	out.pid(t)
	standStill(t, m, out, 401)
	bornIs(t, c, identityOf(c.PID()))
	m.Freeze(7)
	m.KillOwner(7)
	if left := c.cradle.living(); len(left) > 0 {
		t.Errorf("alive: %v", left)
	}
}

// Nothing keeps a program out of other cgroups that is not confined.
func TestWhoHasLeftItsCgroupStandsStillAndEndsAllTheSame(t *testing.T) {
	m := housed(t)
	_, at := m.births.home()
	out := newLines(t)
	c := start(t, m, sh(`setsid sh -c 'echo $$ >`+at.dir+`/cgroup.procs; echo $$; `+walker+`' & wait`, out))
	gone := out.pid(t)
	if got := cgroupOf(gone.PID); strings.Contains(got, "/rnix.") {
		t.Fatalf("it has not left: it is in %s", got)
	}
	m.Freeze(7)
	bornIs(t, c, gone)
	m.Thaw(7)
	mustRun(t, out)
	c.Kill()
	mustBeGone(t, gone)
}

// What a program that is not confined makes in its cgroup goes with that.
func TestCgroupsInACgroupEndWithIt(t *testing.T) {
	m := housed(t)
	_, at := m.births.home()
	out := newLines(t)
	c := start(t, m, sh(`in=`+at.mount.point+`$(sed -n 's/^0:://p' /proc/self/cgroup); mkdir -p $in/a/b
		(sh -c 'echo $$ >'$in'/a/b/cgroup.procs; echo $$; `+walker+`' &); sleep 1000`, out))
	deep := out.pid(t)
	if got := cgroupOf(deep.PID); !strings.HasSuffix(got, "/a/b") {
		t.Fatalf("it is in %s", got)
	}
	if n := m.Freeze(7); n < 3 {
		t.Errorf("%d stand still", n)
	}
	clock(t, m)
	wrote := len(out.bytes)
	clock(t, m)
	if now := len(out.bytes); now != wrote {
		t.Errorf("a frozen process has written %d bytes", now-wrote)
	}
	if got := cgroupOf(deep.PID); !strings.HasSuffix(got, "/a/b") {
		t.Errorf("it was moved to %s", got)
	}
	cradle := string(c.cradle)
	c.Kill()
	mustBeGone(t, deep)
	if _, err := os.Stat(cradle); err == nil {
		t.Errorf("%s is left", cradle)
	}
}

// intruder tries to get into each cgroup of the machine, and to make one, and says what it could.
const intruder = `for d in $(find /sys/fs/cgroup -type d 2>/dev/null) ; do
	{ echo $$ >$d/cgroup.procs; } 2>/dev/null && echo "moved $d"; mkdir $d/rnix-escape 2>/dev/null && echo "made $d"
	{ echo 0 >$d/cgroup.freeze; } 2>/dev/null && echo "thawed $d"; { echo 1 >$d/cgroup.kill; } 2>/dev/null && echo "killed $d"
done; `

func TestBoxedProgramStaysInItsCgroup(t *testing.T) {
	boxes(t, func(t *testing.T, _ *Manager, work string, box *Box) {
		m := housed(t)
		out := newLines(t)
		c := start(t, m, boxed(intruder+`echo 1; exec sleep 1000`, out, work, box))
		if n := out.pid(t); n.PID != 1 {
			t.Errorf("says %d", n.PID)
		}
		ids := c.tree.find()
		if len(ids) == 0 {
			t.Fatal("nothing runs")
		}
		bornIs(t, c, ids...)
		if n := m.Freeze(7); n < len(ids) || !c.cageForTest().shut {
			t.Errorf("%d of %d stand still", n, len(ids))
		}
		m.Thaw(7)
		c.Kill()
		mustBeGone(t, ids...)
	})
}

func TestHundredsInABoxStandStillAtOnce(t *testing.T) {
	boxes(t, func(t *testing.T, _ *Manager, work string, box *Box) {
		m := housed(t)
		out := newLines(t)
		start(t, m, boxed(`i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done; echo 1; `+walker, out, work, box))
		out.pid(t)
		standStill(t, m, out, 301)
		m.KillOwner(7)
	})
}

// delegatedDaemon is what an ordinary user's daemon is to whom a cgroup was given: it says where its child is, before and after the child has tried
// to leave, and what that says.
func delegatedDaemon(dir string) {
	m, err := NewManager(dir, nil)
	if err != nil {
		panic(err)
	}
	defer m.Close()
	rung := sandbox.Rung(os.Getenv("PROC_TEST_RUNG"))
	work := filepath.Join(filepath.Dir(dir), "work")
	told := newLines(nil)
	spec := sh(intruder+`echo done; exec sleep 1000`, told)
	spec.Dir = work
	if rung != "" {
		host := sandbox.Host{Program: sandbox.FindBwrap(os.Getenv("PATH")), Bwrap: sandbox.Proof{Proved: rung == sandbox.RungBwrap}, Landlock: sandbox.Proof{Proved: rung == sandbox.RungLandlock}}
		plan, err := sandbox.MakePlan(sandbox.Standard(sandbox.Place{Work: work}), host, sandbox.Disk{})
		if err != nil {
			panic(err)
		}
		spec.Box = &Box{Plan: plan}
	} else {
		spec.Args = []string{"-c", "echo done; exec sleep 1000"}
	}
	c, err := m.Start(context.Background(), spec)
	if err != nil {
		panic(err)
	}
	var line []byte
	for b := range told.bytes {
		if line = append(line, b); b == '\n' {
			fmt.Print("says ", string(line))
			if string(line) == "done\n" {
				break
			}
			line = nil
		}
	}
	for _, id := range c.tree.find() {
		fmt.Println("in", c.cradle != "" && strings.HasSuffix(string(c.cradle), cgroupOf(id.PID)))
	}
	fmt.Println("froze", m.Freeze(7) > 0)
	c.Kill()
}

func TestOrdinaryUserWithACgroupOfTheirOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give an ordinary user a cgroup")
	}
	_, at := housed(t).births.home()
	const user = 65534
	dir, err := os.MkdirTemp("/dev/shm", "rnix-delegated-")
	if err != nil {
		t.Skip("needs a directory in which an ordinary user can work: ", err)
	}
	defer os.RemoveAll(dir)
	given := filepath.Join(at.dir, filepath.Base(dir))
	mayFail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	mayFail(os.Mkdir(given, 0o755))
	defer func() { mayFail(cgroup(given).kill()); mayFail(cgroup(given).remove(time.Now().Add(time.Minute))) }()
	for _, name := range []string{"", memberFile, "cgroup.subtree_control"} {
		mayFail(os.Chown(filepath.Join(given, name), user, user))
	}
	program := filepath.Join(dir, "program")
	self, err := os.Executable()
	mayFail(err)
	mayFail(exec.Command("cp", self, program).Run())
	for _, sub := range []string{"", "work"} {
		mayFail(os.MkdirAll(filepath.Join(dir, sub), 0o755))
		mayFail(os.Chown(filepath.Join(dir, sub), user, user))
	}
	boxes(t, func(t *testing.T, _ *Manager, _ string, box *Box) {
		for _, rung := range []sandbox.Rung{"", box.Plan.Rung} {
			cmd := exec.Command(program)
			cmd.Env = append(os.Environ(), "PROC_TEST_ROLE=delegated", "PROC_TEST_DIR="+filepath.Join(dir, "children"), "PROC_TEST_RUNG="+string(rung), "TMPDIR="+dir)
			cmd.Dir, cmd.Stderr = dir, os.Stderr
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
			shut, err := bornIn(cmd.SysProcAttr, cgroup(given))
			mayFail(err)
			out, err := cmd.StdoutPipe()
			mayFail(err)
			err = cmd.Start()
			shut()
			mayFail(err)
			var said []string
			for lines := bufio.NewScanner(out); lines.Scan(); {
				said = append(said, lines.Text())
			}
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%q: %v, %q", rung, err, said)
			}
			said = slices.Compact(said)
			if want := []string{"says done", "in true", "froze true"}; !slices.Equal(said, want) {
				t.Errorf("%q: it says %q", rung, said)
			}
		}
	})
}
