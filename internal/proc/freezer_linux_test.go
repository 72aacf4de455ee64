package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rnix/types"
)

func init() {
	for _, f := range freezers {
		helpers["frozen by "+string(f)] = func(dir string) { daemonThatHasFrozen(dir, f) }
	}
}

// fromBirth stands for the cgroups that children are born in.
const fromBirth Freezer = "birth"

var freezers = []Freezer{fromBirth, FreezerCgroup2, FreezerCgroup1, FreezerSignals}

// only makes a manager freeze in one way. It reports whether there is that way here.
func only(m *Manager, f Freezer) bool {
	if f == fromBirth {
		home, _ := m.births.home()
		m.cages.places = func() []place { return nil }
		return home != ""
	}
	unhoused(m)
	var there []place
	for _, p := range ownPlaces() {
		if p.freezer == f {
			there = append(there, p)
		}
	}
	m.cages.places = func() []place { return there }
	return best(m.cages.places()) == f
}

// unhoused has no child of a manager be born in a cgroup.
func unhoused(m *Manager) { m.births.places = func() []place { return nil } }

// eachFreezer runs a test with each freezer. It ends with no cage left.
func eachFreezer(t *testing.T, test func(t *testing.T, m *Manager, f Freezer)) {
	t.Helper()
	with(t, freezers, test)
}

// eachCgroup leaves signals out: they cannot keep what the test is about.
func eachCgroup(t *testing.T, test func(t *testing.T, m *Manager, f Freezer)) {
	t.Helper()
	with(t, []Freezer{fromBirth, FreezerCgroup2, FreezerCgroup1}, test)
}

func with(t *testing.T, freezers []Freezer, test func(t *testing.T, m *Manager, f Freezer)) {
	t.Helper()
	for _, f := range freezers {
		t.Run(string(f), func(t *testing.T) {
			t.Cleanup(func() { noCages(t, "") })
			m := newManager(t)
			if !only(m, f) {
				t.Skip("needs a " + string(f) + " hierarchy in which we may make cgroups")
			}
			test(t, m, f)
		})
	}
}

// noCages checks that no cgroup of a daemon is left, "" = ours, and no file of one in the directories.
func noCages(t *testing.T, pid string, dirs ...string) {
	t.Helper()
	if pid == "" {
		pid = strconv.Itoa(os.Getpid())
	}
	for _, p := range ownPlaces() {
		dirs = append(dirs, p.dir)
	}
	for _, dir := range dirs {
		for _, pattern := range []string{"rnix-" + pid + "-*", "*" + cageSuffix} {
			if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		}
	}
}

// clock lets some time pass, in which others could do something.
func clock(t *testing.T, m *Manager) {
	t.Helper()
	spec := sh("sleep 0.3", nil)
	spec.Owner = 8
	start(t, m, spec).Wait()
}

// mustRun waits for a process to write something more.
func mustRun(t *testing.T, l *lines) {
	t.Helper()
	for len(l.bytes) > 0 {
		<-l.bytes
	}
	l.pid(t)
}

const walker = `while :; do echo $$; sleep 0.01; done`

