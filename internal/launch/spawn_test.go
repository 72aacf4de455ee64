package launch

import (
	"slices"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/ipc"
	"rnix/types"
)

// What a request says counts before what the agent says, and that before the configuration.
func TestANewProcessHasWhatIsAskedForElseWhatItsAgentSaysElseTheConfiguration(t *testing.T) {
	w := newWorld(t)
	reader := home(t, map[string]string{
		"config.yaml":            "max_steps: 7\ncontext_budget: 70\nbudget_usd: 0.7\n",
		"agents/own/agent.yaml":  "name: own\ndescription: d\nmax_steps: 5\ncontext_budget: 50\n",
		"agents/none/agent.yaml": "name: none\ndescription: d\n",
	})
	reader.Start()
	n := func(i int) *int { return &i }
	usd := func(f float64) *float64 { return &f }
	for name, c := range map[string]struct {
		req         ipc.SpawnRequest
		steps, tok  int     // -1 = the kernel takes them of the agent
		usd         float64 // likewise
		model, next string
	}{
		"nothing is said":   {ipc.SpawnRequest{Agent: "none"}, 7, 70, 0.7, "one/a", "/"},
		"the agent says":    {ipc.SpawnRequest{Agent: "own"}, -1, -1, 0.7, "one/a", "/"},
		"the request says":  {ipc.SpawnRequest{Agent: "own", ProcSpec: types.ProcSpec{MaxSteps: n(3), ContextBudget: n(30), BudgetUSD: usd(0.3), Provider: "two", FallbackProvider: "one"}}, 3, 30, 0.3, "two/c", "one/a"},
		"fewer steps":       {ipc.SpawnRequest{Agent: "none", ProcSpec: types.ProcSpec{MaxSteps: n(3), FallbackProvider: "one"}}, 3, 70, 0.7, "one/a", "/"}, // it would be asked again
		"no limits":         {ipc.SpawnRequest{Agent: "own", ProcSpec: types.ProcSpec{MaxSteps: n(0), ContextBudget: n(0), BudgetUSD: usd(0), Model: "two/x"}}, 0, 0, 0, "two/x", "/"},
		"a word of a model": {ipc.SpawnRequest{Agent: "none", ProcSpec: types.ProcSpec{Model: "b", FallbackModel: "two/z"}}, 7, 70, 0.7, "one/b", "two/z"},
	} {
		p, err := reader.ForStart("Spawn", w.dir, []string{"KEY=k"}, false)
		if err != nil {
			t.Fatal(err)
		}
		c.req.SystemPrompt, c.req.AllowedDevices, c.req.DeniedDevices, c.req.Name = "be brief", []string{}, []string{"/dev/shell"}, "n"
		_, o, _, err := w.l.Spawner.Plan(p, c.req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		steps, tok, dollars := -1, -1, -1.0
		if o.MaxSteps != nil {
			steps = *o.MaxSteps
		}
		if o.ContextBudget != nil {
			tok = *o.ContextBudget
		}
		if o.BudgetUSD != nil {
			dollars = *o.BudgetUSD
		}
		if steps != c.steps || tok != c.tok || dollars != c.usd || o.Provider+"/"+o.Model != c.model || o.FallbackProvider+"/"+o.FallbackModel != c.next {
			t.Errorf("%s: %d steps, %d tokens, $%v, %s/%s, %s/%s", name, steps, tok, dollars, o.Provider, o.Model, o.FallbackProvider, o.FallbackModel)
		}
		if o.SystemPrompt != "be brief" || o.AllowedDevices == nil || !slices.Equal(o.DeniedDevices, []string{"/dev/shell"}) || o.Name != "n" || o.WorkDir != w.dir || o.Recorded {
			t.Errorf("%s: %+v", name, o.ProcSpec) // no device at all is not the same as those of the agent
		}
	}
}

func TestAStartThatCannotBeMeantIsRefused(t *testing.T) {
	w := newWorld(t)
	n, usd := -1, -0.5
	for what, req := range map[string]ipc.SpawnRequest{
		"steps below none": {ProcSpec: types.ProcSpec{MaxSteps: &n}}, "tokens below none": {ProcSpec: types.ProcSpec{ContextBudget: &n}}, "dollars below none": {ProcSpec: types.ProcSpec{BudgetUSD: &usd}},
		"time below none": {TimeoutMs: -1}, "a device that is not there": {ProcSpec: types.ProcSpec{DeniedDevices: []string{"/dev/ghost"}}}, "a name that is a number": {ProcSpec: types.ProcSpec{Name: "12"}},
		"tools of a model": {Tools: "kernel"},
	} {
		p, err := w.l.Profiles.ForStart("Spawn", w.dir, []string{"KEY=k"}, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := w.l.Spawner.Plan(p, req); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	// What a history says is kept, and only warned of.
	p, err := w.l.Profiles.ForStart("Spawn", w.dir, []string{"KEY=k"}, false)
	if err != nil {
		t.Fatal(err)
	}
	p.Recorded = true
	if _, o, _, err := w.l.Spawner.Plan(p, ipc.SpawnRequest{ProcSpec: types.ProcSpec{DeniedDevices: []string{"/dev/ghost"}}}); err != nil || !o.Recorded || !slices.Equal(o.DeniedDevices, []string{"/dev/ghost"}) {
		t.Errorf("%v, %+v", err, o.ProcSpec)
	}
}

func TestAModelsChildKeepsToTheProviderThatItsAgentNames(t *testing.T) {
	asked := config.Wish{Provider: "one", Model: "big", FallbackProvider: "two"}
	for name, c := range map[string]struct {
		asked config.Wish
		agent agent.Models
		want  string
	}{
		"it names a provider":           {asked, agent.Models{Provider: "two"}, "//"},
		"it names a model":              {asked, agent.Models{Preferred: "small"}, "one//two"},
		"the provider was in the model": {config.Wish{Model: "one/big"}, agent.Models{Preferred: "small"}, "one//"},
		"no provider was asked for":     {config.Wish{Model: "big"}, agent.Models{Preferred: "small"}, "//"},
	} {
		got := ofChild(c.asked, c.agent)
		if s := strings.Join([]string{got.Provider, got.Model, got.FallbackProvider}, "/"); s != c.want {
			t.Errorf("%s: %s; want %s", name, s, c.want)
		}
	}
}
