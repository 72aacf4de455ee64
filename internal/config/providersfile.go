package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/agent"
	"rnix/internal/pattern"
	"rnix/internal/yamlfile"
)

// providersFile is providers.yaml as it is written.
type providersFile struct {
	Version         version         `yaml:"version"`
	DefaultProvider string          `yaml:"default_provider"`
	Providers       []providerEntry `yaml:"providers"`
}

type providerEntry struct {
	Name            string                `yaml:"name"`
	Driver          string                `yaml:"driver"`
	Command         string                `yaml:"command"`
	DefaultModel    string                `yaml:"default_model"`
	BaseURL         string                `yaml:"base_url"`
	APIKeyEnv       string                `yaml:"api_key_env"`
	APIKeyFile      string                `yaml:"api_key_file"`
	APIKeyCommand   []string              `yaml:"api_key_command"`
	APIKeyTTL       agent.Duration        `yaml:"api_key_ttl"`
	Headers         map[string]string     `yaml:"headers"`
	MaxTokens       int                   `yaml:"max_tokens"`
	ReasoningEffort string                `yaml:"reasoning_effort"`
	Thinking        scalar                `yaml:"thinking"`
	API             string                `yaml:"api"`
	ExtraArgs       []string              `yaml:"extra_args"`
	TimeoutSec      int                   `yaml:"timeout_sec"`
	GraceSec        int                   `yaml:"grace_sec"`
	Concurrency     int                   `yaml:"concurrency"`
	ContextWindow   int                   `yaml:"context_window"`
	Models          map[string]modelEntry `yaml:"models"`
	Script          string                `yaml:"script"`
	Tools           string                `yaml:"tools"`
	Sandbox         string                `yaml:"sandbox"`
}

type modelEntry struct {
	ContextWindow int `yaml:"context_window"`
}

// version is the format of the file: 1, with or without quotes.
type version string

func (v *version) UnmarshalText(text []byte) error {
	if s := string(text); s != "1" && s != "1.0" {
		return fmt.Errorf("%q is not known to this program, which reads version \"1\"; the file is not used", s)
	}
	*v = "1"
	return nil
}

// scalar is a word or a number.
type scalar string

func (s *scalar) UnmarshalText(text []byte) error { *s = scalar(text); return nil }

