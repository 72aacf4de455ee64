package confine

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/harness"
	"rnix/internal/sandbox"
	"rnix/types"
	"rnix/vfs"
)

// put writes a file and the directories above it.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func lookup(t *testing.T, name string) harness.CLI {
	t.Helper()
	cli, err := harness.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return cli
}

func TestCLIHasAHomeOfItsOwnWithItsLogin(t *testing.T) {
	for _, name := range harness.Names() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.can(sandbox.RungBwrap)
			cli := lookup(t, name)
			l := cli.Login()
			login := filepath.Join(w.Home, l.Dir, l.Files[0])
			put(t, login, `{"token":"1"}`)
			put(t, filepath.Join(w.Home, ".local", "bin", "x"), "tool")
			put(t, filepath.Join(w.Home, l.Settings[0]), "settings")
			put(t, filepath.Join(w.Home, ".ssh", "id"), "secret")
			put(t, filepath.Join(w.Home, "go", "x"), "tool")
			put(t, filepath.Join(w.Home, "opt", "node_modules", "pkg", "cli"), "#!")
			dir := filepath.Join(w.Data, "session")
			w.caller.Env = append(w.caller.Env, "XDG_CONFIG_HOME=/elsewhere")
			c, err := w.CLI(w.caller, cli, filepath.Join(w.Home, "opt", "node_modules", "pkg", "cli"), dir, false)
			if err != nil || c.Home == "" || !slices.Contains(c.Box.Env, "HOME="+c.Home) || strings.Contains(strings.Join(c.Box.Env, "\n"), "XDG_CONFIG_HOME") {
				t.Fatalf("%+v %v", c, err)
			}
			t.Cleanup(c.Done)
			own := filepath.Join(c.Home, l.Dir, l.Files[0])
			if has(t, own) != `{"token":"1"}` || has(t, filepath.Join(c.Home, l.Settings[0])) != "settings" || has(t, filepath.Join(c.Home, "go", "x")) != "tool" {
				t.Error("its home lacks something")
			}
			p := c.Box.Plan.Policy
			if p.Net != sandbox.NetOpen {
				t.Errorf("network %s", p.Net)
			}
			for path, want := range map[string][2]bool{
				own: {true, true}, login: {false, false}, filepath.Join(w.Home, l.Settings[0]): {true, false}, filepath.Join(w.Home, ".ssh", "id"): {false, false},
				w.work + "/x": {true, true}, w.work + "/.git/hooks/x": {true, false}, w.work + "/.mcp.json": {true, false}, w.Data + "/x": {false, false}, dir + "/mcp.json": {true, false},
				filepath.Join(w.Home, "opt", "node_modules", "other", "x"): {true, false}, filepath.Join(w.Home, "opt", "x"): {false, false},
			} {
				if got := [2]bool{p.Allows(path, sandbox.AccessRead), p.Allows(path, sandbox.AccessWrite)}; got != want {
					t.Errorf("%s: read, write %v, want %v", path, got, want)
				}
			}
			put(t, own, `{"token":"2"}`) // as it refreshes its login
			if l.Tokens == nil && has(t, login) != `{"token":"2"}` {
				t.Error("the user's login was not refreshed")
			}
			read, err := w.CLI(w.caller, cli, "x", dir, true)
			if err != nil || read.Home == c.Home || // it could bring a hook to those that write
				read.Box.Plan.Policy.Allows(w.work+"/x", sandbox.AccessWrite) || !read.Box.Plan.Policy.Allows(w.work+"/x", sandbox.AccessRead) {
				t.Errorf("one that only reads: %v", err)
			}
			t.Cleanup(read.Done)
			w.profile.Sandbox.Level = sandbox.LevelOff
			if c, err := w.CLI(w.caller, cli, "x", dir, false); err != nil || c.Home != "" || c.Box.Plan.Rung != sandbox.RungNone {
				t.Errorf("without a sandbox: %+v %v", c, err)
			}
			if _, err := w.CLI(vfs.Caller{PID: 9, WorkDir: w.work}, cli, "x", dir, false); types.CodeOf(err) != types.ErrPermission {
				t.Errorf("of a process without a profile: %v", err)
			}
		})
	}
}

// home is a home of its own of claude's, beside a user's.
type home struct {
	user, own string
	t         *testing.T
}

