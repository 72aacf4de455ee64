package runtime_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/runtime/state"
	"rnix/runtime/worktree"
)

// The files that one writes are those that the other overlooks, and no others are.
func TestTheStateOfASessionIsTheOnlyThingInItsDirectoryThatIsNoWork(t *testing.T) {
	t.Parallel()
	m, err := worktree.NewManager(worktree.Options{ParentDir: filepath.Join(t.TempDir(), "trees")})
	if err != nil {
		t.Fatal(err)
	}
	made := func() string {
		dir, err := m.Provision(t.Context(), worktree.ProvisionSpec{SessionID: "s", Strategy: worktree.StrategyEmpty})
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []bool{false, true} { // what cannot be read is kept beside it
			if bad {
				if err := os.WriteFile(state.Path(dir), []byte("{"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := state.NewStore().Write(dir, &state.State{SessionID: "s"}); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	dir := made()
	var names []string
	entries, err := os.ReadDir(filepath.Join(dir, state.AgentDirName))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != ".gitignore state.json state.json.bad state.lock" {
		t.Fatalf("there is now %s: runtime/worktree has to know", got)
	}
	temp := filepath.Join(dir, state.AgentDirName, ".state.json.0123456789abcdef.tmp~") // of a writer that was killed
	if err := os.WriteFile(temp, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.Teardown(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notes.md", "state.json.old", ".gitignore", "state.lock/notes.md"} {
		dir := made()
		path := filepath.Join(dir, state.AgentDirName, name)
		if strings.Contains(name, "/") {
			if err := os.Remove(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, []byte("mine\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := m.Teardown(t.Context(), "s"); !errors.Is(err, worktree.ErrParked) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := m.Teardown(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
}