func TestFrozenProcessesStandStillWhereverTheyWent(t *testing.T) {
	eachFreezer(t, func(t *testing.T, m *Manager, f Freezer) {
		out := newLines(t)
		c := start(t, m, sh(`sh -c 'echo $$; exec sleep 1000' & setsid sh -c 'echo $$; `+walker+`' & setsid env -i `+lookup(t, "sh")+` -c 'echo $$; exec sleep 1000' & wait`, out))
		var ids []identity
		for len(ids) < 3 {
			if id := out.pid(t); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		ids = append(ids, identityOf(c.PID()))
		if n := m.Freeze(7); n < len(ids) || !c.Info().Frozen {
			t.Fatalf("froze %d: %+v", n, c.Info())
		}
		if f == FreezerSignals {
			for _, id := range ids {
				mustStandStill(t, id.PID)
			}
		} else if inside, err := c.cageForTest().members(); err != nil {
			t.Error(err)
		} else {
			for _, id := range ids {
				if !slices.Contains(inside, id.PID) {
					t.Errorf("%d is not in %v", id.PID, inside)
				}
			}
		}
		clock(t, m) // what was written before is read
		wrote := len(out.bytes)
		clock(t, m)
		if now := len(out.bytes); now != wrote {
			t.Errorf("a frozen process has written %d bytes", now-wrote)
		}
		m.Thaw(7)
		mustRun(t, out)
		for _, id := range ids {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", id.PID))
			if s, _ := statOf(id.PID); s.state == 'T' || strings.Contains(string(text), "/rnix-") || strings.Contains(string(text), "/rnix.") != (f == fromBirth) {
				t.Errorf("%d is in state %c, in\n%s", id.PID, s.state, text)
			}
		}
		noCages(t, "", m.registry.dir)
		if m.Freeze(7) < len(ids) {
			t.Error("a second freeze finds fewer processes")
		}
		m.KillOwner(7)
		mustBeGone(t, ids...)
	})
}

func (c *Child) cageForTest() *cage {
	c.ice.mu.Lock()
	defer c.ice.mu.Unlock()
	return c.ice.cage
}

func TestJobThatWasStoppedByItsShellStaysSo(t *testing.T) {
	eachCgroup(t, func(t *testing.T, m *Manager, _ Freezer) {
		out := newLines(t)
		start(t, m, sh(`sleep 1000 & kill -STOP $!; echo $!; `+walker, out))
		job := out.pid(t)
		stops := func(when string) { // on a busy machine it takes the signal a moment later
			t.Helper()
			var s stat
			for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(time.Millisecond) {
				if s, _ = statOf(job.PID); s.state == 'T' {
					return
				}
			}
			t.Errorf("%s it is in state %c", when, s.state)
		}
		stops("before")
		m.Freeze(7)
		m.Thaw(7)
		mustRun(t, out)
		stops("after")
	})
}

// Each process of a chain is the child of one that has ended at once.
func TestProcessesThatKeepForkingAreFrozenToo(t *testing.T) {
	eachCgroup(t, func(t *testing.T, m *Manager, _ Freezer) {
		out := newLines(t)
		c := start(t, m, sh(`next() { sleep 0.002; next & exit; }; for i in 1 2 3; do (next) & done
			for i in 1 2; do (while :; do (:) & wait; done) & done; echo $$; sleep 1000`, out))
		out.pid(t)
		clock(t, m)
		family := func() map[identity]bool {
			ids := make(map[identity]bool)
			for _, p := range processTable() {
				if !p.dead() && tokenOf(p.PID) == c.entry.Token {
					ids[p.identity] = true
				}
			}
			return ids
		}
		for range 3 {
			m.Freeze(7)
			if c.cageForTest() == nil {
				t.Fatal("there is no cage: signals were used")
			}
			was := family()
			clock(t, m)
			if now := family(); len(was) < 4 || fmt.Sprint(now) != fmt.Sprint(was) {
				t.Errorf("%d processes became %d", len(was), len(now))
			}
			m.Thaw(7)
		}
		m.Freeze(7)
		m.KillOwner(7)
		if left := family(); len(left) > 0 {
			t.Errorf("alive: %v", left)
		}
	})
}

func TestFrozenChildDiesWhoeverEndsIt(t *testing.T) {
	for name, end := range map[string]func(m *Manager, c *Child, cancel func()){
		"Kill":      func(_ *Manager, c *Child, _ func()) { c.Kill() },
		"Stop":      func(_ *Manager, c *Child, _ func()) { c.Stop(50 * time.Millisecond) },
		"KillOwner": func(m *Manager, _ *Child, _ func()) { m.KillOwner(7) },
		"Cancel":    func(_ *Manager, _ *Child, cancel func()) { cancel() },
		"Close":     func(m *Manager, _ *Child, _ func()) { m.Close() },
		"Outside": func(m *Manager, c *Child, _ func()) {
			_ = syscall.Kill(c.PID(), syscall.SIGKILL)
			if best(m.cages.places()) == FreezerCgroup1 { // it dies when it is thawed
				m.Thaw(7)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachFreezer(t, func(t *testing.T, m *Manager, _ Freezer) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				out := newLines(t)
				c, err := m.Start(ctx, sh(`trap "" TERM; setsid sh -c 'echo $$; exec sleep 1000' & wait; sleep 1000`, out))
				if err != nil {
					t.Fatal(err)
				}
				inner := out.pid(t)
				m.Freeze(7)
				began := time.Now()
				end(m, c, cancel)
				c.Wait()
				if took := time.Since(began); took > time.Minute {
					t.Errorf("took %v", took)
				}
				mustBeGone(t, inner, c.entry.Leader)
				noCages(t, "", m.registry.dir)
			})
		})
	}
}

