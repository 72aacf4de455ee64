package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
	"rnix/internal/soak"
)

// own are the real command lines: how each is run with its own tools, and how its model runs a command by itself.
var own = map[string]struct {
	args []string
	run  func(r llmtest.Request, command string) llmtest.Reply
}{
	"claude": {[]string{"--harness", "claude"}, func(_ llmtest.Request, command string) llmtest.Reply {
		return use("Bash", map[string]any{"command": command, "description": "tries"})
	}},
	"codex": {[]string{"--harness", "codex", "--model", "gpt-5-codex"}, func(r llmtest.Request, command string) llmtest.Reply {
		for _, name := range r.Tools {
			if name == "exec_command" {
				return use(name, map[string]any{"cmd": command})
			}
		}
		return use("shell_command", map[string]any{"command": command})
	}},
	"opencode": {[]string{"--harness", "opencode"}, func(_ llmtest.Request, command string) llmtest.Reply {
		return use("bash", map[string]any{"command": command, "description": "tries"})
	}},
}

// left reports whether a test leaves a command line out of the gate: opencode takes 8 s of a processor for each start, as much as four others. Where
// it has its turn it is in the gate with TestRealCommandLinesAskBeforeTheyUseTheirOwnTools, TestRealOpencodeNeverSpendsMoreThanItsBudget and those of internal/harness.
func left(t *testing.T, cli string) bool {
	t.Helper()
	return cli == "opencode" && !soak.Pick(t, "opencode beside other command lines", false, true)
}

// clis are the command lines that a test plays: in the gate without those that are left out of it.
func clis() []string {
	if soak.On() {
		return []string{"claude", "codex", "opencode"}
	}
	return []string{"claude", "codex"}
}

