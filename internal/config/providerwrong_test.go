package config

import (
	"slices"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/types"
)

// stands reports whether a text names a file with a line, and behind them the rest of what is wanted.
func stands(text, want string) bool {
	line, rest, _ := strings.Cut(want, "|")
	return strings.Contains(text, line+":") && strings.Contains(text, rest)
}

// A mistake in the entry of a provider makes that one unusable, and no other. Nothing of it becomes looser.
func TestAMistakeOfAProviderIsOfThatOneAlone(t *testing.T) {
	for name, c := range map[string]struct {
		user, project string
		trust         bool
		wrong         string
		where         string
	}{
		"sandbox as a map":             {user: "  - {name: claude-agent, sandbox: {level: read-only}}", wrong: "claude-agent", where: "user/providers.yaml:2|providers[0].sandbox"},
		"a project's sandbox as a map": {project: "  - {name: claude-agent, sandbox: {level: read-only}}", wrong: "claude-agent", where: ".rnix/providers.yaml:2|providers[0].sandbox"},
		"an unknown sandbox":           {user: "  - {name: claude-agent, sandbox: readonly}", wrong: "claude-agent", where: `user/providers.yaml:2|providers[0].sandbox: invalid value "readonly"`},
		"an unknown key":               {user: "  - {name: claude-agent, sandboxx: read-only}", wrong: "claude-agent", where: "user/providers.yaml:2|providers[0].sandboxx: unknown key"},
		"a trusted project's tools":    {project: "  - {name: codex-agent, tools: kernal}", trust: true, wrong: "codex-agent", where: ".rnix/providers.yaml:2|providers[0].tools"},
		"no address":                   {user: "  - {name: x, driver: openai-compat}", wrong: "x", where: "user/providers.yaml:2|providers[0]: base_url is missing"},
		"no driver":                    {user: "  - {name: x, driver: opnai}", wrong: "x", where: "user/providers.yaml:2|providers[0].driver"},
		"a number":                     {user: "  - {name: x, driver: offline, concurrency: 0}", wrong: "x", where: "user/providers.yaml:2|providers[0].concurrency"},
		"a second entry":               {user: "  - {name: codex-agent}\n  - {name: codex-agent, tools: kernel}", wrong: "codex-agent", where: "user/providers.yaml:3|providers[1].name"},
		"an address of a project": {user: "  - {name: x, driver: openai, concurrency: 0}", project: "  - {name: x, base_url: 'http://h'}", trust: true, wrong: "x",
			where: "user/providers.yaml:2|providers[0].concurrency"},
		"another driver in a project": {user: "  - {name: x, driver: claude-agent, tools: kernl}", project: "  - {name: x, driver: codex-agent}", trust: true, wrong: "x",
			where: "user/providers.yaml:2|providers[0].tools"},
	} {
		files := map[string]string{}
		if c.user != "" {
			files["user/providers.yaml"] = "providers:\n" + c.user + "\n  - {name: good, driver: openai-compat, base_url: 'http://127.0.0.1', default_model: m}\n"
		}
		if c.project != "" {
			files["project/providers.yaml"] = "providers:\n" + c.project + "\n"
		}
		s := sources(t, files)
		s.TrustProject = c.trust
		if ps := mistakes(s); len(ps) > 0 {
			t.Errorf("%s: no agent starts: %v", name, ps)
		}
		p := LoadProviders(s)
		for i := range p.List {
			if pr := &p.List[i]; (pr.Problem != "") != (pr.Name == c.wrong) {
				t.Errorf("%s: %s: %q", name, pr.Name, pr.Problem)
			}
		}
		bad := p.find(c.wrong)
		if bad == nil || !stands(bad.Problem, c.where) || !slices.ContainsFunc(p.Problems, func(at Problem) bool { return at.String() == bad.Problem }) {
			t.Fatalf("%s: %+v", name, bad)
		}
		available := func(pr Provider) (bool, string) { return pr.Problem == "" && pr.Name != "offline", pr.Problem }
		if _, err := Choose(p.List, Wish{Provider: c.wrong}, available); types.CodeOf(err) != types.ErrUnavailable || !stands(err.Error(), c.where) {
			t.Errorf("%s: %v", name, err)
		}
		if c.user != "" {
			if got, err := Choose(p.List, Wish{Agent: agent.Models{Provider: "good"}}, available); err != nil || got.Provider.Name != "good" {
				t.Errorf("%s: %+v %v", name, got.Provider, err)
			}
		}
	}
}