func newHome(t *testing.T) home {
	dir := t.TempDir()
	h := home{filepath.Join(dir, "user"), filepath.Join(dir, "own"), t}
	if err := os.Mkdir(h.own, 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h home) furnish(dir string) error {
	l := lookup(h.t, "claude").Login()
	wants, err := readFacts(l, h.user, dir)
	if err != nil {
		return err
	}
	return (&guest{login: l, user: h.user, dir: dir, home: h.own, tools: true}).furnish(wants)
}

func (h home) login() string { return filepath.Join(h.user, ".claude", ".credentials.json") }
func (h home) mine() string  { return filepath.Join(h.own, ".claude", ".credentials.json") }

func TestLoginIsTheSameInBothHomes(t *testing.T) {
	h := newHome(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(h.furnish(""))
	if _, err := os.Stat(h.mine()); err == nil {
		t.Error("there is a login that the user has not")
	}
	put(t, h.login(), `{"n":1}`)
	must(h.furnish(""))
	put(t, h.login(), `{"n":2}`) // the user's program, in place
	if has(t, h.mine()) != `{"n":2}` {
		t.Error(has(t, h.mine()))
	}
	// A program that puts another file in the place of its own: the later one counts, if it is a login at all.
	replace := func(path, text string, age time.Duration) {
		t.Helper()
		must(os.Remove(path))
		put(t, path, text)
		at := time.Now().Add(age)
		must(os.Chtimes(path, at, at))
	}
	replace(h.mine(), `{"n":3}`, time.Hour)
	must(h.furnish(""))
	if has(t, h.login()) != `{"n":3}` {
		t.Errorf("what it has refreshed is lost: %s", has(t, h.login()))
	}
	replace(h.mine(), `{"n":`, 2*time.Hour)
	must(h.furnish(""))
	if has(t, h.login()) != `{"n":3}` || has(t, h.mine()) != `{"n":3}` {
		t.Errorf("what is no login is the user's: %s", has(t, h.login()))
	}
	replace(h.login(), `{"n":4}`, 3*time.Hour)
	must(h.furnish(""))
	if has(t, h.mine()) != `{"n":4}` {
		t.Errorf("the user's login of another file: %s", has(t, h.mine()))
	}
	must(os.Remove(h.login())) // logged out
	must(h.furnish(""))
	if _, err := os.Stat(h.mine()); err == nil {
		t.Error("a login that the user has given up is there")
	}
	elsewhere := filepath.Join(h.user, "elsewhere")
	put(t, filepath.Join(elsewhere, ".credentials.json"), `{"n":5}`)
	put(t, filepath.Join(elsewhere, "settings.json"), "elsewhere")
	must(h.furnish(elsewhere))
	if has(t, h.mine()) != `{"n":5}` || has(t, filepath.Join(h.own, ".claude", "settings.json")) != "elsewhere" {
		t.Error("CLAUDE_CONFIG_DIR does not count")
	}
}

func TestFactsOfALoginAreGivenAndNoOthers(t *testing.T) {
	h := newHome(t)
	put(t, filepath.Join(h.user, ".claude.json"), `{"oauthAccount":{"id":1},"mcpServers":{"x":{"env":{"KEY":"secret"}}},"hasCompletedOnboarding":true}`)
	put(t, filepath.Join(h.own, ".claude.json"), `{"numStartups":3,"primaryApiKey":"old"}`)
	if err := h.furnish(""); err != nil {
		t.Fatal(err)
	}
	var facts map[string]any
	if err := json.Unmarshal([]byte(has(t, filepath.Join(h.own, ".claude.json"))), &facts); err != nil || len(facts) != 3 || facts["numStartups"] != 3.0 || facts["hasCompletedOnboarding"] != true {
		t.Errorf("%v %v", facts, err)
	}
}

// A file of facts that the user's program is writing is read again; one that is and stays no JSON is refused.
func TestFactsThatAreBeingWrittenAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		file := filepath.Join(h.user, ".claude.json")
		put(t, file, `{"oauth`)
		time.AfterFunc(factsTime/2, func() { put(t, file, `{"userID":"u"}`) })
		if err := h.furnish(""); err != nil || has(t, filepath.Join(h.own, ".claude.json")) != `{"userID":"u"}` {
			t.Error(err)
		}
		put(t, file, `{`)
		began := time.Now()
		if err := h.furnish(""); types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), ".claude.json") {
			t.Errorf("what is no JSON: %v", err)
		}
		if d := time.Since(began); d < factsTime || d > 2*factsTime {
			t.Errorf("refused after %v", d)
		}
	})
}

