package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func init() {
	helpers["strays-of-old"] = func(dir string) {
		adopts = func() bool { return false }
		straysOfOld(dir)
	}
	helpers["nobody"] = nobody
	helpers["nothing in memory"] = nothingInMemory
}

// escape runs a script in a session, an environment and a group of its own, below a parent that ends at once.
func escape(t *testing.T, script string) string {
	return "(" + lookup(t, "env") + " -i %s " + lookup(t, "setsid") + " " + lookup(t, "sh") + " -c '(" + script + ") & exit' &)"
}

// TestWhateverAChildStartsStandsStillAndEndsWithIt has a child whose descendant has left session, group and environment and has no parent
// of its own any more, beside another child whose mark it may have taken.
func TestWhateverAChildStartsStandsStillAndEndsWithIt(t *testing.T) {
	subreap(t)
	eachFreezer(t, func(t *testing.T, m *Manager, f Freezer) {
		other := start(t, m, sh("sleep 1000", nil))
		for name, mark := range map[string]string{"unmarked": "", "with the mark of another": "RNIX_OWNER=" + other.tree.roots[0].token, "with a mark of nobody": "RNIX_OWNER=x"} {
			for _, end := range []string{"killed", "over"} {
				t.Run(name+" "+end, func(t *testing.T) {
					out := newLines(t)
					spec := sh(fmt.Sprintf(escape(t, `sh -c "echo \$\$"; exec `+lookup(t, "sh")+` -c "echo \$\$; `+walker+`"`), mark)+"; read x", out)
					spec.StdinPipe, spec.Owner = true, 11
					c := start(t, m, spec)
					if !adopts() {
						t.Skip("needs a processor for which there is such a program, and a system that runs it")
					}
					out.pid(t)
					id := out.pid(t)
					mustRun(t, out)
					if n := m.Freeze(11); n < 2 {
						t.Errorf("%d processes were frozen", n)
					}
					clock(t, m) // what was written before is read
					wrote := len(out.bytes)
					clock(t, m)
					if now := len(out.bytes); now != wrote {
						t.Errorf("it has written %d bytes while it was frozen", now-wrote)
					}
					m.Thaw(11)
					mustRun(t, out)
					if end == "killed" {
						c.Kill()
					} else {
						_ = c.Stdin().Close()
						if e := c.Wait(); e.Left < 1 {
							t.Errorf("nothing was left: %+v", e)
						}
					}
					if alive(id) {
						t.Error("it lives on")
					}
					if !alive(other.entry.Leader) {
						t.Error("another child was ended with it")
					}
				})
			}
		}
	})
}

// TestErrorsOfAStartAreThoseOfTheSystem starts what cannot run.
func TestErrorsOfAStartAreThoseOfTheSystem(t *testing.T) {
	if !adopts() {
		t.Skip("needs a processor for which there is such a program, and a system that runs it")
	}
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	long := []string{"true", strings.Repeat("x", 1<<20)}
	for path, args := range map[string][]string{
		filepath.Join(dir, "missing"):       {"missing"},
		dir:                                 {"dir"},
		write("text", "echo hi\n", 0o755):   {"text"},
		write("empty", "", 0o755):           {"empty"},
		write("mode", "#!/bin/sh\n", 0o644): {"mode"},
		write("interpreter", "#!"+dir+"/nothing\n", 0o755):          {"interpreter"},
		write("file", "", 0o644) + "/below":                         {"below"},
		lookup(t, "true"):                                           long,
		filepath.Join(dir, strings.Repeat("n", syscall.NAME_MAX+1)): {"name"},
	} {
		attr := &os.ProcAttr{Files: []*os.File{nil, nil, nil}}
		want, errWant := os.StartProcess(path, args, attr)
		got, _, err := startProcess(path, args, attr)
		for _, p := range []*os.Process{want, got} {
			if p != nil {
				_ = p.Kill()
				_, _ = p.Wait()
			}
		}
		var no, noWant syscall.Errno
		if errors.As(err, &no); !errors.As(errWant, &noWant) || no != noWant || err.Error() != errWant.Error() {
			t.Errorf("%.60s: %v, want %v", path, err, errWant)
		}
	}
}

