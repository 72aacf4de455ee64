package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
)

// hooked are the command lines that ask by a program before each of their calls.
var hooked = map[string]struct {
	flags   []string
	command func(command string) llmtest.Reply
	write   func(file string) llmtest.Reply
	edits   bool // of a write
}{
	"codex": {[]string{"--harness", "codex", "--model", "gpt-5-codex"},
		func(c string) llmtest.Reply { return use("exec_command", map[string]any{"cmd": c}) },
		nil, false}, // it is not offered apply_patch
	// The models that codex knows write programs that call its tools.
	"codex-programs": {[]string{"--harness", "codex"},
		func(c string) llmtest.Reply {
			return script("text((await tools.exec_command({cmd:" + quoted(c) + "})).output)")
		},
		func(file string) llmtest.Reply {
			return script("await tools.apply_patch(" + quoted("*** Begin Patch\n*** Add File: "+file+"\n+by an agent\n*** End Patch\n") + ")")
		}, false},
	"opencode": {[]string{"--harness", "opencode"},
		func(c string) llmtest.Reply {
			return use("bash", map[string]any{"command": c, "description": "tries"})
		},
		func(file string) llmtest.Reply {
			return use("write", map[string]any{"filePath": file, "content": "by an agent\n"})
		}, true},
}

// script is a reply of codex's vendor that runs a program.
func script(code string) llmtest.Reply {
	return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "exec", Custom: true, Input: code}}}
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// rules starts an agent with a real command line and rules.
func (u *user) rules(name, harness string, more ...string) string {
	u.t.Helper()
	return u.must(append(append([]string{"run", "--name", name}, hooked[harness].flags...), append(more, "do it")...)...)
}

// The rules of a process hold for the tools that a real codex and a real opencode bring along, however they are confined.
func TestRealCommandLinesAskBeforeTheyUseTheirOwnTools(t *testing.T) {
	for name, h := range hooked {
		if h.write == nil { // the other codex has it
			continue
		}
		for _, level := range []string{"off", "bwrap", "landlock"} {
			t.Run(name+"/"+level, func(t *testing.T) {
				u := newUser(t, h.flags[1], nil)
				u.opencodeConfig()
				if level != "off" {
					boxed(t, u, level)
				}
				there := func(name string) bool {
					_, err := os.Lstat(filepath.Join(u.Work, name))
					return err == nil
				}

				u.calls(h.command("echo made >made; echo out"))
				u.rules("allowed", name, "-d", "--ask", "shell")
				n := u.asks(1)
				if there("made") || !strings.Contains(u.must("ps"), "ask: shell echo made") {
					t.Errorf("it does not wait: %s", u.must("ps"))
				}
				u.must("allow", n[0])
				if out := u.must("wait", "allowed"); !strings.Contains(out, "out") || !there("made") {
					t.Errorf("%s\n%s", out, u.must("log", "allowed"))
				}

				u.calls(h.command("echo x >refused"))
				u.rules("denied", name, "-d", "--ask", "shell")
				u.must("deny", u.asks(1)[0], "--because", "not on a Friday")
				if out, code := u.rnix("wait", "denied"); code != 14 || !strings.Contains(out, "not on a Friday") || there("refused") {
					t.Errorf("%s\n%s", out, u.must("log", "denied"))
				}

				u.calls(h.command("echo x >first"))
				u.rules("edited", name, "-d", "--ask", "shell")
				u.must("allow", u.asks(1)[0], "--edit", "echo 'y' >second; echo \"an other\"")
				if out := u.must("wait", "edited"); !strings.Contains(out, "an other") || there("first") || !there("second") {
					t.Errorf("%s\n%s", out, u.must("log", "edited"))
				}

				u.calls(h.command("echo one"), h.command("echo two"), h.write("a.txt"))
				u.rules("family", name, "-d", "--ask", "shell", "--ask", "write_file *.txt", "--deny", "read_file /etc/**")
				u.must("allow", u.asks(1)[0], "--for", "family", "--match", "echo *")
				for n = u.asks(1); !strings.Contains(u.must("asks"), "a.txt"); n = u.asks(1) {
					if strings.Contains(u.must("asks"), "echo two") {
						t.Fatal("a grant does not count")
					}
				}
				if there("a.txt") {
					t.Error("it was written before a person has answered")
				}
				if out, code := u.rnix("allow", n[0], "--edit", `{"filePath":"b.txt","content":"x"}`); (code == 0) != h.edits || !h.edits && !strings.Contains(out, "takes nothing else in place of this call") {
					t.Errorf("%d %s", code, out)
				}
				if !h.edits {
					u.must("allow", n[0])
				}
				if out := u.must("wait", "family"); there("a.txt") == h.edits || there("b.txt") != h.edits {
					t.Errorf("%s\n%s", out, u.must("log", "family"))
				}

				u.calls(h.command("env git push"))
				if out, code := u.rnix(append(append([]string{"run", "--name", "never"}, h.flags...), "--deny", "shell git push *", "do it")...); code != 14 || !strings.Contains(out, "git push") || !strings.Contains(out, "| 1 call refused") {
					t.Errorf("%s", out)
				}
				if out, _ := u.rnix("wait", "denied", "--json"); !strings.Contains(out, `"denied":1,"denials":[{"tool":"shell","text":"shell echo x >refused","why":"not on a Friday"}]`) {
					t.Errorf("%s", out)
				}

				u.calls(h.command("echo x >>free"))
				if out := u.rules("free", name); !there("free") || strings.Contains(u.must("log", "free"), "ask") {
					t.Errorf("without rules: %s\n%s", out, u.must("log", "free"))
				}
			})
		}
	}
}

