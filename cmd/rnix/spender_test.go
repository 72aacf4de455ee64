package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
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

// The vendor counts each answer as long as it may be, and each run asks four at once: no run costs more than it may.
func TestCommandLinesNeverSpendMoreThanTheirBudget(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const budget = 0.02
	tokens := func(r llmtest.Request) (in, out int, user string) {
		var b struct {
			Max  int    `json:"max_output_tokens"`
			User string `json:"user"`
		}
		if json.Unmarshal(r.Body, &b) != nil {
			return 0, 0, ""
		}
		return len(r.Body) / 3, b.Max, b.User
	}
	u := userOf(t, "codex", self, func(r llmtest.Request) llmtest.Reply {
		in, out, _ := tokens(r)
		return llmtest.Reply{Text: "x", Usage: &llmtest.Usage{Input: in, Output: out}}
	})
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
		in, out, user := tokens(r)
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