func TestFreezeAndThawMayCross(t *testing.T) {
	eachFreezer(t, func(t *testing.T, m *Manager, _ Freezer) {
		out := newLines(t)
		start(t, m, sh(`setsid sh -c '`+walker+`' & sleep 1000`, out))
		out.pid(t)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range 15 {
					if i%2 == 0 {
						m.Freeze(7)
					} else {
						m.Thaw(7)
					}
				}
			})
		}
		wg.Wait()
		m.Thaw(7)
		mustRun(t, out)
		noCages(t, "", m.registry.dir)
		for range 2 {
			wg.Go(func() { m.Freeze(7) })
			wg.Go(func() { m.KillOwner(7) })
		}
		wg.Wait()
	})
}

// daemonThatHasFrozen freezes a child that has told its parts' pids, says so, and waits to be killed.
func daemonThatHasFrozen(dir string, f Freezer) {
	m, err := NewManager(dir, nil)
	if err != nil {
		panic(err)
	}
	only(m, f)
	told := &lines{make(chan byte, 1<<16)}
	c, err := m.Start(context.Background(), sh(`setsid sh -c 'echo $$; exec sleep 1000' & echo $$; wait`, told))
	if err != nil {
		panic(err)
	}
	for n := 0; n < 2; {
		b := <-told.bytes
		if b == '\n' {
			n++
		}
		fmt.Printf("%c", b)
	}
	if m.Freeze(7) < 2 {
		panic("not frozen")
	}
	cage := ""
	if g := c.cageForTest(); g != nil {
		cage = g.Dir
	}
	fmt.Printf("frozen %s\n", cage)
	select {}
}

// runsAgain waits until a process that was thawed sleeps of its own: it goes there through state R.
func runsAgain(t *testing.T, id identity) {
	t.Helper()
	var s stat
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(time.Millisecond) {
		if s, _ = statOf(id.PID); !alive(id) || s.state == 'S' {
			break
		}
	}
	if !alive(id) || s.state != 'S' {
		t.Errorf("who is not ours is in state %c", s.state)
	}
}

