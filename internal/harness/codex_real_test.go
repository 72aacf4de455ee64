package harness_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness"
	"rnix/internal/harness/vendortest"
	"rnix/types"
)

// direct is a name of a model that codex offers its tools to one by one, since it does not know it.
const direct = "gpt-5-codex"

func TestRealCodexWorksWithItsOwnTools(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(
		call("exec_command", map[string]any{"cmd": "echo written by the agent > a.txt; cat a.txt"}),
		call("exec_command", map[string]any{"cmd": "echo x > ../outside.txt"}), // the sandbox
		say("all done")))
	r := start(t, v, "codex", agent.Spec{Prompt: "write a.txt", Model: direct, SandboxLevel: harness.SandboxWorkspace, SystemPromptAppend: "APPENDED \"WORDS\""})
	events, exit := r.end()
	want := []agent.EventKind{"init", "assistant_text", "tool_use", "tool_result", "assistant_text", "tool_use", "tool_result", "assistant_text", "result"}
	silent := append(slices.Clone(want[:5]), want[7:]...) // it does not always tell of what its sandbox has refused
	if k := kinds(events); !slices.Equal(k, want) && !slices.Equal(k, silent) {
		t.Errorf("events: %s", show(events))
	}
	if b, err := os.ReadFile(filepath.Join(v.Work, "a.txt")); err != nil || string(b) != "written by the agent\n" {
		t.Errorf("%q %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(v.Home, "outside.txt")); err == nil {
		t.Error("the sandbox let it write outside")
	}
	uses, results := each[agent.ToolUseEvent](events), each[agent.ToolResultEvent](events)
	if len(uses) == 0 || len(uses) != len(results) || uses[0].ToolUseID != results[0].ToolUseID {
		t.Fatalf("%+v %+v", uses, results)
	}
	if len(uses) == 2 && (uses[1].ToolUseID != results[1].ToolUseID || uses[0].ToolUseID == uses[1].ToolUseID || !results[1].IsError) {
		t.Errorf("%+v %+v", uses, results)
	}
	if uses[0].Category != "shell" || !strings.Contains(string(uses[0].Input), "a.txt") || results[0].IsError || !strings.Contains(results[0].Content, "written by the agent") {
		t.Errorf("%+v %+v", uses, results)
	}
	end := last[agent.ResultEvent](events)
	if d := cmp.Diff(&agent.UsageEvent{Input: 300, Output: 30, CacheRead: 60, Total: true}, end.Usage); d != "" {
		t.Error(d)
	}
	if !end.Success || end.Message != "all done" || exit.Code != 0 || last[agent.InitEvent](events).SessionID == "" {
		t.Errorf("%+v %+v", end, exit)
	}
	if !vendortest.Heard(v.Requests()[0], "APPENDED \"WORDS\"") {
		t.Error("the appended prompt is not there")
	}
}

func TestRealCodexGoesOnWithItsSession(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(say("one"), call("exec_command", map[string]any{"cmd": "echo x > b.txt"}), say("two")))
	first, _ := start(t, v, "codex", agent.Spec{Prompt: "the first thing", Model: direct, SandboxLevel: harness.SandboxWorkspace}).end()
	id, before := last[agent.InitEvent](first).SessionID, last[agent.ResultEvent](first).Usage
	events, _ := startAfter(t, v, "codex", agent.Spec{Prompt: "the second thing", Model: direct, Resume: id, SandboxLevel: harness.SandboxReadOnly}, *before).end()
	end := last[agent.ResultEvent](events)
	if last[agent.InitEvent](events).SessionID != id || !end.Success || end.Message != "two" {
		t.Errorf("%s", show(events))
	}
	if d := cmp.Diff(&agent.UsageEvent{Input: 200, Output: 20, CacheRead: 40, Total: true}, end.Usage); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(filepath.Join(v.Work, "b.txt")); err == nil {
		t.Error("the sandbox of the second run let it write")
	}
	if asked := v.Requests(); len(asked) != 3 || !vendortest.Heard(asked[1], "the first thing") || !vendortest.Heard(asked[1], "one") {
		t.Errorf("%d requests", len(asked))
	}
}

func TestRealCodexSaysThatThereIsNoSuchSession(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(say("one")))
	events, exit := start(t, v, "codex", agent.Spec{Prompt: "go on", Resume: "01a1ff54-aaaa-7932-aed5-b1ed177ad276"}).end()
	if e := events[len(events)-1]; harness.CodeOf(e) != types.ErrNotFound || exit.Code == 0 || strings.Contains(show(events), "unknown") {
		t.Errorf("%s", show(events))
	}
}

