package daemon_test

import (
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

// An agent is the same whether a person starts it or another agent does: its model, its environment and
// its limits are its own, also where the person has asked for another model.
func TestAnAgentIsTheSameWhoeverStartsIt(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		result, told := r.LastResult()
		switch {
		case told:
			return llmtest.Reply{Text: result.Text}
		case r.LastUser() == "parent":
			return tool("spawn", `{"intent":"child","agent":"kid","max_steps":40}`)
		}
		return tool("shell", `{"command":"echo got $KID_WORD"}`)
	})
	s := testenv.New(t, "OPENAI_API_KEY=k", "OPENAI_BASE_URL="+url+"/v1", "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "KID_WORD=honey")
	s.Write(".rnix/agents/kid/agent.yaml", "name: kid\ndescription: a child\nmodels: {provider: openai, preferred: small}\nenv: [KID_WORD]\nmax_steps: 7\n")
	s.Write(".rnix/agents/kid/instructions.md", "Do as you are told.\n")

	for _, c := range []struct{ asked, provider, model string }{{"", "openai", "small"}, {"anthropic", "openai", "small"}} {
		req := ipc.SpawnRequest{Intent: "parent", ProcSpec: types.ProcSpec{Provider: c.asked}, TrustProject: true}
		if c.asked != "" {
			req.Model = "big" // of the parent: a child keeps what its own agent names
		} else {
			configure(t, s, "providers.yaml", "version: \"1\"\ndefault_provider: anthropic\n")
		}
		parent := s.Spawn(req)
		child := s.Await(0, event.Spawned, func(e *event.Event) bool { return e.PPID == parent.PID })
		if child.Provider != c.provider || child.Model != c.model || child.Total != 7 {
			t.Errorf("asked for %q: the child has %s/%s and %d steps", c.asked, child.Provider, child.Model, child.Total)
		}
		if w := s.Wait(parent.PID); w.Exit.Code != types.ExitOK || !strings.Contains(w.Result, "got honey") {
			t.Errorf("%+v", w)
		}
	}
}

func TestAnEditedScriptIsReadAgain(t *testing.T) {
	s := testenv.New(t)
	script := filepath.Join(s.Home, "script.yaml")
	configure(t, s, "providers.yaml", "version: \"1\"\nproviders:\n  - {name: tape, driver: replay, script: "+script+"}\n")
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(script, []byte("version: \"1\"\nresponses:\n  - content: "+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Provider: "tape"}}).PID); w.Result != text {
			t.Errorf("got %q, want %q", w.Result, text)
		}
	}
}

func TestTimeLimitsOfAWaitAreNotMisread(t *testing.T) {
	s := testenv.New(t)
	pid := s.Spawn(ipc.SpawnRequest{Intent: "run `sleep 0.2`"}).PID
	wait := func(ms int64) error {
		_, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: pid.String(), TimeoutMs: ms})
		return err
	}
	if err := wait(-1); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("negative: %v", err)
	}
	if err := wait(1 << 60); err != nil { // in nanoseconds more than there are
		t.Errorf("for ever: %v", err)
	}
}
