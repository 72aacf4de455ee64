package daemon_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/runtime/heartbeat"
	"rnix/types"
)

func TestWhoLosesItsSessionInTheMiddleOfAPushPushesNothing(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	b := newBoard(t)
	_, api := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "shell", Input: `{"command":"cd repo && git push -q origin main"}`}}}
	})
	s := testenv.New(t, b.env(api)...)
	git := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git", append([]string{"-C", s.Work, "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "repo")
	git("-C", "repo", "commit", "-q", "--allow-empty", "-m", "one")
	git("clone", "-q", "--bare", "repo", "far.git")
	git("-C", "repo", "remote", "add", "origin", filepath.Join(s.Work, "far.git"))
	git("-C", "repo", "commit", "-q", "--allow-empty", "-m", "two")
	before, pushing, gate := git("-C", "far.git", "rev-parse", "main"), filepath.Join(s.Work, "pushing"), filepath.Join(s.Work, "gate")
	hook := "#!/bin/sh\n: >" + pushing + "\nwhile [ ! -e " + gate + " ]; do sleep 0.05; done\n" // the remote takes its time
	if err := os.WriteFile(filepath.Join(s.Work, "far.git", "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Session: "S-1"})
	st := b.until("S-1", "in the middle of a push", func(st stands) bool {
		_, err := os.Stat(pushing)
		return err == nil && st.Ownership.Owned
	})
	lease, err := heartbeat.Claim(context.Background(), heartbeat.Config{SessionID: "S-1", WorkerID: "host-1", BaseURL: b.url, AuthToken: "secret-token-of-a-test"})
	if err != nil || lease.FencingToken <= st.Ownership.Token {
		t.Fatalf("%+v, %v", lease, err)
	}
	if exit := s.Wait(p.PID); exit.Exit.Code != types.ExitLostOwnership {
		t.Errorf("%+v", exit.Exit)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil { // whoever of them is left goes on now
		t.Fatal(err)
	}
	for _, pid := range workers(t, s.Work) {
		t.Errorf("process %s still works there", pid)
	}
	if now := git("-C", "far.git", "rev-parse", "main"); now != before {
		t.Errorf("the remote was at %s and is at %s", before, now)
	}
}

// workers returns the processes whose working directory is below a directory.
func workers(t *testing.T, dir string) (pids []string) {
	t.Helper()
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, l := range links {
		if cwd, err := os.Readlink(l); err == nil && strings.HasPrefix(cwd, dir+"/") {
			pids = append(pids, filepath.Base(filepath.Dir(l)))
		}
	}
	return pids
}
