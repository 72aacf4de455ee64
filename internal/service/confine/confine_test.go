package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/internal/permit"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/sandbox"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// world is a service with one process, which works in a repository in the home.
type world struct {
	*Service
	caller  vfs.Caller
	profile *profile.Profile
	work    string
	over    map[types.UUID]bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{work: filepath.Join(home, "src", "p"), over: map[types.UUID]bool{}}
	data := filepath.Join(home, "data")
	for _, dir := range []string{filepath.Join(w.work, ".git", "hooks"), filepath.Join(w.work, "sub"), data} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(w.work, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.profile = &profile.Profile{Sandbox: sandbox.Usual(), Lookup: func(string) (string, bool) { return "", false }}
	w.caller = vfs.Caller{PID: 1, UUID: types.NewUUID(), WorkDir: w.work, Profile: w.profile, Env: []string{"PATH=" + home + "/tools:/usr/bin:relative:" + home}}
	w.Service = &Service{
		Caller:  func(pid types.PID) (vfs.Caller, bool) { return w.caller, pid == w.caller.PID },
		Kernel:  func() Kernel { return processes{} },
		Users:   userSays(nil),
		Made:    func(types.UUID, string) bool { return false },
		Own:     Own{Data: data, Over: func(id types.UUID) bool { return w.over[id] }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
		Private: []string{data}, Home: home, Self: "/bin/rnix",
		Lookup: func(string) (string, bool) { return "/none", true },
		Start: func(context.Context, proc.Spec) (*proc.Child, error) {
			return nil, types.Errorf(types.ErrUnavailable, "Start", "", "this test starts nothing")
		},
	}
	return w
}

// processes are those of a kernel.
type processes map[types.PID]kernel.Info

func (p processes) Info(pid types.PID) (kernel.Info, error) {
	if has, ok := p[pid]; ok {
		return has, nil
	}
	return kernel.Info{}, types.Errorf(types.ErrNotFound, "Info", "", "no such process")
}

func (p processes) AskFor(context.Context, types.UUID, string, permit.Call) (kernel.Permission, error) {
	return kernel.Permission{Decision: permit.Allow}, nil
}

// userSays is a configuration of the user's that consists of variables.
func userSays(vars map[string]string) *profile.Reader {
	return &profile.Reader{UserDir: "/none", Home: "/none", Lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }}
}

// can gives the host a mechanism, as if it had been proved.
func (w *world) can(rung sandbox.Rung) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.host = sandbox.Host{Key: sandbox.HostKey(""), ABI: 6, Program: "/usr/bin/bwrap", Bwrap: sandbox.Proof{Proved: rung == sandbox.RungBwrap}, Landlock: sandbox.Proof{Proved: rung == sandbox.RungLandlock}}
}

// What an agent has put where git's file .git belongs keeps no other one from starting commands, and takes no memory.
func TestAFileOfGitIsNotWaitedForNorReadWhole(t *testing.T) {
	w := newWorld(t)
	w.caller.WorkDir = filepath.Join(w.work, "sub")
	dot := filepath.Join(w.caller.WorkDir, ".git")
	for name, put := range map[string]func() error{
		"a pipe":      func() error { return syscall.Mkfifo(dot, 0o600) },
		"a long file": func() error { return errors.Join(os.WriteFile(dot, nil, 0o600), os.Truncate(dot, 1<<40)) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := put(); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(dot)
			placed := make(chan error, 1)
			go func() {
				place, _, _, err := w.ofCaller(&w.caller)
				if err == nil && place.Git.Top != w.work {
					err = fmt.Errorf("its repository is %+v", place.Git)
				}
				placed <- err
			}()
			select {
			case err := <-placed:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Error("it waits")
				if f, err := os.OpenFile(dot, os.O_WRONLY, 0); err == nil { // so that it ends
					_ = f.Close()
				}
				<-placed
			}
		})
	}
}

func TestAgentChangesWithItsToolsWhatItsCommandsMayWrite(t *testing.T) {
	w := newWorld(t)
	may := func(name string, whole bool) error {
		rule := w.Writes(w.caller)
		if rule == nil {
			return nil
		}
		return rule(filepath.Join(w.work, name), whole)
	}
	check := func(want bool, whole bool, names ...string) {
		t.Helper()
		for _, name := range names {
			if err := may(name, whole); (err == nil) != want || err != nil && types.CodeOf(err) != types.ErrPermission {
				t.Errorf("%s (whole %v): %v", name, whole, err)
			}
		}
	}
	check(true, false, "main.go", "sub/new.go", ".github/workflows/x.yaml", ".gitignore", ".git/description")
	check(false, false, ".git/hooks/pre-commit", ".git/config", ".mcp.json", ".claude/settings.json", ".vscode/tasks.json", ".rnix/agents/x/agent.yaml", "../beside")
	check(true, true, "sub", ".github")
	check(false, true, ".git", ".claude")
	w.profile.Sandbox.Level = sandbox.LevelOff
	check(true, false, ".git/hooks/pre-commit")
	w.profile.Sandbox = sandbox.Usual().Below(sandbox.Place{Work: filepath.Join(w.work, "sub")}, false)
	check(false, false, "main.go")
	w.profile.Sandbox = sandbox.Usual()
	if w.caller.PID = 0; w.Writes(w.caller) != nil {
		t.Error("a person is refused something")
	}
}

