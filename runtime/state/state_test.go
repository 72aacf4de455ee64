package state

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"rnix/types"
)

func put(t *testing.T, wt, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(wt, AgentDirName), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(Path(wt), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPathIsBelowTheWorkTree(t *testing.T) {
	if got := Path("/w"); got != "/w/.agent/state.json" {
		t.Error(got)
	}
}

func TestNoStateIsNotFound(t *testing.T) {
	wt := t.TempDir()
	for _, dir := range []string{wt, filepath.Join(wt, "missing")} {
		if st, err := NewStore().Read(dir); st != nil || !errors.Is(err, ErrNotFound) || types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), dir) {
			t.Errorf("%v, %v", st, err)
		}
	}
	if _, err := os.Stat(filepath.Join(wt, AgentDirName)); err == nil {
		t.Error("reading has made a directory")
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	wt := t.TempDir()
	var s Store
	in := &State{IssueID: "u", IssueIdentifier: "ENG-1", SessionID: "s", ProviderName: "claude", ProviderSessionID: "p", WorkType: "w",
		CurrentStep: "spawning", AttemptCount: 2, StartedAt: 5, LastHeartbeat: 6, PID: 7, OSStartTime: 8, WorkerID: "k", BaseSHA: "abc"}
	if err := s.Write(wt, in); err != nil {
		t.Fatal(err)
	}
	got, err := s.Read(wt)
	if err != nil || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", *in) || got.LastUpdatedAt == 0 || got.Schema != SchemaVersion {
		t.Errorf("%v: got %+v, want %+v", err, got, in)
	}
	if b := text(t, Path(wt)); !strings.HasPrefix(b, "{\n  \"schema\": 1,\n  \"issueId\": \"u\",") {
		t.Errorf("%s", b)
	}
	for path, mode := range map[string]os.FileMode{Path(wt): 0o600, filepath.Dir(Path(wt)): 0o750} {
		if info, _ := os.Stat(path); info.Mode().Perm()&^mode != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
	if err := s.Write(wt, nil); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("nil: %v", err)
	}
}

