package harness

import (
	"cmp"
	"encoding/json"
	"strings"

	tomlfile "github.com/pelletier/go-toml/v2"
)

// codexConfig is what the user's config.toml says of whom codex asks.
type codexConfig struct {
	Provider  string                   `toml:"model_provider"`
	BaseURL   string                   `toml:"openai_base_url"`
	ChatGPT   string                   `toml:"chatgpt_base_url"`
	Profile   string                   `toml:"profile"`
	Profiles  map[string]codexProfile  `toml:"profiles"`
	Providers map[string]codexProvider `toml:"model_providers"`
}

type codexProfile struct {
	Provider string `toml:"model_provider"`
}

type codexProvider struct {
	BaseURL string `toml:"base_url"`
	EnvKey  string `toml:"env_key"`
	// These cannot be in two places: what stands in for the vendor does not know them.
	Query map[string]string `toml:"query_params"`
}

// codexOwn is the provider that codex has by itself, which its configuration cannot change.
const codexOwn = "openai"

// Vendors are OpenAI, or the backend of ChatGPT with a login of that, and the provider that the user has chosen in config.toml.
func (codex) Vendors(u User) ([]Vendor, error) {
	var conf codexConfig
	_ = tomlfile.Unmarshal(u.File(".codex/config.toml"), &conf) // codex says what is wrong with it
	all := []Vendor{codexVendor(u, &conf)}
	id := cmp.Or(conf.Profiles[conf.Profile].Provider, conf.Provider, codexOwn)
	if id == codexOwn {
		return all, nil
	}
	p := conf.Providers[id]
	switch {
	case p.BaseURL == "":
		return nil, elsewhere("codex", "its config.toml has it ask "+id+", of which the base URL cannot be set")
	case len(p.Query) > 0:
		return nil, elsewhere("codex", "its config.toml has it ask "+id+" with query_params, which the model gateway does not know")
	case !plainID(id):
		return nil, elsewhere("codex", "its config.toml has it ask "+id+", and the model gateway takes only names of letters, digits, - and _")
	}
	v := Vendor{Name: id, API: apiOpenAI, Base: strings.TrimRight(p.BaseURL, "/")}
	if p.EnvKey != "" {
		v.Keys = keysOf(u.Env, p.EnvKey)
	}
	return append(all, v), nil
}

// codexVendor is whom codex asks by itself.
func codexVendor(u User, conf *codexConfig) Vendor {
	v := Vendor{Name: codexOwn, API: apiOpenAI, Base: cmp.Or(u.Env("OPENAI_BASE_URL"), conf.BaseURL, "https://api.openai.com/v1")}
	if v.Base = strings.TrimRight(v.Base, "/"); u.Env("CODEX_API_KEY") != "" {
		v.Keys = keysOf(u.Env, "CODEX_API_KEY", "OPENAI_API_KEY")
		return v
	}
	var auth struct {
		Mode   string          `json:"auth_mode"`
		Key    string          `json:"OPENAI_API_KEY"`
		Tokens json.RawMessage `json:"tokens"`
	}
	_ = json.Unmarshal(u.File(".codex/auth.json"), &auth) // codex says what is wrong with it
	switch tokens := len(auth.Tokens) > 0 && string(auth.Tokens) != "null"; {
	case auth.Key != "" && (!tokens || strings.EqualFold(auth.Mode, "apikey")):
		v.Keys = []Secret{{"CODEX_API_KEY", auth.Key}}
	case tokens:
		v.Unbounded = true
		if u.Env("OPENAI_BASE_URL") == "" && conf.BaseURL == "" {
			v.Base = strings.TrimRight(cmp.Or(conf.ChatGPT, "https://chatgpt.com/backend-api"), "/") + "/codex"
		}
	default:
		v.Keys = keysOf(u.Env, "OPENAI_API_KEY")
	}
	return v
}

// gateway has codex ask the gateway.
func (codex) gateway(b *builder, config func(key string, value any)) {
	g := b.at.Gateway
	if g == nil {
		if url := b.at.env("OPENAI_BASE_URL"); url != "" {
			config("openai_base_url", url)
		}
		return
	}
	b.arg("--disable", "enable_request_compression") // in zstd, which only the vendor reads
	for i := range g.Vendors {
		v := &g.Vendors[i]
		url := g.at(v.Name) + "/v1"
		for _, k := range v.Keys {
			b.set(k.Variable, k.Value)
			b.cmd.Secrets = append(b.cmd.Secrets, k.Variable)
		}
		if v.Name == codexOwn {
			config("openai_base_url", url)
			continue
		}
		config("model_providers."+v.Name+".base_url", url)
	}
}