func TestRealCodexHasNoToolsButTheGivenOnes(t *testing.T) {
	server, err := vendortest.MCPServer("rnix", "it's SERVED")
	if err != nil {
		t.Fatal(err)
	}
	spec := agent.Spec{Prompt: "go", NoOwnTools: true, MCPServers: []agent.MCPServerConfig{server}}
	js := func(code string) llmtest.Reply { // the tools of a newer model are called by a program
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "exec", Custom: true, Input: code}}, Usage: used}
	}
	t.Run("a model that calls them", func(t *testing.T) {
		v := vendortest.New(t, vendortest.Play(
			llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Namespace: "mcp__rnix", Name: "echo", Input: `{"text":"hello"}`}}, Usage: used},
			llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Namespace: "mcp__rnix", Name: "fail", Input: `{"text":"no"}`}}, Usage: used},
			say("done")))
		spec := spec
		spec.Model = direct
		events, _ := start(t, v, "codex", spec).end()
		uses, results := each[agent.ToolUseEvent](events), each[agent.ToolResultEvent](events)
		if len(results) != 2 || uses[0].ToolName != "mcp__rnix__echo" || uses[0].Category != "mcp" || string(uses[0].Input) != `{"text":"hello"}` || results[0].Content != "it's SERVED hello" || results[0].IsError || !results[1].IsError || !last[agent.ResultEvent](events).Success {
			t.Errorf("%s", show(events))
		}
		for _, n := range v.Requests()[0].Tools {
			if !strings.HasPrefix(n, "mcp__rnix/") && !strings.Contains(n, "mcp_resource") {
				t.Errorf("the model is offered %s", n)
			}
		}
	})
	t.Run("a model that writes programs", func(t *testing.T) {
		v := vendortest.New(t, vendortest.Play(
			js(`text((await tools.mcp__rnix__echo({text:"hello"})).content[0].text)`),
			js(`await tools.apply_patch("*** Begin Patch\n*** Add File: evil.txt\n+hello\n*** End Patch\n")`),
			js(`text(Object.keys(tools).join(" "))`), say("done")))
		events, _ := start(t, v, "codex", spec).end()
		if r := each[agent.ToolResultEvent](events); len(r) == 0 || r[0].Content != "it's SERVED hello" {
			t.Errorf("%s", show(events))
		}
		if files, err := os.ReadDir(v.Work); err != nil || len(files) > 0 {
			t.Errorf("it has written %v %v", files, err)
		}
		asked := v.Requests()
		if n := asked[0].Tools; !slices.Equal(n, []string{"functions/exec", "functions/wait"}) {
			t.Errorf("the model is offered %v", n)
		}
		offered, _ := asked[3].LastResult()
		for n := range strings.FieldsSeq(offered.Text[strings.LastIndex(offered.Text, "Output:")+7:]) {
			if !strings.HasPrefix(n, "mcp__rnix__") && !strings.Contains(n, "mcp_resource") && n != "clock__curr_time" && n != "apply_patch" {
				t.Errorf("its programs are offered %s", n)
			}
		}
	})
	t.Run("a server that is not there", func(t *testing.T) {
		v := vendortest.New(t, vendortest.Play(say("done")))
		spec := spec
		spec.MCPServers = []agent.MCPServerConfig{{Name: "rnix", Command: "/nonexistent/server"}}
		events, exit := start(t, v, "codex", spec).end()
		if e, ok := events[len(events)-1].(agent.ErrorEvent); !ok || exit.Code == 0 || !strings.Contains(e.Message, "rnix") || len(v.Requests()) > 0 {
			t.Errorf("%s", show(events))
		}
	})
}

func TestRealCodexShowsNoSecretOfAServer(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(call("exec_command", map[string]any{"cmd": "env; tr '\\0' ' ' < /proc/$PPID/cmdline"}), say("done")))
	server, err := vendortest.MCPServer("one", "SECRET-OF-ONE")
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, v, "codex", agent.Spec{Prompt: "x", Model: direct, SandboxLevel: harness.SandboxWorkspace, MCPServers: []agent.MCPServerConfig{server}})
	if strings.Contains(strings.Join(r.cmd.Args, " "), "SECRET") {
		t.Errorf("%q", r.cmd.Args)
	}
	events, _ := r.end()
	if out := each[agent.ToolResultEvent](events); len(out) != 1 || !strings.Contains(out[0].Content, "HOME=") || strings.Contains(out[0].Content, "SECRET") {
		t.Errorf("%s", show(events))
	}
}

func TestRealCodexRunsNoProgramsOfAProjectThatIsNotTrusted(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(say("read")))
	mark := filepath.Join(v.Home, "hooked")
	for name, text := range map[string]string{"AGENTS.md": "PROJECT-WORDS", ".codex/config.toml": "[mcp_servers.evil]\ncommand=\"touch\"\nargs=[\"" + mark + "\"]\n"} {
		path := filepath.Join(v.Work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	events, _ := start(t, v, "codex", agent.Spec{Prompt: "look"}).end()
	if _, err := os.Stat(mark); err == nil || !last[agent.ResultEvent](events).Success || !vendortest.Heard(v.Requests()[0], "PROJECT-WORDS") {
		t.Errorf("%v: %s", err, show(events))
	}
}

func TestRealCodexSaysWhatTheVendorRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply llmtest.Reply
		code  types.ErrCode
	}{
		{"a wrong key", llmtest.Reply{Status: http.StatusUnauthorized, Text: "Incorrect API key provided"}, types.ErrAuth},
		{"a wrong request", llmtest.Reply{Status: http.StatusBadRequest, Text: "Your input exceeds the context window"}, types.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := vendortest.New(t, vendortest.Play(c.reply))
			events, exit := start(t, v, "codex", agent.Spec{Prompt: "hi"}).end()
			if e := events[len(events)-1]; harness.CodeOf(e) != c.code || exit.Code == 0 {
				t.Errorf("%v: %s", exit, show(events))
			}
		})
	}
}

func TestRealCodexThatIsKilledHasNoResult(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			asked := make(chan struct{})
			v := vendortest.New(t, func(llmtest.Request) llmtest.Reply {
				close(asked)
				return llmtest.Reply{Text: "I begin", Hang: true}
			})
			r := start(t, v, "codex", agent.Spec{Prompt: "begin"})
			<-asked
			r.child.Signal(sig)
			events, exit := r.ended()
			if exit.Signal != int(sig) || exit.Code != 128+int(sig) {
				t.Errorf("%+v", exit)
			}
			if e, ok := events[len(events)-1].(agent.ErrorEvent); !ok || e.Code != harness.WhyNoResult {
				t.Errorf("%s", show(events))
			}
		})
	}
}
