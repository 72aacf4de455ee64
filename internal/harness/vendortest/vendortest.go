// Package vendortest gives tests what the real agent command lines need: the programs themselves, if they
// are installed, a stand-in of their vendors' APIs, a home of their own, and a small MCP server. What they
// ask their vendors for is kept in memory only.
package vendortest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/parallel"
	"rnix/internal/proc"
	"rnix/internal/soak"
)

// programs are where npm puts each program, below its directory of packages, and the package.
var programs = map[string]struct{ path, from string }{
	"claude":   {".bin/claude", "@anthropic-ai/claude-code@2.1.329"},
	"codex":    {"@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", "@openai/codex@0.169.0"},
	"opencode": {"opencode-ai/bin/opencode.exe", "opencode-ai@1.18.33"},
}

// Program returns the real program of that name: from $RNIX_TEST_NPM/node_modules (default: rnix-test/npm in
// the user's cache directory), or from PATH. It skips the test if there is none, with -short, and in gates in which the test
// does not have its turn (soak.Turn).
func Program(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("RNIX_TEST_NPM")
	if dir == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			dir = filepath.Join(cache, "rnix-test", "npm")
		}
	}
	p := programs[name]
	path := filepath.Join(dir, "node_modules", p.path)
	if _, err := os.Stat(path); err != nil {
		if path, err = proc.LookPath(name, os.Environ()); err != nil {
			t.Skip("needs " + name + ": npm install --prefix " + dir + " " + p.from)
		}
	}
	if testing.Short() {
		t.Skip("needs more time than -short allows")
	}
	soak.Turn(t)
	return path
}

// Key is the key that the stand-in takes.
const Key = "sk-ant-dummy-000"

// Vendor is a stand-in of a vendor, and a user who has a key for it.
type Vendor struct {
	*llmtest.API
	URL  string            // of the stand-in
	Home string            // of the user, not below /tmp
	Work string            // an empty directory in it
	Vars map[string]string // of the user, beside HOME and PATH
}

// New starts a stand-in for the time of a test, and makes the test parallel. A request without Key gets status 401.
func New(t testing.TB, script func(llmtest.Request) llmtest.Reply) *Vendor {
	t.Helper()
	parallel.Test(t)
	home := newHome(t)
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	work := filepath.Join(home, "work")
	for _, dir := range []string{work, filepath.Join(home, "tmp")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	api, url := llmtest.NewAPI(t, script)
	api.Require(Key)
	return &Vendor{API: api, URL: url, Home: home, Work: work, Vars: map[string]string{
		"ANTHROPIC_API_KEY": Key, "ANTHROPIC_BASE_URL": url, "OPENAI_API_KEY": Key, "CODEX_API_KEY": Key, "OPENAI_BASE_URL": url + "/v1",
	}}
}

// newHome makes a home for the user of a test, or skips the test if there is no place for one.
func newHome(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "rnix-test")
	}
	home, lack := homeIn(cache, os.TempDir(), func(base string) (string, error) {
		if err := os.MkdirAll(base, 0o700); err != nil {
			return "", err
		}
		return os.MkdirTemp(base, "home")
	})
	if lack != "" {
		t.Skip(lack)
	}
	return home
}

// homeIn has create make a home in the first directory that will do: cache, which may be empty, else /var/tmp. None will do below
// /tmp or temp, where the sandboxes of agent CLIs let everything be written. lack says what the test needs if there is none.
func homeIn(cache, temp string, create func(base string) (string, error)) (home, lack string) {
	var why []string
	for _, base := range []string{cache, "/var/tmp"} {
		if base == "" {
			continue
		}
		reason := ""
		for _, dir := range []string{"/tmp", temp} {
			if reason == "" && below(dir, base) {
				reason = "in " + dir
			}
		}
		if reason == "" {
			home, err := create(base)
			if err == nil {
				return home, ""
			}
			reason = err.Error()
		}
		why = append(why, base+" ("+reason+")")
	}
	return "", "needs a directory outside of /tmp and TMPDIR, because the sandboxes of agent CLIs let programs write there; cannot use " + strings.Join(why, ", ") + "; set HOME or XDG_CACHE_HOME"
}

// below reports whether a path is dir or lies in it.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// UsedOpencode has the user have used opencode before: it installs packages for plugins into the directory of its configuration, once, from npm's registry.
// Without them each test would fetch 31 MB first. It returns the directory.
func (v *Vendor) UsedOpencode(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(v.Home, ".config", "opencode")
	if err := os.MkdirAll(filepath.Join(dir, "node_modules"), 0o700); err != nil {
		t.Fatal(err)
	}
	// It looks no further than that.
	if err := os.WriteFile(filepath.Join(dir, "package-lock.json"), []byte(`{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"*"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Getenv looks up one of Vars.
func (v *Vendor) Getenv(name string) string { return v.Vars[name] }

// Environ is the environment of the user, without Vars. What the programs leave in TMPDIR goes with Home.
func (v *Vendor) Environ() []string {
	return []string{"HOME=" + v.Home, "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TMPDIR=" + filepath.Join(v.Home, "tmp")}
}

// Play returns a script that gives one reply after the other, and the last one again and again.
func Play(replies ...llmtest.Reply) func(llmtest.Request) llmtest.Reply {
	return func(r llmtest.Request) llmtest.Reply { return replies[min(r.N, len(replies)-1)] }
}

// Heard reports whether a request has a text in one of its messages, of whatever role.
func Heard(r llmtest.Request, text string) bool {
	return slices.ContainsFunc(r.Messages, func(m llmtest.Message) bool { return contains(m, text) })
}
