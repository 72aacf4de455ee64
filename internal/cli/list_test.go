package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"rnix/agent"
	"rnix/ipc"
	"rnix/types"
)

func someProcs() []ipc.Proc {
	return []ipc.Proc{
		{ProcStatus: types.ProcStatus{PID: 5, UUID: id(5), PPID: 3, ParentUUID: id(3), Intent: "grandchild: 数据库をしらべる and a very long story that goes on and on", Provider: "deepseek", Model: "v4-flash", Step: 2, TokensUsed: 1234}, State: "running", Wait: "model for 3s", ElapsedMs: 3200,
			Children: []ipc.OSChild{{PID: 4711, Kind: "shell", Command: "/bin/bash -c sleep 100"}, {PID: 4712, Kind: "mcp", Command: "npx \x1b[31mserver"}}},
		{ProcStatus: types.ProcStatus{PID: 1, UUID: id(1), Name: "night", Agent: "coder", Labels: types.Labels{"env": "prod", "note": "\x1b[2Jtwo\u202ewords"}, Intent: "build\nit", Provider: "claude", Step: 3, MaxSteps: 20, TokensUsed: 1234567}, State: "running", Estimated: true, ElapsedMs: 65000},
		{ProcStatus: types.ProcStatus{PID: 3, UUID: id(3), PPID: 1, ParentUUID: id(1), Intent: "child", Provider: "deepseek"}, State: "suspended", Wait: "rate limit", WaitUntil: time.Date(2026, 1, 2, 14, 3, 20, 0, time.Local), ElapsedMs: 10},
		{ProcStatus: types.ProcStatus{PID: 2, UUID: id(2), PPID: 1, ParentUUID: id(1), Exit: &types.ExitStatus{Code: 1, Reason: "max steps exceeded"}, Intent: "first child", Provider: "deepseek", Step: 20, MaxSteps: 20}, State: "dead"},
		{ProcStatus: types.ProcStatus{PID: 9, UUID: id(9), PPID: 8, ParentUUID: id(8), Intent: "its parent is not here", Provider: "offline"}, State: "running"},
	}
}

func TestALocaleWithoutUTF8IsDrawnInASCII(t *testing.T) {
	f := newFake(t).serve()
	f.procs, f.hidden = someProcs(), 3
	want := f.runIn(strings.NewReader(""), []string{"COLUMNS=60", "RNIX_ASCII=1"}, "ps").out
	for locale, ascii := range map[string]bool{"LC_ALL=de_DE.ISO-8859-1": true, "LANG=C": true, "LANG=en_GB.UTF-8": false, "LC_CTYPE=C.utf8": false} {
		if got := f.runIn(strings.NewReader(""), []string{"COLUMNS=60", locale}, "ps").out; (got == want) != ascii {
			t.Errorf("%s:\n%s", locale, got)
		}
	}
}

func TestPsIsATreeAtEachWidth(t *testing.T) {
	f := newFake(t).serve()
	f.procs, f.hidden = someProcs(), 3
	var all strings.Builder
	for _, env := range [][]string{nil, {"COLUMNS=100"}, {"COLUMNS=60", "RNIX_ASCII=1"}, {"COLUMNS=30"}} {
		r := f.runIn(strings.NewReader(""), env, "ps")
		if r.code != 0 || strings.Contains(r.err, "\x1b") {
			t.Errorf("%+v", r)
		}
		width := 0
		if len(env) > 0 {
			_, _ = fmt.Sscanf(env[0], "COLUMNS=%d", &width)
		}
		for line := range strings.SplitSeq(r.out, "\n") {
			if width >= 60 && cells(line) > width {
				t.Errorf("%d cells in %q", cells(line), line)
			}
		}
		fmt.Fprintf(&all, "%v\n%s%s\n", env, r.out, r.err)
	}
	all.WriteString(f.runIn(strings.NewReader(""), nil, "ps", "-v").out)
	golden(t, "ps", all.String())
}

func TestPsShowsDamagedTreesWhole(t *testing.T) {
	procs := []ipc.Proc{{ProcStatus: types.ProcStatus{PID: 1, UUID: id(1), ParentUUID: id(2)}}, {ProcStatus: types.ProcStatus{PID: 2, UUID: id(2), ParentUUID: id(1)}}, {ProcStatus: types.ProcStatus{PID: 3, UUID: id(3), ParentUUID: id(3)}}}
	if got := processTree(procs); len(got) != 3 {
		t.Errorf("%d of 3", len(got))
	}
}

