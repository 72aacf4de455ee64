package embed_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rnix/drivers/llm"
	"rnix/embed"
	"rnix/kernel"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "tok-5d9f3c11a7"

func model(t *testing.T, name, script string) llm.LLMDriver {
	t.Helper()
	d, err := llm.ParseReplay(name, name+".yaml", []byte("version: \"1\"\n"+script))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func open(t *testing.T, dir string, models ...llm.LLMDriver) *embed.System {
	t.Helper()
	s, err := embed.Open(embed.Options{Dir: dir, Models: models, Secrets: map[string]string{"TOKEN": token}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closed(t *testing.T, s *embed.System) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

func by(provider string, fallback string) kernel.SpawnOpts {
	return kernel.SpawnOpts{ProcSpec: types.ProcSpec{Provider: provider, FallbackProvider: fallback}}
}

// What is cut off by the end of the program goes on in the next, in the same history and under a new number.
func TestWhatWasCutOffGoesOn(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, model(t, "m", `
responses:
  - content: I plan first.
    tool_calls: [{name: plan, input: {steps: [look, tell]}}]
  - {content: never, delay: 1h}
`))
	pid, err := s.Kernel.Spawn("Look and tell", nil, by("m", ""))
	if err != nil {
		t.Fatal(err)
	}
	for i := (kernel.Info{}); i.Step < 1; {
		if i, err = s.Kernel.Info(pid); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s)

	s = open(t, dir, model(t, "m", `
responses:
  - content: I plan first.
    tool_calls: [{name: plan, input: {steps: [look, tell]}}]
  - content: all is well
`))
	defer closed(t, s)
	all := s.Histories()
	if len(all) != 1 || all[0].Ended || all[0].Step < 1 || all[0].Step > 2 || all[0].Why() != types.SuspendStopped {
		t.Fatalf("%+v", all)
	}
	began, err := s.Resume(t.Context())
	if err != nil || len(began) != 1 || began[all[0].UUID] <= pid {
		t.Fatalf("%v %v, PID %d before", began, err, pid)
	}
	i, err := s.Kernel.WaitInfo(t.Context(), began[all[0].UUID])
	if err != nil || i.Result != "all is well" || i.UUID != all[0].UUID || i.Step != 2 {
		t.Errorf("%+v %v", i, err)
	}
	if steps, err := s.Steps(i.UUID); err != nil || len(steps) != 2 {
		t.Errorf("%d steps, %v", len(steps), err)
	}
	if _, err := s.ResumeOne(t.Context(), i.UUID, ""); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("one that has ended: %v", err)
	}
	if began, err := s.Resume(t.Context()); err != nil || len(began) != 0 {
		t.Errorf("nothing is left: %v %v", began, err)
	}
}

// A parent that waits for its child goes on with the child that was resumed, and starts no second one: after a stop, and after a crash.
func TestAFamilyGoesOnTogether(t *testing.T) {
	const script = `
conversations:
  - prompt: Be the parent
    responses:
      - tool_calls: [{name: spawn, input: {intent: Be the child}}]
      - content: it is done
  - prompt: Be the child
    responses:
      - tool_calls: [{name: plan, input: {steps: [work]}}]
      - {content: worked, delay: DELAY}
`
	family := func(delay string) llm.LLMDriver { return model(t, "m", strings.Replace(script, "DELAY", delay, 1)) }
	for name, crash := range map[string]bool{"stopped": false, "crashed": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, family("1h"))
			pid, err := s.Kernel.Spawn("Be the parent", nil, by("m", ""))
			if err != nil {
				t.Fatal(err)
			}
			for i, err := (kernel.Info{}), error(nil); err != nil || i.Step < 1; i, err = s.Kernel.Info(pid + 1) {
			}
			if crash { // as the disk is when the program ends without warning
				then := filepath.Join(t.TempDir(), "then")
				if err := os.CopyFS(then, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				dir = then
			}
			closed(t, s)
			s = open(t, dir, family("1ms"))
			defer closed(t, s)
			began, err := s.Resume(t.Context())
			if err != nil || len(began) != 2 {
				t.Fatalf("%v %v", began, err)
			}
			for id, pid := range began {
				if i, err := s.Kernel.WaitInfo(t.Context(), pid); err != nil || i.Exit == nil || i.Exit.Code != types.ExitOK {
					t.Errorf("%s: %+v %v", id, i, err)
				}
			}
			all := s.Histories()
			if len(all) != 2 || all[0].Result != "it is done" || all[1].Result != "worked" || all[1].ParentUUID != all[0].UUID {
				t.Errorf("%+v", all)
			}
		})
	}
}

func TestSecretsAreInNothingThatIsKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, model(t, "m", "responses:\n  - content: the token is "+token+"\n"))
	pid, err := s.Kernel.Spawn("Use "+token, nil, by("m", ""))
	if err != nil {
		t.Fatal(err)
	}
	i, err := s.Kernel.WaitInfo(t.Context(), pid)
	if err != nil || strings.Contains(i.Result, token) {
		t.Errorf("%q %v", i.Result, err)
	}
	closed(t, s)
	files := 0
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), token) {
			t.Errorf("%s has the secret (%v)", path, err)
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
	if _, err := embed.Open(embed.Options{Secrets: map[string]string{"PIN": "1234"}}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a secret that is too short: %v", err)
	}
}

func TestASecondModelAnswersForOneThatCannot(t *testing.T) {
	s := open(t, t.TempDir(), model(t, "broken", "responses:\n  - error: {code: SERVICE_UNAVAILABLE, message: down}\n"), model(t, "m", "responses:\n  - content: here I am\n"))
	defer closed(t, s)
	pid, err := s.Kernel.Spawn("Say something", nil, by("broken", "m"))
	if err != nil {
		t.Fatal(err)
	}
	if i, err := s.Kernel.WaitInfo(t.Context(), pid); err != nil || i.Result != "here I am" || i.Provider != "m" {
		t.Errorf("%+v %v", i, err)
	}
	if _, err := s.Kernel.Spawn("Say something", nil, by("broken", "nobody")); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("a fallback that is not there: %v", err)
	}
}

func TestADirectoryBelongsToOne(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer closed(t, s)
	if _, err := embed.Open(embed.Options{Dir: dir}); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("%v", err)
	}
}

func TestWithoutADirectoryNothingIsKept(t *testing.T) {
	s := open(t, "", model(t, "m", "responses:\n  - content: done\n"))
	defer closed(t, s)
	pid, err := s.Kernel.Spawn("x", nil, by("m", ""))
	if err != nil {
		t.Fatal(err)
	}
	i, err := s.Kernel.WaitInfo(t.Context(), pid)
	if err != nil || i.Result != "done" || len(s.Histories()) != 0 {
		t.Errorf("%+v %v", i, err)
	}
	if _, err := s.ResumeOne(t.Context(), i.UUID, ""); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("%v", err)
	}
}
