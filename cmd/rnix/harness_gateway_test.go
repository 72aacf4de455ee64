package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
	"rnix/internal/testenv"
	"rnix/ipc"
)

// spied is what a command of an agent finds of keys: in its environment, in those of all processes that it may read, in its home and in USERHOME.
const spied = `env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -e CANAR[Y] -e sk-[a]nt; grep -rs -e CANAR[Y] -e sk-[a]nt "$HOME" USERHOME 2>/dev/null | cut -c1-300; true`

// noSharedPlaces has codex keep its own sandbox out of the temporary directories: in each place where commands may write it mounts over a .codex, which it
// makes and removes, and two of them at once are in each other's way there ("Can't remount readonly on /newroot/tmp/.codex").
const noSharedPlaces = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"

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
		"codex, a variable":       {cli: "codex", variables: []string{"CODEX_API_KEY"}, files: map[string]string{".codex/config.toml": noSharedPlaces}},
		"codex, its login":        {cli: "codex", files: map[string]string{".codex/auth.json": `{"auth_mode":"apikey","OPENAI_API_KEY":"CANARY","tokens":null}`, ".codex/config.toml": noSharedPlaces}},
		"codex, another provider": {cli: "codex", variables: []string{"MY_KEY"}, files: map[string]string{".codex/config.toml": "model_provider = \"mine\"\n[model_providers.mine]\nname = \"mine\"\nbase_url = \"URL/v1\"\nenv_key = \"MY_KEY\"\nwire_api = \"responses\"\n" + noSharedPlaces}},
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
	usd, tokens := spentOf(u.Requests(), 4, 20)
	t.Logf("%d requests, $%.4f of $0.50", len(u.Requests()), usd)
	if code != 4 || !strings.Contains(out, "suspended: budget: too little left for the next call") || usd > 0.5 || len(u.Requests()) < 3 {
		t.Errorf("%d, $%v: %s", code, usd, out)
	}
	if p := u.shown("loop"); p.TokensUsed != tokens || math.Abs(p.CostUSD-usd) > 1e-6 || p.Model != "claude-opus-5-5" {
		t.Errorf("%d tokens and $%v are shown, %d and $%v were counted", p.TokensUsed, p.CostUSD, tokens, usd)
	}
	steps := 0
	for line := range strings.Lines(u.must("steps", "loop", "--json")) {
		var s struct {
			Tokens int `json:"tokens_used"`
		}
		if err := json.Unmarshal([]byte(line), &s); err == nil {
			steps += s.Tokens
		}
	}
	if steps != tokens {
		t.Errorf("the steps show %d tokens of %d", steps, tokens)
	}
	u.Answer(vendortest.Play(llmtest.Reply{Text: "it has resumed"}))
	if out := u.must("budget", "add", "loop", "--usd", "1"); !strings.Contains(out, "resum") {
		t.Errorf("%s", out)
	}
	if out := u.must("wait", "loop"); !strings.Contains(out, "it has resumed") {
		t.Errorf("%s", out)
	}
}

// codex says what it has used at the end of its turn only.
func TestRealCodexStopsWithItsBudget(t *testing.T) {
	u := newUser(t, "codex", func(r llmtest.Request) llmtest.Reply {
		reply := use("exec_command", map[string]any{"cmd": "echo again"})
		reply.Usage = &llmtest.Usage{Input: len(r.Body) / 4, Output: 100}
		return reply
	})
	out, code := u.rnix("run", "--harness", "codex", "--name", "loop", "--model", "gpt-5.1-codex", "--budget", "300", "loop")
	_, tokens := spentOf(u.Requests(), 0, 0)
	if code != 4 || len(u.Requests()) != 1 || !strings.Contains(out, "of 300 tokens are used") || u.shown("loop").TokensUsed != tokens {
		t.Errorf("%d, %d requests: %s", code, len(u.Requests()), out)
	}
}

