package daemon_test

import (
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// TestEveryWayToStartAProcessSettlesEveryField starts the same child in each way that there is, and compares all that
// is known of them: a field that a way forgets is another than it is in the others.
func TestEveryWayToStartAProcessSettlesEveryField(t *testing.T) {
	own := "PID UUID Name CreatedAt UpdatedAt ElapsedMs Dir Wait WaitUntil State Step TokensUsed CostUSD Estimated Unpriced Interrupted WaitSince Doing" // of each
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if first := r.Messages[0].Text; first != "lead" || len(r.Messages) > 1 {
			return llmtest.Reply{Hang: true}
		}
		kid := `{"intent":"kid","max_steps":9`
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: "a", Name: "spawn", Input: kid + `}`}, {ID: "b", Name: "spawn", Input: kid + `,"background":true}`}}}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	nine, budget := 9, 400_000
	p := s.Spawn(ipc.SpawnRequest{Intent: "lead", ProcSpec: types.ProcSpec{Model: "fake", ContextBudget: &budget, AllowedDevices: []string{"/dev/fs", "/sys/spawn", "/proc"}, DeniedDevices: []string{"/proc/1"}}})
	seen := map[types.PID]bool{p.PID: true}
	next := func() ipc.ProcDetail {
		e := s.Await(0, event.StepStarted, func(e *event.Event) bool { return !seen[e.PID] })
		seen[e.PID] = true
		return detail(t, s, e.PID.String())
	}
	want := next()
	ways := map[string]ipc.ProcDetail{"the other tool call": next()}
	s.Spawn(ipc.SpawnRequest{Intent: "kid", ProcSpec: types.ProcSpec{Model: "fake", MaxSteps: &nine}, Parent: p.PID.String()})
	ways["client"] = next()
	f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: want.UUID.String(), Fork: true, Cwd: want.WorkDir, Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	ways["fork"] = detail(t, s, f.PID.String())
	seen[f.PID] = true // its step is no sign of another
	nodes, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, ipc.ComposeUpRequest{File: "compose.yaml", Name: "w", Cwd: s.Work, Env: s.Env, Parent: p.PID.String(),
		Text: "agents:\n  node: {intent: kid, model: fake, max_steps: 9}\n"})
	if err != nil {
		t.Fatal(err)
	}
	ways["node of a workflow"] = next()
	kept, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseUp, ipc.SuperviseRequest{ProjectRequest: ipc.ProjectRequest{Cwd: s.Work, Env: s.Env}, File: "s.yaml", Parent: p.PID.String(),
		Source: "supervisors:\n  - name: keeper\n    children:\n      - {name: c, intent: kid, model: fake, max_steps: 9}\n"})
	if err != nil || len(kept.Supervisors) != 1 {
		t.Fatalf("%+v %v", kept, err)
	}
	ways["child of a supervisor"] = next()
	for _, pid := range []types.PID{nodes.PID, kept.Supervisors[0].PID} {
		seen[pid] = true
	}
	but := map[string]string{"fork": "PPID ParentUUID Budget Purse OriginUUID OriginStep", // it has no parent
		"node of a workflow": "PPID ParentUUID Groups", "child of a supervisor": "PPID ParentUUID Groups"} // another one, and a group of its own
	for name, got := range ways {
		var walk func(a, b reflect.Value)
		walk = func(a, b reflect.Value) {
			for i := range a.NumField() {
				field := a.Type().Field(i)
				if field.Anonymous {
					walk(a.Field(i), b.Field(i))
				} else if !strings.Contains(" "+own+" "+but[name]+" ", " "+field.Name+" ") && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
					t.Errorf("%s: %s is %v, and %v for one that a tool call has started", name, field.Name, b.Field(i).Interface(), a.Field(i).Interface())
				}
			}
		}
		walk(reflect.ValueOf(want), reflect.ValueOf(got))
	}
	for _, name := range []string{"w", "keeper"} { // before their children, which they would start again
		_, _ = ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: name, Signal: types.SIGKILL})
	}
	for pid := range seen {
		_, _ = ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: pid.String(), Signal: types.SIGKILL})
	}
	_, _ = ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: f.PID.String(), Signal: types.SIGKILL})
}

// A parent that waits for a child in the background goes on waiting after the daemon was killed, and the child is
// not started twice.
func TestWaitForABackgroundChildSurvivesTheDaemon(t *testing.T) {
	for name, end := range map[string]func(s *testenv.System){
		"killed": func(s *testenv.System) { s.Kill() }, "stopped": func(s *testenv.System) { s.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			var stop atomic.Bool
			_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
				turns := r.Turns()
				switch {
				case r.Messages[0].Text == "kid" && turns == 0:
					return tool("list_files", `{}`)
				case r.Messages[0].Text == "kid" && stop.Load():
					return llmtest.Reply{Text: "kid done"}
				case r.Messages[0].Text == "kid":
					return llmtest.Reply{Hang: true}
				case turns == 0:
					return tool("spawn", `{"intent":"kid","background":true}`)
				case turns == 1:
					return tool("wait", `{}`)
				}
				res, _ := r.LastResult()
				return llmtest.Reply{Text: res.Text}
			})
			s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
			p := s.Spawn(ipc.SpawnRequest{Intent: "lead", ProcSpec: types.ProcSpec{Model: "fake"}})
			kid := s.Await(0, event.StepStarted, func(e *event.Event) bool { return e.PID != p.PID && e.Step == 2 })
			s.Await(p.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 2 })
			end(s)
			s.Start()
			s.Settle()
			again := s.Await(0, event.StepStarted, func(e *event.Event) bool { return e.UUID == kid.UUID && e.PID > kid.PID })
			stop.Store(true)
			for _, sig := range []types.Signal{types.SIGPAUSE, types.SIGRESUME} { // it is asked again
				_, _ = ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: again.PID.String(), Signal: sig})
			}
			w, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()})
			if err != nil || w.Exit.Code != 0 || !strings.Contains(w.Result, `"result":"kid done"`) {
				t.Errorf("%+v %v", w, err)
			}
			if l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true}); err != nil || len(l.Procs) != 2 {
				t.Errorf("%+v %v", l, err)
			}
		})
	}
}

// An agent's shell may send for the agent, to its family only, and never as the person.
func TestMessagesFromInsideAnAgentAreTheAgents(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if r.Messages[0].Text != "lead" {
			return llmtest.Reply{Hang: true}
		}
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", `{"command":"sh ask.sh"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	sock, _ := filepath.Glob(filepath.Join(s.Dir, "rnix", "*.sock"))
	other := s.Spawn(ipc.SpawnRequest{Intent: "other", ProcSpec: types.ProcSpec{Model: "fake"}})
	script := ""
	for method, more := range map[string]string{"send": `,"text":"x"`, "steer": `,"text":"x"`, "recv": ""} {
		script += "curl -s --unix-socket " + sock[0] + ` -d '{"target":"` + other.PID.String() + `"` + more + "}' http://x/v1/" + method + "\n"
	}
	s.Write("ask.sh", script)
	p := s.Spawn(ipc.SpawnRequest{Intent: "lead", ProcSpec: types.ProcSpec{Model: "fake"}})
	w := s.Wait(p.PID)
	if n := strings.Count(w.Result, `"code":"PERMISSION"`); n != 3 {
		t.Errorf("%d of 3 were refused: %s", n, w.Result)
	}
	_, _ = ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: other.PID.String(), Signal: types.SIGKILL})
}
