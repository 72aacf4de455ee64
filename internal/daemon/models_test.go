package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// A model that does not exist is no dead end: the fallback answers, and without one the process says which model is missing.
func TestModelThatDoesNotExistReachesTheFallback(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if r.Model == "gone" {
			return llmtest.Reply{Status: 404, Text: "model: gone"}
		}
		return llmtest.Reply{Text: "answered by " + r.Model}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.Write(".rnix/agents/careful/agent.yaml", "name: careful\ndescription: d\nmodels: {provider: anthropic, preferred: gone, fallback: small, fallback_provider: anthropic}\n")
	s.Write(".rnix/agents/careful/instructions.md", "Be careful.\n")
	if w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "hi", Agent: "careful"}).PID); w.Exit.Code != 0 || w.Result != "answered by small" {
		t.Errorf("%+v", w)
	}
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "hi", ProcSpec: types.ProcSpec{Model: "gone"}}).PID)
	if types.CodeOf(w.Exit.Err) != types.ErrNotFound || !strings.Contains(w.Exit.Reason, `no model "gone"`) || strings.Count(w.Exit.Reason, "HTTP 404") != 1 {
		t.Errorf("%+v", w)
	}
}

// A call that waits for its turn says how many are before it, and no time that nobody can know.
func TestCallThatWaitsForItsTurnShowsItsPlace(t *testing.T) {
	begun, end := make(chan struct{}, 8), make(chan struct{})
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply {
		begun <- struct{}{}
		<-end
		return llmtest.Reply{Text: "done"}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	if err := os.MkdirAll(filepath.Join(s.Home, ".config", "rnix"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Home, ".config", "rnix", "config.yaml"), []byte("concurrency: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := s.Spawn(ipc.SpawnRequest{Intent: "first", ProcSpec: types.ProcSpec{Model: "fake"}})
	<-begun
	second := s.Spawn(ipc.SpawnRequest{Intent: "second", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(second.PID, event.Waiting, func(*event.Event) bool { return true })
	third := s.Spawn(ipc.SpawnRequest{Intent: "third", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(third.PID, event.Waiting, func(*event.Event) bool { return true })
	for _, p := range procsOf(t, s) {
		want := map[string]string{"second": "0 before it in the queue of anthropic (1 at once)", "third": "1 before it in the queue of anthropic (1 at once)"}[p.Intent]
		if p.Intent != "first" && (p.Wait != want || !p.WaitUntil.IsZero()) {
			t.Errorf("%s waits: %q until %v, want %q", p.Intent, p.Wait, p.WaitUntil, want)
		}
	}
	close(end)
	for _, p := range []types.PID{first.PID, second.PID, third.PID} {
		if w := s.Wait(p); w.Exit.Code != 0 {
			t.Errorf("%+v", w)
		}
	}
	r, err := ipc.Call(t.Context(), s.Client, ipc.Providers, ipc.ProvidersRequest{ProjectRequest: ipc.ProjectRequest{Cwd: s.Work, Env: s.Env}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Providers {
		if p.Name == "anthropic" && p.AtOnce != 1 || p.Name == "claude-agent" && p.AtOnce != 0 {
			t.Errorf("%s gets %d at once", p.Name, p.AtOnce)
		}
	}
}

// What a person asks for one agent does not change what the agents of its children name; those that name nothing have it.
func TestChildrenKeepTheModelThatTheirOwnAgentNames(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		_, told := r.LastResult()
		switch {
		case r.Messages[0].Text == "lead" && !told:
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "spawn", Input: `{"intent":"a","agent":"picky"}`}, {Name: "spawn", Input: `{"intent":"b","agent":"plain"}`}, {Name: "spawn", Input: `{"intent":"c","agent":"sized"}`}}}
		case r.Messages[0].Text == "lead":
			return llmtest.Reply{Text: "all done"}
		}
		return llmtest.Reply{Text: r.Model}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "OPENAI_API_KEY=k", "OPENAI_BASE_URL="+url+"/v1")
	for name, models := range map[string]string{"picky": "models: {provider: anthropic, preferred: own}\n", "plain": "", "sized": "models: {preferred: small}\n"} {
		s.Write(".rnix/agents/"+name+"/agent.yaml", "name: "+name+"\ndescription: d\n"+models)
		s.Write(".rnix/agents/"+name+"/instructions.md", "Work.\n")
	}
	lead := s.Spawn(ipc.SpawnRequest{Intent: "lead", ProcSpec: types.ProcSpec{Provider: "openai", Model: "asked"}})
	if w := s.Wait(lead.PID); w.Exit.Code != 0 {
		t.Fatalf("%+v", w)
	}
	want := map[string]string{"lead": "openai/asked", "a": "anthropic/own", "b": "openai/asked", "c": "openai/small"}
	for _, p := range procsOf(t, s) {
		if got := p.Provider + "/" + p.Model; got != want[p.Intent] {
			t.Errorf("%s has %s, want %s", p.Intent, got, want[p.Intent])
		}
		delete(want, p.Intent)
	}
	if len(want) != 0 {
		t.Errorf("%v were not started", want)
	}
}

// How patient an agent is with itself is a setting, also after a restart.
func TestFailingStepsBeforeAnAgentEndsAreASetting(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		return tool("read_file", fmt.Sprintf(`{"path":"nothing%d"}`, len(r.Messages)))
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_MAX_FAILED_STEPS=3")
	p := s.Spawn(ipc.SpawnRequest{Intent: "hi", ProcSpec: types.ProcSpec{Model: "fake"}})
	w := s.Wait(p.PID)
	if w.Exit.Code != types.ExitNoProgress || w.Steps != 3 || !strings.Contains(w.Exit.Reason, "3 steps in a row") {
		t.Errorf("%+v", w)
	}
	s.Kill()
	s.Start()
	s.Settle()
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), NewInput: "again", Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Wait(r.PID); w.Exit.Code != types.ExitNoProgress || w.Steps != 6 {
		t.Errorf("%+v", w)
	}
}
