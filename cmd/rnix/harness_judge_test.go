package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
)

// hooked are the command lines that ask by a program before each of their calls.
var hooked = map[string]struct {
	flags   []string
	command func(command string) llmtest.Reply
	write   func(dir, file string) llmtest.Reply
	edit    string // of a write of a.txt in DIR, one of b.txt; empty = it takes none
}{
	"claude": {[]string{"--harness", "claude"}, bash,
		func(dir, file string) llmtest.Reply {
			return use("Write", map[string]any{"file_path": filepath.Join(dir, file), "content": "by an agent\n"})
		}, `{"file_path":"DIR/b.txt","content":"x"}`},
	"codex": {[]string{"--harness", "codex", "--model", "gpt-5-codex"},
		func(c string) llmtest.Reply { return use("exec_command", map[string]any{"cmd": c}) },
		nil, ""}, // it is not offered apply_patch
	// The models that codex knows write programs that call its tools.
	"codex-programs": {[]string{"--harness", "codex"},
		func(c string) llmtest.Reply {
			return script("text((await tools.exec_command({cmd:" + quoted(c) + "})).output)")
		},
		func(_, file string) llmtest.Reply {
			return script("await tools.apply_patch(" + quoted("*** Begin Patch\n*** Add File: "+file+"\n+by an agent\n*** End Patch\n") + ")")
		}, ""},
	"opencode": {[]string{"--harness", "opencode"},
		func(c string) llmtest.Reply {
			return use("bash", map[string]any{"command": c, "description": "tries"})
		},
		func(_, file string) llmtest.Reply {
			return use("write", map[string]any{"filePath": file, "content": "by an agent\n"})
		}, `{"filePath":"b.txt","content":"x"}`},
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

// there reports whether a file of the work directory is there.
func (u *user) there(name string) bool {
	_, err := os.Lstat(filepath.Join(u.Work, name))
	return err == nil
}

// one waits for the one call that is asked about, which must be of a text, and returns its number.
func (u *user) one(text string) string {
	u.t.Helper()
	n := ""
	asked := testenv.Within(3*time.Minute, func() bool {
		all := u.waiting()
		if len(all) == 1 && strings.Contains(all[0].Text, text) {
			n = strconv.FormatUint(all[0].Number, 10)
		}
		return n != "" && strings.Contains(u.must("asks"), text)
	})
	if !asked {
		u.t.Fatalf("it has not asked about %q: %s", text, u.must("asks"))
	}
	return n
}

// The rules of a process hold for the tools that real command lines bring along, however they are confined and whatever their own settings allow.
func TestRealCommandLinesAskBeforeTheyUseTheirOwnTools(t *testing.T) {
	// The other codex is not offered apply_patch.
	for _, cell := range soak.Cells(t, "command lines that ask, and levels of confinement", []string{"claude", "codex-programs", "opencode"}, []string{"off", "landlock", "bwrap"}) {
		name, level := cell[0], cell[1]
		h := hooked[name]
		t.Run(name+"/"+level, func(t *testing.T) {
			u := newUser(t, h.flags[1], nil)
			u.opencodeConfig()
			if level != "off" {
				boxed(t, u, level)
			} else {
				u.allowed("Bash")
			}

			// one run, because they start slowly
			u.calls(h.command("echo made >made; echo out"), h.command("echo x >refused"), h.command("echo x >first"), h.command("env git push"),
				h.command("echo one"), h.command("echo two"), h.write(u.Work, "a.txt"))
			u.rules("p", name, "-d", "--ask", "shell", "--ask", "write_file *.txt", "--deny", "read_file /etc/**", "--deny", "shell git push *")
			n := u.one("echo made")
			if u.there("made") || !strings.Contains(u.must("ps"), "ask: shell echo made") {
				t.Errorf("it does not wait: %s", u.must("ps"))
			}
			u.must("allow", n)
			n = u.one("refused")
			if !u.there("made") {
				t.Errorf("what was allowed has not run: %s", u.must("log", "p"))
			}
			u.must("deny", n, "--because", "not on a Friday")
			u.must("allow", u.one("first"), "--edit", "echo 'y' >second; echo \"an other\"")
			n = u.one("echo one") // git push is refused without a question
			if u.there("refused") || u.there("first") || !u.there("second") {
				t.Errorf("%s", u.must("log", "p"))
			}
			u.must("allow", n, "--for", "family", "--match", "echo *")
			n = u.one("a.txt") // the grant counts for echo two
			if u.there("a.txt") {
				t.Error("it was written before a person has answered")
			}
			if out, code := u.rnix("allow", n, "--edit", cmp.Or(strings.ReplaceAll(h.edit, "DIR", u.Work), `{"filePath":"b.txt","content":"x"}`)); (code == 0) != (h.edit != "") || h.edit == "" && !strings.Contains(out, "takes nothing else in place of this call") {
				t.Errorf("%d %s", code, out)
			}
			if h.edit == "" {
				u.must("allow", n)
			}
			out, code := u.rnix("wait", "p")
			if u.there("a.txt") != (h.edit == "") || u.there("b.txt") != (h.edit != "") {
				t.Errorf("%s\n%s", out, u.must("log", "p"))
			}
			for _, want := range []string{"it came to this: ", "out", "not on a Friday", "an other", "git push", "one", "two"} {
				if code != 0 || !strings.Contains(out, want) || strings.Contains(out, "do not reach") {
					t.Errorf("exit code %d; want %q in %s\n%s", code, want, out, u.must("log", "p"))
				}
			}
			if out, _ := u.rnix("wait", "p", "--json"); !strings.Contains(out, `"denied":2,"denials":[{"tool":"shell","text":"shell echo x >refused","why":"not on a Friday"},{"tool":"shell","text":"shell env git push"`) {
				t.Errorf("%s", out)
			}

			if level != "off" && !soak.On() { // TestRealCommandLinesInTheSandbox is without rules
				return
			}
			u.calls(h.command("echo x >nobody"))
			if out, code := u.rnix(append(append([]string{"run", "--name", "nobody"}, h.flags...), "--ask", "shell", "--asks", "deny", "do it")...); code != 14 || !strings.Contains(out, "a person has to be asked") || !strings.Contains(out, "| 1 call refused") || u.there("nobody") {
				t.Errorf("%s\n%s", out, u.must("log", "nobody"))
			}
			u.calls(h.command("echo x >>free"))
			if out := u.rules("free", name); !u.there("free") || strings.Contains(u.must("log", "free"), "ask") {
				t.Errorf("without rules: %s\n%s", out, u.must("log", "free"))
			}
		})
	}
}

// What they ask outlasts a pause, and ends with the run that has asked: after a crash of the daemon, or a stop, they ask anew, in the same session. Settings
// that they find cannot keep them from asking.
func TestWhatRealCommandLinesAskEndsWithTheirRun(t *testing.T) {
	for name, h := range hooked {
		if left(t, name) || name == "codex" && !soak.Pick(t, "codex without programs, beside the one with them", false, true) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			u := newUser(t, h.flags[1], nil)
			u.opencodeConfig()
			settings := filepath.Join(u.Home, ".claude", "settings.json")
			if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
				t.Fatal(err)
			}
			replace(t, settings, []byte(`{"disableAllHooks":true,"permissions":{"allow":["Bash"]}}`))
			lines := func(name string) int {
				b, _ := os.ReadFile(filepath.Join(u.Work, name)) // it may not be there
				return strings.Count(string(b), "\n")
			}
			next := func(file string) { // what its model asks for from now on
				u.Answer(func(llmtest.Request) llmtest.Reply { return h.command("echo x >>" + file) })
			}

			next("paused")
			u.rules("p", name, "-d", "--ask", "shell")
			n := u.one("paused")
			u.must("pause", "p")
			if again := u.asks(1)[0]; again != n {
				t.Errorf("a pause has it ask anew: %s, %s", n, again)
			}
			u.must("allow", n)
			if lines("paused") != 0 {
				t.Error("it has run while it was paused")
			}
			next("crashed")
			u.must("resume", "p")

			n = u.one("crashed")
			if lines("paused") != 1 {
				t.Errorf("what was allowed has not run: %s", u.must("log", "p"))
			}
			if err := syscall.Kill(u.daemon(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			again := n
			if !testenv.Within(time.Minute, func() bool { again = u.asks(1)[0]; return again != n }) || lines("crashed") != 0 {
				t.Fatalf("what the old run has asked is still open, or has run: %s", u.must("asks"))
			}
			next("stopped")
			u.must("allow", again)

			u.one("stopped")
			if lines("crashed") != 1 {
				t.Errorf("what was allowed has not run once: %s", u.must("log", "p"))
			}
			u.must("daemon", "stop")
			u.must("ps")
			u.rnix("resume", "p")
			n = u.one("stopped")
			next("killed")
			u.must("deny", n)

			n = u.one("killed")
			told := slices.ContainsFunc(u.Requests(), func(r llmtest.Request) bool {
				res, _ := r.LastResult()
				return strings.Contains(res.Text, "a person has refused")
			})
			if lines("stopped") != 0 || !told {
				t.Errorf("what was refused has run, or it is not told: %s", u.must("log", "p"))
			}
			u.must("kill", "p")
			u.rnix("wait", "p")
			u.asks(0)
			if out, code := u.rnix("allow", n); code == 0 {
				t.Errorf("what nobody waits for was allowed: %s", out)
			}
			if lines("killed") != 0 {
				t.Error("it has run without an answer")
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
		if left(t, name) {
			continue
		}
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
	var over, late atomic.Bool
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		results := 0
		for _, m := range r.Messages {
			results += len(m.Results)
		}
		res, _ := r.LastResult()
		of := func(sub string) bool { return vendortest.Heard(r, "SUBTASK "+sub) && !vendortest.Heard(r, "do it") }
		switch {
		case of("A") && results == 0: // in the second round it asks while the kernel waits for a person already
			re := bash("echo x >own")
			if late.Load() {
				re.Delay = 3 * time.Second
			}
			return re
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
		late.Store(first == "shell")
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

// A user's settings that switch hooks off, and say where the vendor is, take neither its rules nor the gateway from a real claude.
func TestRealClaudeHasItsRulesAndTheGateway(t *testing.T) {
	u := newUser(t, "claude", nil)
	if err := os.MkdirAll(filepath.Join(u.Home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf(`{"disableAllHooks":true,"env":{"ANTHROPIC_BASE_URL":%q},"permissions":{"allow":["Bash"]}}`, u.URL)
	if err := os.WriteFile(filepath.Join(u.Home, ".claude", "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	one := use("Bash", map[string]any{"command": "echo x >refused", "description": "x"})
	one.Usage = &llmtest.Usage{Input: 11, Output: 2}
	u.Answer(vendortest.Play(one, llmtest.Reply{Text: "done", Usage: &llmtest.Usage{Input: 11, Output: 2}}))
	out, code := u.rnix("run", "--harness", "claude", "--name", "p", "--deny", "shell echo *", "do it")
	if _, err := os.Lstat(filepath.Join(u.Work, "refused")); err == nil || code != 14 || !strings.Contains(out, "done") {
		t.Errorf("%v %d %s", err, code, out)
	}
	if p := u.shown("p"); p.TokensUsed != 26 || len(u.Requests()) != 2 {
		t.Errorf("%d tokens of %d requests passed the gateway", p.TokensUsed, len(u.Requests()))
	}
}
