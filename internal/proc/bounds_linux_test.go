package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rnix/types"
)

func init() { helpers["bounded"] = boundedDaemon }

// boundedDaemon does what the lines of its input say, and prints a line for each. Process 7 has bounds, process 8 has none.
func boundedDaemon(dir string) {
	m, err := NewManager(dir, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var mu sync.Mutex
	told := Hits{}
	Bound(m, func(pid types.PID) types.Bounds {
		return map[types.PID]types.Bounds{7: {Memory: 64 << 20, Processes: 64}, 8: {Processes: -1}}[pid]
	}, func(s Spec, h Hits) {
		mu.Lock()
		defer mu.Unlock()
		if s.Owner == 7 {
			told.Killed, told.Refused = told.Killed+h.Killed, told.Refused+h.Refused
		}
	})
	run := func(owner types.PID, script string) ExitInfo {
		c, err := m.Start(context.Background(), Spec{Kind: KindShell, Owner: owner, Path: "sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: time.Minute})
		if err != nil {
			return ExitInfo{Err: err}
		}
		return c.Wait()
	}
	const many = `i=0; while [ $i -lt 150 ]; do sleep 1000 & i=$((i+1)); done; exit 7`
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "home":
			found, err := m.ReapSurvivors()
			e := EnforcedBy(m)
			fmt.Println(e.Memory, e.Processes, e.Why, len(found), err)
		case "where":
			fmt.Println(filepath.Base(cgroupOf(os.Getpid())))
		case "bomb":
			e := run(7, many)
			fmt.Println(e.Code != 7, e.Hits.Refused > 0, e.Hits.Killed, e.Left < 64)
		case "free":
			e := run(8, many)
			fmt.Println(e.Code, e.Left, e.Hits.None())
		case "hog":
			e := run(7, `head -c 300000000 /dev/zero | tail -c 290000000 | head -c 1; test -n "$?" && exit 3`)
			fmt.Println(e.Code, e.Hits.Killed > 0, e.Hits.Refused)
		case "stay":
			c, err := m.Start(context.Background(), Spec{Kind: KindShell, Owner: 7, Path: "sleep", Args: []string{"1000"}, Env: []string{"PATH=" + os.Getenv("PATH")}})
			fmt.Println(err, err == nil && c.cradle != "")
		case "told":
			mu.Lock()
			fmt.Println(told.Killed > 0, told.Refused > 0)
			mu.Unlock()
		case "close":
			m.Close()
			fmt.Println("closed")
		}
	}
}

// delegatedCgroup returns a new cgroup whose parent gives it both controllers.
func delegatedCgroup(t *testing.T) string {
	t.Helper()
	_, at := housed(t).births.home()
	const need = "needs a cgroup v2 hierarchy with the pids and memory controllers"
	if haveBoth(at.dir, hasFile) != nil {
		t.Skip(need)
	}
	if haveBoth(at.dir, givesFile) != nil {
		if err := give(at.dir, []string{controllerMemory, controllerPids}); err != nil {
			t.Skip(need+": ", err)
		}
		t.Cleanup(func() { _ = poke(filepath.Join(at.dir, givesFile), "-memory -pids") }) // another test may use them
	}
	dir := filepath.Join(at.dir, strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(cgroup(dir).kill(), cgroup(dir).remove(time.Now().Add(time.Minute))); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func haveBoth(dir, file string) error {
	if got := intersect(listed(dir, file), []string{controllerMemory, controllerPids}); len(got) < 2 {
		return errors.New(haveNot(got))
	}
	return nil
}

// boundedRun is a boundedDaemon.
type boundedRun struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func runBounded(t *testing.T, in, dir string) *boundedRun {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &boundedRun{t: t, cmd: exec.Command(self)}
	r.cmd.Env = append(os.Environ(), "PROC_TEST_ROLE=bounded", "PROC_TEST_DIR="+dir)
	r.cmd.Stderr, r.cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{}
	shut, err := bornIn(r.cmd.SysProcAttr, cgroup(in))
	if err != nil {
		t.Fatal(err)
	}
	defer shut()
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.out = bufio.NewScanner(out)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it may have ended
		_ = r.cmd.Wait()
	})
	return r
}

// says tells the daemon to do something, and checks what it prints.
func (r *boundedRun) says(do, want string) {
	r.t.Helper()
	if _, err := fmt.Fprintln(r.in, do); err != nil {
		r.t.Fatal(err)
	}
	if !r.out.Scan() {
		r.t.Fatalf("%s: it has ended", do)
	}
	if got := r.out.Text(); got != want {
		r.t.Errorf("%s: it says %q and not %q", do, got, want)
	}
}

func TestBoundsHoldWhatOneProcessStartsAndNothingElse(t *testing.T) {
	dir := delegatedCgroup(t)
	d := runBounded(t, dir, filepath.Join(t.TempDir(), "children"))
	d.says("where", filepath.Base(dir))
	d.says("home", "true true  0 <nil>")
	d.says("where", leafName)
	d.says("bomb", "true true 0 true")
	d.says("free", "7 150 true")
	d.says("hog", "3 true 0")
	d.says("bomb", "true true 0 true")
	d.says("told", "true true")
	d.says("close", "closed")
	d.says("where", filepath.Base(dir))
	if left, _ := os.ReadDir(filepath.Join(dir, leafName)); len(left) > 0 || haveBoth(dir, givesFile) == nil {
		t.Error("the cgroup is not as it was")
	}
}

func TestDaemonsThatShareACgroupBothBound(t *testing.T) {
	dir, data := delegatedCgroup(t), t.TempDir()
	a, b := runBounded(t, dir, filepath.Join(data, "a")), runBounded(t, dir, filepath.Join(data, "b"))
	a.says("home", "true true  0 <nil>")
	b.says("where", leafName) // it was moved along
	b.says("home", "true true  0 <nil>")
	b.says("bomb", "true true 0 true")
	a.says("close", "closed")
	b.says("bomb", "true true 0 true")
	b.says("hog", "3 true 0")
	b.says("close", "closed")
	b.says("where", filepath.Base(dir))
}

func TestDaemonAfterOneThatWasKilledBoundsToo(t *testing.T) {
	dir, data := delegatedCgroup(t), filepath.Join(t.TempDir(), "children")
	a := runBounded(t, dir, data)
	a.says("home", "true true  0 <nil>")
	a.says("stay", "<nil> true")
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.cmd.Wait()
	b := runBounded(t, filepath.Join(dir, leafName), data) // as a client that was moved along starts it
	b.says("home", "true true  1 <nil>")
	b.says("bomb", "true true 0 true")
	b.says("close", "closed")
	b.says("where", filepath.Base(dir))
}

func TestOtherProgramsInTheCgroupOfADaemonStayWhereTheyAre(t *testing.T) {
	dir := delegatedCgroup(t)
	d := runBounded(t, dir, filepath.Join(t.TempDir(), "children"))
	shell := exec.Command("sleep", "1000")
	shell.SysProcAttr = &syscall.SysProcAttr{}
	shut, err := bornIn(shell.SysProcAttr, cgroup(dir))
	if err != nil {
		t.Fatal(err)
	}
	err = shell.Start()
	shut()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shell.Process.Kill(); _ = shell.Wait() }()
	d.says("home", fmt.Sprintf("false false other programs are in the cgroup of the daemon, %s, such as sleep (PID %d), and are not moved: it must be alone there 0 <nil>", dir, shell.Process.Pid))
	d.says("where", filepath.Base(dir))
	d.says("free", "7 150 true")
	if at := filepath.Base(cgroupOf(shell.Process.Pid)); at != filepath.Base(dir) {
		t.Errorf("it was moved to %s", at)
	}
}

