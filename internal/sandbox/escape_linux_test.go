//go:build amd64 || arm64

package sandbox

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"rnix/internal/soak"
)

// result is what became of an attack.
type result struct {
	out     output
	signs   []string // of an escape
	changed []string // as Box.Close says
}

// attempt runs one attack in a box.
func (s *scene) attempt(t testing.TB, h Host, a attack) (result, Plan) {
	t.Helper()
	plan, err := MakePlan(s.policy, h, Disk{})
	if err != nil {
		t.Fatal(err)
	}
	ns, _ := os.Readlink("/proc/self/ns/pid")
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.path("home"), "TMPDIR=" + s.place.Temp, "NS=" + ns, "SETUID=" + os.Getenv(setuidVariable),
		"GORACE=" + os.Getenv("GORACE"),
	}
	for _, e := range a.env {
		env = append(env, s.words(e))
	}
	before := s.state(t)
	line := strings.ReplaceAll(s.words(a.line), "$A ", `"`+self(t)+`" `+attackWord+" ")
	b, err := plan.Open(Command{Path: "/bin/sh", Args: []string{"-c", line}, Env: env, Dir: s.place.Work})
	if err != nil {
		t.Fatal(err)
	}
	leak, err := os.Open(s.path("outside", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	var r result
	r.out, err = start(t.Context(), b, func(c *exec.Cmd) {
		for len(c.ExtraFiles) < 6 {
			c.ExtraFiles = append(c.ExtraFiles, nil)
		}
		c.ExtraFiles = append(c.ExtraFiles, leak) // descriptor 9, by mistake
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.out.status == NotRun {
		t.Fatalf("nothing ran: %s", r.out.stderr)
	}
	if r.changed, err = b.Close(); err != nil {
		t.Error(err)
	}
	r.signs = differences(before, s.state(t))
	if strings.Contains(r.out.stdout+r.out.stderr, s.canary) {
		r.signs = append(r.signs, "it has seen the secret")
	}
	for _, line := range lines(r.out.stdout) {
		if strings.Contains(line, escaped) {
			r.signs = append(r.signs, line)
		}
	}
	for _, dir := range []string{s.place.Work, s.place.Temp} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if info, err := d.Info(); err == nil && info.Mode()&fs.ModeSetuid != 0 {
				r.signs = append(r.signs, path+" has its owner's rights")
			}
			if d.Type().IsRegular() {
				if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), s.canary) {
					r.signs = append(r.signs, path+" has the secret")
				}
			}
			return nil
		})
	}
	return r, plan
}

// TestEscape runs all attacks on each rung: as this user, as another one, and below a filter as containers have it.
func TestEscape(t *testing.T) {
	for _, a := range attacks {
		if strings.Count(a.name, "") == 1 || slices.IndexFunc(attacks, func(b attack) bool { return b.name == a.name }) != slices.IndexFunc(attacks, func(b attack) bool { return b.line == a.line }) {
			t.Fatalf("two attacks %q", a.name)
		}
	}
	eachRung(t, func(t *testing.T, h Host, rung Rung) {
		scenes := map[bool]*scene{}
		t.Cleanup(func() {
			for _, s := range scenes {
				s.close(t)
			}
		})
		share, err := strconv.Atoi(cmp.Or(os.Getenv(shareVariable), "1"))
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range attacks {
			if i%share != 0 {
				continue
			}
			t.Run(strings.ReplaceAll(a.name, " ", "-"), func(t *testing.T) {
				s := scenes[a.linked]
				if s == nil {
					s = newScene(t, a.linked)
					scenes[a.linked] = s
				}
				r, plan := s.attempt(t, h, a)
				if len(r.signs)+len(r.changed) > 0 {
					delete(scenes, a.linked) // it is broken
					s.close(t)
				} else {
					s.clean(t)
				}
				switch weak := rung == RungLandlock && (a.detected || a.gap != ""); {
				case len(r.signs) > 0 && !weak:
					t.Errorf("escaped: %s\n%s%s", strings.Join(r.signs, "\n"), r.out.stdout, r.out.stderr)
				case len(r.signs) == 0 && weak:
					t.Errorf("this rung prevents it now; say so\n%s%s", r.out.stdout, r.out.stderr)
				case weak && a.detected && len(r.changed) == 0:
					t.Errorf("protected files have changed, and nothing says so: %s", r.signs)
				case weak && a.gap != "" && !slices.ContainsFunc(plan.Gaps, func(g string) bool { return strings.HasPrefix(g, a.gap) }):
					t.Errorf("no gap %q in %q", a.gap, plan.Gaps)
				case !weak && len(r.changed) > 0:
					t.Errorf("protected files are said to have changed: %q", r.changed)
				}
			})
		}
	})
}

