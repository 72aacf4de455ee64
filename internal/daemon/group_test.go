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

// An agent signals those members of a group that are its own, and changes the groups of nobody else.
func TestAnAgentReachesOnlyItsOwnMembersOfAGroup(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if r.LastUser() == "victim" || r.LastUser() == "kid" {
			return llmtest.Reply{Hang: true}
		}
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", `{"command":"sh ask.sh"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	victim := s.Spawn(ipc.SpawnRequest{Intent: "victim", ProcSpec: types.ProcSpec{Model: "fake"}, Group: "all"})
	sock, _ := filepath.Glob(filepath.Join(s.Dir, "rnix", "*.sock"))
	call := func(method, body string) string {
		return fmt.Sprintf("curl -s --unix-socket %s -d '%s' http://x/v1/%s\n", sock[0], body, method)
	}
	s.Write("ask.sh", call("signal_group", `{"group":"all","signal":"SIGKILL"}`)+ // none of it is its own
		call("spawn", `{"intent":"kid","model":"fake","group":"all","cwd":"`+s.Work+`","env":["HOME=`+s.Home+`","ANTHROPIC_API_KEY=k","ANTHROPIC_BASE_URL=`+url+`"]}`)+
		call("join_group", `{"group":"mine","target":"`+victim.PID.String()+`"}`)+
		call("leave_group", `{"group":"all","target":"`+victim.PID.String()+`"}`)+
		call("signal_group", `{"group":"all","signal":"SIGKILL"}`)+
		call("signal_group", `{"group":"all","signal":"SIGTERM","tree":true}`))
	p := s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake"}})
	w := s.Wait(p.PID)
	answers := strings.Split(strings.ReplaceAll(w.Result, "\n\n", "\n"), "\n")
	for i, want := range []string{`"code":"PERMISSION"`, `"ok":true`, `"code":"PERMISSION"`, `"code":"PERMISSION"`, `"affected":1,"spared":1`} {
		if len(answers) < 6 || !strings.Contains(answers[i], want) {
			t.Fatalf("answer %d, want %s:\n%s", i, want, w.Result)
		}
	}
	if k := s.Wait(p.PID + 1); k.Exit.Code != types.ExitCancelled {
		t.Errorf("its child: %+v", k)
	}
	r, err := ipc.Call(t.Context(), s.Client, ipc.SignalGroup, ipc.GroupSignalRequest{Group: "all", Signal: types.SIGTERM})
	if err != nil || r.Affected != 1 || len(r.Members) != 1 || r.Members[0] != victim.PID {
		t.Errorf("the user: %+v %v", r, err)
	}
	if v := s.Wait(victim.PID); v.Exit.Reason != "terminated" {
		t.Errorf("the other: %+v", v)
	}
}
