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
	odd    string // a field whose name is one that is known here, but for upper and lower case
	parsed *line
}

// Shell reports whether the call runs a command.
func (c *Call) Shell() bool { return c.Path == ShellPath }

// open reads the input.
func (c *Call) open() {
	if c.read {
		return
	}
	c.read = true
	_ = json.Unmarshal(c.Input, &c.fields) // without fields nothing is known of it, which rules take for the worst
	for name := range c.fields {
		for _, known := range append([]string{"command", cwdField}, fileFields...) {
			if name != known && strings.EqualFold(name, known) {
				c.odd = name
			}
		}
	}
}

// unclear returns the name of a field that devices may take for one that rules look at, since they do not tell upper from lower case; "" if there is
// none. What a call with one acts on is not known.
func (c *Call) unclear() string {
	c.open()
	return c.odd
}

// field returns a text of the input; "" if there is none.
func (c *Call) field(name string) string {
	c.open()
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

// cwdField is in which directory a command is run.
const cwdField = "cwd"

// fileFields are the fields in which tools have the files on which they act.
var fileFields = []string{"path", "file_path", "notebook_path", "from", "to", "source", "destination"}

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