func TestRealOpencodeNeverSpendsMoreThanItsBudget(t *testing.T) {
	u := newUser(t, "opencode", func(r llmtest.Request) llmtest.Reply {
		reply := use("bash", map[string]any{"command": "env", "description": "again"})
		reply.Usage = &llmtest.Usage{Input: len(r.Body) / 4, Output: 100}
		return reply
	})
	u.opencodeConfig()
	if err := os.MkdirAll(filepath.Join(u.Home, ".config", "rnix"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(u.Home, ".config", "rnix", "prices.yaml"), []byte("version: \"1\"\nprices:\n  - {provider: fake, model: m1, input: 4, output: 20}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := u.rnix("run", "--harness", "opencode", "--name", "loop", "--model", "fake/m1", "--budget-usd", "0.2", "loop")
	usd, tokens := spentOf(u.Requests(), 4, 20)
	if code != 4 || !strings.Contains(out, "suspended: budget: too little left for the next call") || usd > 0.2 || len(u.Requests()) < 2 || u.shown("loop").TokensUsed != tokens {
		t.Errorf("%d, $%v of %d requests: %s", code, usd, len(u.Requests()), out)
	}
	for _, r := range u.Requests() {
		if r.Header.Get("Authorization") != "Bearer "+vendortest.Key || bytes.Contains(r.Body, []byte(vendortest.Key)) {
			t.Errorf("%s with %q: %s", r.Path, r.Header.Get("Authorization"), r.Body)
		}
	}
}

// shown is what ps shows of a process.
func (u *user) shown(name string) (p ipc.Proc) {
	u.t.Helper()
	for line := range strings.Lines(u.must("ps", "-a", "--json")) {
		if json.Unmarshal([]byte(line), &p) == nil && p.Name == name {
			return p
		}
	}
	u.t.Errorf("there is no %s", name)
	return p
}

// A login of a subscription is sent on as it is, and its requests are counted.
func TestLoginsOfRealCommandLinesPassTheGateway(t *testing.T) {
	token := func(claims string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
	}
	chatgpt := token(`{"exp":99999999999,"email":"a@b.test","https://api.openai.com/auth":{"chatgpt_account_id":"acc-1","chatgpt_plan_type":"pro","user_id":"u"}}`)
	for name, c := range map[string]struct {
		cli, file, text, variable string
		path, header              string
	}{
		"claude": {"claude", ".claude/.credentials.json", `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-LOGIN","refreshToken":"sk-ant-ort01-LOGIN","expiresAt":9999999999999,"scopes":["user:inference","user:profile"],"subscriptionType":"max"}}`,
			"ANTHROPIC_BASE_URL=", "/v1/messages", "Bearer sk-ant-oat01-LOGIN"},
		"codex": {"codex", ".codex/auth.json", `{"OPENAI_API_KEY":null,"auth_mode":"chatgpt","tokens":{"id_token":"` + chatgpt + `","access_token":"` + chatgpt + `","refresh_token":"r","account_id":"acc-1"},"last_refresh":"` + time.Now().UTC().Format(time.RFC3339) + `"}`,
			"OPENAI_BASE_URL=", "/v1/responses", "Bearer " + chatgpt},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, c.cli, nil)
			u.Require("")
			u.Answer(vendortest.Play(llmtest.Reply{Text: "good day", Usage: &llmtest.Usage{Input: 11, Output: 2}}))
			u.env = slices.DeleteFunc(u.env, func(kv string) bool { return strings.Contains(kv, vendortest.Key) })
			path := filepath.Join(u.Home, c.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, code := u.rnix("run", "--harness", c.cli, "--name", "p", "say good day"); code != 0 || !strings.Contains(out, "good day") {
				t.Fatalf("%d %s", code, out)
			}
			for _, r := range u.Requests() {
				if !strings.HasPrefix(r.Path, c.path) || r.Header.Get("Authorization") != c.header || r.Header.Get("X-Api-Key") != "" {
					t.Errorf("%s %v", r.Path, r.Header)
				}
			}
			if p := u.shown("p"); p.TokensUsed != 13*len(u.Requests()) {
				t.Errorf("%d tokens are shown of %d requests", p.TokensUsed, len(u.Requests()))
			}
		})
	}
}
