package harness

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// opencodeUser is what the user's configuration says of whom opencode asks.
type opencodeUser struct {
	Model    string                      `json:"model"`
	Provider map[string]opencodeProvider `json:"provider"`
}

type opencodeProvider struct {
	NPM     string          `json:"npm,omitempty"`
	Options opencodeOptions `json:"options"`
}

type opencodeOptions struct {
	BaseURL string `json:"baseURL,omitempty"`
	Key     string `json:"apiKey,omitempty"`
}

// opencodeVendors are those of opencode's many for which the gateway can stand in without a base URL of the user's.
var opencodeVendors = map[string]Vendor{
	"anthropic": {API: apiAnthropic, Base: "https://api.anthropic.com/v1"},
	"openai":    {API: apiOpenAI, Base: "https://api.openai.com/v1"},
}

// opencodePackages are the packages that speak an API which the gateway knows.
var opencodePackages = map[string]string{"@ai-sdk/anthropic": apiAnthropic, "@ai-sdk/openai": apiOpenAI, "@ai-sdk/openai-compatible": apiOpenAI}

// Vendors are those of the user's providers for which the gateway can stand in. The one of the model has to be among them.
func (opencode) Vendors(u User) ([]Vendor, error) {
	var conf opencodeUser
	for _, name := range []string{"config.json", "opencode.json", "opencode.jsonc"} { // the later goes before
		_ = json.Unmarshal(plainJSON(u.File(".config/opencode/"+name)), &conf) // opencode says what is wrong with it
	}
	var auth map[string]struct {
		Type string `json:"type"`
		Key  string `json:"key"`
	}
	_ = json.Unmarshal(u.File(".local/share/opencode/auth.json"), &auth) // likewise
	names := slices.AppendSeq(slices.Collect(maps.Keys(opencodeVendors)), maps.Keys(conf.Provider))
	slices.Sort(names)
	var all []Vendor
	for _, name := range slices.Compact(names) {
		v, p := opencodeVendors[name], conf.Provider[name]
		if api := opencodePackages[p.NPM]; api != "" {
			v.API = api
		}
		if p.Options.BaseURL != "" {
			v.Base = strings.TrimRight(substituted(p.Options.BaseURL, u.Env), "/")
		}
		if v.Name = name; v.API == "" || v.Base == "" || !plainID(name) {
			continue
		}
		variable := strings.ToUpper(name) + "_API_KEY"
		switch {
		case p.Options.Key != "":
			v.Keys = []Secret{{variable, substituted(p.Options.Key, u.Env)}}
		case auth[name].Type == "api":
			v.Keys = []Secret{{variable, auth[name].Key}}
		case auth[name].Type == "":
			v.Keys = keysOf(u.Env, variable)
		default: // a login of a subscription asks at addresses of its own
			continue
		}
		if v.Keys = slices.DeleteFunc(v.Keys, func(k Secret) bool { return k.Value == "" }); len(v.Keys) > 0 || p.Options.BaseURL != "" {
			all = append(all, v)
		}
	}
	model := u.Model
	if model == "" {
		model = conf.Model
	}
	id, _, _ := strings.Cut(model, "/")
	switch {
	case id == "":
		return nil, elsewhere("opencode", "which of its providers it asks is its own choice; name a model: --model PROVIDER/MODEL")
	case !slices.ContainsFunc(all, func(v Vendor) bool { return v.Name == id }):
		return nil, elsewhere("opencode", "it asks "+id+", for which the model gateway cannot stand in: it can for anthropic and openai with a key, and for providers with a baseURL of which npm is @ai-sdk/openai-compatible, @ai-sdk/openai or @ai-sdk/anthropic")
	}
	return all, nil
}

// gateway has opencode ask the gateway, and nobody else.
func (opencode) gateway(b *builder, conf *opencodeConfig) {
	g := b.at.Gateway
	if g == nil {
		return
	}
	conf.Provider = map[string]opencodeProvider{}
	for i := range g.Vendors {
		v := &g.Vendors[i]
		o := opencodeOptions{BaseURL: g.at(v.Name) + "/v1", Key: "none"}
		if len(v.Keys) > 0 {
			o.Key = v.Keys[0].Value
		}
		conf.Provider[v.Name] = opencodeProvider{Options: o}
		conf.Enabled = append(conf.Enabled, v.Name)
	}
}

// substituted puts variables in their places: {env:NAME}.
func substituted(text string, env func(string) string) string {
	for {
		before, rest, ok := strings.Cut(text, "{env:")
		name, after, end := strings.Cut(rest, "}")
		if !ok || !end {
			return text
		}
		text = before + env(name) + after
	}
}

// plainJSON returns JSON without comments and commas before a closing bracket.
func plainJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case rest[0] == '"':
			n := quoted(rest)
			out = append(out, rest[:n]...)
			i += n - 1
		case bytes.HasPrefix(rest, []byte("//")):
			if i += bytes.IndexByte(append(rest[:len(rest):len(rest)], '\n'), '\n'); i < len(text) {
				out = append(out, '\n')
			}
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return out
			}
			i += end + 3
		case rest[0] == '}' || rest[0] == ']':
			out = append(bytes.TrimSuffix(bytes.TrimRight(out, " \t\r\n"), []byte(",")), rest[0])
		default:
			out = append(out, rest[0])
		}
	}
	return out
}

// quoted returns how long a text in JSON is, quotes included.
func quoted(s []byte) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}