// boxed gives a user a sandbox of a level, secrets, a login of each command line, and commands that it may run by itself.
func boxed(t *testing.T, u *user, level string) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil && level == "bwrap" {
		t.Skip("needs bwrap")
	}
	u.env = append(u.env, "RNIX_SANDBOX_LEVEL="+level)
	u.allowed("Bash")
	u.opencodeConfig()
	for path, text := range map[string]string{".ssh/id": "a secret of the user's", ".claude/.credentials.json": `{"none":1}`, ".codex/auth.json": `{"OPENAI_API_KEY":"` + vendortest.Key + `"}`} {
		path = filepath.Join(u.Home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tries writes a script with what a model tries by itself: what it must not, and what it is for. It returns the command that runs it.
func (u *user) tries() string {
	u.t.Helper()
	script := "cat " + u.Home + "/.ssh/id; cat " + u.Home + "/data/store/*; echo x > ../outside; echo x > .git/hooks/pre-commit; mkdir .vscode/x; echo made > made.txt; cat made.txt\n"
	if err := os.WriteFile(filepath.Join(u.Work, "try.sh"), []byte(script), 0o600); err != nil {
		u.t.Fatal(err)
	}
	return "sh try.sh"
}

// A real command line does its task in the sandbox, with its own tools and the kernel's; and its model's commands have no more than any
// other agent's.
func TestRealCommandLinesInTheSandbox(t *testing.T) {
	for name, cli := range own {
		if left(t, name) {
			continue
		}
		for _, level := range []string{"landlock", "bwrap"} {
			t.Run(name+"/"+level, func(t *testing.T) {
				u := newUser(t, name, nil)
				boxed(t, u, level)
				if out, err := exec.Command("git", "init", "-q", u.Work).CombinedOutput(); err != nil {
					t.Fatalf("%s %v", out, err)
				}
				turn, command := 0, u.tries()
				u.Answer(func(r llmtest.Request) llmtest.Reply {
					if _, ok := r.LastResult(); !ok {
						turn = 0
					}
					turn++
					if turn == 1 {
						return cli.run(r, command)
					}
					res, _ := r.LastResult()
					return llmtest.Reply{Text: "it came to this: " + res.Text}
				})
				out := u.must(append([]string{"run", "--name", "p"}, append(cli.args, "try")...)...)
				if !strings.Contains(out, "sandbox: "+level+", network open") {
					t.Errorf("how it is confined is not said: %s", out)
				}
				steps, said := u.must("log", "p"), u.must("ps", "-a")
				if !strings.Contains(steps, "it came to this") || !strings.Contains(steps, "made") {
					t.Errorf("it did not do its task: %s\n%s", steps, said)
				}
				if strings.Contains(steps, "a secret of") {
					t.Error("it has read a secret")
				}
				told := strings.Contains(u.must("strace", "p", "-a", "--json"), `"kind":"refused","name":"changed"`)
				if told != (level == "landlock") || told != strings.Contains(steps, "the agent CLI "+name+" has changed it") {
					t.Errorf("that it has planted a hook is told: %v; log:\n%s", told, steps)
				}
				if left, _ := filepath.Glob(filepath.Join(u.Home, "data", "homes", "*", ".npm")); len(left) > 0 {
					t.Errorf("it installs its packages anew, which takes long: %v", left)
				}
				for path, want := range map[string]bool{"made.txt": true, "../outside": false, ".git/hooks/pre-commit": level == "landlock", ".vscode": false, ".mcp.json": false, ".claude": false} {
					if _, err := os.Lstat(filepath.Join(u.Work, path)); (err == nil) != want {
						t.Errorf("%s is there: %v, want %v", path, err == nil, want)
					}
				}
			})
		}
	}
}

// Agents of one repository that may do different things have homes of their own: what the command line of one has read or left there, such as a hook,
// is not seen or run by that of the other. Each finds its own again when it is resumed.
func TestRealClaudeOfAnAgentWithOtherRightsHasAnotherHome(t *testing.T) {
	for _, level := range soak.Pick(t, "levels of confinement", []string{"landlock"}, []string{"bwrap", "landlock"}) {
		t.Run(level, func(t *testing.T) {
			u := newUser(t, "claude", nil)
			boxed(t, u, level)
			for name, text := range map[string]string{"loose": "name: loose\n", "tight": "name: tight\ndevices: [/dev/shell, /dev/fs, /dev/workspace]\n"} {
				path := filepath.Join(u.Home, ".config", "rnix", "agents", name, "agent.yaml")
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			const plant = `rm -f ~/.claude/settings.json; echo '{"permissions":{"allow":["Bash"]},"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"echo ran >> hooked"}]}]}}' > ~/.claude/settings.json; echo a loose secret > ~/left; cat ~/.claude/settings.json && echo has left it`
			command := ""
			u.Answer(func(r llmtest.Request) llmtest.Reply {
				if res, ok := r.LastResult(); ok {
					return llmtest.Reply{Text: "it came to this: " + res.Text}
				}
				return use("Bash", map[string]any{"command": command, "description": "tries"})
			})
			said := func(agent, name, do string) string {
				t.Helper()
				command = "sh " + name + ".sh"
				replace(t, filepath.Join(u.Work, name+".sh"), []byte(do+"\n"))
				u.must("run", "--harness", "claude", "--agent", agent, "--name", name, "try")
				return u.must("log", name)
			}
			if log := said("loose", "a", plant); !strings.Contains(log, "has left it") {
				t.Fatal(log)
			}
			if log := said("tight", "b", "cat ~/left "+u.Home+"/data/homes/*/left; ls ~ "+u.Home+"/data/homes"); strings.Contains(log, "a loose secret") || !strings.Contains(log, "it came to this") {
				t.Errorf("what the other has left: %s", log)
			}
			if _, err := os.Lstat(filepath.Join(u.Work, "hooked")); err == nil {
				t.Error("a hook of the other has run")
			}
			if log := said("loose", "c", "cat ~/left"); !strings.Contains(log, "a loose secret") {
				t.Errorf("one that may do the same does not find it: %s", log)
			}
			if _, err := os.Lstat(filepath.Join(u.Work, "hooked")); err != nil {
				t.Errorf("the hook does not run where it is: %v", err)
			}
			u.must("daemon", "stop")
			out, code := u.rnix("resume", "--follow", "--new-input", "again", "b")
			if log := u.must("log", "b"); code != 0 || strings.Contains(log, "cannot resume the claude session") {
				t.Errorf("its conversation is not found again: %s\n%s", out, log)
			}
		})
	}
}
