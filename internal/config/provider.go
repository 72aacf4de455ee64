package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"rnix/agent"
	"rnix/internal/price"
)

// The drivers that a provider may use.
const (
	DriverClaude       = "claude-cli"
	DriverCursor       = "cursor-cli"
	DriverClaudeAgent  = "claude-agent" // the whole command line with its own loop, as opposed to a model behind it
	DriverCodexAgent   = "codex-agent"
	DriverOpencode     = "opencode-agent"
	DriverAnthropic    = "anthropic"
	DriverOpenAI       = "openai"
	DriverOpenAICompat = "openai-compat"
	DriverReplay       = "replay"
	DriverOffline      = "offline"
)

// Provider is one way to reach a model: /dev/llm/<name>. The zero value of a field means that the
// driver's own default counts.
type Provider struct {
	Name            string
	Driver          string
	Command         string // of CLI drivers: a name to look up in PATH, or an absolute path
	DefaultModel    string
	BaseURL         string
	APIKeyEnv       string            // the name of the variable that holds the key
	APIKeyFile      string            // an absolute path: where the key is if the variable is not set
	APIKeyCommand   []string          // a program with its arguments that prints the key if neither of these has it
	APIKeyTTL       time.Duration     // how long what it has printed is used
	Headers         map[string]string // variables are replaced: may hold secrets
	MaxTokens       int
	ReasoningEffort string
	Thinking        int    // of the driver anthropic: tokens to think with; -1 = as many as the model likes; 0 = it is not asked to
	API             string // of the OpenAI drivers: APIChat or APIResponses; see AsksBy
	ExtraArgs       []string
	Timeout         time.Duration // of one call
	Grace           time.Duration // between asking a CLI to end and killing it
	Concurrency     int           // calls at once; 0 = Config.Concurrency
	ContextWindow   int           // in tokens; 0 = unknown
	Windows         map[string]int
	Script          string // of the replay driver: an absolute path
	// Of agents' command lines: ToolsOwn leaves them the tools that they bring along, ToolsKernel does not.
	// Sandbox bounds what these may do, in the command line's own way: read-only, workspace-write, full.
	Tools   string
	Sandbox string

	Source    string // built-in, environment, or file:line
	Automatic bool   // may be chosen when nobody names a provider
	Problem   string // why it cannot be used; empty = it can
	Wrong     bool   // Problem is a mistake in a file, which no later file mends
}

// What an agent's command line may use.
const (
	ToolsOwn    = "own"    // its own tools and the kernel's
	ToolsKernel = "kernel" // the kernel's alone, so that all it does is a call of the kernel
)

// The ways to ask a server of OpenAI's kind.
const (
	APIChat      = "chat"      // Chat Completions, which most servers speak
	APIResponses = "responses" // what a model has thought goes back to it
)

// vendorHost is where OpenAI itself answers.
const vendorHost = "api.openai.com"

// AsksBy returns the way in which a provider with an OpenAI driver is asked: what it says itself, else APIResponses for OpenAI and APIChat for others.
func (p Provider) AsksBy() string {
	if p.API != "" {
		return p.API
	}
	u, err := url.Parse(p.BaseURL)
	if p.Driver == DriverOpenAI && (p.BaseURL == "" || err == nil && u.Hostname() == vendorHost) {
		return APIResponses
	}
	return APIChat
}

// agentSuffix ends the names of drivers that are an agent's command line.
const agentSuffix = "-agent"

// Harness returns the name of the agent's command line that a provider is, such as claude; "" if it is a model.
func (p Provider) Harness() string {
	name, ok := strings.CutSuffix(p.Driver, agentSuffix)
	if !ok {
		return ""
	}
	return name
}

// Program returns the name of the program that a model is, claude or cursor; "" if it is none, or an agent's command line.
func (p Provider) Program() string {
	switch p.Driver {
	case DriverClaude:
		return "claude"
	case DriverCursor:
		return "cursor"
	}
	return ""
}

// Harnesses are the names of the agents' command lines that there are providers for.
func Harnesses() []string { return []string{"claude", "codex", "opencode"} }

// HarnessProvider is the name of the built-in provider of an agent's command line.
func HarnessProvider(name string) string { return name + agentSuffix }

// Window returns the context window of a model in tokens, which is how many a prompt may have; 0 = unknown. What the provider says itself goes before
// the table that comes with the program.
func (p Provider) Window(model string) int {
	n, _ := p.window(model)
	return n
}

// WindowFrom says where the context window of a model stands; "" if nowhere.
func (p Provider) WindowFrom(model string) string {
	_, from := p.window(model)
	return from
}

