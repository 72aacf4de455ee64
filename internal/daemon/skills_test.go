package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
)

// rules is a skill that can be recognised in a request.
const rules = "---\nname: rules\ndescription: How this project wants to be treated.\n---\nRULE ONE: be gentle.\n"

// active is what a request has of a skill that is active: its instructions once, below its heading.
const active = "# Skill: rules\n"

// TestAnActivatedSkillStaysInTheSystemPrompt activates a skill, makes the conversation long enough to be compacted three times, and ends the
// daemon with SIGKILL: what the model is asked from then on has the skill's instructions, once, as has what a resume and forks ask.
func TestAnActivatedSkillStaysInTheSystemPrompt(t *testing.T) {
	var mu sync.Mutex
	asked := map[string][]llmtest.Request{} // by what it was started or forked for
	hangs := make(chan struct{})
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if strings.Contains(r.Messages[len(r.Messages)-1].Text, wantsSummary) {
			return llmtest.Reply{Text: "summed up"}
		}
		mu.Lock()
		who := "origin"
		for _, m := range r.Messages {
			if strings.Contains(m.Text, "as a copy") {
				who = "fork"
			}
		}
		asked[who] = append(asked[who], r)
		n := len(asked[who])
		mu.Unlock()
		switch {
		case who == "fork":
			return llmtest.Reply{Text: "forked"}
		case n == 1:
			return tool("specialize", `{"skill":"rules"}`)
		case n < 9:
			return tool("shell", fmt.Sprintf(`{"command":"head -c 20000 /dev/zero | tr '\\0' x; echo %d"}`, n))
		case n == 9:
			close(hangs)
			return llmtest.Reply{Hang: true}
		case n == 10:
			return tool("specialize", `{"skill":"rules"}`)
		}
		return llmtest.Reply{Text: "done"}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k")
	s.Write(".rnix/skills/rules/SKILL.md", rules)
	config := filepath.Join(s.Home, ".config", "rnix")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	providers := "default_provider: small\nproviders:\n  - {name: small, driver: anthropic, base_url: " + url + ", default_model: m, context_window: 20000}\n"
	if err := os.WriteFile(filepath.Join(config, "providers.yaml"), []byte(providers), 0o600); err != nil {
		t.Fatal(err)
	}
	p := s.Spawn(ipc.SpawnRequest{Intent: "go"})
	s.Await(p.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 9 })
	look := func(target string) ipc.ProcDetail {
		d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: target})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if got := look(p.UUID.String()).Skills; !slices.Equal(got, []string{"rules"}) {
		t.Errorf("while it runs it has the skills %q", got)
	}
	fork := func(from int) {
		f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true, FromStep: &from, NewInput: "answer as a copy", Cwd: s.Work})
		if err != nil {
			t.Fatal(err)
		}
		s.Wait(f.PID)
		if got, want := look(f.UUID.String()).Skills, from > 0; slices.Equal(got, []string{"rules"}) != want {
			t.Errorf("a fork from step %d has the skills %q", from, got)
		}
	}
	fork(1)
	fork(0)
	<-hangs // killed before, it would ask this after its return, and wait for minutes
	s.Kill()
	if err := os.RemoveAll(filepath.Join(s.Work, ".rnix")); err != nil { // what the model was given is in the record
		t.Fatal(err)
	}
	s.Start()
	if got := look(p.UUID.String()).Skills; !slices.Equal(got, []string{"rules"}) {
		t.Errorf("after the kill it has the skills %q", got)
	}
	s.Settle()
	w := s.Wait(look(p.UUID.String()).PID)
	if w.Result != "done" {
		t.Errorf("it ended with %q", w.Result)
	}

	mu.Lock()
	defer mu.Unlock()
	for who, all := range asked {
		for i, r := range all {
			want := 1
			if i == 0 && who == "origin" || who == "fork" && i == 1 {
				want = 0
			}
			if n := strings.Count(r.System, active); n != want || strings.Count(r.System, "RULE ONE") != want {
				t.Errorf("question %d of the %s has the skill %d times, want %d: %s", i+1, who, n, want, r.System)
			}
			if first := r.Messages; who == "origin" && i == 8 && len(first) > 12 {
				t.Errorf("the conversation was not compacted: it has %d messages", len(first))
			}
		}
	}
}