// What they ask outlasts a pause, and ends with the run that has asked: after a crash of the daemon, or a stop, they ask anew, in the same session.
func TestWhatRealCommandLinesAskEndsWithTheirRun(t *testing.T) {
	for name, h := range hooked {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, h.flags[1], nil)
			u.opencodeConfig()
			lines := func(name string) int {
				b, _ := os.ReadFile(filepath.Join(u.Work, name)) // it may not be there
				return strings.Count(string(b), "\n")
			}
			start := func(as string) string {
				u.Answer(func(r llmtest.Request) llmtest.Reply {
					if last := r.Messages[len(r.Messages)-1]; len(last.Results) == 0 {
						return h.command("echo x >>" + as)
					}
					res, _ := r.LastResult()
					return llmtest.Reply{Text: "it came to this: " + res.Text}
				})
				u.rules(as, name, "-d", "--ask", "shell")
				return u.asks(1)[0]
			}

			n := start("paused")
			u.must("pause", "paused")
			if again := u.asks(1)[0]; again != n {
				t.Errorf("a pause has it ask anew: %s, %s", n, again)
			}
			u.must("allow", n)
			if lines("paused") != 0 {
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
			if lines("killed") != 0 {
				t.Error("it has run without an answer")
			}

			n = start("crashed")
			if err := syscall.Kill(u.daemon(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			again := u.asks(1)[0]
			for end := time.Now().Add(time.Minute); again == n && time.Now().Before(end); {
				again = u.asks(1)[0]
			}
			if again == n || lines("crashed") != 0 {
				t.Fatalf("what the old run has asked is still open, or has run: %s", u.must("asks"))
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
			if out, code := u.rnix("wait", "stopped"); code != 14 || !strings.Contains(out, "a person has refused") || lines("stopped") != 0 {
				t.Errorf("%s\n%s", out, u.must("log", "stopped"))
			}
		})
	}
}

// What subagents of a real command line do is judged as what it does itself.
func TestRealCommandLinesAskForTheirSubagents(t *testing.T) {
	starts := map[string]llmtest.Reply{
		"claude":   use("Agent", map[string]any{"description": "x", "prompt": "SUBTASK", "subagent_type": "general-purpose"}),
		"codex":    {ToolCalls: []llmtest.ToolCall{{Namespace: "multi_agent_v1", Name: "spawn_agent", Input: `{"message":"SUBTASK"}`}}},
		"opencode": use("task", map[string]any{"description": "x", "prompt": "SUBTASK", "subagent_type": "general"}),
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, name, nil)
			u.opencodeConfig()
			command, flags := bash, []string{"--harness", "claude"}
			if h, ok := hooked[name]; ok {
				command, flags = h.command, h.flags
			}
			done := func() bool {
				_, err := os.Lstat(filepath.Join(u.Work, "sub"))
				return err == nil
			}
			u.Answer(func(r llmtest.Request) llmtest.Reply {
				results := 0
				for _, m := range r.Messages {
					results += len(m.Results)
				}
				main := vendortest.Heard(r, "MAINTASK")
				switch {
				case !main && results == 0:
					return command("echo x >refused")
				case !main && results == 1:
					return command("echo x >sub")
				case main && results == 0:
					return start
				case main && !done() && results < 60 && name == "codex": // it works on beside its subagents, which end with it
					return command("sleep 1")
				}
				return llmtest.Reply{Text: "done"}
			})
			u.must(append(append([]string{"run", "-d", "--name", "p"}, flags...), "--ask", "shell echo *", "MAINTASK")...)
			u.must("deny", u.asks(1)[0])
			if again := u.asks(1); !strings.Contains(u.must("asks"), "echo x >sub") {
				t.Fatalf("%v %s", again, u.must("asks"))
			}
			u.must("allow", u.asks(1)[0])
			if out, _ := u.rnix("wait", "p"); !done() || strings.Contains(out, "without asking") {
				t.Errorf("%s\n%s", out, u.must("log", "p"))
			}
			if _, err := os.Lstat(filepath.Join(u.Work, "refused")); err == nil {
				t.Error("what a person has refused to a subagent was done")
			}
		})
	}
}

