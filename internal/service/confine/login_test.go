package confine

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rnix/internal/sandbox"
)

// OpenCode runs what the address of an entry of its login says, and sets variables by it: an agent must not write one for the user.
func TestAgentPutsNothingInALoginThatIsRun(t *testing.T) {
	dir := t.TempDir()
	user, own := filepath.Join(dir, "user"), filepath.Join(dir, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	l := lookup(t, "opencode").Login()
	at := func(home string) string { return filepath.Join(home, l.Dir, l.Files[0]) }
	const users = `{"anthropic":{"type":"oauth","access":"a1","refresh":"r1","expires":1},"openai":{"type":"api","key":"k"},"https://corp.example":{"type":"wellknown","key":"CORP","token":"t"}}`
	put(t, at(user), users)
	give := func() {
		t.Helper()
		if err := (&guest{login: l, user: user, home: own, tools: true}).furnish(nil); err != nil {
			t.Fatal(err)
		}
	}
	later := func(home, text string, age time.Duration) {
		t.Helper()
		put(t, at(home), text)
		if when := time.Now().Add(age); os.Chtimes(at(home), when, when) != nil {
			t.Fatal("no time")
		}
	}
	give()
	if has(t, at(own)) != users {
		t.Fatal(has(t, at(own)))
	}
	put(t, at(own), `{}`)
	if has(t, at(user)) != users {
		t.Error("it writes the user's file in place")
	}
	later(own, `{"anthropic":{"type":"oauth","access":"a2","refresh":"r2","expires":2,"enterpriseUrl":"https://evil.example"},"openai":{"type":"wellknown","key":"NODE_OPTIONS","token":"x"},`+
		`"https://corp.example":{"type":"wellknown","key":"LD_PRELOAD","token":"x"},"https://evil.example":{"type":"wellknown","key":"PATH","token":"/tmp"}}`, time.Hour)
	give()
	var got map[string]map[string]any
	if err := json.Unmarshal([]byte(has(t, at(user))), &got); err != nil || len(got) != 3 || len(got["anthropic"]) != 4 {
		t.Fatalf("%v %v", got, err)
	}
	if got["anthropic"]["access"] != "a2" || got["anthropic"]["refresh"] != "r2" || got["anthropic"]["expires"] != 2.0 {
		t.Errorf("what it has refreshed is lost: %v", got)
	}
	if got["openai"]["type"] != "api" || got["https://corp.example"]["key"] != "CORP" {
		t.Errorf("it has put there what is run: %v", got)
	}
	if has(t, at(own)) != has(t, at(user)) {
		t.Errorf("it has another login: %s", has(t, at(own)))
	}
	// What the user does later counts, and a login of an earlier version, which was the same file, is one no more.
	later(user, `{"anthropic":{"type":"oauth","access":"a3","refresh":"r3","expires":1}}`, 2*time.Hour)
	give()
	if has(t, at(own)) != has(t, at(user)) {
		t.Error("the later login of the user is not given")
	}
	if os.Remove(at(own)) != nil || os.Link(at(user), at(own)) != nil {
		t.Fatal("no link")
	}
	give()
	put(t, at(own), `{}`)
	if has(t, at(user)) == `{}` {
		t.Error("it is still the same file")
	}
	if os.Remove(at(user)) != nil {
		t.Fatal("it is not removed")
	}
	give()
	if _, err := os.Stat(at(own)); err == nil {
		t.Error("a login that the user has given up is there")
	}
}

// The facts of another agent's CLI that runs in the same home are not written over while nothing of the login has changed.
func TestFactsAreNotWrittenWithoutNeed(t *testing.T) {
	h := newHome(t)
	put(t, filepath.Join(h.user, ".claude.json"), `{"oauthAccount": {"id": 1}}`)
	own := filepath.Join(h.own, ".claude.json")
	const theirs = "{\n  \"numStartups\": 3,\n  \"oauthAccount\": {\n    \"id\": 1\n  }\n}"
	put(t, own, theirs)
	if err := h.furnish(""); err != nil || has(t, own) != theirs {
		t.Errorf("%v %s", err, has(t, own))
	}
	put(t, filepath.Join(h.user, ".claude.json"), `{"oauthAccount":{"id":2}}`)
	if err := h.furnish(""); err != nil || has(t, own) == theirs {
		t.Errorf("%v %s", err, has(t, own))
	}
}

// A user keeps settings elsewhere by links. They are found in the sandbox, where the link beside the login is not; but not where commands have led them.
func TestSettingsBehindLinksAreShown(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	cli := lookup(t, "claude")
	l := cli.Login()
	put(t, filepath.Join(w.Home, l.Dir, l.Files[0]), `{}`)
	kept, notes := filepath.Join(w.Home, "dotfiles"), filepath.Join(w.Home, "notes")
	put(t, filepath.Join(kept, "settings.json"), "mine")
	put(t, filepath.Join(notes, "x"), "secret")
	tool := filepath.Join(w.work, "bin", "claude")
	for from, to := range map[string]string{
		filepath.Join(w.Home, ".claude", "settings.json"): filepath.Join(kept, "settings.json"),
		filepath.Join(w.Home, ".claude", "skills"):        filepath.Join(w.work, "skills"),
		filepath.Join(w.work, "skills"):                   notes,
		filepath.Join(w.Home, "bin"):                      filepath.Join(w.work, "skills"),
		tool:                                              filepath.Join(notes, "x"),
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(from), 0o700), os.Symlink(to, from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(notes, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := w.CLI(w.caller, cli, tool, filepath.Join(w.Data, "session"), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Done)
	p := c.Box.Plan.Policy
	if to, err := os.Readlink(filepath.Join(c.Home, ".claude", "settings.json")); err != nil || to != filepath.Join(kept, "settings.json") || !p.Allows(to, sandbox.AccessRead) {
		t.Errorf("%s %v", to, err)
	}
	if p.Allows(filepath.Join(notes, "x"), sandbox.AccessRead) {
		t.Error("it is led to what it may not read")
	}
	if _, err := os.Lstat(filepath.Join(c.Home, ".claude", "skills")); err == nil {
		t.Error("it is shown where commands have led")
	}
}

// The user's variable counts, which the commands need not have.
func TestLoginIsWhereTheVariableOfTheUserSays(t *testing.T) {
	for name, variable := range map[string]string{"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"} {
		w := newWorld(t)
		w.can(sandbox.RungBwrap)
		l := lookup(t, name).Login()
		elsewhere := filepath.Join(w.Home, "elsewhere")
		put(t, filepath.Join(elsewhere, l.Files[0]), `{"n":5}`)
		w.profile.Lookup = func(name string) (string, bool) { return elsewhere, name == variable }
		c, err := w.CLI(w.caller, lookup(t, name), "x", filepath.Join(w.Data, "session"), false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Done)
		if has(t, filepath.Join(c.Home, l.Dir, l.Files[0])) != `{"n":5}` {
			t.Errorf("%s is not logged in", name)
		}
	}
}

// A program that runs in the home, and puts a file of its own in the place of the login again and again, keeps no other from starting.
func TestALoginIsGivenWhileAnotherProgramPutsItsOwnThere(t *testing.T) {
	h := newHome(t)
	put(t, h.login(), `{"n":1}`)
	if err := h.furnish(""); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop; waited for below
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.WriteFile(h.mine()+".new", []byte("{"), 0o600)
				_ = os.Rename(h.mine()+".new", h.mine())
			}
		}
	}()
	for range 300 {
		if err := h.furnish(""); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	<-done
	if err := h.furnish(""); err != nil || has(t, h.mine()) != `{"n":1}` {
		t.Errorf("%v %s", err, has(t, h.mine()))
	}
}