func TestOnlyWhatIsKnownIsStarted(t *testing.T) {
	w := newWorld(t)
	spec := proc.Spec{Kind: proc.KindShell, Owner: 1, Path: "sh", Dir: w.work, Env: w.caller.Env}
	if _, err := w.Box(spec); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "--sandbox off") || !strings.Contains(err.Error(), "rnix doctor") {
		t.Errorf("where nothing can be confined: %v", err)
	}
	if level, _, err := w.Fits(w.profile.Sandbox); err == nil {
		t.Errorf("where nothing can be confined: %s", level)
	}
	w.profile.Sandbox.Optional = true
	if box, err := w.Box(spec); err != nil || box.Plan.Rung != sandbox.RungNone {
		t.Errorf("where it need not be: %+v %v", box.Plan.Rung, err)
	}
	if level, _, err := w.Fits(w.profile.Sandbox); err != nil || level != sandbox.LevelOff {
		t.Errorf("where it need not be: %s %v", level, err)
	}
	w.can(sandbox.RungBwrap)
	link := filepath.Join(w.work, ".cursor")
	if err := os.Symlink("nothing", link); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Box(spec); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "put a file or a directory in its place") || strings.Contains(err.Error(), "--sandbox off") {
		t.Errorf("with a link that cannot be protected: %v", err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	for _, rung := range []sandbox.Rung{sandbox.RungBwrap, sandbox.RungLandlock} {
		w.can(rung)
		box, err := w.Box(spec)
		if err != nil || box.Plan.Rung != rung {
			t.Errorf("%s: %+v %v", rung, box.Plan.Rung, err)
		}
		p := box.Plan.Policy
		if p.Net != sandbox.NetNone || !p.Allows(w.work+"/x", sandbox.AccessWrite) || p.Allows(w.Data+"/x", sandbox.AccessRead) || p.Allows(w.Home+"/x", sandbox.AccessRead) || !p.Allows(w.Home+"/tools/x", sandbox.AccessRead) {
			t.Errorf("%s: %s", rung, p.Explain())
		}
		temp := w.Temp(w.caller.UUID)
		if info, err := os.Stat(temp); err != nil || info.Mode().Perm() != 0o700 || !strings.Contains(strings.Join(box.Env, "\n"), "TMPDIR="+temp) {
			t.Errorf("%s: %v %q", rung, err, box.Env)
		}
		if !slices.Contains(box.Plan.Argv, temp) && !slices.Contains(box.Plan.Rules, sandbox.Rule{Path: temp, Access: sandbox.AccessWrite, Run: true}) {
			t.Errorf("%s: the first command cannot write its temporary directory: %q %v", rung, box.Plan.Argv, box.Plan.Rules)
		}
		if err := os.RemoveAll(temp); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Box(proc.Spec{Kind: proc.KindShell, Owner: 2, Path: "sh"}); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("of a process that nobody knows: %v", err)
	}
	if below := w.Below(2); below.Within == nil || len(below.Within) != 0 || below.Net != sandbox.NetNone {
		t.Errorf("below a process that nobody knows: %+v", below)
	}
	if box, err := w.Box(proc.Spec{Kind: proc.KindShell, Path: "sh"}); err != nil || box.Plan.Rung != sandbox.RungNone {
		t.Errorf("of a person: %v", err)
	}
}

func TestWhatWasRefusedIsAnEventOfItsProcess(t *testing.T) {
	w := newWorld(t)
	log := event.New(16)
	t.Cleanup(log.Close)
	w.Refusals.Events = log
	w.Refusals.Tell(w.caller, []sandbox.Refusal{{Wanted: sandbox.WantedWrite, Target: "/etc/x", Advice: "a person can allow it"}}, []string{"/p/.mcp.json"})
	got := make([]event.Event, 3)
	if n, err := log.Cursor(1).TryRead(got); n != 2 || err != nil {
		t.Fatalf("%d events, %v", n, err)
	}
	for i, want := range []event.Event{
		{Name: "changed", Path: "/p/.mcp.json", Text: "/p/.mcp.json is protected, and a command has changed it, which this sandbox cannot prevent: look at it before anything uses it"},
		{Name: "write", Path: "/etc/x", Text: "the sandbox does not let commands write /etc/x; a person can allow it"},
	} {
		if e := got[i]; e.Kind != event.Refused || e.PID != w.caller.PID || e.UUID != w.caller.UUID || e.Name != want.Name || e.Path != want.Path || e.Text != want.Text {
			t.Errorf("%+v, want %+v", e, want)
		}
	}
}

func TestCachesGoThatNobodyUses(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	if _, err := w.Box(proc.Spec{Kind: proc.KindShell, Owner: 1, Path: "sh", Dir: w.work}); err != nil {
		t.Fatal(err)
	}
	own := cacheOf(w.Data, filepath.Join(w.work, ".git"))
	if err := os.Chmod(own, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Box(proc.Spec{Kind: proc.KindShell, Owner: 1, Path: "sh", Dir: w.work}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(own); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a command has locked out those after it: %v %v", info, err)
	}
	old := cacheOf(w.Data, "/another/project")
	if err := os.MkdirAll(old, 0o700); err != nil {
		t.Fatal(err)
	}
	w.sweepCaches(time.Now().Add(cacheAge - time.Minute))
	if entries, err := os.ReadDir(caches(w.Data)); err != nil || len(entries) != 2 {
		t.Errorf("%v %v", entries, err)
	}
	if _, err := w.Box(proc.Spec{Kind: proc.KindShell, Owner: 1, Path: "sh", Dir: w.work}); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-cacheAge)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	w.sweepCaches(time.Now())
	if entries, err := os.ReadDir(caches(w.Data)); err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
}

func TestTemporaryFilesGoWithTheirHistory(t *testing.T) {
	w := newWorld(t)
	over, alive := types.NewUUID(), types.NewUUID()
	w.over[over] = true
	for _, id := range []types.UUID{over, alive} {
		dir := filepath.Join(w.Temp(id), "mod")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o400); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o500); err != nil { // as in a module cache of Go
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.Temp(alive), "mod"), 0o700) })
	w.Ended(alive)
	w.Users = userSays(map[string]string{"RNIX_SANDBOX_LEVEL": "off"})
	w.Begin()
	_ = w.Close()
	if _, err := os.Stat(w.Temp(over)); err == nil {
		t.Error("those of one that has ended are there")
	}
	if _, err := os.Stat(w.Temp(alive)); err != nil {
		t.Error("those of one that lives are gone")
	}
	over = types.NewUUID()
	aside := filepath.Join(temps(w.Data), gone+over.String(), "x") // of a removal that a crash has cut off
	for _, dir := range []string{aside, w.Temp(over)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.over[over] = true
	w.clear(over)
	w.Begin()
	if entries, err := os.ReadDir(temps(w.Data)); err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	was, asked := w.Over, 0
	w.Over = func(types.UUID) bool { asked++; return asked == 1 } // it is resumed meanwhile
	w.Ended(alive)
	_ = w.Close()
	if _, err := os.Stat(w.Temp(alive)); err != nil || asked != 2 {
		t.Errorf("those of one that goes on are gone: %v", err)
	}
	w.Over = was
	w.over[alive] = true
	w.Ended(alive)
	_ = w.Close()
	if _, err := os.Stat(w.Temp(alive)); err == nil {
		t.Error("they do not go at the end")
	}
}

// git that does not say on what it works is refused; where nothing can be confined, or the user does not want it, it runs as it is.
func TestGitRunsWhereNothingCanBeConfined(t *testing.T) {
	w := newWorld(t)
	spec := proc.Spec{Kind: proc.KindGit, Path: "/usr/bin/git", Dir: w.work, Env: w.caller.Env}
	if _, err := w.Box(spec); types.CodeOf(err) != types.ErrInternal {
		t.Errorf("without what it works on: %v", err)
	}
	spec.Git = &sandbox.GitCall{}
	if box, err := w.Box(spec); err != nil || box.Plan.Rung != sandbox.RungNone || !strings.Contains(strings.Join(unconfined(w.Service), "\n"), "git that Rnix runs itself") {
		t.Errorf("%+v %v %q", box, err, unconfined(w.Service))
	}
	w = newWorld(t)
	w.Users = userSays(map[string]string{"RNIX_SANDBOX_LEVEL": "off"})
	w.can(sandbox.RungLandlock)
	if box, err := w.Box(spec); err != nil || box.Plan.Rung != sandbox.RungNone || !strings.Contains(strings.Join(unconfined(w.Service), "\n"), "switched the sandbox off") {
		t.Errorf("%+v %v", box, err)
	}
}
