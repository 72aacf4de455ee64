package run_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// big is a workflow of twenty nodes, one of them for each of six items, another one flaky, and one whose
// provider has no quota left for a while.
const big = `max_parallel: 6
agents:
  list: {intent: list x, output: {schema: {type: array}}}
  item: {intent: "item-${index} for ${item}", foreach: {from: list}}
  flaky: {intent: flaky x, retries: {max: 5, backoff: {initial: 20ms, factor: 1}}}
  quota: {intent: quota x, depends_on: [list]}
  a1: {intent: a1 x}
  a2: {intent: a2 x, depends_on: [a1]}
  a3: {intent: a3 x, depends_on: [a1]}
  a4: {intent: a4 x, depends_on: [a2, a3]}
  b1: {intent: b1 x, depends_on: [flaky]}
  b2: {intent: b2 x, depends_on: [b1, item]}
  c1: {intent: c1 x, depends_on: {flaky: completed}}
  c2: {intent: c2 x, depends_on: [c1, a4]}
  never: {intent: never x, depends_on: {a4: failed}}
  unless: {intent: unless x, depends_on: {never: completed}}
  d1: {intent: d1 x, depends_on: [item]}
  d2: {intent: d2 x, depends_on: [d1, quota]}
  d3: {intent: d3 x, depends_on: [d1]}
  e1: {intent: e1 x, depends_on: [b2, c2]}
  e2: {intent: e2 x, depends_on: [d2, d3, unless]}
  end: {intent: end x, depends_on: [e1, e2]}
`

// worker is what a node of the big workflow does: two calls with an effect of their own, and an answer.
func worker(answer string) func(llmtest.Request, int) llmtest.Reply {
	return func(r llmtest.Request, turn int) llmtest.Reply {
		who := strings.Fields(r.Messages[0].Text)[0]
		if turn > 2 {
			return llmtest.Reply{Text: cmp.Or(answer, "result of "+who)}
		}
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: fmt.Sprintf("%s-%d", who, turn), Name: "shell",
			Input: fmt.Sprintf(`{"command":"echo done >> %s.%d"}`, who, turn)}}}
	}
}

// effects counts how often each call of a node has had its effect.
func (f *flow) effects() (total int, repeated []string) {
	files, err := filepath.Glob(filepath.Join(f.Work, "*.[12]"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.t.Fatal(err)
		}
		n := strings.Count(string(b), "done")
		if total += n; n > 1 {
			repeated = append(repeated, fmt.Sprintf("%s %d times", filepath.Base(name), n))
		}
	}
	return total, repeated
}

// TestARunOutlivesTheDaemonAndRepeatsNothing kills the daemon again and again while a workflow of twenty
// nodes runs, once while its provider has no quota for two seconds. Nobody resumes anything. (The same with a
// pause of a minute, and of hours, is a test of internal/daemon in virtual time.) RNIX_COMPOSE_SEED makes it the
// same again.
func TestARunOutlivesTheDaemonAndRepeatsNothing(t *testing.T) { // C-7
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("RNIX_COMPOSE_SEED"), fmt.Sprint(rand.Uint32())), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("RNIX_COMPOSE_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	f := newFlow(t, "RNIX_DAEMON_AUTO_RESUME_MAX=1000")
	for i := range 6 {
		f.says[fmt.Sprintf("item-%d", i)] = worker("")
	}
	for _, who := range strings.Fields("a1 a2 a3 a4 b1 b2 c1 c2 unless d1 d2 d3 e1 e2 end") {
		f.says[who] = worker("")
	}
	f.says["list"] = worker(`["u","v","w","x","y","z"]`)
	var flaky atomic.Int32
	f.says["flaky"] = func(r llmtest.Request, turn int) llmtest.Reply {
		if flaky.Add(1) <= 2 {
			return llmtest.Reply{Status: 400, Text: "not now"}
		}
		return worker("")(r, turn)
	}
	const pause = 2 * time.Second
	var full atomic.Int64 // when the limit ends, in nanoseconds since 1970; 0 = nobody has met it
	met := make(chan struct{})
	f.says["quota"] = func(r llmtest.Request, turn int) llmtest.Reply {
		if turn == 2 && full.CompareAndSwap(0, time.Now().Add(pause).UnixNano()) {
			close(met)
		}
		if turn == 2 && time.Now().UnixNano() < full.Load() {
			return llmtest.Reply{Status: 429, Text: "quota", Header: http.Header{"Retry-After": {"2"}}}
		}
		return worker("")(r, turn)
	}
	up := f.up(big)
	want := 0
	for n := range 4 {
		want += 2 + rng.IntN(8)
		if f.works(up.UUID, want); n == 1 { // in the middle of the pause
			<-met
		}
		<-time.After(time.Duration(rng.IntN(20)) * time.Millisecond)
		f.crash()
		f.Start()
		f.Settle()
	}
	r := f.rests(up.UUID) // nobody resumes it
	if r.Exit == nil || r.Exit.Code != types.ExitOK || r.Counts["failed"] != 0 || r.Counts["skipped"] != 1 || r.Counts["succeeded"] != len(r.Nodes)-1 {
		t.Fatalf("%v %v\n%+v", r.Exit, r.Counts, r.Nodes)
	}
	total, repeated := f.effects()
	if len(repeated) > 0 {
		t.Errorf("calls had their effect more than once: %v", repeated)
	}
	if calls := 2 * (len(r.Nodes) - 1); total > calls {
		t.Errorf("%d effects of %d calls", total, calls)
	} else {
		t.Logf("%d effects of %d calls; what is missing was in doubt, and its model was told", total, calls)
	}
	l, err := ipc.Call(t.Context(), f.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, p := range l.Procs {
		seen[p.Name]++
	}
	for _, n := range r.Nodes {
		if got := seen["w/"+n.Name]; got != n.Attempt {
			t.Errorf("%s has %d histories and %d attempts", n.Name, got, n.Attempt)
		}
	}
}

// crash kills the daemon and waits until nobody listens any more.
func (f *flow) crash() {
	f.t.Helper()
	holder, _, err := ipc.LockHolder(ipc.DataLock(f.Data))
	if err != nil {
		f.t.Fatal(err)
	}
	f.Kill()
	late := time.Now().Add(2 * time.Minute)
	for {
		c, err := net.Dial("unix", holder.Socket)
		if err != nil {
			return
		}
		_ = c.Close()
		if time.Now().After(late) {
			f.t.Fatal("somebody listens still")
		}
	}
}

// works waits until so many effects are there, or until nothing works any more.
func (f *flow) works(id types.UUID, effects int) {
	f.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Minute)
	for {
		if n, _ := f.effects(); n >= effects || f.status(id).State != "running" {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			r := f.status(id)
			f.t.Fatalf("there are not %d effects: %s %s", effects, r.Wait, states(&r))
		}
	}
}

