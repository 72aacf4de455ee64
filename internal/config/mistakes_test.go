package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mistakes are those of everything that is read from s.
func mistakes(s Sources) Problems {
	c, p := Load(s), LoadProviders(s)
	_, prices := LoadPrices(s)
	return Mistakes(c.Problems, p.Problems, prices)
}

func TestAMistakeThatMayDropALimitForbidsToStart(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a limit that is no number":       {"user/config.yaml": "budget_usd: five\n"},
		"an unknown key":                  {"user/config.yaml": "colour: red\n"},
		"no YAML":                         {"user/config.yaml": "max_steps: [\n"},
		"a second document":               {"user/config.yaml": "max_steps: 3\n---\nmax_steps: 4\n"},
		"a value out of bounds":           {"user/config.yaml": "concurrency: 0\n"},
		"an unknown word":                 {"user/config.yaml": "heartbeat: {policy: kil}\n"},
		"a section that is a text":        {"user/config.yaml": "limits: few\n"},
		"no absolute path":                {"user/config.yaml": "read_roots: [here]\n"},
		"a project's limit":               {"project/config.yaml": "budget_usd: five\n"},
		"a provider without a name":       {"user/providers.yaml": "providers:\n  - {nam: claude-agent, sandbox: read-only}\n"},
		"a name that is none":             {"user/providers.yaml": "providers:\n  - {name: 'claude agent', sandbox: read-only}\n"},
		"a key that is no file":           {"user/providers.yaml": "providers:\n  - {name: x, driver: anthropic, api_key_file: keys/x}\n"},
		"a key that is no variable":       {"user/providers.yaml": "providers:\n  - {name: x, driver: anthropic, api_key_env: MY-KEY}\n"},
		"a mistyped file of a key":        {"user/providers.yaml": "providers:\n  - {name: x, driver: anthropic, api_key_fle: /keys/x}\n"},
		"a header that is none":           {"user/providers.yaml": "providers:\n  - {name: x, driver: anthropic, headers: {A: [b]}}\n"},
		"a second entry that has a key":   {"user/providers.yaml": "providers:\n  - {name: x, driver: anthropic}\n  - {name: x, driver: anthropic, api_key_file: /keys/x}\n"},
		"a trusted project's key":         {"user/providers.yaml": "providers:\n  - {name: x, driver: anthropic}\n", "project/providers.yaml": "providers:\n  - {name: x, api_key_file: /keys/x, max_tokens: many}\n"},
		"providers as a map":              {"user/providers.yaml": "providers: {claude-agent: {sandbox: read-only}}\n"},
		"a version that is not known":     {"user/providers.yaml": "version: \"2\"\n"},
		"a price that is no number":       {"user/prices.yaml": "models: {m: {input: much}}\n"},
		"a directory in place of a file":  {"user/config.yaml/x": ""},
		"a directory for the project":     {"project/config.yaml/x": ""},
		"a file in place of a directory":  {"user": ""},
		"a directory of the prices' name": {"user/prices.yaml/x": ""},
	} {
		s := sources(t, files)
		s.TrustProject = strings.Contains(name, "trusted")
		if ps := mistakes(s); len(ps) == 0 || ps[0].File == "" {
			t.Errorf("%s: %v", name, ps)
		}
	}
	if ps := mistakes(sources(t, nil, "RNIX_CONTEXT_BUDGET", "some")); len(ps) != 1 || ps[0].Key != "RNIX_CONTEXT_BUDGET" {
		t.Errorf("a variable: %v", ps)
	}
	for _, link := range []string{"user/config.yaml", "user/providers.yaml", "project/.rnix/config.yaml", "project/.rnix"} {
		s := sources(t, map[string]string{"user/x": "", "project/x": ""})
		at := filepath.Join(filepath.Dir(s.UserDir), link)
		if link == "project/.rnix" {
			if err := os.RemoveAll(at); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("nowhere", at); err != nil {
			t.Fatal(err)
		}
		if ps := mistakes(s); !strings.Contains(ps.Error(), "link") {
			t.Errorf("%s leads to nothing: %v", link, ps)
		}
	}
	if os.Getuid() != 0 { // root reads everything
		s := sources(t, map[string]string{"user/config.yaml": "budget_usd: 5\n"})
		if err := os.Chmod(filepath.Join(s.UserDir, "config.yaml"), 0); err != nil {
			t.Fatal(err)
		}
		if ps := mistakes(s); len(ps) != 1 || !strings.Contains(ps.Error(), "permission denied") {
			t.Errorf("a file that cannot be read: %v", ps)
		}
	}
}

