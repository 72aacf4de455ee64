package web

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// poet writes a file, in the name of its model.
func poet(r llmtest.Request) llmtest.Reply {
	if len(r.Messages) > 2 {
		return llmtest.Reply{Text: "A poem by **" + r.Model + "**."}
	}
	in, _ := json.Marshal(map[string]string{"path": "poem.txt", "content": "a poem\nby " + r.Model + "\n"}) // strings always can
	return llmtest.Reply{Text: "I write.", ToolCalls: []llmtest.ToolCall{{ID: "w", Name: "write_file", Input: string(in)}}}
}

// repository makes a git repository of the directory of a system.
func repository(t *testing.T, s *testenv.System) {
	t.Helper()
	s.Write("README.md", "x\n")
	for _, args := range [][]string{{"init", "-q", "--bare", filepath.Join(s.Work, "..", "remote.git")}, {"init", "-q", "-b", "main"}, {"remote", "add", "origin", filepath.Join(s.Work, "..", "remote.git")}, {"add", "."}, {"-c", "user.name=me", "-c", "user.email=me@example.com", "commit", "-qm", "first"}} {
		c := exec.CommandContext(t.Context(), "git", args...)
		c.Dir = s.Work
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

func TestAgentsAreStartedInABrowser(t *testing.T) {
	chromium := needsBrowser(t)
	_, url := llmtest.NewAPI(t, poet)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	repository(t, s)
	d := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work})
	d.scenario(chromium, "start.mjs", func(word string) string {
		r, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
		if err != nil {
			return err.Error()
		}
		switch what, arg, _ := strings.Cut(word, " "); what {
		case "read": // "" if there is no such file
			b, _ := os.ReadFile(filepath.Join(s.Work, arg))
			return strings.ReplaceAll(string(b), "\n", " ")
		case "run":
			return command(t, s, arg)
		case "remove":
			if _, err := ipc.Call(t.Context(), s.Client, ipc.RemoveWorktree, ipc.RemoveWorktreeRequest{Target: arg}); err != nil {
				return err.Error()
			}
		case "uuids":
			b, err := json.Marshal([]types.UUID{r.Procs[0].UUID, r.Procs[1].UUID})
			if err != nil {
				return err.Error()
			}
			return string(b)
		case "budget":
			var all []string
			for _, p := range r.Procs {
				all = append(all, fmt.Sprint(p.ContextBudget))
			}
			return strings.Join(all, " ")
		}
		return "done"
	})
}