func TestPsWithoutDaemonStartsNone(t *testing.T) {
	f := newFake(t)
	r := f.run("ps")
	if r.code != 0 || r.out != "" || !strings.Contains(r.err, "no daemon is running") {
		t.Errorf("%+v", r)
	}
	if r := f.run("ps", "--json"); r.code != 0 || r.out+r.err != "" {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"kill", "3"}, {"pause", "3"}} {
		if r := f.run(args...); r.code != ExitNotFound || !strings.Contains(r.err, "rnix ps -a") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if r := f.run("daemon", "status"); r.code != ExitUnreachable {
		t.Errorf("%+v", r)
	}
	if r := f.run("daemon", "stop"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := f.run("__complete", "kill", ""); r.code != 0 || !strings.Contains(r.out, ":4") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(f.dir + "/run"); err == nil {
		t.Error("something was made below the runtime directory")
	}
}

func TestEachListingIsOneObjectPerLineInJSON(t *testing.T) {
	f := newFake(t).serve()
	f.procs = someProcs()
	f.steps = ipc.ListStepsResponse{PID: 3, UUID: id(3), Steps: []ipc.StepRecord{{StepNumber: 1, Action: "text", Summary: "one"}, {StepNumber: 2, Action: "complete"}}}
	f.provs = ipc.ProvidersResponse{Chosen: "b", Why: "asked for", Providers: []ipc.Provider{{Name: "a"}, {Name: "b", Available: true}}, Problems: []string{"x.yaml:1:2: bad"}}
	f.agents = ipc.AgentsResponse{Agents: []ipc.AgentInfo{{Manifest: agent.Manifest{Name: "coder"}, Scope: "project"}}, Problems: []string{"y.yaml:3: worse"}}
	f.skills = ipc.SkillsResponse{Skills: []agent.Skill{{Name: "s", Scope: "user"}}}
	f.mcps = ipc.MCPListResponse{Servers: []ipc.MCPServerInfo{{Name: "m"}}, Mounts: []ipc.MCPMount{{Path: "/mnt/mcp/m", PID: 3}}}
	f.list = ipc.ListPathResponse{Entries: []ipc.PathEntry{{Name: "dev", IsDir: true, Size: -1}, {Name: "a\nb", Size: 3}}}
	for _, c := range []struct {
		args  []string
		lines int
		has   string
		err   string
	}{
		{[]string{"ps"}, 5, `"context_budget"`, ""}, {[]string{"steps", "3"}, 2, `"step_number":2`, ""}, {[]string{"providers"}, 2, `"chosen":true,"why":"asked for"`, "x.yaml:1:2"},
		{[]string{"agents"}, 1, `"name":"coder"`, "y.yaml:3"}, {[]string{"skills"}, 1, `"scope":"user"`, ""},
		{[]string{"mcp", "list"}, 2, `"kind":"mount"`, ""}, {[]string{"ls", "/"}, 2, `"is_dir":true`, ""},
	} {
		r := f.run(append(c.args, "--json")...)
		if r.code != 0 || strings.Count(r.out, "\n") != c.lines || (c.err == "") != (r.err == "") || !strings.Contains(r.err, c.err) {
			t.Errorf("%v: %+v", c.args, r)
		}
		for line := range strings.SplitSeq(strings.TrimSpace(r.out), "\n") {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Errorf("%v: %q: %v", c.args, line, err)
			}
		}
		if c.args[0] != "ps" && !strings.Contains(r.out, c.has) {
			t.Errorf("%v: no %s in %s", c.args, c.has, r.out)
		}
		if r := f.run(c.args...); r.code != 0 || r.out == "" {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}

func TestSkillsThatWantToLimitToolsAreWarnedOf(t *testing.T) {
	f := newFake(t).serve()
	f.skills = ipc.SkillsResponse{Skills: []agent.Skill{{Name: "strict", AllowedTools: "Read Grep"}, {Name: "plain"}}}
	for _, args := range [][]string{{"skills"}, {"skills", "--json"}} {
		r := f.run(args...)
		if r.code != 0 || strings.Count(r.err, "warning: ") != 1 || !strings.Contains(r.err, "warning: strict: allowed-tools limits nothing here; ") || !strings.Contains(r.err, "agent.yaml (devices) and in --allow and --deny") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestStepIsShownInDetailAndClean(t *testing.T) {
	f := newFake(t).serve()
	f.detail = ipc.StepDetail{PID: 3, UUID: id(3), Step: ipc.StepRecord{StepNumber: 2, Timestamp: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local), Duration: 1500 * time.Millisecond, ModelTime: time.Second,
		Provider: "deepseek", Model: "v4", TokensUsed: 1300, Input: 1000, Output: 300, CacheRead: 800, CostUSD: 0.0123, Action: "tool_call", Summary: "shell ls", RawResponse: "I look.\x1b[2J",
		ToolCalls: []ipc.StepCall{{Name: "shell", Path: "/dev/shell", Input: `{"command":"ls"}`, Result: "a\nb\n", Duration: time.Second}, {Name: "x", Error: "no such tool", Code: types.ErrNotFound}},
		Messages:  []ipc.StepMessage{{Role: "user", Content: "do it"}, {Role: "assistant", ToolCalls: []ipc.StepMessageCall{{Name: "shell", Input: []byte(`{}`)}}}}}}
	r := f.run("steps", "3", "2", "--messages")
	if r.code != 0 {
		t.Errorf("%+v", r)
	}
	golden(t, "step", r.out)
	if r := f.run("steps", "3", "2", "--json"); strings.Contains(r.out, `"messages"`) || !strings.Contains(r.out, `"step_number":2`) {
		t.Errorf("%+v", r)
	}
}

func TestCatWritesBytesAsTheyAreAndLsQuotesNames(t *testing.T) {
	f := newFake(t).serve()
	var got ipc.PathRequest
	f.path = func(op string, r ipc.PathRequest) (ipc.PathResponse, error) {
		got = r
		return ipc.PathResponse{Data: []byte("\x00\xff\x1b[2J"), Cut: true}, nil
	}
	f.proc = func(target string) (ipc.ProcDetail, error) {
		if target != "night" {
			return ipc.ProcDetail{}, types.Errorf(types.ErrNotFound, "Find", target, "no such process")
		}
		return ipc.ProcDetail{Proc: ipc.Proc{ProcStatus: types.ProcStatus{PID: 7}}}, nil
	}
	r := f.run("cat", "/proc/night/status", "--as", "3")
	if r.out != "\x00\xff\x1b[2J" || got.Path != "/proc/7/status" || got.As != "3" || !strings.Contains(r.err, "--max") || r.code != 0 {
		t.Errorf("%+v %+v", r, got)
	}
	f.run("cat", "/proc/mounts")
	if got.Path != "/proc/mounts" {
		t.Errorf("%+v", got)
	}
	if r := f.run("cat", "README.md"); r.code != ExitUsage || !strings.Contains(r.err, "/dev/fs$PWD/README.md") {
		t.Errorf("%+v", r)
	}
	f.run("write", "/dev/shell", "echo", "hi")
	if string(got.Data) != `{"command":"echo hi"}` {
		t.Errorf("%s", got.Data)
	}
	f.runIn(strings.NewReader("a note\n"), nil, "write", "/dev/workspace/n", "-")
	if string(got.Data) != "a note\n" {
		t.Errorf("%q", got.Data)
	}
	f.list = ipc.ListPathResponse{Entries: []ipc.PathEntry{{Name: "a\nb\x1b[2J", Size: 3}}}
	if r := f.run("ls", "/x"); r.out != "a\\nb\n" {
		t.Errorf("%+v", r)
	}
}

func TestKillTakesSignalsAsPeopleWriteThem(t *testing.T) {
	f := newFake(t).serve()
	f.signal = func(tree bool, r ipc.SignalRequest) (ipc.SignalResponse, error) {
		if r.Target == "gone" {
			return ipc.SignalResponse{}, types.Errorf(types.ErrNotFound, "Signal", r.Target, "no such process")
		}
		return ipc.SignalResponse{PID: 3, UUID: id(3), Affected: 1}, nil
	}
	for _, c := range []struct {
		args, call string
		code       int
	}{
		{"kill 3", "signal 3 SIGTERM", 0}, {"kill -9 3", "signal 3 SIGKILL", 0}, {"kill -TERM 3", "signal 3 SIGTERM", 0}, {"kill -s int 3", "signal 3 SIGINT", 0},
		{"--json kill -SIGKILL 3", "signal 3 SIGKILL", 0}, {"kill -19 --subtree 3", "signal_tree 3 SIGPAUSE", 0}, {"pause 3", "signal 3 SIGPAUSE", 0},
		{"kill -RESUME -t 3", "signal_tree 3 SIGRESUME", 0}, {"kill gone 3", "signal gone SIGTERM; signal 3 SIGTERM", ExitNotFound}, {"kill -FROB 3", "", ExitUsage}, {"kill", "", ExitUsage},
	} {
		f.mu.Lock()
		f.seen = nil
		f.mu.Unlock()
		if r := f.run(strings.Fields(c.args)...); r.code != c.code || f.calls() != c.call {
			t.Errorf("%s: code %d, calls %q, %s", c.args, r.code, f.calls(), r.err)
		}
	}
}

func TestCatInJSONIsTextWhereItIsText(t *testing.T) {
	f := newFake(t).serve()
	for data, want := range map[string]string{
		"a <b>\n": `{"path":"/dev/fs/x","text":"a <b>\n"}`, "": `{"path":"/dev/fs/x","text":""}`, "\xff\xfe": `{"path":"/dev/fs/x","data":"//4="}`,
	} {
		f.path = func(string, ipc.PathRequest) (ipc.PathResponse, error) {
			return ipc.PathResponse{Data: []byte(data)}, nil
		}
		if r := f.run("cat", "--json", "/dev/fs/x"); r.code != 0 || r.out != want+"\n" {
			t.Errorf("%q: %+v", data, r)
		}
	}
}
