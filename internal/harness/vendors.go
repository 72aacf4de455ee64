package harness

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"strings"

	"rnix/types"
)

// The APIs of vendors. They are those of package gateway.
const (
	apiAnthropic = "anthropic"
	apiOpenAI    = "openai"
)

// Vendor is whom a command line asks for its models.
type Vendor struct {
	Name string // under which the command line has it, such as anthropic
	API  string // anthropic (Messages), or openai (Chat Completions and Responses)
	Base string // where its calls are below, with the version: https://api.anthropic.com/v1
	// Keys are those of the user; none = the login that the command line has by itself.
	Keys []Secret
	// Unbounded says that it refuses requests with a bound of the answer.
	Unbounded bool
}

// Secret is a key, or what stands for one, and the name of its variable.
type Secret struct{ Variable, Value string }

// User says what a command line finds of its user.
type User struct {
	Env   func(name string) string // a variable that it is given, keys among them; "" = it has it not
	File  func(name string) []byte // a file of its home, by its name there (Login); nil = it cannot be read
	Model string                   // that it is told to use; empty = its own choice
}

// Gateway is where a command line finds its vendors, in place of these.
type Gateway struct {
	// URL is its address. A vendor is at URL/NAME, and its calls below URL/NAME/v1.
	URL     string
	Vendors []Vendor // in whose keys placeholders stand
}

// The beginnings of what a command line is given in place of a key, and of a vendor's address.
const (
	placeholder = "rnix-gateway-"
	loopback    = "http://127.0.0.1:"
	// GatewayPath is the path of Gateway.URL.
	GatewayPath = "/gateway"
)

// Placeholder returns what stands for a key at the gateway, where it is known; elsewhere it is worth nothing.
func Placeholder() string { return placeholder + rand.Text() }

// OfGateway reports whether a value of a variable is one that a command line was given by the gateway: another process of the gateway's user can do
// nothing with it.
func OfGateway(value string) bool {
	return strings.HasPrefix(value, placeholder) || strings.HasPrefix(value, loopback) && strings.Contains(value, GatewayPath+"/")
}

// at returns where a vendor is, without the version.
func (g *Gateway) at(vendor string) string { return g.URL + "/" + vendor }

// key returns what stands for a key; "" if nothing does.
func (g *Gateway) key(variable string) string {
	for i := range g.Vendors {
		for _, k := range g.Vendors[i].Keys {
			if k.Variable == variable {
				return k.Value
			}
		}
	}
	return ""
}

// user looks up a variable of the user for a command line: a key is what stands for it.
func (p Place) user(name string) string {
	if p.Gateway == nil || !isKey(name) {
		return p.env(name)
	}
	return p.Gateway.key(name)
}

// isKey reports whether a variable holds a key.
func isKey(name string) bool {
	return strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN")
}

// direct lets a command line reach the gateway where its user has a proxy for everything else.
func (b *builder) direct() {
	if b.at.Gateway == nil {
		return
	}
	const own = "127.0.0.1,localhost"
	list := own
	if was := cmp.Or(b.at.env("NO_PROXY"), b.at.env("no_proxy")); was != "" {
		list = was + "," + own
	}
	b.set("NO_PROXY", list, "no_proxy", list)
}

// keysOf returns the keys among variables that are set.
func keysOf(env func(string) string, names ...string) (keys []Secret) {
	for _, name := range names {
		if v := strings.TrimSpace(env(name)); v != "" {
			keys = append(keys, Secret{name, v})
		}
	}
	return keys
}

// elsewhere says that a command line asks whom no gateway can stand in for.
func elsewhere(name, why string) error {
	return types.Errorf(types.ErrUnavailable, "Gateway", name, "%s", why)
}

// versioned returns a base URL that is said without a version.
func versioned(url string) string {
	return strings.TrimSuffix(strings.TrimRight(url, "/"), "/v1") + "/v1"
}

// claudeEnv looks up what claude has of a variable: what its settings say, else what it is given.
func claudeEnv(u User) func(string) string {
	var settings struct {
		Env map[string]string `json:"env"`
	}
	_ = json.Unmarshal(u.File(".claude/settings.json"), &settings) // claude says what is wrong with it
	return func(name string) string {
		if v, ok := settings.Env[name]; ok {
			return v
		}
		return u.Env(name)
	}
}

// claudeClouds are the variables by which claude asks another vendor's cloud, in a form of its own.
var claudeClouds = map[string]string{"CLAUDE_CODE_USE_BEDROCK": "Amazon Bedrock", "CLAUDE_CODE_USE_VERTEX": "Google Vertex AI", "CLAUDE_CODE_USE_FOUNDRY": "Microsoft Foundry"}

// Vendors is Anthropic, or what ANTHROPIC_BASE_URL says.
func (claude) Vendors(u User) ([]Vendor, error) {
	env := claudeEnv(u)
	for _, name := range sortedKeys(claudeClouds) {
		if v := env(name); v != "" && v != "0" && v != "false" {
			return nil, elsewhere("claude", name+" has claude ask "+claudeClouds[name]+", for which the model gateway cannot stand in")
		}
	}
	v := Vendor{Name: "anthropic", API: apiAnthropic, Base: versioned(cmp.Or(env("ANTHROPIC_BASE_URL"), "https://api.anthropic.com")),
		Keys: keysOf(env, "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")}
	if len(v.Keys) == 0 {
		var facts struct {
			Key string `json:"primaryApiKey"`
		}
		if json.Unmarshal(u.File(".claude.json"), &facts) == nil && facts.Key != "" {
			v.Keys = []Secret{{"ANTHROPIC_API_KEY", facts.Key}}
		}
	}
	return []Vendor{v}, nil
}

// gateway has claude ask the gateway, by variables, and returns those that have to stand in its settings too, since the user's go before variables.
func (claude) gateway(b *builder) map[string]string {
	g := b.at.Gateway
	if g == nil {
		return nil
	}
	env := map[string]string{"ANTHROPIC_BASE_URL": g.at("anthropic")}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"} {
		if v := g.key(name); v != "" {
			env[name] = v
		}
	}
	for name, value := range env {
		b.set(name, value)
	}
	return env
}
