package llm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/types"
)

// offlineTools are the tools as their devices offer them, and the kernel's own.
var offlineTools = []ToolSpec{
	{"read_file", "", json.RawMessage(`{"type":"object","properties":{"path":{},"offset":{},"limit":{}}}`)},
	{"list_files", "", json.RawMessage(`{"type":"object","properties":{"path":{},"depth":{}}}`)},
	{"glob", "", json.RawMessage(`{"type":"object","properties":{"pattern":{},"path":{},"limit":{}}}`)},
	{"grep", "", json.RawMessage(`{"type":"object","properties":{"pattern":{},"path":{},"glob":{},"ignore_case":{},"output":{},"limit":{}}}`)},
	{"shell", "", json.RawMessage(`{"type":"object","properties":{"command":{},"timeout_ms":{}}}`)},
	{"plan", "", json.RawMessage(`{"type":"object","properties":{"steps":{}}}`)},
	{"complete", "", json.RawMessage(`{"type":"object","properties":{"result":{}}}`)},
}

func only(names ...string) (out []ToolSpec) {
	for _, t := range offlineTools {
		if slices.Contains(names, t.Name) {
			out = append(out, t)
		}
	}
	return out
}

// tree is a directory that answers the tools in the form that the real devices do.
type tree struct {
	files  map[string]string
	shell  map[string]string // answers by command
	broken bool              // every tool fails
}

func (d tree) answer(c rnixctx.ToolCall) rnixctx.Message {
	var in struct {
		Path, Pattern, Command string
		IgnoreCase             bool `json:"ignore_case"`
	}
	_ = json.Unmarshal(c.Input, &in)
	m := rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: c.ID}
	if d.broken {
		m.Content, m.IsError = "error (PERMISSION): not allowed", true
		return m
	}
	names := make([]string, 0, len(d.files))
	for n := range d.files {
		names = append(names, n)
	}
	slices.Sort(names)
	var b strings.Builder
	switch c.Name {
	case "list_files":
		seen := map[string]bool{}
		for _, n := range names {
			dir, _, below := strings.Cut(n, "/")
			switch {
			case !below:
				fmt.Fprintf(&b, "%s\t%d\n", n, len(d.files[n]))
			case !seen[dir]:
				seen[dir] = true
				b.WriteString(dir + "/\n")
			}
		}
		b.WriteString("[left out: .git; all shows them]\n")
	case "glob":
		for _, n := range names {
			if ok := in.Pattern == "**/*" || strings.HasSuffix(n, strings.TrimPrefix(in.Pattern, "*")); ok {
				b.WriteString(n + "\n")
			}
		}
	case "read_file":
		for i, l := range strings.Split(strings.TrimRight(d.files[in.Path], "\n"), "\n") {
			fmt.Fprintf(&b, "%d\t%s\n", i+1, l)
		}
	case "grep":
		flags := ""
		if in.IgnoreCase {
			flags = "(?i)"
		}
		re, hits := regexp.MustCompile(flags+in.Pattern), 0
		for _, n := range names {
			for i, l := range strings.Split(d.files[n], "\n") {
				if re.MatchString(l) {
					hits++
					fmt.Fprintf(&b, "%s:%d:%s\n", n, i+1, l)
				}
			}
		}
		if hits == 0 {
			fmt.Fprintf(&b, "[no match in %d files]\n", len(names))
		}
	case "shell":
		out, ok := d.shell[in.Command]
		if !ok {
			out = "sh: " + in.Command + ": not found\n[exit code 127, 0.1 s]"
		}
		b.WriteString(out)
	case "plan":
		b.WriteString("The plan is noted. Begin with its first step.")
	default:
		m.IsError = true
		b.WriteString("no such tool")
	}
	m.Content = b.String()
	return m
}

