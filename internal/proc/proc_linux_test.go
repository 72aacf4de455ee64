package proc

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"rnix/internal/sandbox"
	"rnix/types"
)

// The main goroutine keeps the main thread to itself, so that the threads of tests can end.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Word {
		os.Exit(sandbox.Helper(os.Args[2:]))
	}
	if role := os.Getenv("PROC_TEST_ROLE"); role != "" {
		helpers[role](os.Getenv("PROC_TEST_DIR"))
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func newManager(t *testing.T) *Manager {
	t.Helper()
	m, err := NewManager(filepath.Join(t.TempDir(), "children"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		if left, _ := m.registry.names(); len(left) > 0 {
			t.Errorf("registrations left behind: %v", left)
		}
	})
	return m
}

func sh(script string, out io.Writer) Spec {
	return Spec{Kind: KindShell, Owner: 7, Path: "sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: out, Stderr: out}
}

func start(t *testing.T, m *Manager, spec Spec) *Child {
	t.Helper()
	c, err := m.Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lines is a writer that never blocks and hands out what is written to it byte by byte.
type lines struct{ bytes chan byte }

func newLines(*testing.T) *lines { return &lines{make(chan byte, 1<<16)} }

func (l *lines) Write(p []byte) (int, error) {
	for _, b := range p {
		l.bytes <- b
	}
	return len(p), nil
}

// pid reads a line, which must be a pid.
func (l *lines) pid(t *testing.T) identity {
	t.Helper()
	var line []byte
	for patience := time.After(time.Minute); ; {
		select {
		case b := <-l.bytes:
			if b != '\n' {
				line = append(line, b)
				continue
			}
		case <-patience:
		}
		break
	}
	pid, err := strconv.Atoi(string(line))
	if err != nil {
		t.Fatalf("not a pid: %q", line)
	}
	return identityOf(pid)
}

func mustBeGone(t *testing.T, ids ...identity) {
	t.Helper()
	if left := awaitGone(ids, time.Now().Add(time.Minute)); len(left) > 0 {
		t.Errorf("still alive: %v", left)
	}
}

func TestChildEndsWithItsCodeAndItsOutput(t *testing.T) {
	m := newManager(t)
	var out, errs bytes.Buffer
	spec := sh("cat; echo bad >&2; exit 3", &out)
	spec.Stderr, spec.Input = &errs, []byte("hello")
	if e := start(t, m, spec).Wait(); e.Code != 3 || e.Signal != 0 || e.Cause != Exited || e.Left != 0 || e.Err != nil {
		t.Errorf("exit is %+v", e)
	}
	if out.String() != "hello" || errs.String() != "bad\n" {
		t.Errorf("stdout %q, stderr %q", &out, &errs)
	}
	if e := start(t, m, sh("kill -SEGV $$", nil)).Wait(); e.Code != 128+11 || e.Signal != syscall.SIGSEGV {
		t.Errorf("exit is %+v", e)
	}
}

func TestOneWriterGetsBothStreamsAsTheyWereWritten(t *testing.T) {
	var out bytes.Buffer
	start(t, newManager(t), sh("for i in 1 2 3; do echo o$i; echo e$i >&2; done", &out)).Wait()
	if out.String() != "o1\ne1\no2\ne2\no3\ne3\n" {
		t.Errorf("output is %q", &out)
	}
}

func TestPipesCarryADialogue(t *testing.T) {
	spec := sh("while read x; do echo got $x; done", nil)
	spec.StdinPipe, spec.StdoutPipe = true, true
	c := start(t, newManager(t), spec)
	buf := make([]byte, 64)
	for _, word := range []string{"a", "b"} {
		if _, err := io.WriteString(c.Stdin(), word+"\n"); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Stdout().Read(buf); err != nil || string(buf[:n]) != "got "+word+"\n" {
			t.Fatalf("read %q, %v", buf[:n], err)
		}
	}
	_ = c.Stdin().Close()
	if rest, err := io.ReadAll(c.Stdout()); len(rest) != 0 || err != nil {
		t.Errorf("the end is %q, %v", rest, err)
	}
	_ = c.Stdout().Close()
	c.Wait()
}

func TestPipeKeepsWhatWasNotReadWhenTheChildEnded(t *testing.T) {
	spec := sh("echo one; echo two", nil)
	spec.StdoutPipe = true
	c := start(t, newManager(t), spec)
	c.Wait()
	if all, err := io.ReadAll(c.Stdout()); string(all) != "one\ntwo\n" || err != nil {
		t.Errorf("read %q, %v", all, err)
	}
	_ = c.Stdout().Close()
}

func TestBadSpecIsRefusedAndNothingIsRegistered(t *testing.T) {
	m := newManager(t)
	good := sh("true", nil)
	for name, test := range map[string]struct {
		change func(*Spec)
		code   types.ErrCode
	}{
		"Missing":         {func(s *Spec) { s.Path = "no-such-program" }, types.ErrNotFound},
		"MissingPath":     {func(s *Spec) { s.Path = "/no/such/program" }, types.ErrNotFound},
		"NotExecutable":   {func(s *Spec) { s.Path = "/etc/passwd" }, types.ErrPermission},
		"NoDir":           {func(s *Spec) { s.Dir = "/no/such/dir" }, types.ErrNotFound},
		"RelativeDir":     {func(s *Spec) { s.Dir = "tmp" }, types.ErrInvalid},
		"Kind":            {func(s *Spec) { s.Kind = "toy" }, types.ErrInvalid},
		"NUL":             {func(s *Spec) { s.Args = []string{"a\x00b"} }, types.ErrInvalid},
		"TooLong":         {func(s *Spec) { s.Args = []string{"-c", strings.Repeat(":", 4<<20)} }, types.ErrInvalid},
		"ShellCredential": {func(s *Spec) { s.Credentials = []string{"A_KEY=1"} }, types.ErrInvalid},
	} {
		spec := good
		test.change(&spec)
		if _, err := m.Start(context.Background(), spec); types.CodeOf(err) != test.code {
			t.Errorf("%s: error is %v, want %s", name, err, test.code)
		}
	}
	if names, _ := m.registry.names(); len(names) > 0 {
		t.Errorf("registrations of children that never were: %v", names)
	}
}

func TestChildIsRegisteredWhileItLives(t *testing.T) {
	m := newManager(t)
	c := start(t, m, sh("sleep 100", nil))
	names, err := m.registry.names()
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	e, err := m.registry.read(names[0])
	if err != nil || e.Leader != identityOf(c.PID()) || e.Leader.Start == 0 || e.Boot == "" || e.Owner != 7 {
		t.Errorf("entry is %+v, %v", e, err)
	}
	if info, _ := os.Stat(filepath.Join(m.registry.dir, names[0])); info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v", info.Mode())
	}
	if all := m.Children(7); len(all) != 1 || all[0].PID != c.PID() || !strings.Contains(all[0].Command, "sleep 100") || len(m.Children(8)) != 0 {
		t.Errorf("children are %+v", all)
	}
	m.KillOwner(7)
	if len(m.All()) != 0 {
		t.Error("a killed child is listed")
	}
}

// The kernel sends the death signal when the forking thread ends; the thread must be the manager's.
func TestChildOutlivesTheThreadThatAskedForIt(t *testing.T) {
	m := newManager(t)
	asked := make(chan *Child)
	ended := make(chan struct{})
	var tid int
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends
		defer close(ended)
		tid = unix.Gettid()
		asked <- start(t, m, sh("sleep 1000", nil))
	}()
	c := <-asked
	<-ended
	for unix.Tgkill(os.Getpid(), tid, 0) == nil { // until the thread is gone
		runtime.Gosched()
	}
	if !alive(identityOf(c.PID())) {
		t.Error("the child died with a thread")
	}
}

func TestChildInheritsThreeDescriptors(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil { // without close-on-exec, as inherited from a careless parent
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	var out bytes.Buffer
	start(t, newManager(t), sh("echo /proc/$$/fd/*", &out)).Wait()
	var got []string
	for f := range strings.FieldsSeq(out.String()) {
		if n := filepath.Base(f); n != "0" && n != "1" && n != "2" {
			got = append(got, n)
		}
	}
	if slices.Contains(got, strconv.Itoa(fds[0])) || slices.Contains(got, strconv.Itoa(fds[1])) {
		t.Errorf("the child has descriptors %s", &out)
	}
}

func TestManyAtOnceAreAllWaitedFor(t *testing.T) {
	m := newManager(t)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			var out bytes.Buffer
			if e := start(t, m, sh("echo "+strconv.Itoa(i), &out)).Wait(); e.Code != 0 || out.String() != strconv.Itoa(i)+"\n" {
				t.Errorf("child %d: %+v, %q", i, e, &out)
			}
		})
	}
	wg.Wait()
}

func TestCloseEndsAllAndRefusesMore(t *testing.T) {
	m := newManager(t)
	var kids []*Child
	for range 5 {
		kids = append(kids, start(t, m, sh("sleep 1000", nil)))
	}
	m.Close()
	for _, c := range kids {
		if e := c.Wait(); e.Cause != Stopped {
			t.Errorf("exit is %+v", e)
		}
	}
	if _, err := m.Start(context.Background(), sh("true", nil)); types.CodeOf(err) != types.ErrUnavailable {
		t.Errorf("error is %v", err)
	}
}

func TestCloseBesideStartsLeavesNothing(t *testing.T) {
	m := newManager(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				c, err := m.Start(context.Background(), sh("sleep 1000", nil))
				if err != nil {
					return
				}
				_ = c
			}
		})
		if len(m.All()) > 2 {
			break
		}
	}
	m.Close()
	wg.Wait()
	if len(m.All()) != 0 {
		t.Errorf("living children after Close: %+v", m.All())
	}
}

func lookup(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("needs " + name)
	}
	return path
}
