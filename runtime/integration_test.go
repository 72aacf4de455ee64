//go:build runtime_integration

package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/agent"
	"rnix/runtime/env"
	"rnix/runtime/heartbeat"
	"rnix/runtime/mcp"
	"rnix/runtime/state"
	"rnix/runtime/worktree"
)

// platform is the other side: it counts the refreshes of leases.
type platform struct {
	mu sync.Mutex
	// Each is "path worker".
	hits []string // +checklocks:mu
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ WorkerID string }
	_ = json.NewDecoder(r.Body).Decode(&body) // an empty one fails the test below
	p.mu.Lock()
	p.hits = append(p.hits, r.URL.Path+" "+body.WorkerID+" "+r.Header.Get("Authorization"))
	p.mu.Unlock()
	_, _ = w.Write([]byte(`{"refreshed":true}`)) // a client that is gone is not our concern
}

func (p *platform) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.hits)
}

// git runs git in a directory, without the settings of whoever runs the test.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Env = append(env.Inherit(os.Environ(), nil, nil), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func TestASessionFromItsWorkTreeToItsEnd(t *testing.T) {
	for _, name := range []string{"git", "sh"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("needs " + name)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	const id = "sess-e2e"
	top := t.TempDir()
	work, bare := filepath.Join(top, "work"), filepath.Join(top, "repo.git")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	git(t, work, "init", "-q", "-b", "main")
	if err := os.WriteFile(filepath.Join(work, "README.md"), []byte("# hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, work, "add", ".")
	git(t, work, "commit", "-q", "-m", "first")
	git(t, top, "clone", "-q", "--bare", work, bare)

	// Provision: a checkout of its own.
	trees, err := worktree.NewManager(worktree.Options{ParentDir: filepath.Join(top, "trees")})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := trees.Provision(ctx, worktree.ProvisionSpec{SessionID: id, RepoURL: bare, Branch: "main", Strategy: worktree.StrategyClone})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "README.md")); err != nil || string(b) != "# hello\n" {
		t.Fatalf("%q, %v", b, err)
	}

	// Whose it is, for whoever comes after a crash.
	states := state.NewStore()
	mine := &state.State{IssueID: "issue-1", IssueIdentifier: "ENG-1", SessionID: id, StartedAt: time.Now().UnixMilli(), CurrentStep: "spawning"}
	if err := states.Write(dir, mine); err != nil {
		t.Fatal(err)
	}

	// Compose and Build: what the child may know.
	environ := env.NewComposer().Compose(map[string]string{"PATH": os.Getenv("PATH"), "ANTHROPIC_API_KEY": "sk-of-the-host", "RNIX_SESSION_TOKEN": "t"},
		agent.Spec{Env: map[string]string{"RNIX_SESSION_ID": id}})
	config, cleanup, err := mcp.Builder{TempDir: top, Session: id}.Build([]agent.MCPServerConfig{{Name: "files", Command: "mcp-files", Env: map[string]string{"KEY": "v"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer cleanup()

	// Pulse: the lease.
	far := &platform{}
	site := httptest.NewServer(far)
	defer site.Close()
	pulse, err := heartbeat.New(heartbeat.Config{SessionID: id, WorkerID: "w-1", IssueID: "issue-1", BaseURL: site.URL, AuthToken: "bearer", Interval: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := pulse.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if got := far.seen(); len(got) != 1 || got[0] != "/api/sessions/"+id+"/lock-refresh w-1 Bearer bearer" {
		t.Errorf("the platform has seen %q", got)
	}

	// The session: a child in the work tree, which reads its configuration and does some work that it pushes.
	child := exec.CommandContext(ctx, "sh", "-c", `tr '\0' '\n' < /proc/self/environ; cat "$1"; echo more >> README.md && `+
		`git -c user.name=a -c user.email=a@a commit -q -a -m work && git push -q origin HEAD:main && git status --porcelain`, "sh", config)
	child.Dir, child.Env = dir, environ
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	if err := child.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if said := out.String(); strings.Contains(said, "sk-of-the-host") || strings.Contains(said, "RNIX_SESSION_TOKEN") || !strings.Contains(said, "RNIX_SESSION_ID="+id) ||
		!strings.Contains(said, `"mcp-files"`) || strings.Contains(said, state.AgentDirName) {
		t.Errorf("the child says:\n%s", said)
	}
	if _, err := states.UpdateOwned(dir, mine.Fence(), func(st *state.State) error { st.CurrentStep = "completed"; return nil }); err != nil {
		t.Error(err)
	}
	if st, err := states.ReadExpect(dir, "ENG-1"); err != nil || st.SessionID != id || st.CurrentStep != "completed" {
		t.Errorf("%+v, %v", st, err)
	}

	// The end, in the reverse order.
	if err := pulse.Stop(); err != nil {
		t.Error(err)
	}
	select {
	case <-pulse.LostOwnership():
		t.Error("the lease was lost")
	default:
	}
	cleanup()
	if _, err := os.Stat(config); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the configuration is left: %v", err)
	}
	if n, err := mcp.Sweep(top, nil); n != 0 || err != nil {
		t.Errorf("%d files were left: %v", n, err)
	}
	if err := trees.Teardown(ctx, id); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the work tree is left: %v", err)
	}
	if err := trees.Teardown(ctx, id); err != nil {
		t.Errorf("a second time: %v", err)
	}
}
