package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorLooksForTheCommandLinesOfAgents(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	env := map[string]string{"HOME": home, "PATH": bin}
	put := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	look := func(name string) check {
		t.Helper()
		for _, c := range checkAgents(func(n string) string { return env[n] }) {
			if c.Check == name {
				return c
			}
		}
		t.Fatalf("%s is not looked for", name)
		return check{}
	}
	is := func(name string, want verdict, words ...string) {
		t.Helper()
		c := look(name)
		for _, w := range words {
			if !strings.Contains(c.Detail+"\n"+c.Mend, w) {
				t.Errorf("%s lacks %q: %+v", name, w, c)
			}
		}
		if c.Status != want {
			t.Errorf("want %s: %+v", want, c)
		}
	}
	for _, name := range []string{"claude", "cursor-agent", "codex", "opencode"} {
		is(name, absent, "not in PATH", "only needed for")
	}
	// As npm installs it: a link into a package.
	pack := filepath.Join(home, "lib/node_modules/@openai/codex")
	put(filepath.Join(pack, "bin/codex.js"), "#!/bin/sh\nexit 1\n", 0o700)
	put(filepath.Join(pack, "package.json"), `{"name":"@openai/codex","version":"7.8.9"}`, 0o600)
	if err := os.Symlink(filepath.Join(pack, "bin/codex.js"), filepath.Join(bin, "codex")); err != nil {
		t.Fatal(err)
	}
	is("codex", warned, "version 7.8.9", "no login is found", "codex login")
	put(filepath.Join(home, ".codex/auth.json"), "{}", 0o600)
	is("codex", warned, "has no login in it")
	put(filepath.Join(home, ".codex/auth.json"), `{"tokens":{"access_token":"very-secret"}}`, 0o600)
	is("codex", fine, "logged in", "auth.json")
	if c := look("codex"); strings.Contains(c.Detail, "very-secret") {
		t.Errorf("a credential is shown: %+v", c)
	}
	env["CODEX_HOME"] = filepath.Join(home, "elsewhere")
	is("codex", warned, "elsewhere/auth.json")
	env["CODEX_API_KEY"] = "k"
	is("codex", fine, "CODEX_API_KEY")

	put(filepath.Join(bin, "opencode"), "ELF", 0o700) // a binary by itself says no version
	is("opencode", warned, "no login is found", "opencode auth login")
	env["XDG_DATA_HOME"] = filepath.Join(home, "share")
	put(filepath.Join(home, "share/opencode/auth.json"), `{"openai":{"type":"api","key":"very-secret"}}`, 0o600)
	is("opencode", fine, "logged in")
	put(filepath.Join(bin, "agent"), "", 0o700)
	is("cursor-agent", fine, filepath.Join(bin, "agent"))
}
