package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/testcase"
	"rnix/ipc"
	"rnix/runtime/statehome"
	"rnix/types"
)

// errLimit ends a case that takes too long.
var errLimit = errors.New("the time of the case is over")

// How long the daemon of a case may take to begin and to end.
const (
	patience = 30 * time.Second
	stopTime = 10 * time.Second
	lookTime = 2 * time.Second
)

// stage is where one case is run: directories, a daemon, a client of it. It belongs to one goroutine.
type stage struct {
	c      *testcase.Case
	o      *Options
	dir    string // holds everything below
	hold   *os.File
	work   string
	env    []string
	client *ipc.Client
	daemon int // its pid; 0 = there is none
	warden int // that of the child of ours which has started it, and ends after it; 0 = not known
	pid    types.PID
	before map[string][]byte
	notes  []string
}

// longestTemp is how long the name of the directory for temporary files may be: a socket lies some directories deeper, and the system
// allows 107 bytes for its path.
const longestTemp = 50

// tempDir returns the directory for temporary files: the usual one, where that has a short name or the other is not there.
func tempDir() string {
	const other = "/tmp"
	if i, err := os.Stat(other); len(os.TempDir()) <= longestTemp || err != nil || !i.IsDir() {
		return os.TempDir()
	}
	return other
}

// newStage makes the directories of a case: its files, its script, and an empty home.
func newStage(c *testcase.Case, o *Options) (_ *stage, err error) {
	s := &stage{c: c, o: o}
	if s.dir, err = os.MkdirTemp(tempDir(), stagePrefix); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(s.dir)
			s.hold.Close()
		}
	}()
	if s.hold, err = hold(s.dir); err != nil {
		return nil, err
	}
	if s.dir, err = filepath.EvalSymlinks(s.dir); err != nil {
		return nil, err
	}
	s.work = filepath.Join(s.dir, "work")
	conf := filepath.Join(s.dir, "config", "rnix")
	for _, d := range []string{s.work, conf, filepath.Join(s.dir, "home"), filepath.Join(s.dir, "run"), filepath.Join(s.dir, "tmp")} {
		if err = os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	if err = s.furnish(); err != nil {
		return nil, err
	}
	script, err := c.Content(c.Script)
	if err != nil {
		return nil, fmt.Errorf("the script: %w", err)
	}
	window := ""
	if n := c.Settings.Window; n > 0 {
		window = ", context_window: " + strconv.Itoa(n)
	}
	for name, text := range map[string]string{"script.yaml": in(string(script), s.work),
		"providers.yaml": "version: \"1\"\ndefault_provider: script\nproviders:\n  - {name: script, driver: replay, script: script.yaml" + window + "}\n"} {
		if err = os.WriteFile(filepath.Join(conf, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	s.environ()
	return s, nil
}

// passed are the variables of the caller that a case gets: what it takes to find programs.
var passed = []string{"PATH", "LANG", "LC_ALL", "TZ"}

// environ makes the environment of the case: no keys, no configuration, no home of the caller's.
func (s *stage) environ() {
	for _, kv := range s.o.Env {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(passed, name) {
			s.env = append(s.env, kv)
		}
	}
	sub := func(name string) string { return filepath.Join(s.dir, name) }
	s.env = append(s.env, "HOME="+sub("home"), "XDG_CONFIG_HOME="+sub("config"), "XDG_RUNTIME_DIR="+sub("run"), "XDG_CACHE_HOME="+sub("home/.cache"), "TMPDIR="+sub("tmp"),
		statehome.EnvDataDir+"="+sub("data"), "RNIX_DURABILITY=none", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=case", "GIT_AUTHOR_EMAIL=case@example.org",
		"GIT_COMMITTER_NAME=case", "GIT_COMMITTER_EMAIL=case@example.org", "GIT_AUTHOR_DATE=2000-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z",
		"RNIX_IDLE="+(s.c.Limit()+time.Minute).String()) // who kills us leaves no daemon for ever
	for _, name := range sorted(s.c.Settings.Env) {
		s.env = append(s.env, name+"="+in(s.c.Settings.Env[name], s.work))
	}
}

func (s *stage) lookup(name string) (string, bool) {
	for _, kv := range slices.Backward(s.env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// play runs the case, and returns what came of it.
func (s *stage) play(ctx context.Context) (*testcase.Run, error) {
	places, err := statehome.Find(s.lookup, "")
	if err != nil {
		return nil, err
	}
	s.client, err = ipc.Ensure(ctx, ipc.EnsureOptions{Socket: places.Socket, DataDir: places.DataDir, Log: places.Log, Executable: s.o.Program, Env: s.env,
		Patience: patience,
		Offline:  true, MustOffline: s.o.MustOffline, Online: func(why error) {
			text := why.Error()
			s.o.online.Store(&text)
		}})
	if err != nil {
		return nil, err
	}
	who, err := ipc.Call(ctx, s.client, ipc.Ping, ipc.Empty{})
	if err != nil {
		return nil, err
	}
	s.daemon = who.PID
	s.warden = s.holder().Warden
	if s.c.Git {
		if err := s.shell(ctx, "git init -q -b main . && git add -A && git commit -q --allow-empty -m begin"); err != nil {
			return nil, fmt.Errorf("%s: %w", s.c.At("git"), err)
		}
	}
	if s.before, err = tree(s.work); err != nil {
		return nil, err
	}
	req, err := s.request()
	if err != nil {
		return nil, err
	}
	p, err := ipc.Call(ctx, s.client, ipc.Spawn, *req)
	if err != nil {
		return nil, err
	}
	s.pid = p.PID
	w, err := ipc.Call(ctx, s.client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()})
	if err != nil {
		return nil, err
	}
	return s.result(ctx, &w)
}

// shell runs a command in the workspace, as the user of the case.
func (s *stage) shell(ctx context.Context, command string) error {
	b, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return err
	}
	r, err := ipc.Call(ctx, s.client, ipc.WritePath, ipc.PathRequest{Path: "/dev/shell", Cwd: s.work, Data: b, Env: s.env})
	if err == nil && !strings.Contains(string(r.Data), "[exit code 0, ") {
		err = errors.New(strings.TrimSpace(string(r.Data)))
	}
	return err
}

func (s *stage) request() (*ipc.SpawnRequest, error) {
	c := s.c
	req := &ipc.SpawnRequest{Intent: in(c.Intent, s.work), Agent: c.Agent, ProcSpec: types.ProcSpec{Provider: "script", MaxSteps: c.Settings.MaxSteps, AllowedDevices: c.Settings.Allow, DeniedDevices: c.Settings.Deny}, Cwd: s.work, Env: s.env, Skills: c.Settings.Skills,
		TimeoutMs: (c.Limit() + time.Minute).Milliseconds()} // nor an agent: while one runs the daemon is not idle
	for _, name := range sorted(c.Inputs) {
		b, err := c.Content(c.Inputs[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.At("inputs."+name), err)
		}
		req.Inputs = append(req.Inputs, ipc.Input{Name: name, Text: in(string(b), s.work)})
	}
	return req, nil
}

// result waits for what the process has started, and collects what came of all.
func (s *stage) result(ctx context.Context, w *ipc.WaitResponse) (*testcase.Run, error) {
	if err := s.others(ctx, w.UUID); err != nil {
		return nil, err
	}
	x, err := ipc.Call(ctx, s.client, ipc.ExportRun, ipc.TargetRequest{Target: w.UUID.String()})
	if err != nil {
		return nil, err
	}
	after, err := tree(s.work)
	if err != nil {
		return nil, err
	}
	var t tokens
	for i := range x.Procs {
		t.add(x.Procs[i].Dir, testcase.History)
	}
	t.add(s.work, testcase.Workspace)
	for _, files := range []map[string][]byte{s.before, after} {
		for name, b := range files {
			if strings.Contains(string(b), s.work) {
				files[name] = []byte(t.out(string(b)))
			}
		}
	}
	return &testcase.Run{Exit: w.Exit.Code, Reason: t.out(w.Exit.Reason), Result: t.out(w.Result), Calls: callsOf(&x, t, same), Before: s.before, After: after}, nil
}

// others waits for all processes but one, also for those that are started meanwhile.
func (s *stage) others(ctx context.Context, but types.UUID) error {
	waited := map[types.UUID]bool{but: true}
	for n := 0; n < len(waited); {
		n = len(waited)
		list, err := ipc.Call(ctx, s.client, ipc.ListProcs, ipc.ListRequest{})
		if err != nil {
			return err
		}
		for i := range list.Procs {
			p := &list.Procs[i]
			if waited[p.UUID] || p.State == "dead" || p.State == "suspended" {
				continue
			}
			waited[p.UUID] = true
			if _, err := ipc.Call(ctx, s.client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()}); err != nil && types.CodeOf(err) != types.ErrNotFound {
				return err
			}
		}
	}
	return nil
}

// stuck says what a case that takes too long is doing.
func (s *stage) stuck() string {
	if s.client == nil {
		return "its daemon was starting"
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	if s.pid == 0 {
		return "the agent was being started"
	}
	list, err := ipc.Call(ctx, s.client, ipc.ListProcs, ipc.ListRequest{})
	if err != nil {
		return "its daemon does not answer"
	}
	var out []string
	for i := range list.Procs {
		p := &list.Procs[i]
		if p.State == "dead" || p.State == "zombie" {
			continue
		}
		what := fmt.Sprintf("PID %d was at step %d", p.PID, p.Step)
		if p.Wait != "" {
			what += ", " + p.Wait
		}
		for _, c := range p.Children {
			what += ", with " + c.Command
		}
		out = append(out, what)
	}
	if len(out) == 0 {
		return "its processes had ended"
	}
	return strings.Join(out, "; ")
}

// close stops the daemon, by force if it does not, and removes everything. The error says what is left.
func (s *stage) close() error {
	defer s.hold.Close()
	if s.client != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if s.pid != 0 { // nothing has to be kept for later
			_, _ = ipc.Call(ctx, s.client, ipc.SignalTree, ipc.SignalRequest{Target: s.pid.String(), Signal: types.SIGKILL}) // it may be gone
		}
		_, _ = ipc.Call(ctx, s.client, ipc.Shutdown, ipc.Empty{})
		s.client.Close()
	}
	if s.daemon == 0 { // it may have been started and not have answered in time
		if holder := s.holder(); holder.PID > 1 {
			s.daemon, s.warden = holder.PID, holder.Warden
			_ = syscall.Kill(s.daemon, syscall.SIGTERM)
		}
	}
	if s.daemon != 0 && !ended(s.daemon, stopTime) {
		_ = syscall.Kill(s.daemon, syscall.SIGKILL)
		if !ended(s.daemon, stopTime) {
			return fmt.Errorf("its daemon with pid %d does not end; its files are in %s", s.daemon, s.dir)
		}
	}
	if s.warden != 0 && !ended(s.warden, stopTime) {
		return fmt.Errorf("the warden of its daemon, with pid %d, does not end: something that its agents have started cannot be killed; its files are in %s", s.warden, s.dir)
	}
	for range 3 { // a command that was killed may still be writing
		if err := removeAll(s.dir); err == nil {
			return nil
		}
	}
	return removeAll(s.dir)
}

// holder returns who holds the lock of the daemon's data, or nobody.
func (s *stage) holder() ipc.LockInfo {
	holder, held, err := ipc.LockHolder(ipc.DataLock(filepath.Join(s.dir, "data")))
	if err != nil || !held {
		return ipc.LockInfo{}
	}
	return holder
}

// ended waits for a child of this process to end, and takes its exit status.
func ended(pid int, limit time.Duration) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if got == pid || err == unix.ECHILD && unix.Kill(pid, 0) != nil {
			return true
		}
		select {
		case <-tick.C:
		case <-end.C:
			return false
		}
	}
}
