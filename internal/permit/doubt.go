package permit

import (
	"slices"
	"strconv"
	"strings"

	"rnix/internal/yamlfile"
)

// Tools returns the names of the tools about which rules decide, besides those of MCP servers and of agent CLIs.
func Tools() []string {
	return []string{"ask", "clock", "delete", "edit_file", "glob", "grep", "list_files", "make_dir", "move", "read_file", "recv", "send", "shell", "signal", "spawn", "wait", WebTool, SearchTool, "write_file"}
}

// places are the paths of these tools, and where those of MCP servers are.
func places() []string {
	return []string{"/dev/clock", "/dev/fs", ShellPath, WebPath, SearchPath, "/dev/workspace", "/mnt/mcp", AskPath, "/sys/recv", "/sys/send", "/sys/signal", "/sys/spawn", "/sys/wait"}
}

// Ours returns the name in rules of a tool that an agent CLI has; "" if it keeps its own.
func Ours(tool string) string {
	switch tool {
	case "Bash", "PowerShell", "Monitor", "bash":
		return "shell"
	case "Read", "read", "view_image":
		return "read_file"
	case "Glob", "Grep":
		return strings.ToLower(tool)
	case "LS", "list":
		return "list_files"
	case "Write", "write":
		return "write_file"
	case "Edit", "MultiEdit", "NotebookEdit", "edit", "multiedit":
		return "edit_file"
	case "WebFetch", "webfetch":
		return WebTool
	case "WebSearch", "websearch":
		return SearchTool
	}
	return ""
}

// Doubt says why a rule is probably about nothing, and what may have been meant; "" if it names a tool, or what can be one of an MCP server or of an agent
// CLI. A rule that cannot be read is not doubted.
func Doubt(text string) string {
	r, err := Parse(text)
	if err != nil {
		return ""
	}
	name := strings.TrimSuffix(r.tool, "*")
	switch {
	case strings.HasPrefix(r.tool, "/"):
		if slices.ContainsFunc(places(), func(p string) bool {
			return p == r.tool || strings.HasPrefix(p, r.tool+"/") || p == "/mnt/mcp" && strings.HasPrefix(r.tool, p+"/")
		}) {
			return ""
		}
		return "no tool has this device" + meant(yamlfile.Nearest(r.tool, places()), r.pattern)
	case r.tool == HostTool:
		return ""
	case slices.ContainsFunc(Tools(), func(t string) bool { return like(r.tool, t) }):
		return ""
	case Ours(r.tool) != "":
		return "only agent CLIs have a tool of this name" + meant(Ours(r.tool), r.pattern)
	case r.tool[0] >= 'A' && r.tool[0] <= 'Z': // of an agent CLI
		return ""
	}
	near := yamlfile.Nearest(name, Tools())
	switch {
	case strings.Contains(r.tool, "_") && (near == "" || strings.Contains(r.tool, "*")): // of an MCP server
		return ""
	case near != "" && r.pattern == "":
		return "no tool has this name" + meant(near, "")
	}
	command := r.String()
	if !strings.HasSuffix(command, "*") {
		command += " *"
	}
	return "no tool has this name; for a command write " + strconv.Quote("shell "+command)
}

// meant proposes what may have been meant.
func meant(tool, pattern string) string {
	if tool == "" {
		return ""
	}
	return "; did you mean " + strconv.Quote(Rule{tool, pattern}.String()) + "?"
}