func TestKilledDaemonLeavesNothingFrozen(t *testing.T) {
	eachFreezer(t, func(t *testing.T, m *Manager, f Freezer) {
		foreign := stranger(t)
		cmd := runHelper(t, "frozen by "+string(f), m.registry.dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var ids []identity
		cage, frozen := "", false
		for lines := bufio.NewScanner(out); !frozen && lines.Scan(); {
			if cage, frozen = strings.CutPrefix(lines.Text(), "frozen "); !frozen {
				pid, _ := strconv.Atoi(lines.Text())
				ids = append(ids, identityOf(pid))
			}
		}
		if f == FreezerCgroup2 || f == FreezerCgroup1 { // who is put where children are born ends with them
			if err := enter(cage, foreign.PID); err != nil {
				t.Errorf("cage %q: %v", cage, err)
			}
		}
		if again, err := m.ReapSurvivors(); len(again) != 0 || err != nil {
			t.Errorf("of a daemon that lives: %+v, %v", again, err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if len(ids) != 2 {
			t.Fatalf("%d pids", len(ids))
		}
		found, err := m.ReapSurvivors()
		if err != nil || len(found) != 1 || found[0].Err != nil || len(found[0].Killed) == 0 {
			t.Errorf("%+v, %v", found, err)
		}
		mustBeGone(t, ids...)
		noCages(t, strconv.Itoa(cmd.Process.Pid), m.registry.dir)
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", foreign.PID))
		if strings.Contains(string(text), "/rnix-") {
			t.Errorf("who is not ours is in\n%s", text)
		}
		runsAgain(t, foreign)
	})
}

func TestCageThatDoesNotFreezeIsTakenBack(t *testing.T) {
	for name, fail := range map[string]func(c *cages, dir string){
		"Unfrozen": func(c *cages, dir string) {
			c.patience = 20 * time.Millisecond
			c.mkdir = func(cage string) error {
				for name, text := range map[string]string{"cgroup.freeze": "0", "cgroup.events": "populated 1\nfrozen 0\n", memberFile: ""} {
					if err := errors.Join(os.MkdirAll(cage, 0o700), os.WriteFile(filepath.Join(cage, name), []byte(text), 0o600)); err != nil {
						return err
					}
				}
				return nil
			}
			c.rmdir = os.RemoveAll
		},
		"NoFreezer": func(*cages, string) {}, // a directory as any other
		"ReadOnly":  func(c *cages, _ string) { c.mkdir = func(string) error { return syscall.EROFS } },
		"NoMembers": func(c *cages, _ string) {
			c.mkdir = func(cage string) error {
				return errors.Join(os.Mkdir(cage, 0o700), os.WriteFile(filepath.Join(cage, "cgroup.freeze"), nil, 0o600))
			}
			c.rmdir = os.RemoveAll
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t)
			above := t.TempDir()
			if err := os.WriteFile(filepath.Join(above, memberFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			unhoused(m)
			m.cages.places = func() []place { return []place{{FreezerCgroup2, mount{"/", above}, above}} }
			fail(&m.cages, above)
			out := newLines(t)
			c := start(t, m, sh(walker, out))
			out.pid(t)
			if m.Freeze(7) == 0 {
				t.Error("nothing is frozen")
			}
			mustStandStill(t, c.PID())
			noCages(t, "", above, m.registry.dir)
			m.Thaw(7)
			mustRun(t, out)
		})
	}
}

func TestCageThatIsNotOursIsNotTouched(t *testing.T) {
	m := newManager(t)
	dir := t.TempDir()
	foreign := filepath.Join(dir, "user.slice")
	if err := errors.Join(os.Mkdir(foreign, 0o700), os.WriteFile(filepath.Join(foreign, "cgroup.freeze"), []byte("1"), 0o600)); err != nil {
		t.Fatal(err)
	}
	write := func(token, text string) {
		if err := os.WriteFile(m.registry.cagePath(token), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	form := `{"v":%d,"token":"%s","boot":"%s","daemon":{"pid":%d,"start":1},"freezer":"cgroup2","dir":"%s"}`
	write("foreign", fmt.Sprintf(form, 1, "foreign", m.registry.boot, os.Getpid(), foreign))
	write("newer", fmt.Sprintf(form, 9, "newer", m.registry.boot, os.Getpid(), foreign))
	write("torn", `{"v":1,"tok`)
	write("booted", fmt.Sprintf(form, 1, "booted", "another boot", os.Getpid(), foreign))
	write("gone", fmt.Sprintf(form, 1, "gone", m.registry.boot, os.Getpid(), filepath.Join(dir, "rnix-1-2")))
	_, err := m.ReapSurvivors()
	for _, part := range []string{"user.slice", "newer program", "torn.cage"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("error is %v; %s is missing", err, part)
		}
	}
	if types.CodeOf(err) == "" {
		t.Error("the error has no code")
	}
	if b, _ := os.ReadFile(filepath.Join(foreign, "cgroup.freeze")); string(b) != "1" {
		t.Errorf("the file of another is %q", b)
	}
	left, _ := filepath.Glob(filepath.Join(m.registry.dir, "*"+cageSuffix))
	if len(left) != 3 {
		t.Errorf("files are %v", left)
	}
}

func TestPlacesAreBelowWhatIsMounted(t *testing.T) {
	const unified = "25 20 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	const old = "30 20 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 20 0:30 / /sys/fs/cgroup/freezer rw shared:9 - cgroup cgroup rw,freezer\n"
	for name, test := range map[string]struct {
		cgroups, mounts string
		want            []string
	}{
		"Unified":   {"0::/user.slice/a.scope\n", unified, []string{"cgroup2 /sys/fs/cgroup/user.slice/a.scope"}},
		"Old":       {"7:freezer:/\n3:cpu,cpuacct:/x\n", old, []string{"cgroup1 /sys/fs/cgroup/freezer"}},
		"Together":  {"7:cpu,freezer:/a\n0::/\n", strings.ReplaceAll(old, "rw,freezer", "rw,cpu,freezer") + unified, []string{"cgroup2 /sys/fs/cgroup", "cgroup1 /sys/fs/cgroup/freezer/a"}},
		"Part":      {"0::/docker/abc/x\n", "25 20 0:22 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", []string{"cgroup2 /sys/fs/cgroup/x"}},
		"OtherPart": {"0::/docker/abcd\n", "25 20 0:22 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n", nil},
		"Outside":   {"0::/../../x\n", unified, nil},
		"Deleted":   {"0::/a (deleted)\n", unified, nil},
		"Unmounted": {"0::/a\n7:freezer:/a\n", "22 1 8:1 / / rw - ext4 /dev/sda rw\n", nil},
		"Blank":     {"0::/a:b\n", `25 20 0:22 / /my\040cgroups rw - cgroup2 cgroup2 rw` + "\n", []string{"cgroup2 /my cgroups/a:b"}},
		"Torn":      {"0:\n\n", "25 20\n - \n", nil},
	} {
		var got []string
		for _, p := range placesIn(test.cgroups, test.mounts) {
			got = append(got, string(p.freezer)+" "+p.dir)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
