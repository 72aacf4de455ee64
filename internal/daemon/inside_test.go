package daemon_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// An agent cannot give its children more than they have: a resume is not a way round its own limits.
func TestAgentCannotLoosenALimitByAResume(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if r.LastUser() == "victim" {
			return llmtest.Reply{Hang: true}
		}
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", `{"command":"sh ask.sh"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	sock, _ := filepath.Glob(filepath.Join(s.Dir, "rnix", "*.sock"))
	call := func(method, body string) string {
		return fmt.Sprintf("curl -s --unix-socket %s -d '%s' http://x/v1/%s\n", sock[0], body, method)
	}
	budget := 100000
	s.Write("ask.sh", "me=$RNIX_PARENT_PID\nkid=$((me+1))\n"+
		call("spawn", `{"intent":"victim","model":"fake","cwd":"`+s.Work+`","env":["HOME=`+s.Home+`","ANTHROPIC_API_KEY=k","ANTHROPIC_BASE_URL=`+url+`"]}`)+
		strings.ReplaceAll(call("signal", `{"target":"KID","signal":"SIGPAUSE"}`)+call("resume", `{"target":"KID","budget":90000000}`), "KID", `'$kid'`))
	p := s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake", ContextBudget: &budget}})
	w := s.Wait(p.PID)
	if n := strings.Count(w.Result, `"ok":true`); n != 2 || !strings.Contains(w.Result, `"code":"PERMISSION"`) {
		t.Errorf("%+v", w)
	}
	if l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true}); err != nil || len(l.Procs) != 2 {
		t.Errorf("%+v %v", l, err)
	}
}
