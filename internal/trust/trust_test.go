package trust

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func look(t *testing.T, dir string) []File {
	t.Helper()
	files, err := Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func paths(files []File) (out []string) {
	for _, f := range files {
		out = append(out, f.Path)
	}
	return out
}

func TestWhatCanStartProgramsIsLookedAt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"main.go": "x", "README.md": "x", "tools/server.js": "1", "tools/other.js": "1", "abs.sh": "x", "shop.db": "x", "bin": "#!/bin/sh\n",
		".mcp.json":                   `{"mcpServers":{"a":{"command":"node","args":["--flag","./tools/server.js","../outside","main","--db","shop.db","bin"]},"c":{"command":"abs.sh"},"b":{"command":"` + dir + `/abs.sh"}}}`,
		".rnix/agents/dev/agent.yaml": "name: dev\n", ".rnix/skills/s/SKILL.md": "x", ".claude/settings.local.json": "{}", ".claude/worktrees/w/.mcp.json": "{}",
		".codex/config.toml": "", "opencode.json": "{}", "compose.yaml": "nodes: {}\n", ".agents/skills/k/run.sh": "x",
	})
	want := []string{".agents/skills/k/run.sh", ".claude/settings.local.json", ".codex/config.toml", ".mcp.json", ".rnix/agents/dev/agent.yaml", ".rnix/skills/s/SKILL.md",
		"abs.sh", "bin", "compose.yaml", "opencode.json", "tools/server.js"}
	files := look(t, dir)
	if got := paths(files); !slices.Equal(got, want) {
		t.Fatalf("%q\nwant\n%q", got, want)
	}
	for _, f := range files {
		if f.Path == "tools/server.js" && (f.Sum != "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b" || f.What != "started by the MCP server a") { // sha256sum of "1"
			t.Errorf("%+v", f)
		}
	}
	if empty := look(t, t.TempDir()); len(empty) != 0 {
		t.Error(empty)
	}
}

// Each change of a file that counts is seen, and what it is, and no other.
func TestEveryChangeOfAProjectIsSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(dir string) error
		want string // kind and path; "" = nothing
		diff string
	}{
		"nothing":           {func(string) error { return nil }, "", ""},
		"another file":      {func(dir string) error { return os.WriteFile(filepath.Join(dir, "main.go"), []byte("y"), 0o644) }, "", ""},
		"a touch":           {func(dir string) error { return os.Chtimes(filepath.Join(dir, ".mcp.json"), time.Now(), time.Now()) }, "", ""},
		"an edit":           {func(dir string) error { return os.WriteFile(filepath.Join(dir, "s.sh"), []byte("two\n"), 0o644) }, "changed s.sh", "-one\n+two\n"},
		"a new agent":       {func(dir string) error { return os.WriteFile(filepath.Join(dir, ".rnix/new"), []byte("n\n"), 0o644) }, "added .rnix/new", "+n\n"},
		"one that has gone": {func(dir string) error { return os.Remove(filepath.Join(dir, ".rnix/old")) }, "removed .rnix/old", "-o\n"},
		"a permission":      {func(dir string) error { return os.Chmod(filepath.Join(dir, "s.sh"), 0o755) }, "changed s.sh", "(executable, before: a plain file)\n"},
		"a link in its place": {func(dir string) error {
			return relink(filepath.Join(dir, ".rnix/old"), "../main.go")
		}, "changed .rnix/old", "(link to ../main.go, before: a plain file)\n"},
		"the target of a link": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "there"), []byte("x\n"), 0o644) }, "changed .rnix/link", "+x\n"},
		"a file in a linked directory": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "conf/hook"), []byte("h2\n"), 0o644)
		}, "changed conf/hook", "-h\n+h2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, map[string]string{"main.go": "x\n", "s.sh": "one\n", ".rnix/old": "o\n", "conf/hook": "h\n", ".mcp.json": `{"mcpServers":{"a":{"command":"./s.sh"}}}`})
			for at, to := range map[string]string{".rnix/link": "../there", ".rnix/dir": "../conf", "conf/loop": "../.rnix"} {
				if err := os.Symlink(to, filepath.Join(dir, at)); err != nil {
					t.Fatal(err)
				}
			}
			before := look(t, dir)
			if err := c.do(dir); err != nil {
				t.Fatal(err)
			}
			var got []string
			changes := Compare(before, look(t, dir))
			for _, ch := range changes {
				got = append(got, ch.Kind+" "+ch.Path)
			}
			if strings.Join(got, ", ") != c.want {
				t.Fatalf("%q, want %q", got, c.want)
			}
			if len(changes) == 1 && !strings.Contains(changes[0].Diff, c.diff) {
				t.Errorf("%q lacks %q", changes[0].Diff, c.diff)
			}
		})
	}
}

