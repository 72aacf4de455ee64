package main

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
	"rnix/internal/testenv"
)

// spied is what a command of an agent finds of keys: in its environment, in those of all processes that it may read, in its home and in USERHOME.
const spied = `env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -e CANAR[Y] -e sk-[a]nt; grep -rs -e CANAR[Y] -e sk-[a]nt "$HOME" USERHOME 2>/dev/null | cut -c1-300; true`

// No key is where commands of an agent are, nor in what is written of it, wherever its user has it; the vendor gets it all the same.
func TestRealCommandLinesNeverHaveTheKey(t *testing.T) {
	const own = "CANARY" // in place of the key
	for name, c := range map[string]struct {
		cli, tool, argument string
		variables           []string          // that are set
		files               map[string]string // of the home
	}{
		"claude, a variable":      {cli: "claude", variables: []string{"ANTHROPIC_API_KEY"}},
		"claude, a token":         {cli: "claude", variables: []string{"ANTHROPIC_AUTH_TOKEN"}},
		"claude, its facts":       {cli: "claude", files: map[string]string{".claude.json": `{"primaryApiKey":"CANARY","customApiKeyResponses":{"approved":["CANARY"]}}`}},
		"claude, its settings":    {cli: "claude", files: map[string]string{".claude/settings.json": `{"env":{"ANTHROPIC_API_KEY":"CANARY","X":"y"},"permissions":{"allow":["Bash"]}}`}},
		"codex, a variable":       {cli: "codex", variables: []string{"CODEX_API_KEY"}},
		"codex, its login":        {cli: "codex", files: map[string]string{".codex/auth.json": `{"auth_mode":"apikey","OPENAI_API_KEY":"CANARY","tokens":null}`}},
		"codex, another provider": {cli: "codex", variables: []string{"MY_KEY"}, files: map[string]string{".codex/config.toml": "model_provider = \"mine\"\n[model_providers.mine]\nname = \"mine\"\nbase_url = \"URL/v1\"\nenv_key = \"MY_KEY\"\nwire_api = \"responses\"\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, c.cli, nil)
			u.Require(own)
			u.env = slices.DeleteFunc(u.env, func(kv string) bool { return strings.Contains(kv, vendortest.Key) })
			for _, v := range c.variables {
				u.env = append(u.env, v+"="+own)
			}
			for path, text := range c.files {
				path = filepath.Join(u.Home, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "URL", u.URL)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			looks := use("Bash", map[string]any{"command": strings.ReplaceAll(spied, "USERHOME", u.Home), "description": "looks"})
			if c.cli == "claude" && c.files[".claude/settings.json"] == "" {
				u.allowed("Bash")
			}
			if c.cli == "codex" {
				looks = use("exec_command", map[string]any{"cmd": strings.ReplaceAll(spied, "USERHOME", u.Home), "yield_time_ms": 20_000})
			}
			u.Answer(vendortest.Play(looks, llmtest.Reply{Text: "it has looked"}))
			if out, code := u.rnix("run", "--harness", c.cli, "--name", "spy", "look for keys"); code != 0 || !strings.Contains(out, "it has looked") {
				t.Fatalf("%d %s", code, out)
			}
			requests := u.Requests()
			if len(requests) < 2 {
				t.Fatalf("%d requests", len(requests))
			}
			seen, _ := requests[1].LastResult()
			if !strings.Contains(seen.Text, "PATH=") || !strings.Contains(seen.Text, "rnix-gateway-") {
				t.Errorf("it has seen %s", seen.Text)
			}
			if cmp.Or(os.Getenv("RNIX_TEST_LEVEL"), testenv.SandboxOff) == testenv.SandboxOff {
				return // everything is there to be read
			}
			if strings.Contains(seen.Text, own) {
				t.Errorf("it has seen %s", seen.Text)
			}
			u.noKey(own)
		})
	}
}

// noKey fails if a key is in a file that is kept of the user's agents.
func (u *user) noKey(key string) {
	u.t.Helper()
	err := filepath.WalkDir(filepath.Join(u.Home, "data"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // it has gone meanwhile, or is no file
		}
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(key)) {
			i := bytes.Index(text, []byte(key))
			u.t.Errorf("%s has the key in it: %s", path, text[max(i-200, 0):min(i+100, len(text))])
		}
		return nil
	})
	if err != nil {
		u.t.Error(err)
	}
}

