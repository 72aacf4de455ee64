package rights

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func none() ([]types.UUID, error) { return nil, nil }

func open(t testing.TB, dir string) *Seals {
	t.Helper()
	s, err := Open(durable.OS, dir, "/data", none)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func settled() *step.Settled {
	s := new(step.Settled)
	s.UUID, s.ParentUUID, s.OriginUUID, s.Root = types.NewUUID(), types.NewUUID(), types.NewUUID(), types.NewUUID()
	s.Agent, s.Kind, s.WorkDir, s.Provider = "coder", "k", "/work", "p"
	s.AskedModel, s.FallbackProvider, s.FallbackModel = "m", "fp", "fm"
	s.AllowedDevices, s.DeniedDevices, s.ReadRoots, s.MCPMounts = []string{"/dev/fs", "/dev/llm"}, []string{"/dev/shell"}, []string{"/usr"}, []string{"x"}
	s.MaxSteps, s.ContextBudget, s.BudgetUSD, s.Timeout = 10, 1000, 2.5, time.Minute
	s.Depth, s.ByAgent = 2, true
	s.Settings = json.RawMessage(`{"trust": true, "names": ["A<B"]}`)
	s.Body = &step.BodyRecord{Kind: "compose", Spec: json.RawMessage(`{"a":1}`)}
	return s
}

// read is what a record says that was written and read again, as often as a history and a checkpoint do it.
func read(t testing.TB, s *step.Settled) *step.Settled {
	t.Helper()
	for range 2 {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		s = new(step.Settled)
		if err := json.Unmarshal(b, s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestASealFitsWhatWasSealedAndNothingElse(t *testing.T) {
	t.Parallel()
	seals := open(t, t.TempDir())
	was := settled()
	was.Seal = seals.Seal(was)
	if err := seals.Check(was.UUID, read(t, was)); err != nil {
		t.Fatalf("as it was written: %v", err)
	}
	was.Name, was.Step, was.TokensUsed, was.SystemPrompt = "renamed", 7, 9, "text" // no rights
	if err := seals.Check(was.UUID, read(t, was)); err != nil {
		t.Errorf("with other counters: %v", err)
	}
	for name, change := range map[string]func(*step.Settled){
		"parent": func(s *step.Settled) { s.ParentUUID = types.UUID{} }, "origin": func(s *step.Settled) { s.OriginUUID = types.UUID{} },
		"root": func(s *step.Settled) { s.Root = types.UUID{} }, "depth": func(s *step.Settled) { s.Depth = 0 }, "by agent": func(s *step.Settled) { s.ByAgent = false },
		"agent": func(s *step.Settled) { s.Agent = "x" }, "kind": func(s *step.Settled) { s.Kind = "" }, "directory": func(s *step.Settled) { s.WorkDir = "/" },
		"provider": func(s *step.Settled) { s.Provider = "x" }, "model": func(s *step.Settled) { s.AskedModel = "x" },
		"fallback provider": func(s *step.Settled) { s.FallbackProvider = "x" }, "fallback model": func(s *step.Settled) { s.FallbackModel = "x" },
		"all devices": func(s *step.Settled) { s.AllowedDevices = nil }, "one more": func(s *step.Settled) { s.AllowedDevices = append(s.AllowedDevices, "/dev/shell") },
		"joined": func(s *step.Settled) { s.AllowedDevices = []string{"/dev/fs/dev/llm"} }, "nothing denied": func(s *step.Settled) { s.DeniedDevices = nil },
		"moved over": func(s *step.Settled) {
			s.AllowedDevices, s.DeniedDevices = append(s.AllowedDevices, s.DeniedDevices...), []string{}
		},
		"read roots": func(s *step.Settled) { s.ReadRoots = []string{"/"} }, "mounts": func(s *step.Settled) { s.MCPMounts = nil },
		"steps": func(s *step.Settled) { s.MaxSteps = 0 }, "tokens": func(s *step.Settled) { s.ContextBudget = 0 }, "dollars": func(s *step.Settled) { s.BudgetUSD = 0 },
		"time": func(s *step.Settled) { s.Timeout = 0 }, "settings": func(s *step.Settled) { s.Settings = json.RawMessage(`{"trust":true,"names":["B"]}`) },
		"no settings": func(s *step.Settled) { s.Settings = nil }, "body": func(s *step.Settled) { s.Body = nil }, "spec": func(s *step.Settled) { s.Body.Spec = json.RawMessage(`{"a":2}`) },
		"seal": func(s *step.Settled) { s.Seal = s.Seal[1:] }, "no base64": func(s *step.Settled) { s.Seal = "*" }, "an empty one": func(s *step.Settled) { s.Seal = "AA" },
	} {
		forged := read(t, was)
		change(forged)
		if err := seals.Check(was.UUID, forged); !errors.Is(err, errChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	forged := read(t, was)
	forged.Seal = ""
	if err := seals.Check(was.UUID, forged); !errors.Is(err, errNone) {
		t.Errorf("without its seal: %v", err)
	}
	if err := seals.Check(types.NewUUID(), read(t, was)); !errors.Is(err, errOther) {
		t.Errorf("of another history: %v", err)
	}
	if err := open(t, t.TempDir()).Check(was.UUID, read(t, was)); !errors.Is(err, errChanged) {
		t.Errorf("with another key: %v", err)
	}
	if err := (*Seals)(nil).Check(was.UUID, forged); err != nil || (*Seals)(nil).Seal(was) != "" {
		t.Errorf("without a key: %v", err)
	}
}

// A field that is new in what a history says is looked at here: does it give rights?
func TestEachFieldOfWhatIsSettledIsSealedOrGivesNoRights(t *testing.T) {
	t.Parallel()
	known := "ProcInfo SystemPrompt AskedModel FallbackProvider FallbackModel Effort Timeout OutputSchema Descent Inputs Settings Git Body Seal Doubt Depth Root ByAgent " +
		"V ProcStatus EarlierPIDs OriginUUID State Suspended Suspension WakeAt OriginStep Runs ActiveTotal DeadAt PausedTotal Spending Purse AllowedDevices " +
		"DeniedDevices ReadRoots MCPMounts MCPDown Result Schema Asks Denials FailedTaken FailedCounted"
	for _, typ := range []reflect.Type{reflect.TypeFor[step.Settled](), reflect.TypeFor[step.Descent](), reflect.TypeFor[step.ProcInfo]()} {
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; !slices.Contains(strings.Fields(known), name) {
				t.Errorf("%s.%s is new: seal it in sum if a resume obeys it as a right, then name it here", typ, name)
			}
		}
	}
}

func TestTheKeyIsMadeOnceAndForTheUserAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "rights")
	var wg sync.WaitGroup
	seals := make([]string, 8)
	was := settled()
	for i := range seals {
		wg.Go(func() {
			if s, err := Open(durable.OS, dir, "/data", none); err != nil {
				t.Error(err)
			} else {
				seals[i] = s.Seal(was)
			}
		})
	}
	wg.Wait()
	if n := len(slices.Compact(seals)); n != 1 || seals[0] == "" {
		t.Errorf("seals of %d keys, want one", n)
	}
	if info, err := os.Stat(filepath.Join(dir, keyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v, want mode 0600", info, err)
	}
}

func TestHistoriesOlderThanTheKeyNeedNoSealAndNoOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var old, other, late types.UUID // made in 2001, 2002 and 2096
	for id, text := range map[*types.UUID]string{&old: "00e3a86b-1000-7000-8000-000000000001", &other: "00ea00b1-d000-7000-8000-000000000002", &late: "03a35294-4000-7000-8000-000000000003"} {
		if err := id.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	there := func() ([]types.UUID, error) { calls++; return []types.UUID{old}, nil }
	s, err := Open(durable.OS, dir, "/data", there)
	if err != nil {
		t.Fatal(err)
	}
	unsealed := new(step.Settled)
	if err := s.Check(old, unsealed); err != nil {
		t.Errorf("a history of before: %v", err)
	}
	if err := s.Check(other, unsealed); !errors.Is(err, errNone) {
		t.Errorf("one that is put there later under an old name: %v", err)
	}
	if s, err = Open(durable.OS, dir, "/data", there); err != nil || calls != 1 || s.Check(old, unsealed) != nil {
		t.Errorf("the next start: %v, asked %d times", err, calls)
	}
	if s, err = Open(durable.OS, dir, "/elsewhere", func() ([]types.UUID, error) { return []types.UUID{old, late}, nil }); err != nil {
		t.Fatal(err)
	}
	if s.Check(old, unsealed) != nil || !errors.Is(s.Check(late, unsealed), errNone) {
		t.Error("of another data directory those from before the key need no seal, and no others")
	}
}

func TestAKeyThatCannotBeReadIsAnErrorAndNoneWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]types.ErrCode{"": types.ErrStorage, "{": types.ErrStorage, `{"v":1,"key":"AAAA"}`: types.ErrStorage, `{"v":2}`: types.ErrVersion} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, keyFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(durable.OS, dir, "/data", none); types.CodeOf(err) != code || Unwritable(err, dir) {
			t.Errorf("%q: %v", text, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(file, "rights")
	if _, err := Open(durable.OS, dir, "/data", none); err == nil {
		t.Error("it was made below a file")
	}
}

func BenchmarkSeal(b *testing.B) {
	s := open(b, b.TempDir())
	was := settled()
	b.ReportAllocs()
	for b.Loop() {
		s.Seal(was)
	}
}
