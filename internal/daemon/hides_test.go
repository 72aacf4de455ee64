package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// TestWhatACommandHidesIsPausedAndEndedWithIt has an agent whose command starts a process in a session, a group and an environment of its own,
// without a parent, beside another agent that has a command under way all the time.
func TestWhatACommandHidesIsPausedAndEndedWithIt(t *testing.T) {
	const hide = `(env -i PATH=\"$PATH\" setsid sh -c 'echo $$ >hidden; while :; do echo x >>beats; sleep 0.01; done' >/dev/null 2>&1 </dev/null &); until [ -s beats ]; do sleep 0.01; done; `
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		result, told := r.LastResult()
		switch {
		case strings.Contains(r.LastUser(), "keep busy"):
			return tool("shell", `{"command":"sleep 1000"}`)
		case told:
			return llmtest.Reply{Text: "it said " + result.Text}
		case strings.Contains(r.LastUser(), "hide and stay"):
			return tool("shell", `{"command":"`+hide+`sleep 1000"}`)
		}
		return tool("shell", `{"command":"`+hide+`echo over"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	busy := s.Spawn(ipc.SpawnRequest{Intent: "keep busy", ProcSpec: types.ProcSpec{Model: "fake"}})
	waitChildren(t, s, busy.PID)
	hidden := func() int {
		until(t, "it hides", func() bool {
			b, _ := os.ReadFile(filepath.Join(s.Work, "hidden"))
			_, err := os.Stat(filepath.Join(s.Work, "beats")) // made a moment later
			return strings.HasSuffix(string(b), "\n") && err == nil
		})
		return number(t, s.Read("hidden"))
	}
	beats := func() int { return len(s.Read("beats")) }

	p := s.Spawn(ipc.SpawnRequest{Intent: "hide and stay", ProcSpec: types.ProcSpec{Model: "fake"}})
	pid := hidden()
	paused(t, s, p)
	before := beats()
	for range 20 {
		children(t, s, p.PID) // time passes
	}
	if now := beats(); now > before+2 { // what it was writing
		t.Errorf("what a paused agent has hidden has made %d steps", now-before)
	}
	signal(t, s, p.PID, types.SIGRESUME)
	until(t, "it goes on", func() bool { return beats() > before+4 })
	signal(t, s, p.PID, types.SIGKILL)
	s.Wait(p.PID)
	if syscall.Kill(pid, 0) == nil && stateOf(pid) != "Z" {
		t.Error("what a killed agent has hidden lives on")
	}

	if err := os.Remove(filepath.Join(s.Work, "hidden")); err != nil {
		t.Fatal(err)
	}
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "hide and end", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
	if !strings.Contains(w.Result, "over") {
		t.Errorf("%+v", w)
	}
	if pid = hidden(); syscall.Kill(pid, 0) == nil && stateOf(pid) != "Z" {
		t.Error("what a command has hidden lives on after its end")
	}
	if len(children(t, s, busy.PID)) != 1 {
		t.Error("the command of another agent was ended with it")
	}
}
