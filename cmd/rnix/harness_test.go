package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
)

// user is somebody with the program, a daemon of their own, and a real agent command line.
type user struct {
	*vendortest.Vendor
	t   *testing.T
	exe string
	env []string
}

// newUser gives a test a user of a real command line.
func newUser(t *testing.T, name string, script func(llmtest.Request) llmtest.Reply) *user {
	t.Helper()
	program := vendortest.Program(t, name)
	exe, err := exec.LookPath("rnix") // this binary, which TestMain has put there
	if err != nil {
		t.Fatal(err)
	}
	u := &user{Vendor: vendortest.New(t, script), t: t, exe: exe}
	run, err := os.MkdirTemp("", "rnix") // a short name: a socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(u.Home, "data")
	u.env = append(u.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "XDG_RUNTIME_DIR="+run, "RNIX_DATA_DIR="+data, "TERM=dumb", "GORACE=atexit_sleep_ms=0")
	for k, v := range u.Vars {
		u.env = append(u.env, k+"="+v)
	}
	t.Cleanup(func() {
		if out, code := u.rnix("daemon", "stop"); code != 0 {
			t.Errorf("daemon stop: %s", out)
		}
		if log, err := os.ReadFile(filepath.Join(data, "log", "daemon.log")); err == nil && bytes.Contains(log, []byte("panic")) {
			t.Errorf("the daemon's log has a panic:\n%s", log)
		}
		_ = os.RemoveAll(run)
	})
	return u
}

// command is the program with arguments, in the user's work directory.
func (u *user) command(args ...string) *exec.Cmd {
	c := exec.Command(u.exe, args...)
	c.Env, c.Dir = u.env, u.Work
	return c
}

// rnix runs the program and returns what it prints and its exit code.
func (u *user) rnix(args ...string) (string, int) {
	u.t.Helper()
	c := u.command(args...)
	out, err := c.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		u.t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// must is rnix for a command that has to succeed.
func (u *user) must(args ...string) string {
	u.t.Helper()
	out, code := u.rnix(args...)
	if code != 0 {
		u.t.Fatalf("rnix %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// use is a reply that calls a tool.
func use(name string, input map[string]any) llmtest.Reply {
	b, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: name, Input: string(b)}}}
}

func TestRealClaudeIsAProcessWithItsOwnTools(t *testing.T) {
	u := newUser(t, "claude", nil)
	u.Script = vendortest.Play(use("Write", map[string]any{"file_path": filepath.Join(u.Work, "a.txt"), "content": "by claude"}), llmtest.Reply{Text: "the file is there"})
	out := u.must("run", "--harness", "claude", "--name", "writer", "write a.txt")
	if !strings.Contains(out, "the file is there") {
		t.Errorf("%s", out)
	}
	if b, err := os.ReadFile(filepath.Join(u.Work, "a.txt")); err != nil || string(b) != "by claude" {
		t.Errorf("%q, %v", b, err)
	}
	t.Log(out)
	t.Log(u.must("steps", "writer"))
	t.Log(u.must("ps", "-a"))
	t.Log(u.must("log", "writer"))
	t.Log(u.must("cost"))
}