// Variables for this test program as another user.
const (
	setuidVariable = "RNIX_TEST_SETUID" // a copy of it with the rights of root
	childVariable  = "RNIX_TEST_CHILD"
	shareVariable  = "RNIX_TEST_SHARE" // 6: every sixth attack
)

// nobody is an ordinary user.
const nobody = 65534

// forAll makes a directory in which each user can start programs: the usual one for temporary files may be of one user alone.
func forAll(t *testing.T) string {
	for _, dir := range []string{"", "/tmp", "/var/tmp", "/dev/shm"} {
		base, err := os.MkdirTemp(dir, "rnix-escape-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.RemoveAll(base) })
		file := filepath.Join(base, "runs")
		if os.Chmod(base, 0o755) != nil || os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755) != nil {
			continue
		}
		c := exec.CommandContext(t.Context(), file)
		if os.Getuid() == 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		if c.Run() == nil {
			return base
		}
	}
	t.Skip("needs a directory for temporary files in which each user can start programs")
	return ""
}

// TestEscapeAsOthers runs TestEscape once more in child processes.
func TestEscapeAsOthers(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		return // this is a child already
	}
	if testing.Short() {
		t.Skip("needs a minute; not with -short")
	}
	base := forAll(t)
	program, suid := filepath.Join(base, "test"), filepath.Join(base, "setuid")
	text, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{program, suid} {
		if err := os.WriteFile(path, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(suid, os.ModeSetuid|0o755); err != nil {
		t.Fatal(err)
	}
	share := soak.Pick(t, "attacks that one is of, which other users try", 10, 1)
	for _, v := range []struct {
		name      string
		user      int
		container bool
	}{{"an ordinary user", nobody, false}, {"root in a container", 0, true}, {"an ordinary user in a container", nobody, true}} {
		t.Run(v.name, func(t *testing.T) {
			if v.user != os.Getuid() && os.Getuid() != 0 {
				t.Skip("needs root, to become another user")
			}
			dir := filepath.Join(base, strings.ReplaceAll(v.name, " ", "-"))
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(dir, v.user, v.user); err != nil {
				t.Fatal(err)
			}
			c := exec.CommandContext(t.Context(), program, "-test.run", "^TestEscape$", "-test.v")
			if v.container {
				c.Args = append([]string{program, attackWord, "contained", program}, c.Args[1:]...)
			}
			c.Dir = dir
			c.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, childVariable+"=1", programVariable+"=", shareVariable+"="+strconv.Itoa(share))
			if v.user != 0 {
				c.Env = append(c.Env, setuidVariable+"="+suid)
				c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			}
			out, err := c.CombinedOutput()
			passed, skipped := strings.Count(string(out), "    --- PASS: TestEscape/"), strings.Count(string(out), "--- SKIP: TestEscape/")
			t.Logf("%d passed, %d skipped", passed, skipped)
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if want := map[bool]int{false: 0, true: 1}[v.container]; skipped != want {
				t.Errorf("%d rungs were skipped, want %d\n%s", skipped, want, out)
			}
		})
	}
}

func init() { attackers["contained"] = contained }

// contained executes a program below a filter that refuses what the default one of Docker refuses without capabilities.
func contained(a []string) error {
	eperm := func(n int) call { return call{number: n, last: denied} }
	calls := []call{
		{unix.SYS_CLONE, []test{hasAny(0, namespaces, denied)}, allow}, {number: unix.SYS_CLONE3, last: unknown},
		eperm(unix.SYS_UNSHARE), eperm(unix.SYS_SETNS), eperm(unix.SYS_MOUNT), eperm(unix.SYS_UMOUNT2), eperm(unix.SYS_PIVOT_ROOT),
		eperm(unix.SYS_KEYCTL), eperm(unix.SYS_ADD_KEY), eperm(unix.SYS_REQUEST_KEY), eperm(unix.SYS_BPF), eperm(unix.SYS_PERF_EVENT_OPEN),
		eperm(unix.SYS_USERFAULTFD), eperm(unix.SYS_FSOPEN), eperm(unix.SYS_MOVE_MOUNT), eperm(unix.SYS_OPEN_TREE),
		eperm(unix.SYS_OPEN_BY_HANDLE_AT), eperm(unix.SYS_KEXEC_LOAD), eperm(unix.SYS_REBOOT), eperm(unix.SYS_SYSLOG),
		{number: unix.SYS_IO_URING_SETUP, last: denied},
	}
	program := assemble(auditArch, x32Bit, newestCall+1000, calls)
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := raw6(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); err != nil {
		return err
	}
	return unix.Exec(a[0], a, os.Environ())
}