// Whatever a program makes of its home, nothing outside of it is changed or given to it.
func TestHomeOfACLILeadsNowhere(t *testing.T) {
	for name, make := range map[string]func(h home) error{
		"the directory is a link": func(h home) error {
			return os.Symlink(filepath.Join(h.user, "precious"), filepath.Join(h.own, ".claude"))
		},
		"the login is a link":      func(h home) error { return linkLogin(h, filepath.Join(h.user, "precious", ".credentials.json")) },
		"the login is a pipe":      func(h home) error { return mkfifo(h.mine()) },
		"the login is a directory": func(h home) error { return os.MkdirAll(filepath.Join(h.mine(), "x"), 0o700) },
		"the facts are a link": func(h home) error {
			return os.Symlink(filepath.Join(h.user, "precious", ".credentials.json"), filepath.Join(h.own, ".claude.json"))
		},
		"the facts are a pipe": func(h home) error { return mkfifo(filepath.Join(h.own, ".claude.json")) },
		"the part is a link": func(h home) error {
			return os.Symlink(filepath.Join(h.user, "precious", ".credentials.json"), filepath.Join(h.own, ".claude.json.part"))
		},
		"the directory is a pipe":   func(h home) error { return unix.Mkfifo(filepath.Join(h.own, ".claude"), 0o600) },
		"the tools are a link":      func(h home) error { return os.Symlink("/", filepath.Join(h.own, ".local")) },
		"no right to the directory": func(h home) error { return errors.Join(mkfifo(h.mine()), os.Chmod(filepath.Dir(h.mine()), 0)) },
		"no right to the login": func(h home) error {
			return errors.Join(os.MkdirAll(filepath.Join(h.mine(), "x"), 0o700), os.Chmod(h.mine(), 0))
		},
		"the directory is a link to /": func(h home) error { return os.Symlink("/", filepath.Join(h.own, ".claude")) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			put(t, h.login(), `{"n":1}`)
			put(t, filepath.Join(h.user, ".claude.json"), `{"userID":"u"}`)
			precious := filepath.Join(h.user, "precious", ".credentials.json")
			put(t, precious, `{"precious":true}`)
			if err := os.MkdirAll(h.own, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := make(h); err != nil {
				t.Fatal(err)
			}
			err := h.furnish("")
			if has(t, precious) != `{"precious":true}` || has(t, h.login()) != `{"n":1}` {
				t.Errorf("a file of the user's was changed: %s %s", has(t, precious), has(t, h.login()))
			}
			if err != nil {
				t.Errorf("%v", err)
			}
			if err == nil && (has(t, h.mine()) != `{"n":1}` || !strings.Contains(has(t, filepath.Join(h.own, ".claude.json")), `"userID":"u"`)) {
				t.Error("its login is not there")
			}
			if entries, _ := os.ReadDir(filepath.Join(h.user, "precious")); len(entries) != 1 {
				t.Errorf("%v", entries)
			}
		})
	}
}

func mkfifo(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return unix.Mkfifo(path, 0o600)
}

func linkLogin(h home, to string) error {
	if err := os.MkdirAll(filepath.Dir(h.mine()), 0o700); err != nil {
		return err
	}
	return os.Symlink(to, h.mine())
}

// Below Landlock, or without a sandbox, commands can make a pipe in the user's home.
func TestAPipeInTheUsersHomeIsNotWaitedFor(t *testing.T) {
	h := newHome(t)
	l := lookup(t, "claude").Login()
	pipes := []string{filepath.Join(h.user, l.Facts), filepath.Join(h.user, l.Settings[0]), h.login()}
	for _, pipe := range pipes {
		if err := mkfifo(pipe); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := readFacts(l, h.user, ""); types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), l.Facts) {
			t.Errorf("the facts: %v", err)
		}
		if keyed(harness.Gated(lookup(t, "claude")).Login(), l.Settings[0], pipes[1]) {
			t.Error("it has keys")
		}
		if _, err := readUsers(h.login()); !errors.Is(err, errNoFile) {
			t.Errorf("the login: %v", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("it waits")
		for _, pipe := range pipes {
			if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil { // so that it ends
				defer f.Close()
			}
		}
	}
}
