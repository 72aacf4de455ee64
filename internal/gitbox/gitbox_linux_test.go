package gitbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
)

// daemonIn is the variable that makes of this program a daemon which starts a git and waits to be killed.
const daemonIn = "RNIX_TEST_DAEMON_IN"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Word {
		os.Exit(sandbox.Helper(os.Args[2:]))
	}
	if dir := os.Getenv(daemonIn); dir != "" {
		if err := daemon(dir); err != nil {
			fmt.Println(err)
		}
		os.Exit(1)
	}
	if filepath.Base(os.Args[0]) == "git" {
		os.Exit(oddGit())
	}
	goleak.VerifyTestMain(m)
}

// oddGit is a git that only runs if it may read a file beside itself.
func oddGit() int {
	if _, err := os.ReadFile(os.Args[0] + ".needs"); err != nil || len(os.Args) != 2 {
		return 127
	}
	fmt.Println("/usr/lib/git-core")
	return 0
}

// daemon starts a git that waits for questions, and prints its PID. It returns if it cannot.
func daemon(dir string) error {
	procs, boxes, err := confining(context.Background(), dir)
	if err != nil {
		return err
	}
	gitDir := filepath.Join(dir, "repo")
	child, err := procs.Start(context.Background(), spec(&sandbox.GitCall{Write: []string{gitDir}}, "--git-dir="+gitDir, "cat-file", "--batch"))
	if err != nil {
		return err
	}
	if why := boxes.Reason(); why != nil {
		return why
	}
	fmt.Println(child.PID())
	<-child.Done()
	return fmt.Errorf("git has ended: %+v", child.Wait())
}

// confining returns what starts children and confines those that are git.
func confining(ctx context.Context, dir string) (*proc.Manager, *Boxes, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	procs, err := proc.NewManager(filepath.Join(dir, "children"), nil)
	if err != nil {
		return nil, nil, err
	}
	run := func(ctx context.Context, plan sandbox.Plan, c sandbox.Command) (int, string, error) {
		errs := proc.NewRing(4 << 10)
		child, err := procs.Start(ctx, proc.Spec{Kind: proc.KindShell, Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stderr: errs, Box: &proc.Box{Plan: plan}})
		if err != nil {
			return 0, "", err
		}
		exit := child.Wait()
		return exit.Code, errs.String(), exit.Err
	}
	host := sandbox.Probe(ctx, run, self, "")
	boxes := &Boxes{Host: func() sandbox.Host { return host }, Home: dir, Data: dir, Start: procs.Start, Log: slog.New(slog.DiscardHandler)}
	proc.Confine(procs, boxes.Box)
	return procs, boxes, nil
}

func spec(call *sandbox.GitCall, args ...string) proc.Spec {
	git, _ := exec.LookPath("git") // needed says if there is none
	return proc.Spec{Kind: proc.KindGit, Path: git, Args: args, Dir: "/", StdinPipe: true, Stdout: io.Discard, Stderr: io.Discard, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/nowhere"}, Git: call}
}

// needed skips a test where no git can be confined.
func needed(t *testing.T) (dir string, procs *proc.Manager, boxes *Boxes) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	procs, boxes, err = confining(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(procs.Close)
	if host := boxes.Host(); !host.Landlock.Proved {
		t.Skipf("needs a host where Landlock works: %s", host.Landlock.Reason)
	}
	return dir, procs, boxes
}

func TestGitEndsWithADaemonThatIsKilled(t *testing.T) {
	dir, procs, _ := needed(t)
	procs.Close()
	if out, err := exec.Command("git", "init", "-q", "--bare", filepath.Join(dir, "repo")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), daemonIn+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Errorf("no git was started: %q", line)
	} else if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err != nil || string(name) != "git\n" {
		t.Errorf("what runs is %q, %v", name, err)
	}
	fd := -1
	if pid > 0 {
		if fd, err = unix.PidfdOpen(pid, 0); err != nil {
			t.Error(err)
		}
	}
	_ = cmd.Process.Kill() // SIGKILL, as a crash
	_ = cmd.Wait()
	if fd < 0 {
		return
	}
	defer unix.Close(fd)
	const patience = 20_000 // ms
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, patience)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n != 1 {
			t.Errorf("git lives: %d, %v", n, err)
		}
		break
	}
	m, err := proc.NewManager(filepath.Join(dir, "children"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if left, err := m.ReapSurvivors(); err != nil || len(left) != 1 || left[0].Err != nil || left[0].Kind != proc.KindGit {
		t.Errorf("%+v, %v", left, err)
	}
}

// A git that is started by a script could not be told apart from what a repository names, so it is not confined, and that is said.
func TestGitThatIsAScriptRunsAsItIs(t *testing.T) {
	dir, procs, boxes := needed(t)
	script := filepath.Join(dir, "git")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := spec(&sandbox.GitCall{}, "version")
	s.Path = script
	child, err := procs.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if exit := child.Wait(); exit.Code != 7 || boxes.Reason() == nil || !strings.Contains(boxes.Reason().Error(), "script") {
		t.Errorf("%+v, %v", exit, boxes.Reason())
	}
	s = spec(&sandbox.GitCall{}, "-c", "alias.x=!exit 7", "x") // and another is found out about anew
	if child, err = procs.Start(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if exit := child.Wait(); exit.Code == 7 || boxes.Reason() != nil {
		t.Errorf("%+v, %v", exit, boxes.Reason())
	}
}

// A git of which the linker loads files that lie anywhere runs also where it is to read little, and one that needs still more reads everything, which is said.
func TestAGitThatNeedsMoreReadsMore(t *testing.T) {
	dir, procs, boxes := needed(t)
	var said bytes.Buffer
	boxes.Log = slog.New(slog.NewTextHandler(&said, nil))
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("[a]\n\tb = c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code := func(path string, args ...string) int {
		t.Helper()
		s := spec(&sandbox.GitCall{Read: []string{}}, args...)
		s.Path = path
		child, err := procs.Start(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return child.Wait().Code
	}
	git := spec(nil).Path
	if is := code(git, "version"); is != 0 || code(git, "config", "-f", secret, "a.b") == 0 || said.Len() > 0 {
		t.Errorf("a usual one gives %d, and %s is said", is, said.String())
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(dir, "odd", "git")
	program, err := os.ReadFile(self)
	if err := errors.Join(err, os.Mkdir(filepath.Dir(odd), 0o700), os.WriteFile(odd, program, 0o700), os.WriteFile(odd+".needs", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if is := code(odd, "version"); is != 0 {
			t.Errorf("the odd one gives %d", is)
		}
	}
	if n := strings.Count(said.String(), "git reads everything"); n != 1 || boxes.Reason() != nil {
		t.Errorf("said %d times: %s, %v", n, said.String(), boxes.Reason())
	}
}

func TestLibrariesOfAGit(t *testing.T) {
	got := librariesIn("\tlinux-vdso.so.1 (0x00007f)\n\tlibz.so.1 => /nowhere/lib/libz.so.1 (0x00007f)\n\t/nowhere/ld.so (0x00007f)\n")
	if want := []string{"/nowhere/lib/libz.so.1", "/nowhere/ld.so"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestGitThatSaysNothingIsRefused(t *testing.T) {
	_, procs, _ := needed(t)
	if _, err := procs.Start(t.Context(), spec(nil, "version")); types.CodeOf(err) != types.ErrInternal {
		t.Error(err)
	}
}