func TestUpdateBeginsThenGoesOn(t *testing.T) {
	wt := t.TempDir()
	s := NewStore()
	for want := 1; want <= 2; want++ {
		got, err := s.Update(wt, func(st *State) error {
			st.AttemptCount++
			if want == 1 {
				st.SessionID = "s"
			}
			return nil
		})
		if err != nil || got.AttemptCount != want || got.SessionID != "s" {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	before := text(t, Path(wt))
	no := errors.New("no")
	if _, err := s.Update(wt, func(st *State) error { st.SessionID = "x"; return no }); !errors.Is(err, no) || text(t, Path(wt)) != before {
		t.Errorf("a change that failed was written: %v", err)
	}
}

func TestNoUpdateIsLostHoweverThePathIsSpelled(t *testing.T) {
	wt := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(wt, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(wt))
	one, other := NewStore(), NewStore()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			s, path := one, wt
			if i%2 == 1 {
				s = other
			}
			if i%3 > 0 {
				path = []string{link, filepath.Base(wt)}[i%3-1]
			}
			if _, err := s.Update(path, func(st *State) error { st.AttemptCount++; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if st, err := one.Read(wt); err != nil || st.AttemptCount != 50 {
		t.Errorf("%+v, %v", st, err)
	}
	for _, s := range []*Store{one, other} {
		s.mu.Lock()
		if len(s.turns) != 0 {
			t.Errorf("locks are kept: %v", s.turns)
		}
		s.mu.Unlock()
	}
	onlyThese(t, wt, ignoreName, StateFileName, lockName)
}

// onlyThese fails if there are other files beside the state than these.
func onlyThese(t *testing.T, wt string, names ...string) {
	t.Helper()
	entries, _ := os.ReadDir(filepath.Join(wt, AgentDirName))
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("beside the state are %v, want %v", got, names)
	}
}

// TestMain counts in a child for TestProcessesTakeTurns.
func TestMain(m *testing.M) {
	if wt := os.Getenv("STATE_TEST_COUNT_IN"); wt != "" {
		s := NewStore()
		for range 10 {
			if _, err := s.Update(wt, func(st *State) error { st.AttemptCount++; return nil }); err != nil {
				panic(err)
			}
		}
		return
	}
	os.Exit(m.Run())
}

func TestProcessesTakeTurns(t *testing.T) {
	wt := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "STATE_TEST_COUNT_IN="+wt)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if st, err := NewStore().Read(wt); err != nil || st.AttemptCount != 40 {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestWhatCannotBeReadIsToldAndKept(t *testing.T) {
	for _, bad := range []string{"", "{", "null", "[]", `{"attemptCount":"x"}`, `{"a":1} trailing`, "\x00\xff"} {
		wt := t.TempDir()
		put(t, wt, bad)
		s := NewStore()
		if _, err := s.Read(wt); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), Path(wt)) {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := s.UpdateOwned(wt, Fence{}, func(*State) error { return nil }); !errors.Is(err, ErrNotOwner) || text(t, Path(wt)) != bad {
			t.Errorf("%q: somebody's session has begun: %v", bad, err)
		}
		st, err := s.Update(wt, func(st *State) error { st.AttemptCount++; return nil })
		if err != nil || st.AttemptCount != 1 || text(t, Path(wt)+".bad") != bad {
			t.Errorf("%q: %+v, %v", bad, st, err)
		}
		if _, err := s.Read(wt); err != nil {
			t.Error(err)
		}
		put(t, wt, bad)
		if err := s.Write(wt, &State{}); err != nil || text(t, Path(wt)+".bad") != bad {
			t.Errorf("%q: write: %v", bad, err)
		}
	}
}

func TestTheStateOfAnotherIssueIsToldAndReturned(t *testing.T) {
	wt := t.TempDir()
	s := NewStore()
	if err := s.Write(wt, &State{IssueIdentifier: "ENG-1"}); err != nil {
		t.Fatal(err)
	}
	if st, err := s.ReadExpect(wt, "ENG-2"); !errors.Is(err, ErrIdentifierMismatch) || st == nil || st.IssueIdentifier != "ENG-1" {
		t.Errorf("%+v, %v", st, err)
	}
	for _, id := range []string{"ENG-1", ""} {
		if st, err := s.ReadExpect(wt, id); err != nil || st == nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := s.ReadExpect(t.TempDir(), "ENG-1"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if err := s.Write(wt, &State{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadExpect(wt, "ENG-2"); err != nil {
		t.Errorf("a state without an identifier: %v", err)
	}
}

func TestKeysOfANewerProgramSurviveAnOlderOne(t *testing.T) {
	wt := t.TempDir()
	put(t, wt, `{"sessionId":"s","receipt":{"deep":[1,2.50,"x"]},"attemptCount":3,"another":null,"big":12345678901234567890}`)
	s := NewStore()
	if _, err := s.Update(wt, func(st *State) error { st.AttemptCount++; return nil }); err != nil {
		t.Fatal(err)
	}
	b := strings.Join(strings.Fields(text(t, Path(wt))), "")
	for _, want := range []string{`"receipt":{"deep":[1,2.50,"x"]}`, `"another":null`, `"big":12345678901234567890`, `"attemptCount":4`, `"sessionId":"s"`} {
		if !strings.Contains(b, want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
	st, err := s.Read(wt)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(wt, st); err != nil || !strings.Contains(text(t, Path(wt)), `"another"`) {
		t.Errorf("lost from Read to Write: %v", err)
	}
	if err := s.Write(wt, &State{SessionID: "next"}); err != nil || strings.Contains(text(t, Path(wt)), "receipt") {
		t.Errorf("a new document has keys of the old one: %v", err)
	}
}

func TestAStateOfANewerSchemaIsNotTouched(t *testing.T) {
	wt := t.TempDir()
	const newer = `{"schema":2,"sessionId":"s"}`
	put(t, wt, newer)
	s := NewStore()
	_, rerr := s.Read(wt)
	_, uerr := s.Update(wt, func(*State) error { return nil })
	for _, err := range []error{rerr, uerr, s.Write(wt, &State{})} {
		if !errors.Is(err, ErrNewerSchema) || types.CodeOf(err) != types.ErrVersion {
			t.Error(err)
		}
	}
	if text(t, Path(wt)) != newer {
		t.Error("it was changed")
	}
}

func TestASessionThatIsOverWritesNothing(t *testing.T) {
	wt := t.TempDir()
	s := NewStore()
	now := &State{SessionID: "s", StartedAt: 2}
	if err := s.Write(wt, now); err != nil {
		t.Fatal(err)
	}
	before := text(t, Path(wt))
	for _, old := range []Fence{{"s", 1}, {"x", 2}, {}} {
		if _, err := s.UpdateOwned(wt, old, func(st *State) error { st.CurrentStep = "x"; return nil }); !errors.Is(err, ErrNotOwner) {
			t.Errorf("%+v: %v", old, err)
		}
		if err := s.Heartbeat(wt, old, 99); !errors.Is(err, ErrNotOwner) {
			t.Errorf("%+v: %v", old, err)
		}
	}
	if text(t, Path(wt)) != before {
		t.Error("it was written")
	}
	if err := s.Heartbeat(t.TempDir(), now.Fence(), 1); !errors.Is(err, ErrNotOwner) {
		t.Errorf("no state: %v", err)
	}
	for _, at := range []int64{10, 20, 15} {
		if err := s.Heartbeat(wt, now.Fence(), at); err != nil {
			t.Fatal(err)
		}
	}
	if st, _ := s.Read(wt); st.LastHeartbeat != 20 {
		t.Errorf("the last heartbeat was at %d", st.LastHeartbeat)
	}
}

func TestNothingPlantedInTheWorkTreeLeadsOutOfIt(t *testing.T) {
	s := NewStore()
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(wt string) error {
		_, err := s.Update(wt, func(st *State) error { st.AttemptCount++; return nil })
		return err
	}
	linked := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(linked, AgentDirName)); err != nil {
		t.Fatal(err)
	}
	if err := write(linked); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("the directory: %v", err)
	}
	for _, name := range []string{StateFileName, lockName} {
		wt := t.TempDir()
		put(t, wt, "{}")
		_ = os.Remove(filepath.Join(wt, AgentDirName, name))
		if err := os.Symlink(victim, filepath.Join(wt, AgentDirName, name)); err != nil {
			t.Fatal(err)
		}
		if err := write(wt); err == nil {
			t.Errorf("%s: no error", name)
		}
		_, _ = s.Read(wt)
	}
	pipe := t.TempDir()
	put(t, pipe, "")
	_ = os.Remove(Path(pipe))
	if err := unix.Mkfifo(Path(pipe), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(pipe); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a pipe: %v", err)
	}
	if e, _ := os.ReadDir(outside); len(e) != 1 || text(t, victim) != "precious" {
		t.Errorf("outside: %v, %q", e, text(t, victim))
	}
}

func TestWhatAKilledWriterLeftIsClearedAway(t *testing.T) {
	wt := t.TempDir()
	put(t, wt, "{}")
	if err := os.WriteFile(filepath.Join(wt, AgentDirName, ".state.json.0123.tmp~"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := NewStore().Write(wt, &State{}); err != nil {
		t.Fatal(err)
	}
	onlyThese(t, wt, StateFileName, lockName)
}

func TestGitShowsNothingOfADirectoryThatWasMadeHere(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	git := func(wt string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", wt}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	wt, s := t.TempDir(), NewStore()
	git(wt, "init", "-q")
	if err := s.Write(wt, &State{}); err != nil {
		t.Fatal(err)
	}
	put(t, wt, "{") // what cannot be read is kept beside it
	if err := s.Write(wt, &State{}); err != nil {
		t.Fatal(err)
	}
	onlyThese(t, wt, ignoreName, StateFileName, badName, lockName)
	if said := git(wt, "status", "--porcelain", "--untracked-files=all"); said != "" {
		t.Errorf("git shows %q", said)
	}
}

func TestADirectoryThatWasThereIsLeftAsItIs(t *testing.T) {
	s := NewStore()
	bare := t.TempDir()
	if err := os.Mkdir(filepath.Join(bare, AgentDirName), 0o700); err != nil {
		t.Fatal(err)
	}
	mine := t.TempDir()
	put(t, mine, "{}")
	ignore := filepath.Join(mine, AgentDirName, ignoreName)
	if err := os.WriteFile(ignore, []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wt := range []string{bare, mine} {
		for range 2 {
			if err := s.Write(wt, &State{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	onlyThese(t, bare, StateFileName, lockName)
	if got := text(t, ignore); got != "mine\n" {
		t.Errorf("it is %q now", got)
	}
}
