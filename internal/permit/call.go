package permit

import (
	"encoding/json"
	"path"
	"strings"
)

// ShellPath is where commands are run.
const ShellPath = "/dev/shell"

// Call is a call of a tool, before it is made.
type Call struct {
	Tool  string          // its name
	Path  string          // of the device
	Input json.RawMessage // a JSON object
	Dir   string          // where the process works; absolute, clean

	read   bool
	fields map[string]json.RawMessage
	parsed *line
}

// Shell reports whether the call runs a command.
func (c *Call) Shell() bool { return c.Path == ShellPath }

// field returns a text of the input; "" if there is none.
func (c *Call) field(name string) string {
	if !c.read {
		c.read = true
		_ = json.Unmarshal(c.Input, &c.fields) // without fields nothing is known of it, which rules take for the worst
	}
	var s string
	if json.Unmarshal(c.fields[name], &s) != nil {
		return ""
	}
	return s
}

// Command returns the command line of a call of the shell.
func (c *Call) Command() string { return c.field("command") }

// line returns the command line, as it is read.
func (c *Call) line() *line {
	if c.parsed == nil {
		c.parsed = parse(c.Command())
	}
	return c.parsed
}

// fileFields are the fields in which tools have the files on which they act.
var fileFields = []string{"path", "file_path", "from", "to", "source", "destination"}

// files returns the files that a call names: relative to the working directory if they are in it, else absolute. Empty = it names none that
// are known.
func (c *Call) files() (out []string) {
	for _, name := range fileFields {
		file := c.field(name)
		if file == "" {
			continue
		}
		if !path.IsAbs(file) {
			file = path.Join(c.Dir, file)
		}
		file = path.Clean(file)
		if c.Dir != "" && (file == c.Dir || strings.HasPrefix(file, strings.TrimSuffix(c.Dir, "/")+"/")) {
			if file = strings.TrimPrefix(strings.TrimPrefix(file, c.Dir), "/"); file == "" {
				file = "."
			}
		}
		out = append(out, file)
	}
	return out
}

// On returns what a call acts on, for people; "" if that is not known.
func (c *Call) On() string {
	if c.Shell() {
		return c.Command()
	}
	return strings.Join(c.files(), " ")
}
