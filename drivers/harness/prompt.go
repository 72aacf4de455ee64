package harness

import (
	"io/fs"
	"strings"
	"sync"

	"rnix/agent"
	"rnix/drivers/llm"
	"rnix/internal/harness"
	"rnix/internal/pattern"
)

// toolMark is the name of a tool as instructions have it.
var toolMark = pattern.New("`([a-z_]+)`")

// builtIn are the instructions of the agents that are in the program. Each word in backquotes is the name of a tool, and a line
// is true without the others.
var builtIn = sync.OnceValue(func() (texts []string) {
	files, _ := fs.Glob(agent.BuiltIn(), "agents/*/instructions.md") // its one error is that of a pattern
	for _, f := range files {
		if b, err := fs.ReadFile(agent.BuiltIn(), f); err == nil { // it is in the program
			texts = append(texts, strings.TrimSpace(string(b)))
		}
	}
	return texts
})

// shared are the tools of the kernel for work with other agents, questions to persons, and what no CLI has of its own. The others do what its own do.
var shared = map[string]bool{"spawn": true, "wait": true, "send": true, "recv": true, "signal": true, "ps": true, "specialize": true, "ask": true}

// instructions is what a CLI is told in the place of what a model is told that our loop drives: tools under the names that they
// have for it, and none that it does not have. Instructions that a user has written stay as they are, with a note on the names.
// own says that the CLI has its own tools.
func instructions(cli harness.CLI, system string, offered []llm.ToolSpec, own bool) string {
	has := map[string]bool{}
	for _, t := range offered {
		has[t.Name] = true
	}
	named := func(tool string) (string, bool) {
		return cli.ToolName(Server, tool), has[tool] && !notOffered[tool] && (!own || shared[tool])
	}
	rest := system
	for _, text := range builtIn() {
		if strings.Contains(system, text) {
			system = strings.ReplaceAll(system, text, withTools(text, named))
			rest = strings.ReplaceAll(rest, text, "")
		}
	}
	for _, m := range toolMark().FindAllStringSubmatch(rest, -1) {
		if has[m[1]] {
			return system + "\n\nWhere these instructions name a tool of Rnix, it has the name " + cli.ToolName(Server, "NAME") +
				" here. Where they tell you to call complete, answer with the result instead; where they tell you to call plan or replan, plan as you always do."
		}
	}
	return system
}

// withTools returns a text with the names that tools have, and without the lines that name others. A heading with no line left
// below it is left out.
func withTools(text string, named func(string) (string, bool)) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		all := true
		line = toolMark().ReplaceAllStringFunc(line, func(m string) string {
			name, ok := named(strings.Trim(m, "`"))
			all = all && ok
			return "`" + name + "`"
		})
		empty := strings.TrimSpace(line) == ""
		switch {
		case !all, empty && (len(out) == 0 || out[len(out)-1] == ""):
			continue
		case strings.HasPrefix(line, "# "):
			out = withoutHeading(out)
		}
		out = append(out, line)
	}
	return strings.TrimSpace(strings.Join(withoutHeading(out), "\n"))
}

// withoutHeading leaves a heading at the end out.
func withoutHeading(lines []string) []string {
	n := len(lines)
	for n > 0 && lines[n-1] == "" {
		n--
	}
	if n > 0 && strings.HasPrefix(lines[n-1], "# ") {
		return lines[:n-1]
	}
	return lines
}