func TestChildHasNoMoreDescriptorsThanItsStreams(t *testing.T) {
	var out bytes.Buffer
	start(t, newManager(t), sh("cd /proc/$$/fd && echo *; echo $0 $PPID", &out)).Wait()
	if want := fmt.Sprintf("0 1 2\nsh %d\n", os.Getpid()); out.String() != want && !strings.HasPrefix(out.String(), "0 1 2 ") { // a shell may open its script
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// nobody starts a child as a user without rights whose memory is hidden, as that of the daemon is.
func nobody(dir string) {
	if err := HideMemory(); err != nil {
		panic(err)
	}
	greet(dir)
}

// greet starts a child below dir, and says whether it adopts and what it has written.
func greet(dir string) {
	m, err := NewManager(dir, nil)
	if err != nil {
		panic(err)
	}
	defer m.Close()
	var out bytes.Buffer
	c, err := m.Start(context.Background(), sh("echo hello", &out))
	if err != nil {
		panic(err)
	}
	c.Wait()
	fmt.Print(c.adopts, " ", out.String())
}

func TestChildrenOfWhoeverHidesHisMemoryAdoptToo(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "adopt") // where another user comes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cmd := runHelper(t, "nobody", filepath.Join(dir, "children"))
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Skipf("needs to give a directory away: %v", err)
		}
		self, err := os.Open(cmd.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer self.Close()
		cmd.ExtraFiles, cmd.Path, cmd.Dir = []*os.File{self}, "/proc/self/fd/3", "/" // the program itself may be where nobody else comes
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.Output()
	if want := fmt.Sprintf("%v hello\n", adopts()); err != nil || string(out) != want {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

// nothingInMemory starts a child on a system that executes neither what is in memory nor what is in the directory of temporary files.
func nothingInMemory(dir string) {
	err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") // what follows is mounted here alone
	if err == nil {
		err = syscall.Mount("none", dir, "tmpfs", syscall.MS_NOEXEC, "")
	}
	if err == nil {
		err = syscall.Mount("none", "/proc", "proc", 0, "")
	}
	if err == nil {
		err = os.WriteFile("/proc/sys/vm/memfd_noexec", []byte("2"), 0)
	}
	if err != nil {
		fmt.Print("cannot: ", err)
		return
	}
	if err = os.Setenv("TMPDIR", dir); err != nil {
		panic(err)
	}
	greet(filepath.Join(dir, "children"))
}

func TestChildrenAreStartedWhereTheirFirstProgramIsNotExecuted(t *testing.T) {
	cmd := runHelper(t, "nothing in memory", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.Output()
	if errors.Is(err, syscall.EPERM) || strings.HasPrefix(string(out), "cannot: ") {
		t.Skipf("needs namespaces with a system of their own, and Linux 6.3: %v %s", err, out)
	}
	if err != nil || string(out) != "false hello\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// BenchmarkStart starts and awaits a program that does nothing, with and without the adopter and a cgroup that it is born in.
func BenchmarkStart(b *testing.B) {
	of := adopts
	defer func() { adopts = of }()
	for _, c := range []struct {
		name string
		born bool
		with func() bool
	}{{"plain", false, func() bool { return false }}, {"adopting", false, of}, {"born", true, of}} {
		b.Run(c.name, func(b *testing.B) {
			m, err := NewManager(filepath.Join(b.TempDir(), "children"), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			if !c.born {
				unhoused(m)
			} else if home, _ := m.births.home(); home == "" {
				b.Skip("needs a cgroup2 hierarchy in which we may make cgroups")
			}
			adopts = c.with
			for b.Loop() {
				child, err := m.Start(b.Context(), sh("exit 0", nil))
				if err != nil {
					b.Fatal(err)
				}
				child.Wait()
			}
		})
	}
}