func TestAProblemThatLoosensNothingForbidsNothing(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a checkpoint":              {"user/config.yaml": "checkpoint: {every_steps: many}\n"},
		"what is kept":              {"user/config.yaml": "gc: {interval_seconds: 5, retention_days: x}\n"},
		"a project that asks more":  {"user/config.yaml": "max_steps: 3\n", "project/config.yaml": "max_steps: 9\nread_roots: [/]\n"},
		"a project's command":       {"project/providers.yaml": "providers:\n  - {name: claude, command: /bin/sh}\n"},
		"a project's prices":        {"project/prices.yaml": "models: {m: {input: much}}\n"},
		"a variable that is not":    {"user/providers.yaml": "providers:\n  - {name: x, driver: openai-compat, base_url: 'http://h', headers: {A: '${UNSET}'}}\n"},
		"a key without effect":      {"user/providers.yaml": "providers:\n  - {name: offline, sandbox: read-only}\n"},
		"a project's default agent": {"project/providers.yaml": "default_provider: claude-agent\n"},
	} {
		s := sources(t, files)
		c, p := Load(s), LoadProviders(s)
		_, prices := LoadPrices(s)
		if len(c.Problems)+len(p.Problems)+len(prices) == 0 || len(mistakes(s)) != 0 {
			t.Errorf("%s: %v %v %v, of which forbid: %v", name, c.Problems, p.Problems, prices, mistakes(s))
		}
		if unknown := len(c.RetentionUnknown()) > 0; unknown != (name == "what is kept") {
			t.Errorf("%s: retention unknown: %v", name, unknown)
		}
	}
}

func TestAProjectMayTightenAProviderAndChooseNoAgent(t *testing.T) {
	text := "default_provider: codex-agent\nproviders:\n  - {name: claude-agent, sandbox: read-only, tools: kernel}\n  - {name: codex-agent, sandbox: full, tools: own}\n"
	s := sources(t, map[string]string{"project/providers.yaml": text})
	p := LoadProviders(s)
	if c := p.find("claude-agent"); c.Sandbox != "read-only" || c.Tools != ToolsKernel {
		t.Errorf("what is tighter does not count: %+v", c)
	}
	if c := p.find("codex-agent"); c.Sandbox != "" || c.Tools != "" || p.ProjectDefault.V != "" {
		t.Errorf("%+v, default %q", c, p.ProjectDefault.V)
	}
	expect(t, p.Problems, "default_provider: codex-agent is an agent's command line", "tools: a project cannot set this", "sandbox: a project cannot set this")
	s.TrustProject = true
	if p = LoadProviders(s); p.ProjectDefault.V != "codex-agent" || p.find("codex-agent").Sandbox != "full" || len(p.Problems) != 0 {
		t.Errorf("%v %+v", p.Problems, p.ProjectDefault)
	}
}

func TestTheDataDirectoryIsFoundInAFileThatIsNoYAML(t *testing.T) {
	c := Load(sources(t, map[string]string{"user/config.yaml": "data_dir: ~/data # mine\nmax_steps: [\n"}))
	if c.DataDir.V != "/home/u/data" || len(Mistakes(c.Problems)) == 0 {
		t.Errorf("%q, %v", c.DataDir.V, c.Problems)
	}
}

func TestADaemonIsHeldByWhatItReadsItself(t *testing.T) {
	for name, want := range map[string]bool{"RNIX_LIMITS_DEPTH": true, "RNIX_SNAPSHOTS_ENABLED": true, "RNIX_MAX_STEPS": false, "RNIX_GC_RETENTION_DAYS": false} {
		c := Load(Sources{Lookup: vars(name, "x")})
		if got := len(c.MistakesAtStart()) > 0; got != want {
			t.Errorf("%s: %v, want %v (%v)", name, got, want, c.Problems)
		}
	}
	if c := Load(sources(t, map[string]string{"user/config.yaml": "limit: {depth: 2}\n"})); len(c.MistakesAtStart()) != 1 {
		t.Error("an unknown key may be a limit")
	}
	if got := Mistakes(Problems{{Warning: true}}); len(got) != 0 {
		t.Errorf("a warning: %v", got)
	}
}

func TestNoProjectSetsAKeyCommand(t *testing.T) {
	for _, trust := range []bool{false, true} {
		s := sources(t, map[string]string{"project/providers.yaml": "providers:\n  - {name: anthropic, api_key_command: [./key.sh]}\n"})
		s.TrustProject = trust
		p := LoadProviders(s)
		if c := p.find("anthropic"); len(c.APIKeyCommand) > 0 {
			t.Errorf("trusted %v: %q", trust, c.APIKeyCommand)
		}
		expect(t, p.Problems, "api_key_command: a project cannot set this, trusted or not")
	}
}
