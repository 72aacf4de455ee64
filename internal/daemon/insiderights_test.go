package daemon_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// insider is a system in which the agent "go" runs ask.sh in its shell and answers with what that printed.
// call is a line of the script: a method of the wire and its request, in which SELF stands for the agent's PID.
func insider(t *testing.T, other func(llmtest.Request) llmtest.Reply) (s *testenv.System, call func(method, body string) string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if r.Messages[0].Text != "go" {
			return other(r)
		}
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", `{"command":"sh ask.sh"}`)
	})
	s = testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	sock, _ := filepath.Glob(filepath.Join(s.Dir, "rnix", "*.sock"))
	env := fmt.Sprintf(`"cwd":%q,"env":["HOME=%s","ANTHROPIC_API_KEY=k","ANTHROPIC_BASE_URL=%s"`, s.Work, s.Home, url)
	return s, func(method, body string) string {
		body = strings.NewReplacer(",MORE", ","+env, ",HERE", ","+env+"]", "SELF", `'$RNIX_PARENT_PID'`).Replace(body)
		return fmt.Sprintf("curl -s --unix-socket %s -d '%s' http://x/v1/%s\n", sock[0], body, method)
	}
}

func hangs(llmtest.Request) llmtest.Reply { return llmtest.Reply{Hang: true} }

// Who may not start agents may not do so with a command either, in whatever form; likewise with signals.
func TestRightsOfAnAgentHoldForItsCommands(t *testing.T) {
	s, call := insider(t, hangs)
	s.Write("ask.sh", call("spawn", `{"intent":"kid","model":"fake",HERE}`)+
		call("compose_up", `{"text":"version: \"1\"\nagents:\n  a: {intent: kid}\n",HERE}`)+
		call("supervise_up", `{"source":"version: \"1\"\nsupervisors:\n  - {name: s, children: [{name: a, intent: kid}]}\n",HERE}`)+
		call("signal", `{"target":"SELF","signal":"SIGPAUSE"}`)+
		call("signal_tree", `{"target":"SELF","signal":"SIGPAUSE"}`))
	p := s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake", DeniedDevices: []string{"/sys/spawn", "/sys/signal"}}})
	w := s.Wait(p.PID)
	if n := strings.Count(w.Result, `"code":"PERMISSION"`); n != 5 {
		t.Errorf("%d of 5 were refused: %s", n, w.Result)
	}
	if l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true}); err != nil || len(l.Procs) != 1 {
		t.Errorf("%+v %v", l, err)
	}
}

// What others have said and done is not an agent's to read; what it did itself is.
func TestAgentReadsNoConversationButThoseOfItsSubtree(t *testing.T) {
	s, call := insider(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "a secret of another"} })
	other := s.Spawn(ipc.SpawnRequest{Intent: "other", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(other.PID)
	var script strings.Builder
	for _, target := range []string{other.UUID.String(), "SELF"} {
		script.WriteString(call("list_messages", `{"target":"`+target+`"}`) + call("list_steps", `{"target":"`+target+`"}`) + call("get_step_detail", `{"target":"`+target+`","step":1}`) +
			call("read_attachment", `{"target":"`+target+`","sha256":"`+strings.Repeat("0", 64)+`"}`))
	}
	s.Write("ask.sh", script.String())
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
	if n := strings.Count(w.Result, `"code":"PERMISSION"`); n != 4 || strings.Contains(w.Result, "a secret") || !strings.Contains(w.Result, `"content":"go"`) {
		t.Errorf("%d of 4 were refused: %s", n, w.Result)
	}
}

// Nor is it in /proc, where an agent sees how others stand; what its own child says is, also when its parent is gone.
func TestAgentReadsNoFileOfProcInWhichOthersSpeak(t *testing.T) {
	s, call := insider(t, func(r llmtest.Request) llmtest.Reply {
		if _, told := r.LastResult(); r.Messages[0].Text == "mid" && !told {
			return tool("spawn", `{"intent":"a word of the grandchild","background":true}`)
		} else if told {
			return llmtest.Reply{Text: "done"}
		}
		return llmtest.Reply{Hang: true}
	})
	other := s.Spawn(ipc.SpawnRequest{Intent: "a word of another", ProcSpec: types.ProcSpec{Model: "fake"}})
	var script strings.Builder
	for _, file := range []string{"context", "inputs", "ledger", "messages", "steps", "steps/1"} {
		script.WriteString(call("read_path", `{"path":"/proc/`+other.PID.String()+"/"+file+`"}`))
	}
	script.WriteString(call("read_path", `{"path":"/proc/`+other.PID.String()+`/status"}`) + call("read_path", `{"path":"/proc/self/context"}`) +
		call("spawn", `{"intent":"mid","model":"fake",HERE}`) + call("wait", `{"target":"'$((RNIX_PARENT_PID+1))'"}`) +
		call("read_path", `{"path":"/proc/'$((RNIX_PARENT_PID+2))'/context"}`))
	s.Write("ask.sh", script.String())
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
	if n := strings.Count(w.Result, `"code":"PERMISSION"`); n != 6 || strings.Count(w.Result, `"ok":true`) != 5 {
		t.Errorf("%d of 6 were refused: %s", n, w.Result)
	}
}

// The trust of a person in a project is not an agent's to give.
func TestAgentCannotTrustAProject(t *testing.T) {
	s, call := insider(t, hangs)
	s.Write("ask.sh", call("spawn", `{"intent":"kid","model":"fake","trust_project":true,HERE}`)+
		call("compose_up", `{"text":"version: \"1\"\nagents:\n  a: {intent: kid}\n","trust_project":true,HERE}`)+
		call("supervise_up", `{"source":"version: \"1\"\nsupervisors:\n  - {name: s, trust_project: true, children: [{name: a, intent: kid}]}\n",HERE}`))
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
	if n := strings.Count(w.Result, `"code":"PERMISSION"`); n != 3 {
		t.Errorf("%d of 3 were refused: %s", n, w.Result)
	}
}

// What an answer costs is not an agent's to say, neither by a variable nor by a file of a project.
func TestAgentCannotMakeItsChildrenCheap(t *testing.T) {
	s, call := insider(t, func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "done", Usage: &llmtest.Usage{Input: 50_000}}
	})
	s.Write(".rnix/prices.yaml", "version: \"1\"\nprices:\n  - {provider: \"*\", model: \"*\", input: 0, output: 0}\n")
	s.Write("ask.sh", call("spawn", `{"intent":"kid","model":"fake",MORE,"RNIX_BUDGET_UNKNOWN_PRICE_USD_PER_MTOK=0.000001"]}`)+
		call("wait", `{"target":"'$((RNIX_PARENT_PID+1))'"}`))
	usd := 5.0
	p := s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake", BudgetUSD: &usd}, Env: append(slices.Clip(s.Env), "RNIX_BUDGET_UNKNOWN_PRICE_USD_PER_MTOK=10")})
	w := s.Wait(p.PID)
	if used := budgetOf(t, s, p.UUID.String())["go"].USD.Used; used < 0.5 {
		t.Errorf("50,000 tokens at $10 a million are $0.50, and $%v were counted: %+v", used, w)
	}
}
