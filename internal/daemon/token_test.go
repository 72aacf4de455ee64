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

// What another agent's commands have in their environment, and what stands in our files, can be read by an agent's shell. It makes
// nobody that agent, neither below the shell nor when it has left it.
func TestAnAgentIsNobodyElseByWhatItCanRead(t *testing.T) { // T2
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		switch res, told := r.LastResult(); {
		case told:
			return llmtest.Reply{Text: res.Text}
		case r.LastUser() == "victim":
			return tool("shell", `{"command":"sleep 1000"}`)
		}
		return tool("shell", `{"command":"sh steal.sh"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	sock, _ := filepath.Glob(filepath.Join(s.Dir, "rnix", "*.sock"))
	victim := s.Spawn(ipc.SpawnRequest{Intent: "victim", ProcSpec: types.ProcSpec{Model: "fake"}})
	until(t, "its command runs", func() bool {
		all, _ := filepath.Glob(filepath.Join(s.Data, "children", "*.json"))
		return len(all) > 0
	})
	s.Write("steal.sh", fmt.Sprintf(`
token=$(sed -n 's/.*"token": *"\([^"]*\)".*/\1/p' %s/children/*.json | head -n 1)
[ -n "$token" ] || { echo no token; exit; }
ask="curl -s --unix-socket %s -d {\"target\":\"%s\",\"signal\":\"SIGKILL\"} http://x/v1/signal"
env RNIX_OWNER=$token $ask; echo
env RNIX_OWNER=$token setsid $ask; echo
(env -i PATH="$PATH" RNIX_OWNER=$token setsid sh -c 'sleep 0.3; '"$(echo "$ask" | sed 's/"/\\"/g')"' >left 2>&1; echo >>left' &)
until [ -s left ]; do sleep 0.1; done; cat left
`, s.Data, sock[0], victim.UUID))
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "thief", ProcSpec: types.ProcSpec{Model: "fake"}}).PID)
	if n := strings.Count(w.Result, `"code":"PERMISSION"`); n != 3 || strings.Contains(w.Result, `"ok":true`) {
		t.Errorf("%d of 3 refused: %s", n, w.Result)
	}
	if q := procsOf(t, s)[victim.UUID]; q.State != "running" {
		t.Errorf("the victim: %+v", q)
	}
}
