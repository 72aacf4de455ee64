package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rnix/types"
	"rnix/vfs"
)

// withSigns adds the model "greedy", whose vendor counts a token for each sign, and one for sixteen blanks. asked is called with the tokens of each prompt.
func withSigns(t *testing.T, asked func(tokens int)) func(*Config) {
	card := vfs.ModelCard{Provider: "greedy", Model: "greedy", MaxAnswer: 1000}
	first := withGreedy(t, card, nil)
	return func(c *Config) {
		first(c)
		err := c.Devices.Register("/dev/llm/signs", func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
			g := &greedy{card: card}
			g.do = func(_ context.Context, _ vfs.Caller, data []byte) (string, error) {
				var req struct {
					System   string                     `json:"system_prompt"`
					Tools    json.RawMessage            `json:"tools"`
					Messages []struct{ Content string } `json:"messages"`
				}
				if err := json.Unmarshal(data, &req); err != nil {
					return "", err
				}
				tokens := 700 + len(req.System)/4 + len(req.Tools)/4
				for _, m := range req.Messages {
					blanks := strings.Count(m.Content, " ")
					tokens += 8 + blanks/16 + len(m.Content) - blanks
				}
				asked(tokens)
				return fmt.Sprintf(`{"tool_calls":[{"id":"c%d","name":"tool","input":{}}],"usage":{"input_tokens":%d,"output_tokens":30},"model":"greedy-2026","provider":"greedy"}`, len(req.Messages), tokens), nil
			}
			return g, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// However few tokens a vendor has counted for a byte so far: a prompt of other text does not go over a budget in dollars. What was counted is not reserved by its
// bytes: not in a run, not after a restart of the kernel, not by a fork.
func TestPromptOfOtherTextDoesNotExceedABudgetInDollars(t *testing.T) {
	var prompts []int
	var s *sys
	begin := func() {
		s = newSys(t, withSigns(t, func(tokens int) { prompts = append(prompts, tokens) }))
		s.tool = func(context.Context, vfs.Caller) (string, error) {
			if len(prompts) < 6 {
				return strings.Repeat(" ", 40_000), nil // 2,500 tokens
			}
			return strings.Repeat("#", 9_000), nil
		}
	}
	begin()
	limit := func(dollars float64) func(*SpawnOpts) {
		return func(o *SpawnOpts) { o.Provider, o.BudgetUSD = "signs", &dollars }
	}
	pid := s.spawn(limit(1)) // 100,000 tokens
	p, _ := s.Process(pid)
	i, err := s.WaitInfo(t.Context(), pid)
	if err != nil || i.Parked.Why() != types.SuspendBudget || i.CostUSD > 1 || i.CostUSD < 0.6 || len(prompts) < 7 {
		t.Fatalf("$%v after %v: %s, %v", i.CostUSD, prompts, i.Parked, err)
	}
	state := s.state(p.UUID)
	if c := state.Counted; c == nil || c.Tokens != prompts[len(prompts)-1] || c.Model != "greedy-2026" {
		t.Fatalf("%+v is on record of %v", c, prompts)
	}

	recs, last := s.stores.recs, prompts[len(prompts)-1]
	begin() // which knows no count
	s.stores.recs = recs
	prompts = prompts[:0]
	pid = s.spawn(func(o *SpawnOpts) {
		limit(i.CostUSD + 0.9)(o) // of 240,000 bytes
		o.UUID, o.From = p.UUID, s.lastRun(p.UUID)
	})
	j, err := s.WaitInfo(t.Context(), pid)
	if err != nil || len(prompts) == 0 || prompts[0] < last || j.CostUSD > i.CostUSD+0.9 {
		t.Errorf("$%v, then $%v after %v: %s, %v", i.CostUSD, j.CostUSD, prompts, j.Parked, err)
	}
}

// The first prompt, which nobody has counted, is bounded by its bytes but for the text of our own tools, so that a short task fits into some cents.
func TestFirstPromptIsBoundedByItsBytes(t *testing.T) {
	for _, c := range []struct {
		text  string
		cents float64
		asked bool
	}{{"do it", 4, true}, {strings.Repeat("#", 10_000), 9, false}, {strings.Repeat("#", 10_000), 16, true}} {
		asked := 0
		s := newSys(t, withSigns(t, func(int) { asked++ }))
		s.tool = func(context.Context, vfs.Caller) (string, error) { return strings.Repeat("#", 100_000), nil }
		dollars := c.cents / 100
		pid, err := s.Spawn(c.text, nil, opts(func(o *SpawnOpts) { o.Provider, o.BudgetUSD = "signs", &dollars }))
		if err != nil {
			t.Fatal(err)
		}
		i, err := s.WaitInfo(t.Context(), pid)
		if err != nil || i.CostUSD > dollars || asked > 0 != c.asked {
			t.Errorf("%d bytes for %v cents: asked %d times, $%v, %s, %v", len(c.text), c.cents, asked, i.CostUSD, i.Parked, err)
		}
	}
}