// rests waits until a run has ended or is suspended.
func (f *flow) rests(id types.UUID) ipc.ComposeRun {
	f.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Minute)
	for {
		r := f.status(id)
		if r.State == "dead" || r.State == "suspended" && r.Exit != nil {
			return r
		}
		select {
		case <-tick.C:
		case <-late:
			f.t.Fatalf("it is %s: %q\n%s", r.State, r.Wait, states(&r))
		}
	}
}

func TestASharedBudgetIsKeptAndTheRunGoesOnAfterATopUp(t *testing.T) { // C-9
	f := newFlow(t)
	for i := range 8 {
		f.says[fmt.Sprintf("n%d", i)] = func(_ llmtest.Request, turn int) llmtest.Reply {
			r := llmtest.Reply{Usage: &llmtest.Usage{Input: 3000, Output: 400}, Text: "done"}
			if turn < 3 {
				r.Text, r.ToolCalls = "", []llmtest.ToolCall{{ID: fmt.Sprint("c", turn), Name: "list_files", Input: `{}`}}
			}
			return r
		}
	}
	up := f.up("budget: 45000\nagents:\n  n0: {intent: n0 x}\n  n1: {intent: n1 x}\n  n2: {intent: n2 x}\n  n3: {intent: n3 x}\n  n4: {intent: n4 x}\n  n5: {intent: n5 x}\n  n6: {intent: n6 x}\n  n7: {intent: n7 x, depends_on: [n0]}\n")
	r := f.rests(up.UUID)
	if r.State != "suspended" || r.Counts["failed"] != 0 || r.TokensUsed >= 45000+3400 {
		t.Fatalf("%s %q, %d tokens\n%s", r.State, r.Wait, r.TokensUsed, states(&r))
	}
	for n := 0; n < 10 && r.State != "dead"; n++ {
		more := 60000
		_, err := ipc.Call(t.Context(), f.Client, ipc.ComposeResume, ipc.ComposeResumeRequest{Target: "w", Budget: &more, Env: f.Env})
		if err != nil && types.CodeOf(err) != types.ErrConflict { // a node that was just ending has let it go on
			t.Fatal(err)
		}
		was := r.TokensUsed
		if r = f.rests(up.UUID); r.TokensUsed > was+more {
			t.Errorf("%d tokens are used, and %d may be", r.TokensUsed, was+more)
		}
	}
	if r.Exit == nil || r.Exit.Code != types.ExitOK || r.Counts["succeeded"] != 8 || r.TokensUsed != 8*3*3400 {
		t.Fatalf("%s %v %v %d %q", r.State, r.Exit, r.Counts, r.TokensUsed, r.Wait)
	}
}

func TestARunIsSpawnedOfTheKernelsOwnKind(t *testing.T) { // nodes are settled as all processes are
	f := newFlow(t)
	f.Write(".rnix/agents/careful/agent.yaml", "name: careful\ndescription: d\nmodels: {provider: anthropic, preferred: theirs, reasoning_effort: high}\nskills: [look]\nmax_steps: 7\n")
	f.Write(".rnix/agents/careful/instructions.md", "Be careful.\n")
	for _, name := range []string{"look", "more"} {
		f.Write(".rnix/skills/"+name+"/SKILL.md", "---\nname: "+name+"\ndescription: d\n---\nSkill text of "+name+".\n")
	}
	f.Write("sub/x", "")
	var system atomic.Value
	f.says["node"] = func(r llmtest.Request, _ int) llmtest.Reply {
		system.Store(r.Model + "\n" + r.System)
		return llmtest.Reply{Text: "ok"}
	}
	up := f.up("agents:\n  node: {intent: node x, agent: careful, model: mine, skills: [more], deny: [/dev/shell], cwd: sub, system_prompt: Said first., max_steps: 3, timeout: 5m}\n")
	r := f.end(up, types.ExitOK, "node=succeeded")
	text, _ := system.Load().(string)
	for _, want := range []string{"mine\n", "Said first.", "Be careful.", "Skill text of look.", "Skill text of more.", filepath.Join(f.Work, "sub")} {
		if !strings.Contains(text, want) {
			t.Errorf("the model has no %q in\n%s", want, text)
		}
	}
	d, err := ipc.Call(context.Background(), f.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: r.Nodes[0].UUID.String()})
	if err != nil || d.MaxSteps != 3 || d.Agent != "careful" || d.WorkDir != filepath.Join(f.Work, "sub") || len(d.DeniedDevices) != 1 {
		t.Errorf("%+v %v", d, err)
	}
	f.Await(up.PID, event.NodeChanged, func(e *event.Event) bool { return e.Name == "node" && e.Result == "succeeded" })
}