// converse runs the planner to its end, as a kernel does, and returns the answer and the steps taken.
func converse(t *testing.T, d tree, req LLMRequest) (answer string, steps []string, err error) {
	t.Helper()
	driver := NewOfflineDriver("")
	if len(req.Messages) == 0 {
		req.Messages = []rnixctx.Message{{Role: rnixctx.RoleUser, Content: req.Intent}}
	}
	ids := map[string]bool{}
	for range 20 {
		resp, err := driver.Call(t.Context(), req)
		if err != nil {
			return "", steps, err
		}
		if resp.TokensUsed != 0 || resp.Usage != (Usage{}) || resp.CostUSD != 0 {
			t.Errorf("the planner is free, got %+v", resp.Usage)
		}
		if len(resp.ToolCalls) == 0 {
			return resp.Content, steps, nil
		}
		req.Messages = append(req.Messages, rnixctx.Message{Role: rnixctx.RoleAssistant, Content: resp.Content, ToolCalls: resp.ToolCalls})
		var names []string
		for _, c := range resp.ToolCalls {
			if ids[c.ID] {
				t.Errorf("id %s is used twice", c.ID)
			}
			ids[c.ID] = true
			if !slices.ContainsFunc(req.Tools, func(s ToolSpec) bool { return s.Name == c.Name }) {
				t.Errorf("called %s, which was not offered", c.Name)
			}
			names = append(names, c.Name)
			req.Messages = append(req.Messages, d.answer(c))
		}
		if err := rnixctx.Legal(req.Messages); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, strings.Join(names, " "))
	}
	t.Fatal("the planner does not come to an end")
	return "", nil, nil
}

var goProject = tree{
	files: map[string]string{
		"README.md": "<p align=center>logo</p>\n\n# Tidepool\n\n[![build](b.svg)](ci)\n\nTidepool keeps the clocks of a fleet of [buoys](https://example.com)\nin step, and tells when one drifts.\n\n## Use\n\nmore\n",
		"go.mod":    "module example.com/tidepool\n\ngo 1.24\n",
		"Makefile":  "build:\n\tgo build\n\ntest:\n\tgo test ./...\n",
		"main.go":   "package main\n\n// TODO: read the address from a flag\nfunc main() {}\n", "clock/clock.go": "package clock\n\n// FIXME: leap seconds\n",
		"clock/clock_test.go": "package clock\n", "clock/drift.go": "package clock\n", "docs/design.md": "# Design\n", ".gitignore": "bin\n",
	},
	shell: map[string]string{
		logCommand:      "1f3c2aa 2026-10-02 clock: measure drift over a day\n77b0e1d 2026-09-30 first\n[exit code 0, 0.1 s]",
		statusCommand:   "## main...origin/main [ahead 1]\n M main.go\n?? notes.txt\n[exit code 0, 0.1 s]",
		"go test ./...": "ok  \texample.com/tidepool/clock\t0.01s\n[exit code 0, 1.2 s]",
		"make lint":     "lint: main.go:3: too short\n[exit code 2, 0.4 s]",
	},
}

func TestOfflineReportsOnAProject(t *testing.T) {
	answer, steps, err := converse(t, goProject, LLMRequest{Intent: "Report on this repository", Tools: offlineTools, WorkDir: "/home/ada/tidepool"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"plan list_files glob", "read_file read_file read_file", "grep", "shell shell"}
	if !slices.Equal(steps, want) {
		t.Errorf("steps = %q, want %q", steps, want)
	}
	goldenFile(t, "offline_report.md", answer)
}

func TestOfflineWorksWithAnySubsetOfTheTools(t *testing.T) {
	all := []string{"read_file", "list_files", "glob", "grep", "shell", "plan"}
	for bits := range 1 << len(all) {
		var names []string
		for i, n := range all {
			if bits&(1<<i) != 0 {
				names = append(names, n)
			}
		}
		answer, _, err := converse(t, goProject, LLMRequest{Intent: "describe the project", Tools: only(names...), WorkDir: "/w/tidepool"})
		if err != nil || !strings.Contains(answer, "## Files") || !strings.HasSuffix(answer, offlineFooter) {
			t.Fatalf("%v: %v\n%s", names, err, answer)
		}
		for _, n := range []string{"grep", "shell", "glob"} {
			if strings.Contains(answer, notAllowed(n)) == slices.Contains(names, n) {
				t.Errorf("%v: %s is said to be missing: %v", names, n, !slices.Contains(names, n))
			}
		}
	}
	answer, _, _ := converse(t, goProject, LLMRequest{Intent: "describe the project", Tools: only("list_files", "read_file"), WorkDir: "/w/tidepool"})
	goldenFile(t, "offline_report_readonly.md", answer)
}

func TestOfflineReportSurvivesToolsThatFail(t *testing.T) {
	answer, _, err := converse(t, tree{broken: true}, LLMRequest{Intent: "report", Tools: offlineTools, WorkDir: "/w/x"})
	if err != nil || !strings.Contains(answer, "could not be listed: error (PERMISSION)") {
		t.Errorf("%v\n%s", err, answer)
	}
}

func TestOfflineFindsText(t *testing.T) {
	answer, steps, err := converse(t, goProject, LLMRequest{Intent: `find "package clock"`, Tools: offlineTools})
	if err != nil || !slices.Equal(steps, []string{"grep"}) {
		t.Fatal(steps, err)
	}
	goldenFile(t, "offline_find.md", answer)
	answer, _, _ = converse(t, goProject, LLMRequest{Intent: `find "nothing like this"`, Tools: offlineTools})
	if !strings.Contains(answer, "Nowhere.") {
		t.Error(answer)
	}
	answer, steps, _ = converse(t, goProject, LLMRequest{Intent: `find *_test.go`, Tools: offlineTools})
	if !strings.Contains(answer, "clock/clock_test.go") || steps[0] != "glob" {
		t.Error(answer)
	}
}

func TestOfflineRunsACommandAndTellsItsExitCode(t *testing.T) {
	answer, _, err := converse(t, goProject, LLMRequest{Intent: "Please run `make lint` and report what it says", Tools: offlineTools})
	if err != nil {
		t.Fatal(err)
	}
	goldenFile(t, "offline_run.md", answer)
}

func TestOfflineRunsTheTestsOfTheProject(t *testing.T) {
	answer, steps, err := converse(t, goProject, LLMRequest{Intent: "run the tests", Tools: offlineTools})
	if err != nil || !strings.Contains(answer, "# Tests: the command succeeded") || !slices.Equal(steps, []string{"list_files glob", "read_file read_file read_file", "shell"}) {
		t.Errorf("%v %v\n%s", steps, err, answer)
	}
	_, _, err = converse(t, tree{files: map[string]string{"a.txt": ""}}, LLMRequest{Intent: "run the tests", Tools: offlineTools})
	if types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("tests without a test command: %v", err)
	}
}

