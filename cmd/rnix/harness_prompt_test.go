package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
)

// ourPrompt returns what a request says on behalf of an agent of Rnix.
func ourPrompt(t *testing.T, r llmtest.Request) string {
	t.Helper()
	all := r.System + "\n" + texts(r)
	_, rest, ok := strings.Cut(all, "You are a process of Rnix")
	prompt, _, end := strings.Cut(rest, "Relative paths start there.")
	if !ok || !end {
		t.Fatalf("no instructions of ours in\n%s", all)
	}
	return prompt
}

var (
	backquoted    = regexp.MustCompile("`([A-Za-z_.]+)`")
	deferredTools = regexp.MustCompile(`\bmcp__rnix__[a-z_]+`)
)

// namesItsTools fails if the instructions of a request name a tool that the agent does not have, or none.
func namesItsTools(t *testing.T, agent string, r llmtest.Request) {
	t.Helper()
	var has []string
	for _, tool := range r.Tools {
		has = append(has, strings.ReplaceAll(tool, "/", ".")) // of a namespace
	}
	prompt := ourPrompt(t, r)
	for _, m := range r.Messages { // tools that it looks up when it needs them
		if !strings.Contains(m.Text, prompt) {
			has = append(has, deferredTools.FindAllString(m.Text, -1)...)
		}
	}
	named := 0
	for _, m := range backquoted.FindAllStringSubmatch(prompt, -1) {
		if named++; !slices.Contains(has, m[1]) {
			t.Errorf("the instructions of %s name %s; it has %v", agent, m[1], has)
		}
	}
	if named < 2 || strings.Contains(prompt, "`complete`") {
		t.Errorf("%s is told\n%s", agent, prompt)
	}
}

func TestInstructionsOfRealCommandLinesNameOnlyToolsThatTheyHave(t *testing.T) { // N2
	for _, cell := range soak.Cells(t, "command lines, and their own tools or the kernel's", clis(), []string{"own", "kernel"}) {
		name, tools := cell[0], cell[1]
		k := keeps[name]
		if name == "opencode" && tools == "kernel" {
			continue // it starts slowly: TestRealOpencodeWithTheKernelsToolsAlone looks at what it was told
		}
		t.Run(name+" "+tools, func(t *testing.T) {
			u := newUser(t, name, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "done"} })
			agents := []string{"assistant"}
			if name == "opencode" {
				u.opencodeConfig()
			} else if tools == "kernel" {
				agents = append(agents, "explorer", "reviewer")
			}
			for _, agent := range agents {
				u.must(append([]string{"run", "--agent", agent, "--tools", tools, "the task"}, k.args...)...)
				asked := u.Requests()
				namesItsTools(t, agent, asked[len(asked)-1])
			}
		})
	}
}
