package harness

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
	"rnix/types"
)

// of is a user with variables, and files of the home.
func of(model string, pairs ...string) User {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return User{Model: model, Env: func(name string) string { return values[name] }, File: func(name string) []byte {
		if text, ok := values[name]; ok {
			return []byte(text)
		}
		return nil
	}}
}

func TestVendorsAreWhomTheUserHasChosen(t *testing.T) {
	key := func(variable string) []Secret { return []Secret{{variable, "K"}} }
	for name, c := range map[string]struct {
		cli  CLI
		user User
		want []Vendor
		says string // of the refusal
	}{
		"claude": {claude{}, of("", "ANTHROPIC_API_KEY", " K\n"), []Vendor{{Name: "anthropic", API: "anthropic", Base: "https://api.anthropic.com/v1", Keys: key("ANTHROPIC_API_KEY")}}, ""},
		"claude elsewhere": {claude{}, of("", "ANTHROPIC_BASE_URL", "http://a.test/x/", "ANTHROPIC_AUTH_TOKEN", "K"),
			[]Vendor{{Name: "anthropic", API: "anthropic", Base: "http://a.test/x/v1", Keys: key("ANTHROPIC_AUTH_TOKEN")}}, ""},
		"claude by its settings": {claude{}, of("", "ANTHROPIC_API_KEY", "other", ".claude/settings.json", `{"env":{"ANTHROPIC_API_KEY":"K","ANTHROPIC_BASE_URL":"http://b.test"}}`),
			[]Vendor{{Name: "anthropic", API: "anthropic", Base: "http://b.test/v1", Keys: key("ANTHROPIC_API_KEY")}}, ""},
		"claude by its facts": {claude{}, of("", ".claude.json", `{"primaryApiKey":"K"}`), []Vendor{{Name: "anthropic", API: "anthropic", Base: "https://api.anthropic.com/v1", Keys: key("ANTHROPIC_API_KEY")}}, ""},
		"claude with a login": {claude{}, of("", ".claude.json", `{`, ".claude/settings.json", "[]"), []Vendor{{Name: "anthropic", API: "anthropic", Base: "https://api.anthropic.com/v1"}}, ""},
		"claude in a cloud":   {claude{}, of("", ".claude/settings.json", `{"env":{"CLAUDE_CODE_USE_VERTEX":"1"}}`), nil, "Google Vertex AI"},
		"claude in no cloud":  {claude{}, of("", "CLAUDE_CODE_USE_VERTEX", "0"), []Vendor{{Name: "anthropic", API: "anthropic", Base: "https://api.anthropic.com/v1"}}, ""},
		"codex":               {codex{}, of("", "CODEX_API_KEY", "K"), []Vendor{{Name: "openai", API: "openai", Base: "https://api.openai.com/v1", Keys: key("CODEX_API_KEY")}}, ""},
		"codex by its login":  {codex{}, of("", ".codex/auth.json", `{"OPENAI_API_KEY":"K"}`), []Vendor{{Name: "openai", API: "openai", Base: "https://api.openai.com/v1", Keys: key("CODEX_API_KEY")}}, ""},
		"codex with ChatGPT":  {codex{}, of("", ".codex/auth.json", `{"OPENAI_API_KEY":"K","tokens":{"access_token":"t"}}`), []Vendor{{Name: "openai", API: "openai", Base: "https://chatgpt.com/backend-api/codex", Unbounded: true}}, ""},
		"codex by a profile": {codex{}, of("", "A_KEY", "K", ".codex/config.toml", "profile = 'p'\nmodel_provider = 'other'\n[profiles.p]\nmodel_provider = 'mine'\n[model_providers.mine]\nbase_url = 'http://c.test/v1/'\nenv_key = 'A_KEY'\n"),
			[]Vendor{{Name: "openai", API: "openai", Base: "https://api.openai.com/v1"}, {Name: "mine", API: "openai", Base: "http://c.test/v1", Keys: key("A_KEY")}}, ""},
		"codex, built-in":        {codex{}, of("", ".codex/config.toml", "model_provider = 'ollama'"), nil, "ask ollama, of which the base URL cannot be set"},
		"codex, with parameters": {codex{}, of("", ".codex/config.toml", "model_provider = 'az'\n[model_providers.az]\nbase_url = 'http://c.test'\nquery_params = {v = '1'}"), nil, "query_params"},
		"opencode": {opencode{}, of("anthropic/m", "ANTHROPIC_API_KEY", "K", ".local/share/opencode/auth.json", `{"openai":{"type":"oauth","access":"x"}}`),
			[]Vendor{{Name: "anthropic", API: "anthropic", Base: "https://api.anthropic.com/v1", Keys: key("ANTHROPIC_API_KEY")}}, ""},
		"opencode, its own": {opencode{}, of("", "MINE", "K", ".config/opencode/opencode.jsonc", "{ /* x */ \"model\": \"mine/m\", // y\n \"provider\": {\"mine\": {\"npm\": \"@ai-sdk/openai-compatible\", \"options\": {\"baseURL\": \"http://d.test/v1/\", \"apiKey\": \"{env:MINE}\",},},},}"),
			[]Vendor{{Name: "mine", API: "openai", Base: "http://d.test/v1", Keys: key("MINE_API_KEY")}}, ""},
		"opencode, another":   {opencode{}, of("google/m", "ANTHROPIC_API_KEY", "K"), nil, "it asks google"},
		"opencode, its login": {opencode{}, of("openai/m", ".local/share/opencode/auth.json", `{"openai":{"type":"api","key":"K"}}`), []Vendor{{Name: "openai", API: "openai", Base: "https://api.openai.com/v1", Keys: key("OPENAI_API_KEY")}}, ""},
		"opencode, any":       {opencode{}, of(""), nil, "name a model"},
	} {
		got, err := c.cli.Vendors(c.user)
		if d := cmp.Diff(c.want, got); d != "" || (err == nil) != (c.says == "") || err != nil && (types.CodeOf(err) != types.ErrUnavailable || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

// A command line that asks a gateway has placeholders and its address, and no key of the user's.
func TestCommandsOfAGatewayHaveNoKeys(t *testing.T) {
	const secret = "SECRET"
	for name, c := range map[string]struct {
		cli  CLI
		keys []Secret
		want []string
	}{
		"anthropic": {claude{}, []Secret{{"ANTHROPIC_API_KEY", "P1"}}, []string{`--settings={"env":{"ANTHROPIC_API_KEY":"P1","ANTHROPIC_BASE_URL":"http://127.0.0.1:9/gateway/anthropic"}}`, `ANTHROPIC_API_KEY=P1`, "NO_PROXY=corp.test,127.0.0.1,localhost"}},
		"openai":    {codex{}, []Secret{{"CODEX_API_KEY", "P1"}}, []string{`openai_base_url="http://127.0.0.1:9/gateway/openai/v1"`, `CODEX_API_KEY=P1`}},
		"mine":      {codex{}, []Secret{{"MINE_KEY", "P1"}}, []string{`model_providers.mine.base_url="http://127.0.0.1:9/gateway/mine/v1"`, `MINE_KEY=P1`}},
		"fake":      {opencode{}, []Secret{{"FAKE_API_KEY", "P1"}}, []string{`"baseURL": "http://127.0.0.1:9/gateway/fake/v1"`, `"apiKey": "P1"`, `"enabled_providers": [`}},
	} {
		cmd, err := c.cli.Command(agent.Spec{Prompt: "x", CWD: "/w"}, Place{Dir: "/d", Gateway: &Gateway{URL: "http://127.0.0.1:9/gateway", Vendors: []Vendor{{Name: name, Keys: c.keys}}}, Env: func(name string) string {
			switch {
			case isKey(name):
				return secret
			case name == "NO_PROXY":
				return "corp.test"
			}
			return ""
		}})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(cmd.Args, "\n")
		for n, v := range cmd.Env {
			all += "\n" + n + "=" + v
		}
		for _, f := range cmd.Files {
			all += "\n" + string(f.Data)
		}
		if strings.Contains(all, secret) {
			t.Errorf("%s has the key: %s", name, all)
		}
		for _, want := range c.want {
			if !strings.Contains(all, want) {
				t.Errorf("%s: no %s in %s", name, want, all)
			}
		}
	}
}

// What is given of the files of a login has no keys in it, and all else as it was.
func TestWhatIsGivenOfALoginHasNoKey(t *testing.T) {
	for _, c := range []struct {
		cli              CLI
		name, text, want string // want "" = nothing is given
	}{
		{claude{}, ".claude/settings.json", `{"env":{"ANTHROPIC_API_KEY":"K","A":"b"},"x":1}`, "{\n  \"env\": {\n    \"A\": \"b\"\n  },\n  \"x\": 1\n}\n"},
		{claude{}, ".claude/settings.json", `{"env":{"A":"b"}, "x":1}`, `{"env":{"A":"b"}, "x":1}`},
		{claude{}, ".credentials.json", `{"claudeAiOauth":{}}`, `{"claudeAiOauth":{}}`},
		{claude{}, ".claude/CLAUDE.md", `ANTHROPIC_API_KEY`, `ANTHROPIC_API_KEY`},
		{codex{}, "auth.json", `{"OPENAI_API_KEY":"K"}`, ""},
		{codex{}, "auth.json", `{"OPENAI_API_KEY":"K","auth_mode":"ApiKey","tokens":{"a":"b"}}`, ""},
		{codex{}, "auth.json", `{"OPENAI_API_KEY":null,"tokens":{"a":"b"}}`, `{"OPENAI_API_KEY":null,"tokens":{"a":"b"}}`},
		{opencode{}, "auth.json", `{"a":{"type":"api","key":"K"},"b":{"type":"oauth"}}`, "{\n  \"b\": {\n    \"type\": \"oauth\"\n  }\n}\n"},
		{opencode{}, ".config/opencode/opencode.json", `{"provider":{"a":{"options":{"apiKey":"K"}}}}`, "{\n  \"provider\": {\n    \"a\": {\n      \"options\": {}\n    }\n  }\n}\n"},
		{opencode{}, ".config/opencode/opencode.json", `{"provider":{"a":{"options":{"apiKey":"{env:K}"}}}}`, `{"provider":{"a":{"options":{"apiKey":"{env:K}"}}}}`},
		{opencode{}, "auth.json", `[`, `[`},
	} {
		if got := string(Gated(c.cli).Login().Without(c.name, []byte(c.text))); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.text, c.cli.Name(), got, c.want)
		}
		if got := string(c.cli.Login().Without(c.name, []byte(c.text))); got != c.text {
			t.Errorf("%s of %s without a gateway: %q", c.text, c.cli.Name(), got)
		}
	}
	facts := map[string]json.RawMessage{"primaryApiKey": nil, "customApiKeyResponses": nil, "userID": nil}
	if Gated(claude{}).Login().WithoutFacts(facts); len(facts) != 1 {
		t.Errorf("%v", facts)
	}
}

func FuzzPlainJSON(f *testing.F) {
	f.Add([]byte("{ /* x */ \"a\": \"//\", // y\n \"b\": [1,],}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if json.Valid(text) && !json.Valid(plainJSON(text)) {
			t.Errorf("%q becomes %q", text, plainJSON(text))
		}
	})
}