// loops is a model that never comes to an end. What it says it has taken is less than what its requests can take at most.
func loops(r llmtest.Request) llmtest.Reply {
	reply := use("Bash", map[string]any{"command": "echo again", "description": "again"})
	reply.Usage = &llmtest.Usage{Input: len(r.Body) / 4, Output: 100}
	return reply
}

// spentOf sums what the vendor has counted, in dollars, by what a million tokens of the prompt and of the answer cost.
func spentOf(requests []llmtest.Request, in, out float64) (usd float64, tokens int) {
	for _, r := range requests {
		if strings.Contains(r.Path, "count_tokens") {
			continue
		}
		n := len(r.Body) / 4
		usd += (float64(n)*in + 100*out) / 1e6
		tokens += n + 100
	}
	return usd, tokens
}

func TestRealClaudeNeverSpendsMoreThanItsBudget(t *testing.T) {
	u := newUser(t, "claude", loops)
	u.allowed("Bash")
	out, code := u.rnix("run", "--harness", "claude", "--name", "loop", "--model", "claude-opus-5-5", "--budget-usd", "0.5", "loop")
	usd, _ := spentOf(u.Requests(), 4, 20)
	t.Logf("%d: %d requests, $%.4f\n%s", code, len(u.Requests()), usd, out)
	t.Log(u.must("budget", "loop"))
	t.Log(u.must("cost", "loop"))
	t.Log(u.must("steps", "loop"))
	t.Log(u.must("ps", "-a"))
}

func shellLoop(r llmtest.Request) llmtest.Reply {
	reply := use("exec_command", map[string]any{"cmd": "echo again"})
	reply.Usage = &llmtest.Usage{Input: len(r.Body) / 4, Output: 100}
	return reply
}

func TestRealCodexStopsWithItsBudget(t *testing.T) {
	u := newUser(t, "codex", shellLoop)
	out, code := u.rnix("run", "--harness", "codex", "--name", "loop", "--model", "gpt-5.1-codex", "--budget", "300", "loop")
	t.Logf("%d: %d requests\n%s", code, len(u.Requests()), out)
	for _, r := range u.Requests() {
		t.Log(r.Path, r.Header, r.Tools)
	}
	t.Log(u.must("budget", "loop"))
	t.Log(u.must("steps", "loop"))
}

func TestRealOpencodeNeverSpendsMoreThanItsBudget(t *testing.T) {
	u := newUser(t, "opencode", nil)
	u.opencodeVendor()
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		reply := use("bash", map[string]any{"command": "echo again", "description": "again"})
		reply.Usage = &llmtest.Usage{Input: len(r.Body) / 4, Output: 100}
		return reply
	})
	if err := os.WriteFile(filepath.Join(u.Home, ".config", "rnix", "prices.yaml"), []byte("version: \"1\"\nprices:\n  - {provider: fake, model: m1, input: 4, output: 20}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := u.rnix("run", "--harness", "opencode", "--name", "loop", "--model", "fake/m1", "--budget-usd", "0.2", "loop")
	t.Logf("%d: %d requests\n%s", code, len(u.Requests()), out)
	for _, r := range u.Requests() {
		t.Log(r.Path, r.Header, r.Tools)
	}
	t.Log(u.must("budget", "loop"))
	t.Log(u.must("steps", "loop"))
	u.noKey(vendortest.Key)
}

// opencodeVendor has opencode ask the stand-in.
func (u *user) opencodeVendor() {
	u.t.Helper()
	for _, dir := range []string{"opencode", "rnix"} {
		if err := os.MkdirAll(filepath.Join(u.Home, ".config", dir), 0o700); err != nil {
			u.t.Fatal(err)
		}
	}
	config := `{
  // comments are allowed
  "model": "fake/m1",
  "permission": {"*": "allow"},
  "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": {"baseURL": "` + u.URL + `/v1", "apiKey": "{env:OPENAI_API_KEY}"},
    "models": {"m1": {"name": "m1", "limit": {"context": 100000, "output": 1000}}}}}
}`
	if err := os.WriteFile(filepath.Join(u.Home, ".config", "opencode", "opencode.jsonc"), []byte(config), 0o600); err != nil {
		u.t.Fatal(err)
	}
}
