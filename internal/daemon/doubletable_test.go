package daemon_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

var update = flag.Bool("update", false, "write the tables of docs/guarantees.md anew")

// effectClass is one kind of effect with a tool that has it.
type effectClass struct {
	name, call, input string // "DIR" in the input is the directory of the process
	answer            string // is in what the model is told when it has run
}

var effectClasses = []effectClass{
	{name: "none", call: "mcp__counts__look", input: `{"file":"DIR/effects"}`, answer: "counted"},
	{name: "idempotent", call: "mcp__counts__set", input: `{"file":"DIR/effects"}`, answer: "counted"},
	{name: "reversible", call: "write_file", input: `{"path":"effects","content":"ran\n"}`, answer: "created"},
	{name: "external", call: "shell", input: `{"command":"echo ran >> effects"}`, answer: "exit code 0"},
	{name: "spawn", call: "spawn", input: `{"intent":"kid"}`, answer: "kid done"},
}

// A killPoint is a moment at which a daemon is killed: done says whether the effect has happened by then.
type killPoint struct {
	name string
	done bool
	cut  func(t *testing.T, s *testenv.System, id types.UUID, tool string)
}

var killPoints = []killPoint{
	{"before the intent is on disk", false, func(t *testing.T, s *testenv.System, id types.UUID, tool string) { cut(t, s, id, true, intentOf(tool)) }},
	{"after the intent, before the effect", false, func(t *testing.T, s *testenv.System, id types.UUID, tool string) {
		cut(t, s, id, false, intentOf(tool))
	}},
	{"after the effect, before the result is on disk", true, func(t *testing.T, s *testenv.System, id types.UUID, tool string) {
		cut(t, s, id, false, intentOf(tool))
	}},
	{"after the result, before the step's record", true, func(t *testing.T, s *testenv.System, id types.UUID, _ string) {
		cut(t, s, id, false, func(r *step.Record) bool { return r.Kind == step.KindResult })
	}},
	{"after the step's record", true, func(t *testing.T, s *testenv.System, id types.UUID, _ string) {
		cut(t, s, id, false, func(r *step.Record) bool { return r.Kind == step.KindStep && r.Step.StepNumber == 1 })
	}},
}

var doubtPolicies = []string{"tell", "retry", "skip", "fail"}

// What a model can be told of a call that a crash has cut off.
const (
	toldResult  = "its result"
	toldUnknown = "outcome unknown"
	toldSkipped = "not to be run again"
	toldLost    = "it has run, answer lost"
	toldNothing = "resume refused"
)

// wanted is how often an effect has happened in the end, and what the model is told.
func wanted(class string, p *killPoint, policy string) (times int, told string) {
	switch done := p.done; {
	case strings.HasPrefix(p.name, "before"), p.name == "after the step's record":
		return 1, toldResult
	case strings.HasPrefix(p.name, "after the result"):
		return 1, toldLost
	case class == "external":
		switch n := map[bool]int{true: 1}[done]; policy {
		case "retry":
			return n + 1, toldResult
		case "skip":
			return n, toldSkipped
		case "fail":
			return n, toldNothing
		default:
			return n, toldUnknown
		}
	case done && (class == "none" || class == "idempotent"):
		return 2, toldResult
	}
	return 1, toldResult
}

// counts is an MCP server with a tool that reads and one that may be repeated. Both leave a line.
const counts = `while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"counts","version":"1"}}' ;;
  *'"tools/list"'*) r='{"tools":[{"name":"look","description":"d","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"set","description":"d","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}}]}' ;;
  *'"tools/call"'*) echo ran >> "$(printf %s "$line" | sed -n 's/.*"file":"\([^"]*\)".*/\1/p')"; r='{"content":[{"type":"text","text":"counted"}]}' ;;
  *) continue ;;
  esac
  [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
`

// cell is one agent of the table.
type cell struct {
	class  *effectClass
	point  *killPoint
	policy string
	dir    string
	p      ipc.SpawnResponse
}