// A real claude that asks about a tool of its own and about one of the kernel at once, for two subagents, waits for both and has the answer of each.
func TestAnAskOfARealClaudeBesideOneOfTheKernel(t *testing.T) {
	u := newUser(t, "claude", nil)
	var over atomic.Bool
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		results := 0
		for _, m := range r.Messages {
			results += len(m.Results)
		}
		res, _ := r.LastResult()
		of := func(sub string) bool { return vendortest.Heard(r, "SUBTASK "+sub) && !vendortest.Heard(r, "do it") }
		switch {
		case of("A") && results == 0:
			return bash("echo x >own")
		case of("B") && results == 0:
			return use("mcp__rnix__spawn", map[string]any{"intent": "be a child"})
		case results > 0 && !of("A") && !of("B") && !over.Load() && results < 200: // its subagents work beside it, and end with its turn
			return bash("sleep 0.3")
		case results > 0:
			return llmtest.Reply{Text: "it came to this: " + res.Text}
		}
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{
			{Name: "Agent", Input: `{"description":"a","prompt":"SUBTASK A","subagent_type":"general-purpose"}`},
			{Name: "Agent", Input: `{"description":"b","prompt":"SUBTASK B","subagent_type":"general-purpose"}`}}}
	})
	for _, first := range []string{"spawn", "shell"} {
		u.must("run", "-d", "--name", first, "--harness", "claude", "--ask", "shell echo *", "--ask", "spawn", "do it")
		over.Store(false)
		u.asks(2)
		of := map[string]string{}
		for line := range strings.Lines(u.must("asks", "--json")) {
			var a struct {
				Number uint64 `json:"number"`
				Tool   string `json:"tool"`
			}
			if err := json.Unmarshal([]byte(line), &a); err != nil {
				t.Fatal(err)
			}
			of[a.Tool] = strconv.FormatUint(a.Number, 10)
		}
		other := map[string]string{"spawn": "shell", "shell": "spawn"}[first]
		if of[first] == "" || of[other] == "" {
			t.Fatalf("%v", of)
		}
		u.must("deny", of[first], "--because", "not "+first)
		if left := u.asks(1); left[0] != of[other] || !strings.Contains(u.must("ps"), "ask: "+other) {
			t.Errorf("%v %v\n%s", left, of, u.must("ps"))
		}
		if out, code := u.rnix("deny", of[other], "--because", "not "+other); code != 0 {
			t.Fatalf("%s\n%s\n%s\n%s", out, u.must("asks"), u.must("log", first), u.must("steps", first))
		}
		over.Store(true)
		out, _ := u.rnix("wait", first)
		steps := u.must("log", first)
		if strings.Contains(out, "without asking") || !strings.Contains(steps, "not "+first) || !strings.Contains(steps, "not "+other) {
			t.Errorf("%s\n%s", out, steps)
		}
		if out, _ := u.rnix("wait", first, "--json"); !strings.Contains(out, `"denied":2`) {
			t.Errorf("%s", out)
		}
	}
}