var (
	providerName = pattern.New(`^[A-Za-z0-9_-]{1,64}$`)
	variableName = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// agentKeys are those of agents' command lines.
var agentKeys = []string{"command", "extra_args", "reasoning_effort", "tools", "sandbox"}

// keys that each driver has a use for, besides those that all have.
var driverKeys = map[string][]string{
	DriverClaude:       {"command", "extra_args", "grace_sec", "reasoning_effort"},
	DriverCursor:       {"command", "extra_args", "grace_sec"},
	DriverClaudeAgent:  agentKeys,
	DriverCodexAgent:   agentKeys,
	DriverOpencode:     agentKeys,
	DriverAnthropic:    {"base_url", "api_key_env", "api_key_file", "api_key_command", "api_key_ttl", "headers", "max_tokens", "reasoning_effort", "thinking"},
	DriverOpenAI:       {"base_url", "api_key_env", "api_key_file", "api_key_command", "api_key_ttl", "headers", "max_tokens", "reasoning_effort", "api"},
	DriverOpenAICompat: {"base_url", "api_key_env", "api_key_file", "api_key_command", "api_key_ttl", "headers", "max_tokens", "reasoning_effort", "api"},
	DriverReplay:       {"script"},
	DriverOffline:      nil,
}

// usualKey is the variable of the key, unless the file names one. The driver openai-compat has none:
// the key of one vendor is not sent to another's server.
var usualKey = map[string]string{DriverAnthropic: "ANTHROPIC_API_KEY", DriverOpenAI: "OPENAI_API_KEY"}

// drivers are the names of the drivers.
var drivers = []string{DriverAnthropic, DriverClaude, DriverClaudeAgent, DriverCodexAgent, DriverCursor, DriverOffline, DriverOpenAI, DriverOpenAICompat,
	DriverOpencode, DriverReplay}

// specialKeys are those that not every driver has. untrusted are those that a project may not set:
// they say what is started, where the conversation goes, and which secret goes along.
var (
	specialKeys = []string{"command", "extra_args", "grace_sec", "base_url", "api_key_env", "api_key_file", "api_key_command", "api_key_ttl", "headers", "max_tokens", "reasoning_effort", "thinking", "api", "script", "tools", "sandbox"}
	untrusted   = []string{"command", "extra_args", "base_url", "api_key_env", "api_key_file", "api_key_command", "api_key_ttl", "headers", "tools", "sandbox"}
)

// read joins a file's providers with those that there are, by name, and returns its default.
func (p *Providers) read(src []byte, file string, s Sources, project bool) Value[string] {
	var f providersFile
	d := yamlfile.Decode(src, &f, yamlfile.Options{File: file, AllowEmpty: true})
	defer func() { p.Problems = append(p.Problems, d.Problems()...) }()
	if len(d.Problems().Under("version")) > 0 {
		return Value[string]{}
	}
	r := reader{d: d, s: s, dir: filepath.Dir(file), project: project && !s.TrustProject, shared: project}
	seen := map[string]bool{}
	var fresh []Provider
	for i, e := range f.Providers {
		key := fmt.Sprintf("providers[%d]", i)
		switch {
		case e.Name == "":
			if len(d.Problems().Under(key)) == 0 || !d.Has(key+".name") {
				d.Problemf(key, "the name is missing")
			}
			continue
		case !providerName().MatchString(e.Name):
			d.Problemf(key+".name", "%q cannot be a name; use letters, digits, '-' and '_', at most 64", e.Name)
			continue
		case seen[e.Name]:
			d.Problemf(key+".name", "%q stands in this file a second time", e.Name)
			p.blame(d, key, fresh, e.Name)
			continue
		}
		seen[e.Name] = true
		have := p.find(e.Name)
		next := r.provider(key, e, have)
		if bad := d.Problems().Under(key).Errors(); len(bad) > 0 {
			if have != nil && project {
				p.blame(d, key, nil, e.Name) // what the user has stays as it is
				continue
			}
			next.blame(d, key)
		}
		next.Automatic = !project || have != nil && have.Automatic
		if have != nil {
			*have = next
		} else {
			fresh = append(fresh, next)
		}
	}
	if project {
		p.List = append(p.List, fresh...)
	} else {
		p.List = append(fresh, p.List...)
	}
	if f.DefaultProvider == "" {
		return Value[string]{}
	}
	return Value[string]{f.DefaultProvider, d.Origin("default_provider")}
}

// reader turns the entries of one file into providers.
type reader struct {
	d       *yamlfile.Doc
	s       Sources
	dir     string // of the file
	project bool   // it is a project's, and not trusted
	shared  bool   // it is a project's
}

// provider returns have with the keys of e, or a new one if have is nil, and reports what is wrong.
func (r reader) provider(key string, e providerEntry, have *Provider) Provider {
	d := r.d
	p := Provider{Name: e.Name, Driver: e.Driver}
	if have != nil {
		p = have.clone()
		if d.Has(key + ".base_url") {
			p.Problem = "" // a wrong address from the environment does not matter any more
			if have.Wrong {
				p.Problem = have.Problem
			}
		}
		if e.Driver != "" && e.Driver != p.Driver {
			if r.project {
				d.Containf(key+".driver", "%s has the driver %s already; give the project's provider another name", e.Name, p.Driver)
				return p
			}
			p = Provider{Name: e.Name, Driver: e.Driver} // another thing of the same name
			if have.Wrong {
				p.Problem, p.Wrong = have.Problem, true
			}
		}
	}
	p.Source = d.Origin(key)
	own, known := driverKeys[p.Driver]
	if !known {
		if p.Driver == "" {
			d.Problemf(key, "driver is missing; write one of %s", strings.Join(drivers, ", "))
		} else {
			near := ""
			if n := yamlfile.Nearest(p.Driver, drivers); n != "" {
				near = fmt.Sprintf("; did you mean %q?", n)
			}
			d.Problemf(key+".driver", "%q is not known%s; there is %s", p.Driver, near, strings.Join(drivers, ", "))
		}
		if !r.project { // where its key is, is hidden all the same
			r.texts(key, e, &p)
			p.nameKey()
		}
		return p
	}
	for _, k := range specialKeys {
		at := key + "." + k
		switch {
		case !d.Has(at):
		case !slices.Contains(own, k):
			d.Warnf(at, "has no effect with the driver %s; remove it", p.Driver)
		case k == "sandbox" && e.Sandbox == "read-only" || k == "tools" && e.Tools == ToolsKernel: // nothing is tighter
		case k == "api_key_command" && r.shared:
			d.Containf(at, "a project cannot set this, trusted or not, because it runs as you and in no sandbox; write it into your own providers.yaml")
		case r.project && slices.Contains(untrusted, k):
			d.Containf(at, "a project cannot set this, because it decides what is started and where the conversation goes; "+
				"look at it, and write it into your own providers.yaml")
		}
	}
	r.texts(key, e, &p)
	r.numbers(key, e, &p)
	if p.APIKeyEnv == "" && !d.Has(key+".api_key_env") {
		p.APIKeyEnv = usualKey[p.Driver]
	}
	p.nameKey()
	if p.Driver == DriverOpenAICompat && p.BaseURL == "" && len(d.Problems().Under(key+".base_url")) == 0 {
		d.Problemf(key, "base_url is missing; the driver %s needs the address of the server", p.Driver)
	}
	if p.Driver == DriverReplay && p.Script == "" && len(d.Problems().Under(key+".script")) == 0 {
		d.Problemf(key, "script is missing; the driver %s needs a file with the answers", p.Driver)
	}
	return p
}

func (r reader) texts(key string, e providerEntry, p *Provider) {
	d := r.d
	set := func(k, v string, to *string, check func(string) string) {
		if !d.Has(key+"."+k) || len(d.Problems().Under(key+"."+k)) > 0 {
			return
		}
		if why := check(v); why != "" {
			d.Problemf(key+"."+k, "%s", why)
			return
		}
		*to = v
	}
	word := func(v string) string {
		if strings.ContainsAny(v, " \t\r\n") {
			return fmt.Sprintf("%q must be one word", v)
		}
		return ""
	}
	set("default_model", e.DefaultModel, &p.DefaultModel, word)
	set("reasoning_effort", e.ReasoningEffort, &p.ReasoningEffort, word)
	var thinking string
	set("thinking", string(e.Thinking), &thinking, func(v string) string { _, why := thinkingOf(v); return why })
	if thinking != "" {
		p.Thinking, _ = thinkingOf(thinking)
	}
	set("api_key_env", e.APIKeyEnv, &p.APIKeyEnv, func(v string) string {
		if v != "" && !variableName().MatchString(v) {
			return "must be the name of a variable; the key itself must not stand in a file"
		}
		return ""
	})
	set("api_key_file", r.home(e.APIKeyFile), &p.APIKeyFile, func(v string) string {
		if !filepath.IsAbs(v) {
			return "must be an absolute path, or begin with ~/"
		}
		return ""
	})
	r.keyCommand(key, e, p)
	set("base_url", e.BaseURL, &p.BaseURL, func(v string) string {
		if !validURL(v) {
			return "must begin with http:// or https:// and name a host, without user and password"
		}
		return ""
	})
	set("command", r.home(e.Command), &p.Command, func(v string) string {
		if v == "" || strings.Contains(v, "/") && !filepath.IsAbs(v) {
			return "must be the name of a program, or an absolute path; arguments go into extra_args"
		}
		return ""
	})
	script := r.home(e.Script)
	if script != "" && !filepath.IsAbs(script) {
		script = filepath.Join(r.dir, script)
	}
	set("script", script, &p.Script, func(v string) string {
		if v == "" {
			return "is empty; the driver needs a file with the answers"
		}
		if rel, err := filepath.Rel(r.s.ProjectDir, v); r.project && (err != nil || !filepath.IsLocal(rel)) {
			return "must be in the project"
		}
		return ""
	})
	among := func(words ...string) func(string) string {
		return func(v string) string {
			if !slices.Contains(words, v) {
				return fmt.Sprintf("invalid value %q: want one of %s", v, strings.Join(words, ", "))
			}
			return ""
		}
	}
	set("api", e.API, &p.API, among(APIChat, APIResponses))
	set("tools", e.Tools, &p.Tools, among(ToolsOwn, ToolsKernel))
	set("sandbox", e.Sandbox, &p.Sandbox, among("read-only", "workspace-write", "full"))
	if d.Has(key + ".extra_args") {
		p.ExtraArgs = e.ExtraArgs
	}
	if d.Has(key+".headers") && !r.project {
		p.Headers = map[string]string{}
		for k, v := range e.Headers {
			text, err := agent.Expand(v, r.s.Lookup)
			if err != nil { // it depends on the environment; the provider cannot be used
				d.Containf(key+".headers."+k, "%v", err)
				continue
			}
			if k == "" || strings.ContainsAny(k, " :\r\n\t") || strings.ContainsAny(text, "\r\n") {
				d.Problemf(key+".headers."+k, "is not a header")
			}
			p.Headers[k] = text
		}
	}
}

// Bounds of how many tokens a model is given to think with. The vendor refuses less.
const minThinking, maxThinking = 1024, 1_000_000

// thinkingOf reads how much a model thinks before it answers: "adaptive", "off" or a number of tokens. why is not empty if it is none of these.
func thinkingOf(v string) (tokens int, why string) {
	switch v {
	case "off":
		return 0, ""
	case "adaptive":
		return -1, ""
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < minThinking || n > maxThinking {
		return 0, fmt.Sprintf("invalid value %q: want adaptive, off, or a number of tokens from %d to %d", v, minThinking, maxThinking)
	}
	return n, ""
}

func (r reader) numbers(key string, e providerEntry, p *Provider) {
	d := r.d
	set := func(k string, v, limit int, use func()) {
		switch {
		case !d.Has(key+"."+k) || len(d.Problems().Under(key+"."+k)) > 0:
		case v < 1 || v > limit:
			d.Problemf(key+"."+k, "%d must be between 1 and %d; leave the key out for the usual value", v, limit)
		default:
			use()
		}
	}
	const day, tokens = 24 * 3600, 100_000_000
	set("timeout_sec", e.TimeoutSec, day, func() { p.Timeout = time.Duration(e.TimeoutSec) * time.Second })
	set("grace_sec", e.GraceSec, 600, func() { p.Grace = time.Duration(e.GraceSec) * time.Second })
	set("max_tokens", e.MaxTokens, tokens, func() { p.MaxTokens = e.MaxTokens })
	set("concurrency", e.Concurrency, maxConcurrency, func() { p.Concurrency = e.Concurrency })
	set("context_window", e.ContextWindow, tokens, func() { p.ContextWindow = e.ContextWindow })
	for name, m := range e.Models {
		set("models."+name+".context_window", m.ContextWindow, tokens, func() {
			if p.Windows == nil {
				p.Windows = map[string]int{}
			}
			p.Windows[name] = m.ContextWindow
		})
	}
}

// home replaces ~/ by the home directory.
func (r reader) home(v string) string {
	if rest, ok := strings.CutPrefix(v, "~/"); ok && r.s.Home != "" {
		return filepath.Join(r.s.Home, rest)
	}
	return v
}

// validURL reports whether v is the address of a server. User and password in it would end up in
// errors and logs, so they are refused.
func validURL(v string) bool {
	u, err := url.Parse(v)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}
