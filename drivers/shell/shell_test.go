package shell_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rnix/drivers/shell"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
	"rnix/vfs"
	"rnix/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bench struct {
	factory vfs.VFSFileFactory
	caller  vfs.Caller
	manager *proc.Manager
}

func newBench(t testing.TB, opts shell.Options) bench {
	t.Helper()
	dir := t.TempDir()
	m, err := proc.NewManager(filepath.Join(dir, "children"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(filepath.Join(work, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := proc.ComposeEnv(os.Environ(), nil, map[string]string{"RNIX_PARENT_PID": "9", "RNIX_UUID": "u"})
	return bench{shell.New(m, opts), vfs.Caller{PID: 9, WorkDir: work, Env: env, Scratch: filepath.Join(dir, "scratch")}, m}
}

func (b bench) open(t testing.TB, subpath string) vfs.VFSFile {
	t.Helper()
	f, err := b.factory(subpath, vfs.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := f.(vfs.CallerBinder).BindCaller(b.caller); err != nil {
		t.Fatal(err)
	}
	return f
}

func (b bench) run(t testing.TB, input string) string {
	t.Helper()
	f := b.open(t, "")
	if err := f.Write(context.Background(), []byte(input)); err != nil {
		t.Fatalf("%s: %v", input, err)
	}
	answer, err := f.Read(0)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestDeviceKeepsTheContract(t *testing.T) {
	vfstest.Run(t, vfstest.Device{
		Path: "/dev/shell",
		Open: func(t testing.TB) (vfs.VFSFileFactory, vfs.Caller) {
			b := newBench(t, shell.Options{})
			return b.factory, b.caller
		},
		Tools: shell.Tools("/dev/shell"),
		Samples: []vfstest.Sample{
			{Tool: "shell", Input: `{"command":"echo hello"}`, Want: "hello\n[exit code 0, ", Volatile: true},
			{Name: "failing", Tool: "shell", Input: `{"command":"pwd; exit 3","cwd":"sub"}`, Want: "/sub\n[exit code 3, ", Volatile: true},
			{Name: "escape", Tool: "shell", Input: `{"command":"pwd","cwd":"../.."}`, WantCode: types.ErrPermission},
			{Name: "missing", Tool: "shell", Input: `{"command":"pwd","cwd":"none"}`, WantCode: types.ErrNotFound},
			{Name: "empty", Tool: "shell", Input: `{"command":" "}`, WantCode: types.ErrInvalid},
			{Name: "nowhere", Subpath: "/other", WantCode: types.ErrNotFound},
		},
		Slow: &vfstest.Sample{Tool: "shell", Input: `{"command":"sleep 1000"}`},
	})
}

func TestAnswerIsTheOutputAndHowItEnded(t *testing.T) {
	b := newBench(t, shell.Options{})
	for input, want := range map[string]string{
		`{"command":"echo a; echo b >&2; exit 1"}`:                                 "a\nb\n[exit code 1, ",
		`{"command":"printf x"}`:                                                   "x\n[exit code 0, ",
		`{"command":"true"}`:                                                       "[exit code 0, ",
		`{"command":"kill -9 $$"}`:                                                 "[exit code 137: killed by SIGKILL, ",
		`{"command":"no-such-command-here 2>/dev/null"}`:                           "[exit code 127, ",
		`{"command":"printf 'a\\000b\\377c'"}`:                                     "a\uFFFDb\uFFFDc\n[exit code 0, ",
		`{"command":"cat"}`:                                                        "[exit code 0, ",
		`{"command":"grep shutdown /dev/null; exit 0"}`:                            "[exit code 0, ",
		`{"command":"true","timeout_ms":1e400}`:                                    "[timeout_ms was lowered to 86400000, which is 24 h and the most there is]\n[exit code 0, ",
		`{"command":"true","timeout_ms":99999999999999999999}`:                     "[timeout_ms was lowered to ",
		`{"command":"echo $RNIX_PARENT_PID $RNIX_UUID"}`:                           "9 u\n",
		`{"command":"pwd","cwd":"` + filepath.Join(b.caller.WorkDir, "sub") + `"}`: "/work/sub\n",
	} {
		if got := b.run(t, input); !strings.Contains(got, want) || !strings.HasSuffix(got, " s]\n") {
			t.Errorf("%s gives %q, want %q", input, got, want)
		}
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	b := newBench(t, shell.Options{})
	if err := os.Symlink("/", filepath.Join(b.caller.WorkDir, "out")); err != nil {
		t.Fatal(err)
	}
	for input, code := range map[string]types.ErrCode{
		`{"command":"true","timeout_ms":0}`:                           types.ErrInvalid,
		`{"command":"true","timeout_ms":-5}`:                          types.ErrInvalid,
		`{"command":"true","timeout_ms":"soon"}`:                      types.ErrInvalid,
		`{"command":"true","timeuot_ms":5}`:                           types.ErrInvalid,
		`{"command":"a\u0000b"}`:                                      types.ErrInvalid,
		`{"command":"` + strings.Repeat("x", 128<<10) + `"}`:          types.ErrInvalid,
		`{"command":"true","cwd":"/etc"}`:                             types.ErrPermission,
		`{"command":"true","cwd":"out"}`:                              types.ErrPermission,
		`{"command":"true","cwd":"out/etc"}`:                          types.ErrPermission,
		`{"command":"true","cwd":"sub/../../work/../.."}`:             types.ErrPermission,
		`echo this is not a request`:                                  types.ErrInvalid,
		`the input is not a JSON object: ; touch ` + b.caller.WorkDir: types.ErrInvalid,
	} {
		if err := b.open(t, "").Write(context.Background(), []byte(input)); types.CodeOf(err) != code {
			t.Errorf("%.60s: error is %v, want %s", input, err, code)
		}
	}
}

func TestPlainTextIsACommandOnItsOwnPath(t *testing.T) {
	f := newBench(t, shell.Options{}).open(t, "/text")
	if err := f.Write(context.Background(), []byte("echo a | tr a b\n")); err != nil {
		t.Fatal(err)
	}
	if b, _ := f.Read(0); !strings.HasPrefix(string(b), "b\n[exit code 0, ") {
		t.Errorf("answer is %q", b)
	}
}

func TestLongOutputKeepsHeadAndTailAndTheWholeInAFile(t *testing.T) {
	b := newBench(t, shell.Options{Keep: 100})
	got := b.run(t, `{"command":"seq 1 10000"}`)
	_, rest, ok := strings.Cut(got, "the whole output is in ")
	path, tail, ok2 := strings.Cut(rest, " ...]\n")
	if !strings.HasPrefix(got, "1\n2\n3\n") || !ok || !ok2 || !strings.Contains(tail, "9999\n10000\n[exit code 0") || len(got) > 500 {
		t.Fatalf("answer is %q", got)
	}
	whole, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(whole), "1\n2\n") || strings.Count(string(whole), "\n") != 10000 {
		t.Errorf("file holds %d bytes, %v", len(whole), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(path) != b.caller.Scratch {
		t.Errorf("%s: %v, %v", path, info, err)
	}
}

// marked starts a command that records the pid of a process outside its session, and returns a
// function that checks that this process has ended.
func (b bench) marked(command string) (string, func(t *testing.T)) {
	path := filepath.Join(b.caller.WorkDir, "pid")
	return "setsid sh -c 'echo $$ > " + path + "; echo begun; exec sleep 1000' & " + command, func(t *testing.T) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		for deadline := time.Now().Add(time.Minute); ; {
			cmdline, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			if err != nil || len(cmdline) == 0 || syscall.Kill(pid, 0) != nil {
				return // gone, or a zombie
			}
			if time.Now().After(deadline) {
				t.Fatalf("process %d is still alive", pid)
			}
		}
	}
}

// inTime tries a limit that is to end a command which has begun, and longer ones if this machine is too busy to begin it
// before that.
func inTime(t *testing.T, try func(limit time.Duration) (begun bool)) {
	t.Helper()
	for limit := 300 * time.Millisecond; !try(limit); limit *= 4 {
		if limit > time.Minute {
			t.Fatalf("the command has not begun within %v", limit)
		}
	}
}

func TestTimeoutKillsTheTreeAndKeepsTheOutput(t *testing.T) {
	needs(t, "setsid")
	inTime(t, func(limit time.Duration) (begun bool) {
		b := newBench(t, shell.Options{Timeout: limit})
		command, gone := b.marked("wait")
		f := b.open(t, "/text")
		if err := f.Write(context.Background(), []byte(command)); err != nil {
			t.Fatal(err)
		}
		got, _ := f.Read(0)
		if !strings.HasSuffix(string(got), fmt.Sprintf("[timed out after %g s; killed]\n", limit.Seconds())) {
			t.Errorf("answer is %q", got)
		}
		if !strings.HasPrefix(string(got), "begun\n") {
			return false
		}
		gone(t)
		return true
	})
}

func TestCancelledCommandIsKilledAndItsOutputTold(t *testing.T) {
	needs(t, "setsid")
	for name, end := range map[string]func(cancel func(), f vfs.VFSFile, b bench){
		"Context": func(cancel func(), _ vfs.VFSFile, _ bench) { cancel() },
		"Close":   func(_ func(), f vfs.VFSFile, _ bench) { _ = f.Close() },
		"Owner":   func(_ func(), _ vfs.VFSFile, b bench) { go b.manager.KillOwner(9) }, // waited for by Manager.Close
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, shell.Options{})
			command, gone := b.marked("wait")
			f := b.open(t, "/text")
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var parts strings.Builder
			f.(vfs.StreamNotifier).NotifyStream(func(p vfs.StreamPart) {
				if parts.WriteString(p.Text); parts.String() == "begun\n" && p.Kind == "output" {
					end(cancel, f, b)
				}
			})
			err := f.Write(ctx, []byte(command))
			if types.CodeOf(err) != types.ErrCancelled || !strings.Contains(err.Error(), "it had printed: begun") {
				t.Errorf("error is %v", err)
			}
			gone(t)
		})
	}
}

func TestBackgroundJobDoesNotHang(t *testing.T) {
	b := newBench(t, shell.Options{})
	got := b.run(t, `{"command":"sleep 1000 & sleep 1000 & echo up"}`)
	if !strings.HasPrefix(got, "up\n[2 background processes were ended with the command]\n[exit code 0, ") {
		t.Errorf("answer is %q", got)
	}
}

func TestSecretsOfTheDaemonAreAbsent(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_TOKEN", "LD_AUDIT"} {
		t.Setenv(name, "canary")
	}
	b := newBench(t, shell.Options{})
	b.caller.Env = append(b.caller.Env, "EXTRA_KEY=canary")
	if got := b.run(t, `{"command":"env; cat /proc/self/environ"}`); strings.Contains(got, "canary") {
		t.Errorf("the command sees a secret: %q", got)
	}
}

func TestOutputIsStreamedInWholeCharacters(t *testing.T) {
	f := newBench(t, shell.Options{}).open(t, "")
	var parts []string
	f.(vfs.StreamNotifier).NotifyStream(func(p vfs.StreamPart) { parts = append(parts, p.Text) })
	if err := f.Write(context.Background(), []byte(`{"command":"printf 'a\\342\\202'; sleep 0.1; printf '\\254b'; printf '\\342'"}`)); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(parts, ""); all != "a€b\uFFFD" || len(parts) < 2 {
		t.Errorf("parts are %q", parts)
	}
}

func TestCommandIsConfinedOrRefused(t *testing.T) {
	b := newBench(t, shell.Options{})
	proc.Confine(b.manager, func(s proc.Spec) (proc.Box, error) {
		if strings.Contains(s.Args[1], "secret") {
			return proc.Box{}, types.Errorf(types.ErrPermission, "Write", "", "no sandbox")
		}
		return proc.Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}, Env: append(s.Env, "WHERE=in")}, nil
	})
	if got := b.run(t, `{"command":"echo $WHERE"}`); !strings.HasPrefix(got, "in\n") {
		t.Errorf("answer is %q", got)
	}
	if err := b.open(t, "").Write(context.Background(), []byte(`{"command":"secret"}`)); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("error is %v", err)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(`{"command":"true","timeout_ms":5,"cwd":"sub"}`)
	f.Add(`{"command":1}`)
	b := newBench(f, shell.Options{})
	proc.Confine(b.manager, func(s proc.Spec) (proc.Box, error) {
		if s.Timeout <= 0 || s.Timeout > shell.MaxTimeout || !strings.HasPrefix(s.Dir, "/") || strings.IndexByte(s.Args[1], 0) >= 0 {
			panic("bad spec")
		}
		return proc.Box{}, types.Errorf(types.ErrPermission, "Write", "", "nothing is run")
	})
	f.Fuzz(func(t *testing.T, input string) {
		if err := b.open(t, "").Write(context.Background(), []byte(input)); types.CodeOf(err) == "" || types.CodeOf(err) == types.ErrInternal {
			t.Errorf("error is %v", err)
		}
	})
}

func needs(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skip("needs " + name)
	}
}
