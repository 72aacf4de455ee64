package config

import (
	"slices"
	"strings"
	"time"

	"rnix/agent"
	"rnix/internal/hosts"
)

// The search engines whose answers are understood.
const (
	SearchBrave   = "brave"
	SearchSearXNG = "searxng"
	SearchTavily  = "tavily"
)

// SearchEngines are their names.
var SearchEngines = []string{SearchBrave, SearchSearXNG, SearchTavily}

// Search is the search engine that agents may ask. It is the user's only: it says where questions go, and with which key.
type Search struct {
	Engine Value[string] // one of SearchEngines; "" = there is none
	URL    Value[string] // where it is asked; "" = where its vendor has it
	// Keyed has the key: APIKeyEnv, APIKeyFile, APIKeyCommand and APIKeyTTL, which mean what they mean for a provider. APIKeyEnv is empty if none is needed.
	Keyed Provider
}

// usualSearch is where the engines of vendors are asked, and the variable that usually has their key.
var usualSearch = map[string]struct{ url, key string }{
	SearchBrave:  {"https://api.search.brave.com/res/v1/web/search", "BRAVE_API_KEY"},
	SearchTavily: {"https://api.tavily.com/search", "TAVILY_API_KEY"},
}

type searchLayer struct {
	Engine        *string         `yaml:"engine"`
	URL           *string         `yaml:"url"`
	APIKeyEnv     *string         `yaml:"api_key_env"`
	APIKeyFile    *string         `yaml:"api_key_file"`
	APIKeyCommand []string        `yaml:"api_key_command"`
	APIKeyTTL     *agent.Duration `yaml:"api_key_ttl"`
}

type webLayer struct {
	Search searchLayer `yaml:"search"`
	Port   *int        `yaml:"port"`
}

// empty reports whether nothing is said.
func (l *searchLayer) empty() bool {
	return l.Engine == nil && l.URL == nil && l.APIKeyEnv == nil && l.APIKeyFile == nil && l.APIKeyCommand == nil && l.APIKeyTTL == nil
}

// searchDefaults is what holds if nothing is said.
func searchDefaults() Search {
	return Search{Engine: Value[string]{"", FromDefault}, URL: Value[string]{"", FromDefault}}
}

// apply takes over what a layer says of the search engine. One with a mistake is none: what is asked would go elsewhere.
func (e *Search) apply(l *searchLayer, s sink) {
	if l.empty() || !s.usersOnly("web.search") {
		return
	}
	key := func(name string) string { return "web.search." + name }
	next, good := Search{Keyed: Provider{Name: "web.search"}}, true
	bad := func(name, format string, args ...any) {
		s.problem(key(name), format, args...)
		good = false
	}
	if l.Engine == nil || !slices.Contains(SearchEngines, *l.Engine) {
		said := ""
		if l.Engine != nil {
			said = *l.Engine
		}
		bad("engine", "%q is not known; write one of %s", said, strings.Join(SearchEngines, ", "))
		return
	}
	usual := usualSearch[*l.Engine]
	next.Engine = Value[string]{*l.Engine, s.origin(key("engine"))}
	next.URL, next.Keyed.APIKeyEnv = Value[string]{usual.url, FromDefault}, usual.key
	if v := l.URL; v != nil {
		next.URL = Value[string]{*v, s.origin(key("url"))}
	}
	if v := l.APIKeyEnv; v != nil {
		if *v != "" && !variableName().MatchString(*v) {
			bad("api_key_env", "must be the name of a variable; the key itself must not stand in a file")
		}
		next.Keyed.APIKeyEnv = *v
	}
	if v := l.APIKeyFile; v != nil {
		file, ok := s.directory(key("api_key_file"), *v)
		if good = good && ok; *v == "" {
			bad("api_key_file", "is empty")
		}
		next.Keyed.APIKeyFile = file
	}
	if v := l.APIKeyCommand; v != nil {
		if len(v) == 0 || v[0] == "" {
			bad("api_key_command", "is empty; write a program and its arguments, such as [secret-tool, lookup, service, search]")
		} else {
			next.Keyed.APIKeyCommand, next.Keyed.APIKeyTTL = slices.Clone(v), DefaultKeyTTL
			if rest, ok := strings.CutPrefix(v[0], "~/"); ok && s.home != "" {
				next.Keyed.APIKeyCommand[0] = s.home + "/" + rest
			}
		}
	}
	if l.APIKeyTTL != nil && l.APIKeyCommand == nil && s.warn != nil {
		s.warn(key("api_key_ttl"), "has no effect without api_key_command; remove it")
	}
	if v := l.APIKeyTTL; v != nil {
		if d := time.Duration(*v); d < time.Second || d > maxKeyTTL {
			bad("api_key_ttl", "is %s; from 1s to 24h is possible", *v)
		} else {
			next.Keyed.APIKeyTTL = d
		}
	}
	if next.Keyed.APIKeyEnv == "" && (next.Keyed.APIKeyFile != "" || len(next.Keyed.APIKeyCommand) > 0) {
		next.Keyed.APIKeyEnv = "WEB_SEARCH_API_KEY" // the key has a name wherever one is asked for
	}
	if why := next.place(); why != "" {
		bad("url", "%s", why)
	}
	if good {
		*e = next
	}
}

// place settles the whole address at which the engine is asked, or says what is wrong with what is written.
func (e *Search) place() (why string) {
	if e.URL.V == "" {
		return "is missing; write the address of your instance, such as https://search.example.org"
	}
	u, to, err := hosts.ParseURL(e.URL.V)
	switch {
	case err != nil || u.RawQuery != "" || strings.Contains(e.URL.V, "#"):
		return "must begin with http:// or https:// and name a host, without user and password, and without ? and #"
	case u.Scheme == "http" && e.Keyed.APIKeyEnv != "" && to.Name != "localhost" && !to.Addr.IsLoopback():
		return "must begin with https://: everybody on the way could read the key"
	}
	if e.Engine.V == SearchSearXNG && !strings.HasSuffix(u.Path, "/search") {
		u = u.JoinPath("search")
	}
	e.URL.V = u.String()
	return ""
}
