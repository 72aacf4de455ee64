package daemon_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// TestTheRequestOfAStepIsMadeAsItWasSent says that what raw_step makes of the record is, for each API, what the vendor's server got, also after a resume and in a fork, and that no secret is in it.
func TestTheRequestOfAStepIsMadeAsItWasSent(t *testing.T) {
	for name, providers := range map[string]string{
		"anthropic": "{name: anthropic, base_url: URL, thinking: adaptive, default_model: m}",
		"openai":    "{name: openai, base_url: URL/v1, api: responses, reasoning_effort: high, default_model: m}",
		"chat":      "{name: chat, driver: openai-compat, base_url: URL/v1, api_key_env: OPENAI_API_KEY, default_model: m}",
	} {
		t.Run(name, func(t *testing.T) {
			api, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
				if _, ok := r.LastResult(); ok {
					return llmtest.Reply{Text: "done"}
				}
				reply := tool("shell", `{"command":"echo $MY_TOKEN; echo <tag> & wait"}`)
				reply.Reasoning, reply.Text = "I look.", "Now."
				return reply
			})
			env := []string{"ANTHROPIC_API_KEY=key-of-mine-1", "OPENAI_API_KEY=key-of-mine-2"}
			s := testenv.New(t, env...)
			configure(t, s, "providers.yaml", "providers:\n  - "+strings.ReplaceAll(providers, "URL", url)+"\n")
			p := s.Spawn(ipc.SpawnRequest{Intent: "look around", ProcSpec: types.ProcSpec{Provider: name}})
			if w := s.Wait(p.PID); w.Result != "done" {
				t.Fatalf("%+v", w)
			}
			check := func(id types.UUID, step, sent int) {
				t.Helper()
				r, err := ipc.Call(t.Context(), s.Client, ipc.RawStep, ipc.RawStepRequest{Target: id.String(), Step: step, ProjectRequest: ipc.ProjectRequest{Env: env}})
				if err != nil {
					t.Fatal(err)
				}
				got := api.Requests()[sent]
				if diff := cmp.Diff(decoded(t, got.Body), decoded(t, r.Request)); diff != "" || !strings.HasSuffix(r.Address, got.Path) || len(r.Notes) == 0 {
					t.Errorf("step %d, %s (-sent +made):\n%s", step, r.Address, diff)
				}
				all, err := json.Marshal(&r)
				if err != nil || strings.Contains(string(all), "key-of-mine") {
					t.Errorf("%v: a key is in %s", err, all)
				}
				if step == 1 && (!strings.Contains(string(r.Answer.Message), "shell") || r.Answer.Answer.TokensUsed == 0) {
					t.Errorf("the answer is %s", r.Answer.Message)
				}
			}
			check(p.UUID, 1, 0)
			check(p.UUID, 2, 1)
			again, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), NewInput: "look again"})
			if err != nil {
				t.Fatal(err)
			}
			s.Wait(again.PID)
			for n := range 4 { // those of the run before, too
				check(p.UUID, n+1, n)
			}
			f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Fork: true, FromStep: new(1), Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			s.Wait(f.PID)
			check(f.UUID, 2, 4)
		})
	}
}

func decoded(t *testing.T, b []byte) (out any) {
	t.Helper()
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return out
}
