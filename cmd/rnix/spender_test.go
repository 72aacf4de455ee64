package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
)

// spend is a command line in the place of codex: it asks its model four times at once, again and again, until it is refused.
func spend() {
	fmt.Println(`{"type":"thread.started","thread_id":"t-1"}`)
	prompt, _ := io.ReadAll(os.Stdin)
	_, name, _ := strings.Cut(string(prompt), "run-")
	name, _, _ = strings.Cut(name, " ")
	url := ""
	for _, arg := range os.Args {
		if value, ok := strings.CutPrefix(arg, "openai_base_url="); ok {
			url = strings.Trim(value, `"`)
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				body := fmt.Sprintf(`{"model":"gpt-5.1-codex","stream":true,"max_output_tokens":300,"user":%q,"input":[{"role":"user","content":"more"}]}`, name)
				req, err := http.NewRequest(http.MethodPost, url+"/responses", strings.NewReader(body))
				if err != nil {
					return
				}
				req.Header.Set("Authorization", "Bearer "+os.Getenv("CODEX_API_KEY"))
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					return
				}
			}
		})
	}
	all.Wait()
	fmt.Println(`{"type":"turn.failed","error":{"message":"refused"}}`)
	os.Exit(1)
}

// asking is a user whose codex asks four times at once, and each answer of its vendor takes all that it may.
func asking(t *testing.T) *user {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return userOf(t, "codex", self, func(r llmtest.Request) llmtest.Reply {
		in, out, _ := asked(r)
		return llmtest.Reply{Text: "x", Usage: &llmtest.Usage{Input: in, Output: out}}
	})
}

// asked is what a request of spend takes, and which run it is of.
func asked(r llmtest.Request) (in, out int, run string) {
	var b struct {
		Max  int    `json:"max_output_tokens"`
		User string `json:"user"`
	}
	if json.Unmarshal(r.Body, &b) != nil {
		return 0, 0, ""
	}
	return len(r.Body) / 3, b.Max, b.User
}

// The vendor counts each answer as long as it may be, and each run asks four at once: no run costs more than it may.
func TestCommandLinesNeverSpendMoreThanTheirBudget(t *testing.T) {
	const budget = 0.02
	u := asking(t)
	runs := soak.Pick(t, "runs of a command line", 15, 100)
	var all sync.WaitGroup
	next := make(chan int)
	for range 4 {
		all.Go(func() {
			for n := range next {
				name := fmt.Sprint("r", n)
				out, code := u.rnix("run", "--harness", "codex", "--name", name, "--model", "gpt-5.1-codex", "--budget-usd", fmt.Sprint(budget), "run-"+name+" ")
				if code != 4 || !strings.Contains(out, "suspended: budget") {
					t.Errorf("%s: %d %s", name, code, out)
				}
			}
		})
	}
	for n := range runs {
		next <- n
	}
	close(next)
	all.Wait()
	spent, count := map[string]float64{}, map[string]int{}
	for _, r := range u.Requests() {
		in, out, user := asked(r)
		spent[user] += (float64(in)*1.25 + float64(out)*10) / 1e6
		count[user]++
	}
	over, most := 0, 0.0
	for name, usd := range spent {
		if most = max(most, usd); usd > budget+1e-9 {
			over++
			t.Errorf("%s: $%.6f of $%.2f in %d requests", name, usd, budget, count[name])
		}
	}
	t.Logf("%d runs, %d requests, %d over their budget, the dearest $%.6f of $%.2f", len(spent), len(u.Requests()), over, most, budget)
	if len(spent) != runs {
		t.Errorf("%d runs have asked", len(spent))
	}
}

