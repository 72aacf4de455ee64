package daemon_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// answered reports the first thing that a vendor's API would refuse: a call without an answer right
// behind it, or an answer without its call.
func answered(r llmtest.Request) error {
	var open []string
	for i, m := range r.Messages {
		for _, res := range m.Results {
			n := slices.Index(open, res.ID)
			if n < 0 {
				return fmt.Errorf("message %d answers %s, which nobody asked for", i, res.ID)
			}
			open = slices.Delete(open, n, n+1)
		}
		if len(open) > 0 && m.Role == "assistant" {
			return fmt.Errorf("message %d comes before the answers of %v", i, open)
		}
		for _, c := range m.Calls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%v have no answer", open)
	}
	return nil
}

// A provider takes short prompts only, and nobody knows how short. Whatever the agent reads, it goes on
// to its end, and each prompt is one that the provider could accept.
func TestRefusedPromptIsCompactedUntilTheProviderTakesIt(t *testing.T) {
	const window, rounds = 4_000, 25 // tokens of 4 bytes; reads
	for name, c := range map[string]struct {
		env    func(url string) []string
		refuse llmtest.Reply
	}{
		"anthropic": {func(u string) []string { return []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + u} },
			llmtest.Reply{Status: 400, Text: "prompt is too long: 123456 tokens > 4000 maximum"}},
		"openai": {func(u string) []string {
			return []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=" + u + "/v1", "OPENAI_MODEL=fake"}
		}, llmtest.Reply{Status: 400, Raw: `{"error":{"message":"This model's maximum context length is 4000 tokens. However, your messages resulted in 123456 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			Header: map[string][]string{"Content-Type": {"application/json"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var refused, reads atomic.Int64
			_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
				if err := answered(r); err != nil {
					t.Errorf("request %d: %v", r.N, err)
				}
				var doc struct{ Messages json.RawMessage }
				if json.Unmarshal(r.Body, &doc) == nil && len(doc.Messages)/4 > window {
					refused.Add(1)
					return c.refuse
				}
				if !strings.Contains(string(doc.Messages), "read it all") {
					t.Errorf("request %d has lost the task", r.N)
				}
				if strings.Contains(r.Messages[len(r.Messages)-1].Text, "Write a summary") {
					return llmtest.Reply{Text: strings.Repeat("summed up ", 50)}
				}
				n := reads.Add(1)
				if n > rounds {
					return llmtest.Reply{Text: "done"}
				}
				name := "small"
				if n%10 == 0 {
					name = "large"
				}
				return tool("read_file", fmt.Sprintf(`{"path":%q,"limit":%d}`, name, 1500+n))
			})
			s := testenv.New(t, c.env(url)...)
			line := strings.Repeat("x", 9) + "\n"
			s.Write("small", strings.Repeat(line, 500))
			s.Write("large", strings.Repeat(strings.Repeat("y", 99)+"\n", 2000)) // alone far more than the provider takes
			p := s.Spawn(ipc.SpawnRequest{Intent: "read it all", ProcSpec: types.ProcSpec{Provider: name, Model: "fake"}})
			w := s.Wait(p.PID)
			if w.Exit.Code != 0 || w.Result != "done" || w.Steps != rounds+1 {
				t.Fatalf("%+v after %d refusals", w, refused.Load())
			}
			if refused.Load() == 0 {
				t.Fatal("the provider never had to refuse")
			}
			s.Await(p.PID, event.Compacted, nil)
		})
	}
}
