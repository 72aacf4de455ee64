package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rnix/agent"
	"rnix/internal/proc"
	"rnix/types"
	"rnix/vfs"
	"rnix/vfs/vfstest"
)

// bench is a mount manager over real children.
type bench struct {
	*vfs.MountManager
	devices *vfs.DeviceRegistry
	mgr     *proc.Manager
	factory *factory
}

func newBench(t *testing.T) *bench {
	t.Helper()
	mgr, err := proc.NewManager(filepath.Join(t.TempDir(), "children"), nil)
	if err != nil {
		t.Fatal(err)
	}
	env := proc.ComposeEnv(os.Environ(), nil, nil)
	b := &bench{devices: vfs.NewDeviceRegistry(), mgr: mgr,
		factory: &factory{mgr: mgr, opts: Options{Log: slog.New(slog.DiscardHandler), Version: "test", Env: env}, lim: defaultLimits}}
	b.MountManager = vfs.NewMountManager(b.devices, b.factory.transport)
	t.Cleanup(func() {
		if err := b.UnmountAll(); err != nil {
			t.Error(err)
		}
		if left := mgr.All(); len(left) > 0 {
			t.Errorf("OS children are left: %+v", left)
		}
		mgr.Close()
	})
	return b
}

// self is this test binary as a server.
func self(t *testing.T, mode string) vfs.MCPConfig {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return vfs.MCPConfig{MCPServer: agent.MCPServer{
		Name: "srv", Command: exe, Env: map[string]string{modeVar: mode, "GORACE": "atexit_sleep_ms=0"}, // it ends as fast as without -race
		SpawnTimeout: agent.Duration(time.Minute), // the machine may be busy
	}}
}

const at = "/mnt/mcp/1-srv"

func (b *bench) mustMount(t *testing.T, cfg vfs.MCPConfig) {
	t.Helper()
	if err := b.Mount(at, cfg); err != nil {
		t.Fatal(err)
	}
}

// call runs a tool as the kernel does.
func (b *bench) call(ctx context.Context, tool, input string) (string, error) {
	f, err := b.devices.Open(at+"/tools/"+tool, vfs.OpenReadWrite)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if err := f.Write(ctx, []byte(input)); err != nil {
		return "", err
	}
	out, err := f.Read(0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(out), err
}

func (b *bench) mustCall(t *testing.T, tool, input string) string {
	t.Helper()
	out, err := b.call(context.Background(), tool, input)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return out
}

func (b *bench) read(sub string) (string, error) {
	f, err := b.devices.Open(at+sub, vfs.OpenRead)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	out, err := f.Read(0)
	return string(out), err
}

// exercise uses everything that the good server has.
func exercise(t *testing.T, b *bench) {
	t.Helper()
	var names []string
	for _, tool := range b.devices.Tools(at) {
		names = append(names, tool.Name)
	}
	if !strings.Contains(strings.Join(names, " "), "mcp__srv__echo") {
		t.Errorf("tools are %v", names)
	}
	for in, want := range map[string]string{
		``:                                    `{}`,
		`{}`:                                  `{}`,
		`{"b":12345678901234567890,"a":1.10}`: `{"b":12345678901234567890,"a":1.10}`,
	} {
		if got := b.mustCall(t, "echo", in); got != want {
			t.Errorf("echo of %s is %s", in, got)
		}
	}
	if _, err := b.call(context.Background(), "fail", ""); types.CodeOf(err) != types.ErrDriver || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("fail: %v", err)
	}
	if _, err := b.call(context.Background(), "nope", ""); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "nope") {
		t.Errorf("unknown tool: %v", err)
	}
	if got, err := b.read("/resources"); err != nil || !strings.Contains(got, `"odd"`) {
		t.Errorf("resources: %s, %v", got, err)
	}
	if got, err := b.read("/resources/" + oddURI); err != nil || got != "read "+oddURI {
		t.Errorf("resource: %s, %v", got, err)
	}
	if _, err := b.read("/resources/none://x"); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("missing resource: %v", err)
	}
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			want := fmt.Sprintf(`{"i":%d}`, i)
			if got, err := b.call(context.Background(), "echo", want); err != nil || got != want {
				t.Errorf("call %d: %s, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() {
		_, _ = b.call(context.Background(), "await-hang", "")
		cancel()
	})
	if _, err := b.call(ctx, "hang", ""); types.CodeOf(err) != types.ErrCancelled {
		t.Errorf("cancelled call: %v", err)
	}
	wg.Wait()
	if got := b.mustCall(t, "await-cancel", ""); got != "it was cancelled" {
		t.Errorf("the server was not told: %s", got)
	}
}

