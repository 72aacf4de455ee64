package harness

import (
	"encoding/json"
	"path"
	"strings"

	"rnix/internal/permit"
)

// commands are the tools of command lines that run one, and does has those that do what tools of the kernel's do: rules are about these by the
// kernel's names.
var (
	commands = map[string]bool{"Bash": true, "PowerShell": true, "Monitor": true, "bash": true}
	does     = map[string]struct{ tool, path string }{
		"Read": {"read_file", fsPath}, "Glob": {"glob", fsPath}, "Grep": {"grep", fsPath}, "LS": {"list_files", fsPath},
		"Write": {"write_file", workspacePath}, "Edit": {"edit_file", workspacePath}, "MultiEdit": {"edit_file", workspacePath}, "NotebookEdit": {"edit_file", workspacePath},
		"view_image": {"read_file", fsPath},
		"read":       {"read_file", fsPath}, "glob": {"glob", fsPath}, "grep": {"grep", fsPath}, "list": {"list_files", fsPath},
		"WebFetch": {permit.WebTool, permit.WebPath}, "webfetch": {permit.WebTool, permit.WebPath},
		"WebSearch": {permit.SearchTool, permit.SearchPath}, "websearch": {permit.SearchTool, permit.SearchPath},
		"write": {"write_file", workspacePath}, "edit": {"edit_file", workspacePath}, "multiedit": {"edit_file", workspacePath},
	}
)

const (
	fsPath        = "/dev/fs"
	workspacePath = "/dev/workspace"
)

// Ruled is a call of a tool of a command line's own as rules know it: one call, or for a patch one for each thing that it does. Their working
// directory is not set.
func Ruled(tool string, input json.RawMessage) []permit.Call {
	c := permit.Call{Tool: tool, Own: tool, Input: input}
	if f, ok := does[tool]; ok {
		c.Tool, c.Path = f.tool, f.path
	} else if commands[tool] {
		c.Tool, c.Path = "shell", permit.ShellPath
	} else if tool == "apply_patch" || tool == "patch" {
		return patched(tool, input)
	}
	return []permit.Call{c}
}

// patched returns what a patch does to files, as calls of the kernel's tools. What cannot be read is one that may change every file.
func patched(own string, input json.RawMessage) (out []permit.Call) {
	var in struct {
		Command   string `json:"command"`
		PatchText string `json:"patchText"`
	}
	_ = json.Unmarshal(input, &in) // what is no object has no patch
	patch := in.Command + in.PatchText
	for _, tool := range []string{"write_file", "edit_file", "delete"} {
		named := touched(patch, tool)
		if len(named) == 0 {
			continue
		}
		seen, err := json.Marshal(map[string]any{permit.ListField: named, "patch": patch})
		if err != nil { // these are texts
			continue
		}
		out = append(out, permit.Call{Tool: tool, Own: own, Path: workspacePath, Input: seen, Fixed: true})
	}
	if len(out) == 0 {
		out = []permit.Call{{Tool: "edit_file", Own: own, Path: workspacePath, Input: input, Fixed: true}}
	}
	return out
}

// touched returns the files to which a patch does what a tool of the kernel does. One that is moved is changed, and its new place written.
func touched(patch, tool string) (out []string) {
	heads := map[string][]string{"write_file": {"*** Add File:", "*** Move to:"}, "edit_file": {"*** Update File:"}, "delete": {"*** Delete File:"}}
	for line := range strings.Lines(patch) {
		for _, head := range heads[tool] {
			if file, ok := strings.CutPrefix(strings.TrimSpace(line), head); ok {
				out = append(out, path.Clean(strings.TrimSpace(file)))
			}
		}
	}
	return out
}
