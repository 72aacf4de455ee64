package ash

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"rnix/ipc"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeHost is a program with a few commands: spawn answers with its intent and its input, and fails if
// the intent begins with "fail". An agent called "long" runs until it is killed or the test lets it go.
type fakeHost struct {
	mu    sync.Mutex
	calls []string          // +checklocks:mu
	files map[string]string // +checklocks:mu
	long  chan struct{}     // closed to end what is long
	pid   int               // +checklocks:mu
}

func (h *fakeHost) Commands() []string {
	return []string{"run", "ps", "kill", "wait", "steps", "cat", "ls"}
}
func (h *fakeHost) Help() string { return "the help\n" }

func (h *fakeHost) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, fmt.Sprintf(format, args...))
}

func (h *fakeHost) Run(ctx context.Context, c Call) int {
	h.note("%s", strings.Join(c.Args, " "))
	if c.Args[0] != "spawn" {
		if c.Args[0] == "kill" {
			close(h.long)
		}
		return 0
	}
	h.mu.Lock()
	h.pid++
	pid := h.pid
	h.mu.Unlock()
	intent := c.Args[1]
	long := strings.HasPrefix(intent, "long")
	var sigs <-chan os.Signal
	if long && !strings.HasSuffix(intent, "deaf") {
		sigs = c.Signals() // before anybody hears of it, and interrupts it
	}
	c.Spawned(ipc.SpawnResponse{PID: types.PID(pid), UUID: types.NewUUID()})
	if long {
		select {
		case <-h.long:
			return 5
		case <-sigs:
			return 130
		case <-ctx.Done():
			return 131
		}
	}
	in := ""
	if c.Input != nil {
		data, _ := io.ReadAll(c.Input)
		in = " <" + strings.TrimSpace(string(data)) + ">"
	}
	if strings.HasPrefix(intent, "fail") {
		_, _ = fmt.Fprintf(c.Stderr, "%s: it failed\n", c.Where)
		return 3
	}
	_, _ = fmt.Fprintf(c.Stdout, "did %s%s\n", intent, in)
	return 0
}

func (h *fakeHost) Read(_ context.Context, _, p string) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if text, ok := h.files[p]; ok {
		return []byte(text), nil
	}
	return nil, types.Errorf(types.ErrNotFound, "", p, "no such path")
}

func (h *fakeHost) Write(_ context.Context, _, p string, data []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if strings.HasPrefix(p, "/proc/") {
		return types.Errorf(types.ErrPermission, "", p, "read-only")
	}
	h.files[p] = string(data)
	return nil
}

func (h *fakeHost) List(_ context.Context, _, p string) ([]ipc.PathEntry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.files[p]; ok {
		return []ipc.PathEntry{{Name: path.Base(p)}}, nil
	}
	seen := map[string]bool{}
	var out []ipc.PathEntry
	for name := range h.files {
		rest, ok := strings.CutPrefix(name, strings.TrimSuffix(p, "/")+"/")
		if !ok {
			continue
		}
		first, _, deeper := strings.Cut(rest, "/")
		if !seen[first] {
			seen[first] = true
			out = append(out, ipc.PathEntry{Name: first, IsDir: deeper && p != "/proc"})
		}
	}
	if out == nil {
		return nil, fs.ErrNotExist
	}
	return out, nil
}

// trial is a shell with a fake program around it.
type trial struct {
	*Shell
	t    *testing.T
	host *fakeHost
	dir  string

	mu     sync.Mutex
	agents []Agent // +checklocks:mu
}

// shell makes a shell whose output goes to files.
func shell(t *testing.T, options ...string) *trial {
	t.Helper()
	h := &fakeHost{files: map[string]string{"/proc/1/status": "State: dead\n", "/proc/2/status": "State: running\n", "/proc/2/intent": "x\ny\n"}, long: make(chan struct{})}
	tr := &trial{t: t, host: h, dir: t.TempDir()}
	file := func(name string) *os.File {
		f, err := os.OpenFile(tr.dir+"/"+name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f // not closed: what was cut off in the background may still write
	}
	var err error
	tr.Shell, err = New(Config{Name: "x.ash", Options: options, Stdin: file(".in"), Stdout: file(".out"), Stderr: file(".err"), Dir: tr.dir, Host: h,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tr.dir, "TMPDIR=" + tr.dir, "LD_BIND_NOW=1"},
		Agent: func(a Agent, _ bool) {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.agents = append(tr.agents, a)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// run runs a script and returns what it wrote and its status; an error of the shell comes at the end of
// what went to standard error.
func (tr *trial) run(text string) (out, errs string, code int) {
	tr.t.Helper()
	code, err := tr.Run("x.ash", text, true)
	if err != nil {
		_, _ = fmt.Fprintln(tr.cfg.Stderr, err)
	}
	return tr.read(".out"), tr.read(".err"), code
}

func (tr *trial) read(name string) string {
	tr.t.Helper()
	data, err := os.ReadFile(tr.dir + "/" + name)
	if err != nil {
		tr.t.Fatal(err)
	}
	return string(bytes.TrimSpace(data))
}

// say makes the status a part of what is compared.
func say(out string, code int) string { return out + " =" + strconv.Itoa(code) }
