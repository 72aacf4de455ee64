package daemon_test

import (
	"os"
	"path/filepath"
	"reflect"
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

// What becomes of each field of a process when it goes on from disk. A field that is missing here fails
// the test: whoever adds one says what a resume does with it.
var resumedFields = map[string]string{
	"PID": "new", "UUID": "same", "PPID": "parent", "ParentUUID": "same", "Name": "same", "State": "moment", "Wait": "moment", "WaitKind": "moment", "WaitUntil": "moment",
	"Intent": "same", "Agent": "same", "Labels": "same", "Provider": "same", "Model": "same", "Step": "moment", "MaxSteps": "same", "TokensUsed": "grows",
	"Estimated": "moment", "ContextBudget": "same", "BudgetUSD": "same", "Unpriced": "grows", "UnpricedModels": "same", "FailedCalls": "same", "Purse": "same", "CostUSD": "grows", "CreatedAt": "same", "UpdatedAt": "moment", "ElapsedMs": "moment", "ClockPaused": "moment", "Exit": "moment", "Children": "moment",
	"WorkDir": "same", "ReadRoots": "same", "AllowedDevices": "same", "DeniedDevices": "same", "MCPMounts": "mounts", "Skills": "same", "BlockedSignals": "same", "OnInterrupt": "same", "Sandbox": "same", "Net": "same", "Tools": "same",
	"Plan": "same", "Denied": "same", "Denials": "same", "Result": "moment", "Interrupted": "moment", "Damage": "same", "Dir": "same",
	"Suspect": "moment", "WaitSince": "moment", "PausedAt": "moment", "Doing": "moment", "Session": "moment", "Kind": "same", "Groups": "moment", "PendingSignals": "moment", "MCPDown": "moment", "FailedUnknown": "moment", "Taken": "moment", "OriginUUID": "same", "OriginStep": "same",
}

func TestResumedProcessHasExactlyWhatItHad(t *testing.T) {
	resume := func(t *testing.T, s *testenv.System, id types.UUID) {
		s.Stop()
		s.Start()
		s.Settle()
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id.String(), Env: s.Env}); err != nil {
			t.Fatal(err)
		}
	}
	for _, way := range []struct {
		name, auto string
		do         func(t *testing.T, s *testenv.System, leader, kid types.UUID)
	}{
		{"by itself after a kill", "true", func(_ *testing.T, s *testenv.System, _, _ types.UUID) { s.Kill(); s.Start(); s.Settle() }},
		{"by itself after a stop", "true", func(_ *testing.T, s *testenv.System, _, _ types.UUID) { s.Stop(); s.Start(); s.Settle() }},
		{"by hand after a stop", "false", func(t *testing.T, s *testenv.System, leader, _ types.UUID) { resume(t, s, leader) }},
		{"the child by hand, which wakes its parent", "false", func(t *testing.T, s *testenv.System, _, kid types.UUID) { resume(t, s, kid) }},
		{"by hand, twice", "false", func(t *testing.T, s *testenv.System, leader, _ types.UUID) {
			resume(t, s, leader)
			resume(t, s, leader)
		}},
		{"paused as a tree, the child by hand", "true", func(t *testing.T, s *testenv.System, leader, kid types.UUID) {
			if _, err := ipc.Call(t.Context(), s.Client, ipc.SignalTree, ipc.SignalRequest{Target: leader.String(), Signal: types.SIGPAUSE}); err != nil {
				t.Fatal(err)
			}
			resume(t, s, kid)
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			var stop atomic.Bool
			_, url := llmtest.NewAPI(t, family(&stop))
			s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME="+way.auto)
			roots := filepath.Join(s.Dir, "roots")
			if err := os.MkdirAll(filepath.Join(s.Home, ".config", "rnix"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(roots, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(s.Home, ".config", "rnix", "config.yaml"), []byte("read_roots: ["+roots+"]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"agent.yaml": "name: chief\nblocked_signals: [SIGTERM]\non_interrupt: sum up\n", "instructions.md": "Lead.\n"} {
				if err := os.MkdirAll(filepath.Join(s.Home, ".config", "rnix", "agents", "chief"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(s.Home, ".config", "rnix", "agents", "chief", name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			steps, budget := 17, 500_000
			p := s.Spawn(ipc.SpawnRequest{Intent: "lead", ProcSpec: types.ProcSpec{Model: "fake", Name: "leader", Labels: types.Labels{"env": "prod"}, MaxSteps: &steps, ContextBudget: &budget, AllowedDevices: []string{"/dev/fs", "/sys/spawn", "/proc"}, DeniedDevices: []string{"/proc/1"}}, Agent: "chief", TimeoutMs: 3_600_000})
			var kid types.PID
			e := s.Await(0, event.StepStarted, func(e *event.Event) bool { return e.PID != p.PID && e.Step == 2 })
			kid = e.PID
			before := detail(t, s, p.UUID.String())
			kidBefore := detail(t, s, kid.String())
			way.do(t, s, p.UUID, kidBefore.UUID)
			after := detail(t, s, p.UUID.String())
			s.Await(0, event.StepStarted, func(e *event.Event) bool { return e.UUID == kidBefore.UUID && e.PID > kid })
			kidAfter := detail(t, s, kidBefore.UUID.String())
			compare(t, "leader", before, after, 0)
			compare(t, "child", kidBefore, kidAfter, after.PID)
			if d := detail(t, s, p.PID.String()); d.PID != after.PID {
				t.Errorf("the first PID leads to %d, want %d", d.PID, after.PID)
			}
			if way.name == "by hand after a stop" {
				everywhere(t, s, after)
			}
			stop.Store(true)
			for _, sig := range []types.Signal{types.SIGPAUSE, types.SIGRESUME} { // it is asked again, if it has not been yet
				_, _ = ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: kidAfter.PID.String(), Signal: sig})
			}
			if w := s.Wait(after.PID); w.Exit.Code != 0 || w.Result != "the kid said: kid done" {
				t.Errorf("%+v", w)
			}
		})
	}
}

// family is a model whose leader plans and then starts a kid, which looks and then hangs until stop.
func family(stop *atomic.Bool) func(llmtest.Request) llmtest.Reply {
	return func(r llmtest.Request) llmtest.Reply {
		turns := 0
		for _, m := range r.Messages {
			if m.Role == "assistant" {
				turns++
			}
		}
		if strings.HasPrefix(r.Messages[0].Text, "kid") {
			switch {
			case turns == 0:
				return tool("list_files", `{}`)
			case stop.Load():
				return llmtest.Reply{Text: "kid done"}
			}
			return llmtest.Reply{Hang: true}
		}
		switch turns {
		case 0:
			plan := tool("plan", `{"steps":["start a kid","listen"]}`)
			plan.ToolCalls = append(plan.ToolCalls, tool("read_file", `{"path":"missing"}`).ToolCalls...) // fails
			return plan
		case 1:
			return tool("spawn", `{"intent":"kid","max_steps":9}`)
		}
		res, _ := r.LastResult()
		return llmtest.Reply{Text: "the kid said: " + res.Text}
	}
}

func detail(t *testing.T, s *testenv.System, target string) ipc.ProcDetail {
	t.Helper()
	d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: target})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func compare(t *testing.T, who string, before, after ipc.ProcDetail, parent types.PID) {
	t.Helper()
	var walk func(a, b reflect.Value)
	walk = func(a, b reflect.Value) {
		for i := range a.NumField() {
			f := a.Type().Field(i)
			if f.Anonymous {
				walk(a.Field(i), b.Field(i))
				continue
			}
			x, y := a.Field(i).Interface(), b.Field(i).Interface()
			switch resumedFields[f.Name] {
			case "":
				t.Errorf("nobody has said what a resume does with %s", f.Name)
			case "same":
				if who == "leader" && a.Field(i).IsZero() && !slices.Contains(unset, f.Name) {
					t.Errorf("the leader has no %s, so nothing is said of it: give it one", f.Name)
				}
				if tx, ok := x.(interface{ IsZero() bool }); f.Name == "CreatedAt" && ok && !before.CreatedAt.Equal(after.CreatedAt) {
					t.Errorf("%s: CreatedAt was %v and is %v", who, tx, y)
				} else if f.Name != "CreatedAt" && !reflect.DeepEqual(x, y) {
					t.Errorf("%s: %s was %v and is %v", who, f.Name, x, y)
				}
			case "grows": // by what a call took that the stop has cut off
				if amount(b.Field(i)) < amount(a.Field(i)) {
					t.Errorf("%s: %s was %v and is %v", who, f.Name, x, y)
				}
			case "new":
				if reflect.DeepEqual(x, y) {
					t.Errorf("%s: %s is still %v", who, f.Name, x)
				}
			case "parent":
				if after.PPID != parent {
					t.Errorf("%s: its parent is %d, want %d", who, after.PPID, parent)
				}
			}
		}
	}
	walk(reflect.ValueOf(before), reflect.ValueOf(after))
	if after.ElapsedMs < before.ElapsedMs && !strings.Contains(t.Name(), "kill") { // what it had lived since its last record is not known then
		t.Errorf("%s: it had lived %d ms and has now lived %d ms", who, before.ElapsedMs, after.ElapsedMs)
	}
}

// unset are the fields that the leader cannot have: of children, of programs, of models with a price, of what waits for a budget, of damaged records, of rules, of forks.
var unset = []string{"ParentUUID", "Kind", "BudgetUSD", "Purse", "Damage", "MCPMounts", "MCPDown", "Skills", "Denied", "Denials", "FailedUnknown", "Taken", "OriginUUID", "OriginStep"}

// forkedFields is what a fork has of its origin. A field that is missing here fails the test.
var forkedFields = map[string]string{
	"PID": "own", "UUID": "own", "PPID": "own", "ParentUUID": "own", "Name": "own", "WorkDir": "own", "Provider": "same", "Model": "same", "Kind": "same", "Intent": "same",
	"Agent": "same", "Labels": "same", "Skills": "same", "BlockedSignals": "same", "OnInterrupt": "same", "Sandbox": "same", "Net": "same", "Step": "own", "MaxSteps": "same", "TokensUsed": "own", "CostUSD": "own", "Unpriced": "own", "UnpricedModels": "same", "FailedCalls": "own", "ContextBudget": "own", "BudgetUSD": "own",
	"PausedAt": "own", "CreatedAt": "own", "UpdatedAt": "own", "Exit": "own", "Denials": "own",
}

// everywhere checks that lists and exports show of a process what its details do, and that a fork has what it is to have: each field of types.ProcStatus.
func everywhere(t *testing.T, s *testenv.System, d ipc.ProcDetail) {
	t.Helper()
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(l.Procs, func(p ipc.Proc) bool { return p.UUID == d.UUID })
	if i < 0 {
		t.Fatal("no list has it")
	}
	ex, err := ipc.Call(t.Context(), s.Client, ipc.ExportRun, ipc.TargetRequest{Target: d.UUID.String()})
	if err != nil || len(ex.Procs) == 0 {
		t.Fatal(len(ex.Procs), err)
	}
	from := 1
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: d.UUID.String(), Fork: true, FromStep: &from, Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	f := detail(t, s, r.UUID.String())
	want := reflect.ValueOf(d.ProcStatus)
	for n := range want.NumField() {
		name := want.Type().Field(n).Name
		for where, p := range map[string]types.ProcStatus{"a list": l.Procs[i].ProcStatus, "an export": ex.Procs[0].ProcStatus, "a fork": f.ProcStatus} {
			how := resumedFields[name]
			if where == "a fork" {
				if how = forkedFields[name]; how == "" {
					t.Errorf("nobody has said what a fork has of %s", name)
				}
			} else if how == "new" || how == "parent" {
				how = "same"
			}
			got := reflect.ValueOf(p).Field(n)
			if name == "CreatedAt" && how == "same" && p.CreatedAt.Equal(d.CreatedAt) || name == "WorkDir" && where == "an export" {
				continue
			}
			if how == "same" && !reflect.DeepEqual(got.Interface(), want.Field(n).Interface()) {
				t.Errorf("%s: %s is %v, and the process has %v", where, name, got, want.Field(n))
			}
		}
	}
}

func amount(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}