func TestStdioServerIsMountedUsedAndGone(t *testing.T) {
	for _, mode := range []string{"good", "modern"} {
		t.Run(mode, func(t *testing.T) {
			b := newBench(t)
			b.mustMount(t, self(t, mode))
			exercise(t, b)
			children := b.mgr.All()
			if len(children) != 1 || children[0].Kind != proc.KindMCP {
				t.Fatalf("children: %+v", children)
			}
			if err := b.Unmount(at); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(children[0].PID, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("the server is still there: %v", err)
			}
		})
	}
}

func TestCallOfEveryMethodIsPerformedAndOthersAreRefused(t *testing.T) {
	b := newBench(t)
	tr, err := b.factory.transport(self(t, "good"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tr.Close() }()
	if err := tr.Ping(t.Context()); types.CodeOf(err) != types.ErrDisconnected {
		t.Errorf("ping before connect: %v", err)
	}
	if err := tr.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tr.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
	for method, c := range map[string]struct{ params, want string }{
		"tools/list":               {"", `"name":"echo"`},
		"tools/call":               {`{"name":"echo","arguments":{"x":1}}`, `{\"x\":1}`},
		"resources/list":           {"", oddURI[:20]},
		"resources/templates/list": {"", `{"resourceTemplates":[]}`},
		"resources/read":           {`{"uri":"` + oddURI + `"}`, "read bad"},
		"prompts/list":             {"", `"greet"`},
		"prompts/get":              {`{"name":"greet","arguments":{"who":"you"}}`, "hello you"},
	} {
		got, err := tr.Call(t.Context(), method, []byte(c.params))
		if err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%s: %s, %v", method, got, err)
		}
	}
	for method, params := range map[string]string{"roots/list": "", "tools/call": `{"nome":"x"}`, "prompts/get": "7"} {
		if _, err := tr.Call(t.Context(), method, []byte(params)); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%s %s: %v", method, params, err)
		}
	}
	if err := errors.Join(tr.Close(), tr.Close()); err != nil {
		t.Error(err)
	}
	if _, err := tr.Call(t.Context(), "tools/list", nil); types.CodeOf(err) != types.ErrDisconnected {
		t.Errorf("call after close: %v", err)
	}
	if err := tr.Connect(t.Context()); types.CodeOf(err) != types.ErrDisconnected {
		t.Errorf("connect after close: %v", err)
	}
}

func TestChildSeesItsOwnersEnvironmentAndWhatIsDeclaredOnly(t *testing.T) {
	t.Setenv("OUR_API_KEY", "planted")
	b := newBench(t)
	cfg := self(t, "good")
	cfg.Owner.PID = 7
	cfg.Owner.Env = []string{"PATH=" + os.Getenv("PATH"), "OWNERS=yes", "DECLARED=owners", "SNEAKED_TOKEN=planted"}
	cfg.Env["SERVICE_TOKEN"] = "wanted"
	cfg.Env["DECLARED"] = "declared"
	b.mustMount(t, cfg)
	got := "\n" + b.mustCall(t, "env", "") + "\n"
	if strings.Contains(got, "planted") || strings.Contains(got, "DECLARED=owners") {
		t.Errorf("the child sees too much:%s", got)
	}
	for _, want := range []string{"\nOWNERS=yes\n", "\nSERVICE_TOKEN=wanted\n", "\nDECLARED=declared\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in%s", want, got)
		}
	}
	if c := b.mgr.Children(7); len(c) != 1 {
		t.Errorf("children of the owner: %+v", c)
	}
}