// fakeCgroup makes a directory with the files of a cgroup that count, by name.
func fakeCgroup(t *testing.T, name string, files map[string]string) place {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return place{FreezerCgroup2, mount{"/", filepath.Dir(dir)}, dir}
}

func TestWhenACgroupIsMadeToGiveItsControllers(t *testing.T) {
	const all, one = "cpu memory pids", "cpu pids"
	for name, test := range map[string]struct {
		dir   string
		files map[string]string
		gives int
		why   string // that it ends in
	}{
		"Given":    {"x", map[string]string{hasFile: all, givesFile: "memory pids", "cgroup.type": "domain"}, 2, ""},
		"Root":     {"x", map[string]string{hasFile: all, givesFile: "", memberFile: "1"}, 0, ""}, // the file only takes what is written
		"None":     {"x", map[string]string{hasFile: "cpu hugetlb", givesFile: "", memberFile: "1"}, 0, "no controllers memory and pids (a hierarchy of cgroup version 1 has it, or the cgroup above does not give it)"},
		"OnePids":  {"x", map[string]string{hasFile: one, givesFile: one, memberFile: "1"}, 1, "no controller memory (a hierarchy of cgroup version 1 has it, or the cgroup above does not give it)"},
		"Stranger": {"x", map[string]string{hasFile: all, givesFile: "", memberFile: "1", "cgroup.type": "domain"}, 0, "(PID 1), and are not moved: it must be alone there"},
		"Outside":  {"x", map[string]string{hasFile: all, givesFile: "", memberFile: "0", "cgroup.type": "domain"}, 0, "such as one outside of this container, and are not moved: it must be alone there"},
		"Systemd":  {"a.service", map[string]string{hasFile: all, givesFile: "", memberFile: "1", "cgroup.type": "domain"}, 0, "which has not given it away: its unit needs Delegate=yes"},
		"Session":  {"session-3.scope", map[string]string{hasFile: all, givesFile: "", memberFile: "1", "cgroup.type": "domain"}, 0, "which has not given it away: its unit needs Delegate=yes"},
		"Gone":     {"x", nil, 0, "no controllers memory and pids (a hierarchy of cgroup version 1 has it, or the cgroup above does not give it)"},
	} {
		p := fakeCgroup(t, test.dir, test.files)
		l := delegate(p)
		if len(l.gives) != test.gives || !strings.HasSuffix(l.why, test.why) || (l.why == "") != (test.why == "") || l.home != p.dir || l.inner != p.dir {
			t.Errorf("%s: %+v", name, l)
		}
		if text, _ := os.ReadFile(filepath.Join(p.dir, givesFile)); name == "Root" && string(text) != "+memory +pids" {
			t.Errorf("%s: it was told %q", name, text)
		}
	}
	p := fakeCgroup(t, "x", map[string]string{hasFile: all, givesFile: "memory pids", memberFile: ""})
	if err := os.Mkdir(filepath.Join(p.dir, leafName), 0o755); err != nil {
		t.Fatal(err)
	}
	if l := delegate(place{p.freezer, p.mount, filepath.Join(p.dir, leafName)}); l.home != p.dir || len(l.gives) != 2 || filepath.Base(l.inner) != leafName {
		t.Errorf("in a leaf: %+v", l)
	}
}

func TestHitsSayWhatWasHeld(t *testing.T) {
	b := types.Bounds{Memory: 1 << 30, Processes: 512}
	for h, want := range map[Hits]string{
		{Bounds: b}:             "",
		{Killed: 2, Bounds: b}:  "the kernel has killed a program: the commands and servers of this agent used more memory together than they may (1GiB); use less at once",
		{Refused: 1, Bounds: b}: "a program or thread could not be started: the commands and servers of this agent have as many processes and threads together as they may (512); start fewer at once",
	} {
		if got := strings.Join(h.Texts(), "|"); got != want || h.None() != (want == "") {
			t.Errorf("%+v: %q", h, got)
		}
	}
}