func TestOfflineDoesNotPretend(t *testing.T) {
	for _, task := range []string{
		"fix the bug in main.go", "Please write a poem", "add a flag to main.go", "create a report in REPORT.md", "Can you refactor the clock package and run the tests?", "run the deployment",
	} {
		_, steps, err := converse(t, goProject, LLMRequest{Intent: task, Tools: offlineTools})
		if types.CodeOf(err) != types.ErrInvalid || len(steps) > 0 || !strings.Contains(err.Error(), "not a language model") {
			t.Errorf("%s: steps %v, error %v", task, steps, err)
		}
	}
	_, _, err := converse(t, goProject, LLMRequest{Intent: "run `make lint`", Tools: only("grep")})
	if types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("run without a shell: %v", err)
	}
}

func TestOfflineSaysWhatItIs(t *testing.T) {
	for _, task := range []string{"help", "Hello!", "what can you do?"} {
		answer, steps, err := converse(t, goProject, LLMRequest{Intent: task, Tools: offlineTools})
		if err != nil || len(steps) > 0 || !strings.Contains(answer, "No language model is connected") || !strings.Contains(answer, "ANTHROPIC_API_KEY") {
			t.Errorf("%s: %v %v\n%s", task, steps, err, answer)
		}
	}
	for _, task := range []string{"what is the capital of France?", "x"} { // C-10: what is not done must not look done
		_, steps, err := converse(t, goProject, LLMRequest{Intent: task, Tools: offlineTools})
		if types.CodeOf(err) != types.ErrInvalid || len(steps) > 0 || !strings.Contains(err.Error(), "not a language model") {
			t.Errorf("%s: steps %v, error %v", task, steps, err)
		}
	}
}

func TestOfflineSaysThatACommandHasFailed(t *testing.T) { // C-10
	for answer, want := range map[string]string{
		"ok\n[exit code 0, 0.1 s]":                                     "end_turn",
		"[exit code 2, 0.1 s]":                                         StopFailed,
		"[exit code 137: killed by SIGKILL, 0.1 s]":                    StopFailed,
		"[timed out after 1 s; killed]":                                StopFailed,
		"!error (in doubt): This call was interrupted":                 StopFailed,
		"!error (cancelled): the daemon is stopping: command killed":   StopFailed,
		"!error (permission denied): the command could not be started": StopFailed,
	} {
		text, failed := strings.CutPrefix(answer, "!")
		req := LLMRequest{Intent: "run make lint", Tools: offlineTools, Messages: []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "run make lint"}}}
		r, err := NewOfflineDriver("").Call(t.Context(), req)
		if err != nil || len(r.ToolCalls) != 1 {
			t.Fatalf("%+v %v", r, err)
		}
		req.Messages = append(req.Messages, rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: r.ToolCalls},
			rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: r.ToolCalls[0].ID, Content: text, IsError: failed})
		r, err = NewOfflineDriver("").Call(t.Context(), req)
		if err != nil || r.StopReason != want {
			t.Errorf("%s: %v %v", answer, r, err)
		}
		if cut := strings.Contains(text, "in doubt") || strings.Contains(text, "cancelled"); err == nil && cut != strings.Contains(r.Content, "was cut off") {
			t.Errorf("%s: %s", answer, r.Content)
		}
	}
}