func TestCrashFailsTheCallAndTheNextOneStartsTheServerAgain(t *testing.T) {
	b := newBench(t)
	b.factory.lim.patient = 0
	b.mustMount(t, self(t, "good"))
	first := b.mustCall(t, "pid", "")
	crash := func() {
		t.Helper()
		_, err := b.call(context.Background(), "crash", "")
		if types.CodeOf(err) != types.ErrDisconnected || !strings.Contains(err.Error(), "status 4") || !strings.Contains(err.Error(), "core is breached") {
			t.Fatalf("crash: %v", err)
		}
	}
	crash()
	second := b.mustCall(t, "pid", "")
	if first == second {
		t.Error("it is the same process")
	}
	crash()
	if _, err := b.call(context.Background(), "pid", ""); types.CodeOf(err) != types.ErrUnavailable || !strings.Contains(err.Error(), "2 times in a row") {
		t.Errorf("after the second crash: %v", err)
	}
}

func TestOneRestartServesAllCallsThatWait(t *testing.T) {
	b := newBench(t)
	b.mustMount(t, self(t, "good"))
	if _, err := b.call(context.Background(), "crash", ""); types.CodeOf(err) != types.ErrDisconnected {
		t.Fatalf("crash: %v", err)
	}
	pids := make([]string, 10)
	var wg sync.WaitGroup
	for i := range pids {
		wg.Go(func() {
			var err error
			if pids[i], err = b.call(context.Background(), "pid", ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, p := range pids {
		if p != pids[0] {
			t.Errorf("several servers: %v", pids)
		}
	}
}

func TestRequestTimeoutEndsACallButNotTheServer(t *testing.T) {
	b := newBench(t)
	cfg := self(t, "good")
	cfg.RequestTimeout = agent.Duration(300 * time.Millisecond)
	b.mustMount(t, cfg)
	answer := func() string { // of a call that may take longer, on a busy machine
		for {
			got, err := b.call(t.Context(), "pid", "")
			switch {
			case err == nil:
				return got
			case types.CodeOf(err) != types.ErrTimeout:
				t.Fatal(err)
			}
		}
	}
	pid := answer()
	if _, err := b.call(context.Background(), "hang", ""); types.CodeOf(err) != types.ErrTimeout || !strings.Contains(err.Error(), "request_timeout") {
		t.Errorf("%v", err)
	}
	if again := answer(); again != pid {
		t.Error("the server was started again")
	}
}

func TestAnswersAreCutAtMaxOutput(t *testing.T) {
	b := newBench(t)
	cfg := self(t, "good")
	cfg.MaxOutput = 1000
	b.mustMount(t, cfg)
	got := b.mustCall(t, "big", `{"bytes":3000000}`)
	if len(got) > 1100 || !strings.HasSuffix(got, "2999000 of 3000000 bytes are left out (max_output)]") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-60:])
	}
}

func TestMountedServerKeepsTheDeviceContract(t *testing.T) {
	tools := newBench(t)
	tools.mustMount(t, self(t, "good"))
	var offered []vfs.Tool
	for _, tool := range tools.devices.Tools(at) {
		if strings.HasSuffix(tool.Name, "__echo") || strings.HasSuffix(tool.Name, "__fail") {
			offered = append(offered, tool)
		}
	}
	vfstest.Run(t, vfstest.Device{
		Path: at,
		Open: func(tb testing.TB) (vfs.VFSFileFactory, vfs.Caller) {
			b := newBench(tb.(*testing.T))
			b.mustMount(tb.(*testing.T), self(tb.(*testing.T), "good"))
			return func(sub string, flags vfs.OpenFlag) (vfs.VFSFile, error) { return b.devices.Open(at+sub, flags) }, vfs.Caller{}
		},
		Tools: offered,
		Samples: []vfstest.Sample{
			{Tool: "mcp__srv__echo", Input: `{"text":"hi"}`, Want: `{"text":"hi"}`},
			{Tool: "mcp__srv__fail", Input: `{}`, WantCode: types.ErrDriver},
			{Subpath: "/resources/" + oddURI, Want: "read bad://"},
		},
		Slow:     &vfstest.Sample{Subpath: "/tools/hang", Input: `{}`},
		RawWrite: true, // nothing at all means {}
	})
}
