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
	Own   string          // the name that an agent CLI has for a tool of its own; rules may name that, too. Empty = Tool, or it is no such tool
	// Fixed says that a person cannot have something else run in its place.
	Fixed bool
	// Real returns where a file is, absolute, when links are followed; "" = that is not known. nil = there are no links.
	Real func(file string) string

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
	looked := append([]string{"command", cwdField, ListField}, fileFields...)
	if c.Web() {
		looked = append(looked, urlField)
	}
	for name := range c.fields {
		for _, known := range looked {
			if name != known && strings.EqualFold(name, known) {
				c.odd = name
			}
		}
	}
	var list []string
	if l := c.fields[ListField]; l != nil && json.Unmarshal(l, &list) != nil {
		c.odd = ListField
	}
}

// unclear returns the name of a field that devices may take for one that rules look at, since they do not tell upper from lower case, or that is a list
// of something else than files; "" if there is none. What a call with one acts on is not known.
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
var fileFields = []string{"path", "file_path", "filePath", "notebook_path", "from", "to", "source", "destination"}

// ListField is the field in which a call has a list of files.
const ListField = "paths"

// files returns the files that a call names: relative to the working directory if they are in it, else absolute. Empty = it names none that
// are known.
func (c *Call) files() (out []string) {
	for _, file := range c.named() {
		out = append(out, below(c.Dir, file))
	}
	return out
}

// places returns the files that a call names as it names them, and as they are found when links are followed. known says that all of these are.
func (c *Call) places() (out []string, known bool) {
	out = c.files()
	if c.Real == nil || len(out) == 0 {
		return out, true
	}
	known = true
	dir := c.Real(c.Dir)
	for _, file := range c.named() {
		if real := c.Real(file); real != "" {
			out = append(out, below(dir, real))
		} else {
			known = false
		}
	}
	return out, known
}

// named returns the files that a call names, absolute as far as it is known where it works.
func (c *Call) named() (out []string) {
	c.open()
	var all []string
	_ = json.Unmarshal(c.fields[ListField], &all) // what is no list of texts names none
	for _, name := range fileFields {
		all = append(all, c.field(name))
	}
	for _, file := range all {
		if file == "" {
			continue
		}
		if !path.IsAbs(file) {
			file = path.Join(c.Dir, file)
		}
		out = append(out, path.Clean(file))
	}
	return out
}

// below returns a file relative to a directory if it is in it.
func below(dir, file string) string {
	if dir == "" || file != dir && !strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/") {
		return file
	}
	if file = strings.TrimPrefix(strings.TrimPrefix(file, dir), "/"); file == "" {
		file = "."
	}
	return file
}

// On returns what a call acts on, for people; "" if that is not known.
func (c *Call) On() string {
	if c.Shell() {
		return c.Command()
	}
	if c.Host() {
		return c.field(HostTool)
	}
	if c.Web() {
		return c.field(urlField)
	}
	if c.Path == SearchPath {
		return c.field(queryField)
	}
	return strings.Join(c.files(), " ")
}