// TestHowOftenAnEffectHappensForEveryMomentOfACrash kills a daemon, in effect, at each moment of a call, for
// each kind of effect and each policy, and holds the page that promises the outcome against it.
func TestHowOftenAnEffectHappensForEveryMomentOfACrash(t *testing.T) { // C-4
	var second atomic.Bool
	var mu sync.Mutex
	told := map[string]string{}
	cells := map[string]*cell{}
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		name := r.Messages[0].Text
		res, done := r.LastResult()
		if name == "kid" {
			if done {
				return llmtest.Reply{Text: "kid done"}
			}
			return tool("shell", `{"command":"echo ran >> effects"}`)
		}
		mu.Lock()
		defer mu.Unlock()
		if !done {
			c := cells[name]
			return tool(c.class.call, strings.ReplaceAll(c.class.input, "DIR", c.dir))
		}
		if second.Load() {
			told[name] = res.Text
		}
		return llmtest.Reply{Text: "seen"}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	s.Write("counts.sh", counts)
	configure(t, s, "mcp.yaml", "servers:\n  counts:\n    command: sh\n    args: ["+filepath.Join(s.Work, "counts.sh")+"]\n")
	var all []*cell
	for i := range killPoints {
		for j := range effectClasses {
			for _, policy := range doubtPolicies {
				name := fmt.Sprintf("%d-%s-%s", i, effectClasses[j].name, policy)
				c := &cell{class: &effectClasses[j], point: &killPoints[i], policy: policy, dir: filepath.Join(s.Work, name)}
				if err := os.Mkdir(c.dir, 0o700); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				cells[name] = c
				mu.Unlock()
				req := ipc.SpawnRequest{Intent: name, ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: c.dir}
				if strings.HasPrefix(c.class.call, "mcp__") {
					req.MCP = []string{"counts"}
				}
				c.p = s.Spawn(req)
				all = append(all, c)
			}
		}
	}
	for _, c := range all {
		if w := s.Wait(c.p.PID); w.Exit.Code != 0 || c.times(t) != 1 {
			t.Fatalf("%+v: %+v", c.dir, w)
		}
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	second.Store(true)
	for _, c := range all {
		c.point.cut(t, s, c.p.UUID, c.class.call)
		if c.point.done {
			continue
		}
		if err := os.Remove(filepath.Join(c.dir, "effects")); err != nil {
			t.Fatal(err)
		}
		for i := range l.Procs { // nor has the child begun
			if l.Procs[i].ParentUUID == c.p.UUID {
				if err := os.RemoveAll(filepath.Join(s.Data, "steps", l.Procs[i].UUID.String())); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	s.Start()
	s.Settle()
	got := map[*cell]string{}
	for _, c := range all {
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: c.p.UUID.String(), Env: s.Env, OnInDoubt: c.policy})
		switch {
		case types.CodeOf(err) == types.ErrInDoubt:
			got[c] = toldNothing
			continue
		case err != nil:
			t.Errorf("%s: %v", c.dir, err)
			continue
		}
		c.p = r.SpawnResponse
	}
	for _, c := range all {
		if got[c] == "" {
			if w := s.Wait(c.p.PID); w.Exit.Code != 0 || w.Result != "seen" {
				t.Errorf("%s: %+v", c.dir, w)
			}
			mu.Lock()
			got[c] = sayingOf(told[filepath.Base(c.dir)], c.class.answer)
			mu.Unlock()
		}
		times, want := wanted(c.class.name, c.point, c.policy)
		if n := c.times(t); n != times || got[c] != want {
			t.Errorf("%s, %s, %s: it has happened %d times and the model was told %q, want %d and %q", c.point.name, c.class.name, c.policy, n, got[c], times, want)
		}
	}
	page(t, "effects", func(say func(string, ...any)) {
		say("| the daemon is killed | effect | `tell` (default) | `retry` | `skip` | `fail` |\n|---|---|---|---|---|---|\n")
		for i := range killPoints {
			for j := range effectClasses {
				say("| %s | %s |", killPoints[i].name, effectClasses[j].name)
				for n, policy := range doubtPolicies {
					c := all[(i*len(effectClasses)+j)*len(doubtPolicies)+n]
					if c.policy != policy {
						t.Fatal("the cells are in another order")
					}
					say(" %d×, %s |", c.times(t), got[c])
				}
				say("\n")
			}
		}
	})
}

// times is how often the effect has happened.
func (c *cell) times(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, "effects"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(b), "ran\n")
}

// sayingOf puts what a model was told into a few words.
func sayingOf(text, answer string) string {
	for _, x := range []struct{ part, saying string }{{"outcome is unknown", toldUnknown}, {step.SkippedText, toldSkipped}, {"was lost when the machine stopped", toldLost}, {answer, toldResult}} {
		if strings.Contains(text, x.part) {
			return x.saying
		}
	}
	return text
}

// page holds a table of docs/guarantees.md against the one that write makes. With -update it is replaced.
func page(t *testing.T, name string, write func(say func(string, ...any))) {
	t.Helper()
	var want strings.Builder
	write(func(format string, args ...any) { fmt.Fprintf(&want, format, args...) })
	path := filepath.Join("..", "..", "docs", "guarantees.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": made by the test, not by hand -->\n", "<!-- end of "+name+" -->\n"
	head, rest, ok := strings.Cut(string(b), begin)
	have, tail, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatalf("%s has no place for the table %s", path, name)
	case have == want.String():
	case *update:
		if err := os.WriteFile(path, []byte(head+begin+want.String()+end+tail), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s says of %s:\n%s\nand it is:\n%s\n(-update writes it anew)", path, name, have, want.String())
	}
}
