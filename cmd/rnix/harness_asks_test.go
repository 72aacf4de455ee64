package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
)

// asks returns what waits for a person, when that is so many.
func (u *user) asks(n int) []string {
	u.t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; { // an opencode starts slowly on a machine with other work
		var numbers []string
		out := u.must("asks", "--json")
		for line := range strings.Lines(out) {
			var a struct {
				Number uint64 `json:"number"`
			}
			if err := json.Unmarshal([]byte(line), &a); err != nil {
				u.t.Fatalf("%v: %s", err, out)
			}
			numbers = append(numbers, strconv.FormatUint(a.Number, 10))
		}
		if len(numbers) == n {
			return numbers
		}
		if time.Now().After(end) {
			u.t.Fatalf("it has asked %s, want %d\n%s", out, n, u.must("ps", "-a"))
		}
	}
}

// calls has the model make calls one after the other, and say what the last one gave.
func (u *user) calls(all ...llmtest.Reply) {
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		done := 0
		for _, m := range r.Messages {
			done += len(m.Results)
		}
		if done < len(all) {
			return all[done]
		}
		res, _ := r.LastResult()
		return llmtest.Reply{Text: "it came to this: " + res.Text}
	})
}

func bash(command string) llmtest.Reply {
	return use("Bash", map[string]any{"command": command, "description": "tries"})
}

// The rules of a process hold for the tools that a real claude brings along, however it is confined and whatever its own settings allow.
func TestRealClaudeAsksBeforeItUsesItsOwnTools(t *testing.T) {
	for _, level := range []string{"off", "bwrap", "landlock"} {
		t.Run(level, func(t *testing.T) {
			u := newUser(t, "claude", nil)
			if level != "off" {
				boxed(t, u, level)
			} else {
				u.allowed("Bash")
			}
			file := filepath.Join(u.Work, "a.txt")
			there := func(name string) bool {
				_, err := os.Lstat(filepath.Join(u.Work, name))
				return err == nil
			}

			u.calls(bash("echo made >made; echo out"))
			u.must("run", "-d", "--name", "allowed", "--harness", "claude", "--ask", "shell", "do it")
			n := u.asks(1)
			if there("made") || !strings.Contains(u.must("ps"), "ask: shell echo made") {
				t.Errorf("it does not wait: %s", u.must("ps"))
			}
			u.must("allow", n[0])
			if out := u.must("wait", "allowed"); !strings.Contains(out, "it came to this: out") || !there("made") {
				t.Errorf("%s\n%s", out, u.must("log", "allowed"))
			}

			u.calls(bash("echo x >refused"))
			u.must("run", "-d", "--name", "denied", "--harness", "claude", "--ask", "shell", "do it")
			u.must("deny", u.asks(1)[0], "--because", "not on a Friday")
			if out, code := u.rnix("wait", "denied"); code != 14 || !strings.Contains(out, "not on a Friday") || there("refused") {
				t.Errorf("%s\n%s", out, u.must("log", "denied"))
			}

			u.calls(bash("echo x >first"))
			u.must("run", "-d", "--name", "edited", "--harness", "claude", "--ask", "shell", "do it")
			u.must("allow", u.asks(1)[0], "--edit", "echo y >second; echo another")
			if out := u.must("wait", "edited"); !strings.Contains(out, "another") || there("first") || !there("second") {
				t.Errorf("%s\n%s", out, u.must("log", "edited"))
			}

			u.calls(bash("echo one"), bash("echo two"), use("Write", map[string]any{"file_path": file, "content": "by claude"}))
			u.must("run", "-d", "--name", "family", "--harness", "claude", "--ask", "shell", "--ask", "write_file *.txt", "do it")
			u.must("allow", u.asks(1)[0], "--for", "family", "--match", "echo *")
			for n = u.asks(1); !strings.Contains(u.must("asks"), "a.txt"); n = u.asks(1) {
				if strings.Contains(u.must("asks"), "echo two") {
					t.Fatal("a grant does not count")
				}
			}
			if there("a.txt") {
				t.Error("it was written before a person has answered")
			}
			u.must("allow", n[0])
			if out := u.must("wait", "family"); !there("a.txt") {
				t.Errorf("%s\n%s", out, u.must("log", "family"))
			}

			u.calls(bash("echo x >nobody"))
			if out, code := u.rnix("run", "--name", "nobody", "--harness", "claude", "--ask", "shell", "--asks", "deny", "do it"); code != 14 || !strings.Contains(out, "a person has to be asked") || there("nobody") {
				t.Errorf("%s\n%s", out, u.must("log", "nobody"))
			}
			u.calls(bash("env git push"))
			if out, code := u.rnix("run", "--name", "never", "--harness", "claude", "--deny", "shell git push *", "do it"); code != 14 || !strings.Contains(out, "git push") || strings.Contains(out, "do not reach") || !strings.Contains(out, "| 1 call refused") {
				t.Errorf("%s", out)
			}
			if out, _ := u.rnix("wait", "denied", "--json"); !strings.Contains(out, `"denied":1,"denials":[{"tool":"shell","text":"shell echo x >refused","why":"not on a Friday"}]`) {
				t.Errorf("%s", out)
			}
		})
	}
}