// What is no file is not read: a pipe would be waited for.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{".mcp.json": `{"mcpServers":{"a":{"command":"./cmd.sh","args":["./arg.js"]}}}`, ".rnix/x": ""})
	for _, name := range []string{".rnix/pipe", "cmd.sh", "arg.js", "compose.yaml"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("pipe", filepath.Join(dir, ".rnix/link")); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, f := range look(t, dir) {
		kinds[f.Path] = f.Kind
	}
	if len(kinds) != 5 || kinds[".rnix/pipe"] != "no regular file" || kinds["compose.yaml"] != "no regular file" || kinds[".rnix/link"] != "link to pipe, no regular file" {
		t.Errorf("%q", kinds)
	}
}

func relink(path, to string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Symlink(to, path)
}

func TestWhatCannotBeLookedAtIsNotTrusted(t *testing.T) {
	t.Parallel()
	many := t.TempDir()
	if err := os.MkdirAll(filepath.Join(many, ".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range maxFiles + 1 {
		if err := os.WriteFile(filepath.Join(many, ".claude", "f"+string(rune('a'+i%26))+strings.Repeat("x", i/26)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	large := t.TempDir()
	write(t, large, map[string]string{".mcp.json": "{}"})
	if err := os.Truncate(filepath.Join(large, ".mcp.json"), maxBytes+1); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := os.MkdirAll(filepath.Join(out, ".rnix"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(large, filepath.Join(out, ".rnix", "agents")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir  string
		code types.ErrCode
		want string
	}{
		"many":   {many, types.ErrExhausted, "more than 2000 of its files"},
		"large":  {large, types.ErrExhausted, "have more than 33554432 bytes, with .mcp.json"},
		"out":    {out, types.ErrInvalid, "it is a symbolic link to " + large},
		"absent": {filepath.Join(out, "nowhere"), types.ErrNotFound, "no such file"},
	} {
		if _, err := Look(c.dir); types.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheBookRemembersAndForgets(t *testing.T) {
	t.Parallel()
	b := In(t.TempDir())
	dir, other := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{".mcp.json": "{}\n"})
	stands := func(want State, changes int) {
		t.Helper()
		state, cs, err := b.Status(dir)
		if state != want || len(cs) != changes || err != nil {
			t.Fatalf("%s, %v, %v; want %s", state, cs, err, want)
		}
	}
	stands(Unknown, 0)
	if was, err := b.Forget(dir); was || err != nil {
		t.Fatal(was, err)
	}
	for _, d := range []string{dir, other} {
		if err := b.Put(Entry{Dir: d, Since: time.Unix(1, 0).UTC(), Files: look(t, d)}); err != nil {
			t.Fatal(err)
		}
	}
	stands(Trusted, 0)
	if all, problems := b.All(); len(all) != 2 || len(problems) != 0 {
		t.Fatal(all, problems)
	}
	write(t, dir, map[string]string{".mcp.json": "{ }\n"})
	stands(Changed, 1)
	if was, err := b.Forget(other); !was || err != nil {
		t.Fatal(was, err)
	}
	for _, text := range []string{"", "{", "[]", `{"dir":"/elsewhere"}`} { // torn, or put in the place of another
		if err := durable.WriteFile(durable.OS, b.file(dir), []byte(text), durable.Cached); err != nil {
			t.Fatal(err)
		}
		if state, _, err := b.Status(dir); state != Unknown || types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), "rnix trust") {
			t.Errorf("%q: %s, %v", text, state, err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := b.Put(Entry{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if state, _, err := b.Status(dir); state == Trusted || err == nil {
		t.Errorf("a project that is gone: %s, %v", state, err)
	}
}

// What a project names is looked at where the system finds it, not where its name seems to lead.
func TestFilesAreLookedAtWhereTheyAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		links map[string]string
		mcp   string // words of a command
		edit  string // the file that is found
	}{
		"a command through a link":              {map[string]string{"sub": "deep/d"}, `"sub/../s.sh"`, "deep/s.sh"},
		"a command through a link to the top":   {map[string]string{"sub": "deep/d"}, `"sub/../../deep/../deep/s.sh"`, "deep/s.sh"},
		"a directory through a link":            {map[string]string{"s": "deep/d", ".rnix/agents": "../s/../evil"}, `"true"`, "deep/evil/dev/agent.yaml"},
		"a link in a linked directory":          {map[string]string{".claude": "deep/r", "deep/r/agents": "../evil"}, `"true"`, "deep/evil/dev/agent.yaml"},
		"a link to work trees of claude":        {map[string]string{".rnix/agents": "../.claude/worktrees"}, `"true"`, ".claude/worktrees/dev/agent.yaml"},
		"a link to what has work trees":         {map[string]string{".rnix/agents": "../.claude"}, `"true"`, ".claude/worktrees/dev/agent.yaml"},
		"what a variable is by default":         {nil, `"${NO_SUCH_DIR:-.}/s.sh"`, "s.sh"},
		"a script without an ending":            {nil, `"sh","args":["-e","serve"]`, "serve"},
		"a script of an interpreter's version":  {nil, `"/usr/bin/python3.12","args":["serve"]`, "serve"},
		"a script of a flag":                    {nil, `"node","args":["--import=./hook.mjs","s.sh"]`, "hook.mjs"},
		"a script after a flag":                 {nil, `"node","args":["--import=./hook.mjs","serve"]`, "serve"},
		"a script of a program that starts one": {nil, `"env","args":["A=1","bash","serve"]`, "serve"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, map[string]string{".rnix/x": "x", "s.sh": "x", "deep/s.sh": "x", "deep/d/x": "x", "deep/r/x": "x", "serve": "x", "hook.mjs": "x", "deep/evil/dev/agent.yaml": "x",
				".mcp.json": `{"mcpServers":{"a":{"command":` + c.mcp + `}}}`})
			if c.links[".claude"] == "" {
				write(t, dir, map[string]string{".claude/worktrees/dev/agent.yaml": "x"})
			}
			for at, to := range c.links {
				if err := os.Symlink(to, filepath.Join(dir, at)); err != nil {
					t.Fatal(err)
				}
			}
			before := look(t, dir)
			write(t, dir, map[string]string{c.edit: "y"})
			if got := Names(Compare(before, look(t, dir))); got != c.edit {
				t.Errorf("%q changed, want %q of %q", got, c.edit, paths(before))
			}
		})
	}
}

// A command that seems to be below the project and is not cannot be trusted.
func TestACommandThatLeadsOutIsRefused(t *testing.T) {
	t.Parallel()
	out, dir := t.TempDir(), t.TempDir()
	write(t, out, map[string]string{"s.sh": "x", "d/x": "x"})
	write(t, dir, map[string]string{"s.sh": "x", ".mcp.json": `{"mcpServers":{"a":{"command":"sub/../s.sh"}}}`})
	if err := os.Symlink(filepath.Join(out, "d"), filepath.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	if files, err := Look(dir); err == nil {
		t.Errorf("%q", paths(files))
	}
}

// No file name breaks the line in which it is named.
func TestNamesStayOnTheirLine(t *testing.T) {
	t.Parallel()
	if got := Names([]Change{{Path: "a b", Kind: Edited}, {Path: "a\nwarning: \x1b[2J", Kind: Added}}); got != `a b, "a\nwarning: \x1b[2J" (added)` {
		t.Error(got)
	}
}
