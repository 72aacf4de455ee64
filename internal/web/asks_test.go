package web

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/debug"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/permit"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// longCommand is what an agent could want to run: very long, with all that texts can do to a browser.
var longCommand = "echo '" + hostileText + "'\n: " + strings.Repeat("z", 200<<10) + "\n: the end"

// wants has the model make the calls that its task names, one after the other, and end.
func wants(r llmtest.Request) llmtest.Reply {
	shell := func(command string) llmtest.Reply {
		in, _ := json.Marshal(map[string]string{"command": command}) // strings always can
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: fmt.Sprintf("c%d", len(r.Messages)), Name: "shell", Input: string(in)}}}
	}
	task, n := r.Messages[0].Text, len(r.Messages)/2
	switch command, is := strings.CutPrefix(task, "run "); {
	case is && n == 0:
		return shell(command)
	case task == "both" && n == 0:
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: "r1", Name: "read_file", Input: `{"path":"first"}`}, {ID: "r2", Name: "read_file", Input: `{"path":"second"}`}}}
	case task == "again" && n < 3:
		return shell(fmt.Sprintf("echo again %d", n))
	case task == "write" && n == 0:
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: "w", Name: "write_file", Input: `{"path":"note.txt","content":"as the agent says"}`}}}
	case task == "which" && n < 2:
		in, _ := json.Marshal(permit.Question{Text: "Which database?\n" + hostileText, Choices: []string{"Postgres", "SQLite"}, Default: "SQLite"})
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: fmt.Sprintf("q%d", n), Name: "ask", Input: string(in)}}}
	case task == "long" && n == 0:
		return shell(longCommand)
	case task == "lead" && n == 0:
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: "s", Name: "spawn", Input: `{"intent":"run echo below >>below"}`}}}
	}
	return llmtest.Reply{Text: "Done."}
}

// What waits on disk is answered there, and counts when the process is resumed.
func TestAsksOfWhatIsSuspendedAreAnsweredInABrowser(t *testing.T) {
	chromium := needsBrowser(t)
	_, url := llmtest.NewAPI(t, wants)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	s.Spawn(ipc.SpawnRequest{Intent: "run echo late >late", Rules: permit.Rules{Ask: []string{"shell"}}, ProcSpec: types.ProcSpec{Name: "sleeper"}})
	d := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work})
	d.scenario(chromium, "asks_suspended.mjs", func(word string) string {
		switch word {
		case "restart":
			s.Kill()
			s.Start()
		case "made":
			b, _ := os.ReadFile(filepath.Join(s.Work, "late")) // "" if there is no such file
			return strings.TrimSpace(string(b))
		}
		return "done"
	})
}

func TestAsksAreAnsweredInABrowser(t *testing.T) {
	chromium := needsBrowser(t)
	_, url := llmtest.NewAPI(t, wants)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	d := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work})
	spawn := func(name, task string) types.PID {
		return s.Spawn(ipc.SpawnRequest{Intent: task, Rules: permit.Rules{Ask: []string{"shell", "write_file", "read_file"}}, ProcSpec: types.ProcSpec{Name: name}}).PID
	}
	open := func() []ipc.Ask {
		r, err := ipc.Call(t.Context(), s.Client, ipc.ListAsks, ipc.AsksRequest{})
		if err != nil {
			t.Error(err)
		}
		return r.Asks
	}
	answer := func(number uint64, allow bool) error {
		_, err := ipc.Call(t.Context(), s.Client, ipc.AnswerAsk, ipc.AnswerRequest{Number: number, Allow: allow})
		return err
	}
	d.scenario(chromium, "asks.mjs", func(word string) string {
		what, arg, _ := strings.Cut(word, " ")
		var err error
		switch what {
		case "spawn": // NAME TASK
			name, task, _ := strings.Cut(arg, " ")
			return spawn(name, task).String()
		case "storm":
			for i := range 50 {
				spawn(fmt.Sprintf("storm%d", i), fmt.Sprintf("run echo %d >>storm", i))
			}
		case "answer": // NUMBER allow or deny
			var n uint64
			var verdict string
			if _, err = fmt.Sscan(arg, &n, &verdict); err == nil {
				err = answer(n, verdict == "allow")
			}
		case "deny-all":
			for _, a := range open() {
				if err == nil {
					err = answer(a.Number, false)
				}
			}
		case "worked": // as rnix ps has it
			r, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{})
			if err != nil {
				return err.Error()
			}
			for _, p := range r.Procs {
				if p.PID.String() == arg {
					return debug.Age(time.Duration(p.ElapsedMs) * time.Millisecond)
				}
			}
			return "not listed"
		case "open":
			return fmt.Sprint(len(open()))
		case "end":
			_, err = ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: arg, Signal: types.SIGKILL})
		case "wait":
			_, err = ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: arg})
		case "told": // what came of the last step with a call
			var r ipc.ListStepsResponse
			if r, err = ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: arg}); err == nil {
				for i := range r.Steps {
					if c := r.Steps[i].ToolCalls; len(c) > 0 {
						word = strings.Join(strings.Fields(c[0].Result), " ") // in a line
					}
				}
				return word
			}
		case "read": // "" if there is no such file
			b, _ := os.ReadFile(filepath.Join(s.Work, arg))
			return strings.TrimSpace(string(b))
		case "kill":
			s.Kill()
		case "start":
			s.Start()
		}
		if err != nil {
			return err.Error()
		}
		return "done"
	})
}