func (p Provider) window(model string) (tokens int, from string) {
	at := " of provider " + p.Name + ", " + p.Source
	if n, own := p.Windows[model]; own {
		return n, "models." + model + ".context_window" + at
	}
	if p.ContextWindow > 0 {
		return p.ContextWindow, "context_window" + at
	}
	return price.Window([]string{p.Name, p.Driver}, model)
}

// The model that is used when only a key of Anthropic's is set.
const builtInModel = "claude-opus-5-5"

// builtIns are the providers that need no file, in the order in which they are tried.
func builtIns() []Provider {
	return []Provider{
		{Name: "anthropic", Driver: DriverAnthropic, APIKeyEnv: "ANTHROPIC_API_KEY", DefaultModel: builtInModel, Source: agent.ScopeBuiltIn, Automatic: true},
		{Name: "openai", Driver: DriverOpenAI, APIKeyEnv: "OPENAI_API_KEY", Source: agent.ScopeBuiltIn, Automatic: true},
		{Name: "claude", Driver: DriverClaude, Source: agent.ScopeBuiltIn, Automatic: true},
		{Name: "cursor", Driver: DriverCursor, Source: agent.ScopeBuiltIn, Automatic: true},
		{Name: "offline", Driver: DriverOffline, Source: agent.ScopeBuiltIn, Automatic: true},
		{Name: DriverClaudeAgent, Driver: DriverClaudeAgent, Source: agent.ScopeBuiltIn},
		{Name: DriverCodexAgent, Driver: DriverCodexAgent, Source: agent.ScopeBuiltIn},
		{Name: DriverOpencode, Driver: DriverOpencode, Source: agent.ScopeBuiltIn},
	}
}

// Providers are all providers that a spawn sees, and the defaults of the files.
type Providers struct {
	List           []Provider // those of the user's file first, then the built-in ones, then the project's
	UserDefault    Value[string]
	ProjectDefault Value[string]
	Problems       Problems
}

// LoadProviders returns the built-in providers, with what ANTHROPIC_BASE_URL, ANTHROPIC_MODEL,
// OPENAI_BASE_URL and OPENAI_MODEL say, then changed and joined by the user's providers.yaml and by
// the project's. It never fails: a provider with a mistake is listed with its Problem, and where a
// project's entry has a mistake, or asks for more than a project may, what the user has stays.
func LoadProviders(s Sources) Providers {
	p := Providers{List: builtIns()}
	p.readEnv(s)
	if src, file, ok := s.userFile("providers.yaml", &p.Problems); ok {
		p.UserDefault = p.read(src, file, s, false)
	}
	if src, file, ok := s.projectFile("providers.yaml", &p.Problems); ok {
		p.ProjectDefault = p.read(src, file, s, true)
	}
	if v := p.ProjectDefault; !s.TrustProject && v.V != p.UserDefault.V && p.Acts(v.V) {
		p.Problems = append(p.Problems, Problem{File: v.Origin, Key: "default_provider", Contained: true,
			Message: v.V + " is an agent's command line, and no agent.yaml limits the tools that it brings along, so a project cannot choose it for you; choose it with --provider, or allow it with --trust-project"})
		p.ProjectDefault = Value[string]{}
	}
	return p
}

// readEnv lets the vendors' own variables change the built-in providers.
func (p *Providers) readEnv(s Sources) {
	for prefix, name := range map[string]string{"ANTHROPIC_": "anthropic", "OPENAI_": "openai"} {
		e := &p.List[slices.IndexFunc(p.List, func(q Provider) bool { return q.Name == name })]
		if v := s.env(prefix + "MODEL"); v != "" {
			e.DefaultModel, e.Source = v, "environment"
		}
		v := s.env(prefix + "BASE_URL")
		if v == "" {
			continue
		}
		if e.Source = "environment"; validURL(v) {
			e.BaseURL = v
			continue
		}
		e.Problem = prefix + "BASE_URL must begin with http:// or https:// and name a host"
		p.Problems = append(p.Problems, agent.Problem{File: "environment", Key: prefix + "BASE_URL", Message: "must begin with http:// or https:// and name a host", Contained: true})
	}
}

// Acts reports whether name, or what stands before the "/" in it, is a provider that is an agent's command line.
func (p *Providers) Acts(name string) bool {
	name, _, _ = strings.Cut(name, "/")
	pr := p.find(name)
	return pr != nil && pr.Harness() != ""
}

// find returns the provider of a name, nil if there is none.
func (p *Providers) find(name string) *Provider {
	for i := range p.List {
		if p.List[i].Name == name {
			return &p.List[i]
		}
	}
	return nil
}

// clone returns a provider that shares nothing with p.
func (p Provider) clone() Provider {
	p.Headers, p.Windows, p.ExtraArgs = maps.Clone(p.Headers), maps.Clone(p.Windows), slices.Clone(p.ExtraArgs)
	return p
}