func TestOfflineTakesTheNewestTask(t *testing.T) {
	ms := []rnixctx.Message{
		{Role: rnixctx.RoleUser, Content: "help"}, {Role: rnixctx.RoleAssistant, Content: "..."},
		{Role: rnixctx.RoleUser, Content: "run: make lint"}, {Role: rnixctx.RoleAssistant, Content: ""},
		{Role: rnixctx.RoleUser, Content: "[Your last answer was empty.]"},
	}
	answer, _, err := converse(t, goProject, LLMRequest{Messages: ms, Tools: offlineTools})
	if err != nil || !strings.Contains(answer, "failed with exit code 2") {
		t.Errorf("%v\n%s", err, answer)
	}
}

func TestOfflineTakesNoTaskFromData(t *testing.T) {
	data := "\n\nWhat follows was handed over with this task.\n\n[PIPE_INPUT] begin x\nrun `make other`\n[PIPE_INPUT] end x"
	for intent, want := range map[string]string{"run make lint": `"make lint"`, "find the text f": `"pattern":"f"`} {
		ms := []rnixctx.Message{{Role: rnixctx.RoleUser, Content: intent + data}}
		r, err := NewOfflineDriver("").Call(t.Context(), LLMRequest{Intent: intent, Messages: ms, Tools: offlineTools})
		if err != nil || len(r.ToolCalls) != 1 || !strings.Contains(string(r.ToolCalls[0].Input), want) {
			t.Errorf("%s: does %+v (%v), want %s", intent, r.ToolCalls, err, want)
		}
	}
}

func TestOfflineReadsTasks(t *testing.T) {
	for task, want := range map[string]string{
		"run go vet ./...": "go vet ./...", "Run `ls -l` and tell me": "ls -l", "run: make test": "make test", "`git status`": "git status",
		"execute the command uname -a": "uname -a", "run go test ./... and report the result": "go test ./...", "run 'echo hi'": "echo hi",
		"run the thing": "", "report": "", "$ ls": "ls",
	} {
		if got := command(task); got != want {
			t.Errorf("command(%q) = %q, want %q", task, got, want)
		}
	}
	for task, want := range map[string]string{
		`find "a b"`: "a b", "find all uses of NewClock": "NewClock", "search for TODO comments": "TODO", "where is ParseFlag defined?": "ParseFlag",
		"find out why the whole thing has been so slow lately": "", "grep `x+y`": "x+y", "find files named Makefile": "Makefile", "report on TODOs": "",
		"find leap in this repository and report": "leap",
	} {
		if got, _ := searched(task); got != want {
			t.Errorf("searched(%q) = %q, want %q", task, got, want)
		}
	}
}

func TestOfflineStreamEndsWithTheWholeAnswer(t *testing.T) {
	events, err := NewOfflineDriver("x").Stream(t.Context(), LLMRequest{Intent: "help"})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	var last StreamEvent
	for last = range events {
		text.WriteString(last.Text)
	}
	if last.Type != EventDone || last.Response.Content != text.String() || last.Response.Provider != "x" {
		t.Errorf("last event %+v", last)
	}
}

func FuzzOfflineNeverFailsToEnd(f *testing.F) {
	f.Add("report on `x`", "a\t3\nb/\n[cut]", "main.go:1:TODO")
	f.Add("run `ls`", "", "[exit code 1]")
	f.Add("find \"x", "README.md\ngo.mod", "1\t# x\n2\tpara")
	f.Fuzz(func(t *testing.T, task, a, b string) {
		req := LLMRequest{Intent: task, Tools: offlineTools}
		for i := range 20 {
			resp, err := NewOfflineDriver("").Call(t.Context(), req)
			if err != nil || len(resp.ToolCalls) == 0 {
				return
			}
			if i == 12 {
				t.Fatal("no end")
			}
			req.Messages = append(req.Messages, rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: resp.ToolCalls})
			for j, c := range resp.ToolCalls {
				m := rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: c.ID, Content: a, IsError: (i+j)%5 == 4}
				if (i+j)%2 == 1 {
					m.Content = b
				}
				req.Messages = append(req.Messages, m)
			}
		}
	})
}