// What was answered by the moment of a kill counts afterwards; at a stop also what is under way, by an estimate.
func TestRequestsOfAnAgentCLICountAfterAKill(t *testing.T) {
	for _, how := range []string{"kill", "stop"} {
		t.Run(how, func(t *testing.T) {
			u := asking(t)
			reached := make(chan struct{})
			u.Answer(func(r llmtest.Request) llmtest.Reply {
				in, out, _ := asked(r)
				reply := llmtest.Reply{Text: "x", Usage: &llmtest.Usage{Input: in, Output: out}}
				if r.N == 5 { // four are under way
					close(reached)
				}
				reply.Hang = r.N >= 2
				return reply
			})
			u.must("run", "--detach", "--harness", "codex", "--name", "p", "--model", "gpt-5.1-codex", "--budget-usd", "0.05", "run-p ")
			<-reached
			counted := 0
			for _, r := range u.Requests() {
				if r.N < 2 {
					in, out, _ := asked(r)
					counted += in + out
				}
			}
			u.eventually(fmt.Sprintf(`"tokens_used": ?%d\b`, counted), "ps", "--json")
			if how == "kill" {
				if err := syscall.Kill(u.daemon(), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			} else {
				u.must("daemon", "stop")
			}
			u.Answer(func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Status: 400, Text: "no more"} })
			u.eventually(`"exit":`, "ps", "-a", "--json") // it has been resumed, and refused
			p := u.shown("p")
			if how == "kill" && p.TokensUsed != counted || how == "stop" && (p.TokensUsed <= counted || p.TokensUsed > 3*counted || !p.Estimated) {
				t.Errorf("%d tokens are counted, %d were answered", p.TokensUsed, counted)
			}
		})
	}
}

// The gateway answers what works for its process. Another program of the same user, with the placeholder, is refused.
func TestGatewayIsForItsOwnProcessAlone(t *testing.T) {
	u := asking(t)
	urls := make(chan string, 1000)
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		urls <- r.Path
		return llmtest.Reply{Text: "x", Hang: true}
	})
	u.must("run", "--detach", "--harness", "codex", "--name", "p", "--model", "gpt-5.1-codex", "run-p ")
	<-urls
	url, key := "", ""
	for _, pid := range u.children() {
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		for _, arg := range strings.Split(string(args), "\x00") {
			if value, ok := strings.CutPrefix(arg, "openai_base_url="); ok {
				url = strings.Trim(value, `"`)
			}
		}
		for _, kv := range strings.Split(string(env), "\x00") {
			if value, ok := strings.CutPrefix(kv, "CODEX_API_KEY="); ok {
				key = value
			}
		}
	}
	if !strings.HasPrefix(url, "http://127.0.0.1:") || !strings.HasPrefix(key, "rnix-gateway-") {
		t.Fatalf("it asks %q with %q", url, key)
	}
	before := len(u.Requests())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/responses", strings.NewReader(`{"model":"m","input":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "no other program may use it") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	for _, r := range u.Requests()[before:] {
		if r.Model == "m" {
			t.Errorf("it was passed on: %s", r.Body)
		}
	}
	u.must("kill", "p")
}

func TestBudgetIsRefusedWhereItCannotBeKept(t *testing.T) {
	u := asking(t)
	for _, name := range []string{"agent", "claude", "opencode"} { // none of which is started
		if err := os.Symlink("/bin/false", filepath.Join(u.Home, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		env  string
		args []string
		says string
	}{
		"cursor, dollars":         {args: []string{"--provider", "cursor", "--budget-usd", "1"}, says: "no budget can be kept with it: cursor asks its vendor alone"},
		"cursor, tokens":          {args: []string{"--provider", "cursor", "--budget", "1k"}, says: "no budget can be kept with it: cursor asks its vendor alone"},
		"claude with Bedrock":     {env: "CLAUDE_CODE_USE_BEDROCK=1", args: []string{"--harness", "claude", "--budget", "1k"}, says: "CLAUDE_CODE_USE_BEDROCK has claude ask Amazon Bedrock"},
		"opencode, no model":      {args: []string{"--harness", "opencode", "--budget", "1k"}, says: "name a model"},
		"opencode, another one":   {args: []string{"--harness", "opencode", "--model", "groq/x", "--budget", "1k"}, says: "it asks groq, for which the model gateway cannot stand in"},
		"codex without any price": {args: []string{"--harness", "codex", "--model", "unheard-of", "--budget-usd", "1"}, says: `no price is known for the model "unheard-of"`},
	} {
		t.Run(name, func(t *testing.T) {
			command := u.command(append(append([]string{"run"}, c.args...), "x")...)
			command.Env = append(command.Env, c.env)
			if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%v %s", err, out)
			}
		})
	}
}
