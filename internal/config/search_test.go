package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// searchOf reads a config.yaml of the user, or of a project.
func searchOf(t *testing.T, text string, project bool) Config {
	t.Helper()
	dir := t.TempDir()
	src, file := Sources{UserDir: dir, Home: "/home/me"}, filepath.Join(dir, "config.yaml")
	if project {
		src = Sources{ProjectDir: dir, Home: "/home/me", TrustProject: true}
		file = filepath.Join(dir, ".rnix", "config.yaml")
		if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(src)
}

func TestSearchEnginesAreRead(t *testing.T) {
	for text, want := range map[string]struct{ url, env, file, command string }{
		"web: {search: {engine: brave}}":                                                                            {"https://api.search.brave.com/res/v1/web/search", "BRAVE_API_KEY", "", ""},
		"web: {search: {engine: tavily, api_key_env: MY_KEY}}":                                                      {"https://api.tavily.com/search", "MY_KEY", "", ""},
		"web: {search: {engine: brave, api_key_file: ~/k}}":                                                         {"https://api.search.brave.com/res/v1/web/search", "BRAVE_API_KEY", "/home/me/k", ""},
		"web: {search: {engine: searxng, url: 'http://10.0.0.7:8888'}}":                                             {"http://10.0.0.7:8888/search", "", "", ""},
		"web: {search: {engine: searxng, url: 'https://s.test/sub/search/'}}":                                       {"https://s.test/sub/search/search", "", "", ""},
		"web: {search: {engine: searxng, url: 'https://S.test/search', api_key_command: [~/bin/key, x]}}":           {"https://s.test/search", "WEB_SEARCH_API_KEY", "", "/home/me/bin/key x"},
		"web: {search: {engine: tavily, url: 'http://localhost:9/t', api_key_command: [pass, t], api_key_ttl: 1h}}": {"http://localhost:9/t", "TAVILY_API_KEY", "", "pass t"},
	} {
		c := searchOf(t, text, false)
		k := c.Search.Keyed
		if len(c.Problems) > 0 || c.Search.URL.V != want.url || k.APIKeyEnv != want.env || k.APIKeyFile != want.file || strings.Join(k.APIKeyCommand, " ") != want.command {
			t.Errorf("%s: %+v %v", text, c.Search, c.Problems)
		}
		if want.command != "" && k.APIKeyTTL != DefaultKeyTTL && k.APIKeyTTL != time.Hour {
			t.Errorf("%s: %v", text, k.APIKeyTTL)
		}
	}
}

func TestSearchEnginesWithMistakesAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"web: {search: {engine: altavista}}":                                        `config.yaml:1:24: web.search.engine: "altavista" is not known; write one of brave, searxng, tavily`,
		"web: {search: {url: 'https://s.test'}}":                                    `web.search.engine: "" is not known`,
		"web: {search: {engine: searxng}}":                                          "web.search.url: is missing; write the address of your instance",
		"web: {search: {engine: searxng, url: 'https://me:you@s.test'}}":            "without user and password",
		"web: {search: {engine: searxng, url: 's.test'}}":                           "must begin with http:// or https://",
		"web: {search: {engine: searxng, url: 'https://s.test?q='}}":                "without ? and #",
		"web: {search: {engine: brave, url: 'http://s.test'}}":                      "must begin with https://: everybody on the way could read the key",
		"web: {search: {engine: brave, api_key_env: 'sk-123'}}":                     "must be the name of a variable",
		"web: {search: {engine: brave, api_key_file: k}}":                           `"k" must be an absolute path`,
		"web: {search: {engine: brave, api_key_file: ''}}":                          "web.search.api_key_file",
		"web: {search: {engine: brave, api_key_command: []}}":                       "is empty; write a program",
		"web: {search: {engine: brave, api_key_command: [pass], api_key_ttl: 25h}}": "from 1s to 24h is possible",
		"web: {search: {engine: brave, key: x}}":                                    "web.search",
	} {
		c := searchOf(t, text, false)
		if got := strings.Join(c.Problems.Strings(), "\n"); c.Search.Engine.V != "" && !strings.Contains(text, "key: x") || !strings.Contains(got, want) {
			t.Errorf("%s: %q %+v", text, got, c.Search)
		}
	}
	c := searchOf(t, "web: {search: {engine: searxng, url: 'https://evil.test'}}", true)
	if c.Search.Engine.V != "" || !strings.Contains(strings.Join(c.Problems.Strings(), "\n"), "a project cannot set this") {
		t.Errorf("%+v %v", c.Search, c.Problems)
	}
}