// What a person did not choose is not taken in the place of a provider that has a mistake: it may do more than that one may.
func TestAProviderWithAMistakeIsNotPassedOver(t *testing.T) {
	text := "providers:\n  - {name: safe, driver: claude-agent, tools: kernl}\n  - {name: loose, driver: claude-agent, tools: own}\n"
	p := LoadProviders(sources(t, map[string]string{"user/providers.yaml": text}))
	available := func(pr Provider) (bool, string) { return pr.Problem == "", pr.Problem }
	if got, err := Choose(p.List, Wish{}, available); types.CodeOf(err) != types.ErrUnavailable || !stands(err.Error(), "providers.yaml:2|providers[0].tools") || !strings.Contains(err.Error(), "--provider NAME") {
		t.Errorf("%+v %v", got.Provider.Name, err)
	}
	if got, err := Choose(p.List, Wish{UserDefault: Value[string]{V: "loose"}}, available); err != nil || got.Provider.Name != "loose" {
		t.Errorf("%+v %v", got.Provider.Name, err)
	}
	// one that stands behind it changes nothing
	p = LoadProviders(sources(t, map[string]string{"user/providers.yaml": "providers:\n  - {name: loose, driver: claude-agent}\n  - {name: safe, driver: claude-agent, tools: kernl}\n"}))
	if got, err := Choose(p.List, Wish{}, available); err != nil || got.Provider.Name != "loose" {
		t.Errorf("%+v %v", got.Provider.Name, err)
	}
}

// A key that is unknown may say which variable, file or header holds a secret, as those of other programs do: it is not known what to hide from the agents of all providers.
func TestAnUnknownKeyThatMayNameASecretStopsAll(t *testing.T) {
	for _, line := range []string{
		"env_key: MINE", "key_env: MINE", "keyfile: /k", "token_file: /k", "secret: MINE", "env: MINE", "http_headers: {A: $MINE}", "auth: {api_key_env: MINE}",
		"<<: {api_key_env: MINE}", "[api_key_env]: MINE", "api.key.env: MINE", "passwordFile: /k", "credentials: /k",
	} {
		s := sources(t, map[string]string{"user/providers.yaml": "providers:\n  - {name: x, driver: openai-compat, base_url: 'http://h', " + line + "}\n"})
		if ps := mistakes(s); len(ps) == 0 {
			t.Errorf("%s: agents start", line)
		}
	}
	s := sources(t, map[string]string{"user/providers.yaml": "providers:\n  - {name: x, driver: openai-compat, base_url: 'http://h', colour: red}\n"})
	if ps := mistakes(s); len(ps) > 0 {
		t.Errorf("a key that names no secret: %v", ps)
	}
}

// The key of a provider that cannot be used stays hidden from the agents of the others.
func TestTheKeyOfAWrongProviderIsKnown(t *testing.T) {
	for _, driver := range []string{"anthropic, max_tokens: many", "antropic", "codex-agent"} {
		p := LoadProviders(sources(t, map[string]string{"user/providers.yaml": "providers:\n  - {name: x-y, driver: " + driver + ", api_key_file: /keys/x}\n"}))
		if pr := p.find("x-y"); driver != "codex-agent" && (pr.Problem == "" || pr.APIKeyFile != "/keys/x" || pr.APIKeyEnv == "") {
			t.Errorf("%s: %+v", driver, pr)
		}
	}
}