// What a claude asks outlasts a pause, and ends with the run that has asked: after a crash of the daemon, or a stop, it asks anew. Settings that it
// finds cannot keep it from asking.
func TestWhatARealClaudeAsksEndsWithItsRun(t *testing.T) {
	u := newUser(t, "claude", nil)
	settings := filepath.Join(u.Home, ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte(`{"disableAllHooks":true,"permissions":{"allow":["Bash"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := func(name string) int { return strings.Count(u.text(name), "\n") }
	start := func(name string) string {
		u.Answer(func(r llmtest.Request) llmtest.Reply {
			if last := r.Messages[len(r.Messages)-1]; len(last.Results) == 0 || strings.Contains(last.Text, "You were interrupted") {
				return bash("echo x >>" + name)
			}
			res, _ := r.LastResult()
			return llmtest.Reply{Text: "it came to this: " + res.Text}
		})
		u.must("run", "-d", "--name", name, "--harness", "claude", "--ask", "shell", "do it")
		return u.asks(1)[0]
	}

	n := start("paused")
	u.must("pause", "paused")
	if again := u.asks(1)[0]; again != n {
		t.Errorf("a pause has it ask anew: %s, %s", n, again)
	}
	u.must("allow", n)
	if _, err := os.Lstat(filepath.Join(u.Work, "paused")); err == nil {
		t.Error("it has run while it was paused")
	}
	u.must("resume", "paused")
	if out := u.must("wait", "paused"); lines("paused") != 1 {
		t.Errorf("%s\n%s", out, u.must("log", "paused"))
	}

	n = start("killed")
	u.must("kill", "killed")
	u.rnix("wait", "killed")
	u.asks(0)
	if out, code := u.rnix("allow", n); code == 0 {
		t.Errorf("what nobody waits for was allowed: %s", out)
	}

	n = start("crashed")
	if err := syscall.Kill(u.daemon(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again := u.asks(1)[0]
	for end := time.Now().Add(time.Minute); again == n && time.Now().Before(end); {
		again = u.asks(1)[0]
	}
	if again == n {
		t.Fatalf("what the old run has asked is still open: %s", u.must("asks"))
	}
	u.must("allow", again)
	if out := u.must("wait", "crashed"); lines("crashed") != 1 {
		t.Errorf("%s\n%s", out, u.must("log", "crashed"))
	}

	start("stopped")
	u.must("daemon", "stop")
	u.must("ps")
	u.rnix("resume", "stopped")
	u.must("deny", u.asks(1)[0])
	if out, code := u.rnix("wait", "stopped"); code != 14 || !strings.Contains(out, "a person has refused") {
		t.Errorf("%s\n%s", out, u.must("log", "stopped"))
	}

	u.calls(bash("echo x >>free"))
	if out := u.must("run", "--name", "free", "--harness", "claude", "do it"); lines("free") != 1 || strings.Contains(u.must("log", "free"), "ask") {
		t.Errorf("without rules: %s\n%s", out, u.must("log", "free"))
	}
}
