// Package testcase is regression cases of agents as values: what is run, what is expected of it, and how what came of
// it differs. It owns the form of case.yaml and the matching. It starts nothing and knows no process: who runs a
// case hands in what came of it as a Run.
package testcase

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"rnix/internal/yamlfile"
	"rnix/types"
)

// File is the name of the file in the directory of a case.
const File = "case.yaml"

// What stands in the files of a case for directories that are others in each run: the one in which it runs, and the
// one of the history of a process, where its inputs and long outputs lie.
const (
	Workspace = "@WORKSPACE@"
	History   = "@HISTORY@"
)

// The bounds of a case.
const (
	maxFile     = 4 << 20 // bytes of case.yaml
	maxTimeout  = time.Hour
	usualTime   = 60 * time.Second
	maxPatterns = 64 << 10 // bytes of a regular expression
)

// Case is a case.yaml. Paths are relative to its directory.
type Case struct {
	Version   string            `yaml:"version"`
	Name      string            `yaml:"name"`      // empty = that of the directory
	Source    string            `yaml:"source"`    // of which process it was made, for people
	Intent    string            `yaml:"intent"`    //
	Agent     string            `yaml:"agent"`     // empty = the default one
	Script    string            `yaml:"script"`    // what the model answers; empty = script.yaml
	Workspace string            `yaml:"workspace"` // the files that it begins with; empty = workspace, if that is there
	Overlay   map[string]string `yaml:"overlay"`   // files and directories that are put into the workspace: where, and from where
	Git       bool              `yaml:"git"`       // the workspace is a repository with one commit
	Timeout   Duration          `yaml:"timeout"`   // of the whole case; 0 = a minute
	Settings  Settings          `yaml:"settings"`
	Inputs    map[string]string `yaml:"inputs"` // data that comes with the intent: name and file
	Expect    Expect            `yaml:"expect"`

	Dir string        `yaml:"-"` // where it stands; absolute
	doc *yamlfile.Doc // positions of the keys
}

// Settings are what a process is started with.
type Settings struct {
	MaxSteps *int              `yaml:"max_steps"`
	Skills   []string          `yaml:"skills"`
	Allow    []string          `yaml:"allow"` // null = what the agent has
	Deny     []string          `yaml:"deny"`
	Env      map[string]string `yaml:"env"`
	Window   int               `yaml:"context_window"` // of the model that the script stands for, in tokens; 0 = unknown
}

// Expect is what has to come of a case. What is null is not looked at. Each part that was proposed has to be
// confirmed by a person.
type Expect struct {
	Exit   *int          `yaml:"exit"` // of the process
	Result *ResultExpect `yaml:"result"`
	Calls  *CallsExpect  `yaml:"calls"`
	Files  *FilesExpect  `yaml:"files"`
}

// TextExpect is what is expected of a text: everything that is said of it.
type TextExpect struct {
	Equals   *string  `yaml:"equals"`
	Contains []string `yaml:"contains"`
	Lacks    []string `yaml:"lacks"`
	Matches  string   `yaml:"matches"` // a regular expression
}

// ResultExpect is what is expected of the result.
type ResultExpect struct {
	Confirmed *bool    `yaml:"confirmed"` // null = a person has written it
	Equals    *string  `yaml:"equals"`
	Contains  []string `yaml:"contains"`
	Lacks     []string `yaml:"lacks"`
	Matches   string   `yaml:"matches"`
}

func (x *ResultExpect) text() *TextExpect {
	return &TextExpect{x.Equals, x.Contains, x.Lacks, x.Matches}
}

// How a list of calls is compared.
const (
	MatchExact     = "exact"     // these, in this order, and no others
	MatchUnordered = "unordered" // these, in any order, and no others
	MatchOrdered   = "ordered"   // these, in this order, with others between them
	MatchContains  = "contains"  // these, in any order, among others
)

// How the arguments of a call are compared.
const (
	ArgsSubset = "subset" // these keys have these values; others do not matter
	ArgsExact  = "exact"
	ArgsRegexp = "regexp" // as subset, and each text is a regular expression
)

// CallsExpect is what is expected of the calls.
type CallsExpect struct {
	Confirmed *bool        `yaml:"confirmed"`
	Match     string       `yaml:"match"` // empty = exact
	List      []CallExpect `yaml:"list"`
}

// CallExpect is what is expected of one call.
type CallExpect struct {
	Tool    string         `yaml:"tool"`
	Process int            `yaml:"process"` // which one: 0 = the case's own, 1 = the first that was started below it
	Args    map[string]any `yaml:"args"`    // null = any
	Match   string         `yaml:"match"`   // of Args; empty = subset
	Error   *string        `yaml:"error"`   // its code; "" = it must succeed; null = both will do
	Output  *TextExpect    `yaml:"output"`

	want any // Args, in the form of value; nil = not yet
}

// What becomes of files.
const (
	StatusAdded     = "added"
	StatusChanged   = "changed"
	StatusDeleted   = "deleted"
	StatusUnchanged = "unchanged"
)

// FilesExpect is what is expected of the files of the workspace.
type FilesExpect struct {
	Confirmed *bool        `yaml:"confirmed"`
	Others    string       `yaml:"others"` // unchanged (also if empty), or any
	List      []FileExpect `yaml:"list"`
}

// FileExpect is what is expected of one file.
type FileExpect struct {
	Path     string   `yaml:"path"`
	Status   string   `yaml:"status"` // empty = whatever leaves it there
	Same     string   `yaml:"same"`   // a file of the case with the same content
	Contains []string `yaml:"contains"`
	Lacks    []string `yaml:"lacks"`
	Matches  string   `yaml:"matches"`
}

// Duration is a time such as 90s.
type Duration time.Duration

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a time such as 90s or 5m", b)
	}
	*d = Duration(v)
	return nil
}

// Read reads the case in a directory, which is absolute. All mistakes are reported at once, as INVALID, each with
// its file, line and column; a directory without a case is NOT_FOUND.
func Read(dir string) (*Case, error) {
	path := filepath.Join(dir, File)
	src, err := yamlfile.ReadFile(path, maxFile)
	if yamlfile.Missing(err) {
		return nil, types.Errorf(types.ErrNotFound, "Case", path, "there is no case: a case is a directory with a %s; make one with: rnix test import PROCESS --dir DIR", File)
	}
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Case", path, "%w", yamlfile.Cause(err))
	}
	return Parse(dir, path, src)
}

// Parse reads a case from its text.
func Parse(dir, path string, src []byte) (*Case, error) {
	c := &Case{Dir: dir}
	c.doc = yamlfile.Decode(src, c, yamlfile.Options{File: path, MaxBytes: maxFile})
	if len(c.doc.Problems().Errors()) == 0 {
		c.check()
	}
	if err := c.doc.Problems().Err("Case", path); err != nil {
		return nil, err
	}
	c.Name = cmp.Or(c.Name, filepath.Base(dir))
	c.Script = cmp.Or(c.Script, "script.yaml")
	return c, nil
}

// Limit is how long the case may take.
func (c *Case) Limit() time.Duration { return cmp.Or(time.Duration(c.Timeout), usualTime) }

// At is the place of a key, as "file:line".
func (c *Case) At(key string) string { return c.doc.Origin(key) }

// Line is the line of a key in case.yaml; 0 = it is not there.
func (c *Case) Line(key string) int { return c.doc.Line(key) }

// Unconfirmed returns the keys of what was proposed and nobody has confirmed.
func (c *Case) Unconfirmed() (keys []string) {
	say := func(key string, confirmed *bool) {
		if confirmed != nil && !*confirmed {
			keys = append(keys, "expect."+key+".confirmed")
		}
	}
	if c.Expect.Result != nil {
		say("result", c.Expect.Result.Confirmed)
	}
	if c.Expect.Calls != nil {
		say("calls", c.Expect.Calls.Confirmed)
	}
	if c.Expect.Files != nil {
		say("files", c.Expect.Files.Confirmed)
	}
	return keys
}

func (c *Case) check() {
	d := c.doc
	if c.Version != "1" {
		d.Problemf("version", "%q is not known; write version: \"1\"", c.Version)
	}
	if strings.TrimSpace(c.Intent) == "" {
		d.Problemf("intent", "missing; say what the agent is to do")
	}
	if t := time.Duration(c.Timeout); t < 0 || t > maxTimeout || t > 0 && t < time.Second {
		d.Problemf("timeout", "%v is not between 1s and %v", t, maxTimeout)
	}
	for key, path := range map[string]string{"script": c.Script, "workspace": c.Workspace} {
		if filepath.IsAbs(path) {
			d.Problemf(key, "%s has to be a path that begins at the case's directory", path)
		}
	}
	for to, from := range c.Overlay {
		if !local(to) || filepath.IsAbs(from) || from == "" {
			d.Problemf("overlay."+to, "%s: %s: write a path in the workspace, and a path from the case's directory", to, from)
		}
	}
	for name, file := range c.Inputs {
		if filepath.IsAbs(file) || file == "" {
			d.Problemf("inputs."+name, "%q is not the path of a file in the case's directory", file)
		}
	}
	if s := c.Settings.MaxSteps; s != nil && *s < 0 {
		d.Problemf("settings.max_steps", "%d must be at least 0", *s)
	}
	if c.Settings.Window < 0 {
		d.Problemf("settings.context_window", "%d must be at least 0", c.Settings.Window)
	}
	c.checkExpect()
}

func (c *Case) checkExpect() {
	d, e := c.doc, &c.Expect
	if e.Exit == nil && e.Result == nil && e.Calls == nil && e.Files == nil {
		d.Problemf("expect", "missing; a case that expects nothing cannot fail: say something of exit, result, calls or files")
	}
	if e.Result != nil {
		c.checkText("expect.result", e.Result.text())
	}
	if e.Calls != nil {
		c.oneOf("expect.calls.match", e.Calls.Match, MatchExact, MatchUnordered, MatchOrdered, MatchContains)
		for i := range e.Calls.List {
			x, key := &e.Calls.List[i], fmt.Sprintf("expect.calls.list[%d]", i)
			if x.Tool == "" {
				d.Problemf(key+".tool", "missing; name the tool that is called")
			}
			if x.Process < 0 {
				d.Problemf(key+".process", "%d must be at least 0", x.Process)
			}
			c.oneOf(key+".match", x.Match, ArgsSubset, ArgsExact, ArgsRegexp)
			if x.Match == ArgsRegexp {
				c.checkArgs(key+".args", x.Args)
			}
			if x.Output != nil {
				c.checkText(key+".output", x.Output)
			}
		}
	}
	if e.Files != nil {
		c.oneOf("expect.files.others", e.Files.Others, StatusUnchanged, "any")
		seen := map[string]bool{}
		for i := range e.Files.List {
			x, key := &e.Files.List[i], fmt.Sprintf("expect.files.list[%d]", i)
			switch {
			case !local(x.Path):
				d.Problemf(key+".path", "%q is not a path in the workspace", x.Path)
			case seen[x.Path]:
				d.Problemf(key+".path", "%s stands here twice", x.Path)
			}
			seen[x.Path] = true
			c.oneOf(key+".status", x.Status, StatusAdded, StatusChanged, StatusDeleted, StatusUnchanged)
			if x.Same != "" && !local(x.Same) {
				d.Problemf(key+".same", "%q is not a path in the case's directory", x.Same)
			}
			if x.Status == StatusDeleted && (x.Same != "" || x.Matches != "" || len(x.Contains)+len(x.Lacks) > 0) {
				d.Problemf(key+".status", "a file that is deleted has no content")
			}
			c.expression(key+".matches", x.Matches)
		}
	}
}

// local reports whether a path stays below where it begins.
func local(path string) bool { return path != "." && filepath.IsLocal(path) }

func (c *Case) checkText(key string, x *TextExpect) {
	if x.Equals != nil && (len(x.Contains)+len(x.Lacks) > 0 || x.Matches != "") {
		c.doc.Problemf(key+".equals", "says everything; take contains, lacks and matches out")
	}
	c.expression(key+".matches", x.Matches)
}

func (c *Case) oneOf(key, value string, known ...string) {
	if value != "" && !slices.Contains(known, value) {
		c.doc.Problemf(key, "invalid value %q: want one of %s", value, strings.Join(known, ", "))
	}
}

func (c *Case) expression(key, expr string) {
	if len(expr) > maxPatterns {
		c.doc.Problemf(key, "a regular expression of %d bytes; at most %d are taken", len(expr), maxPatterns)
		return
	}
	if _, err := regexp.Compile(expr); err != nil {
		c.doc.Problemf(key, "%v", err)
	}
}

// checkArgs compiles the regular expressions in arguments.
func (c *Case) checkArgs(key string, v any) {
	switch v := v.(type) {
	case string:
		c.expression(key, v)
	case map[string]any:
		for k, x := range v {
			c.checkArgs(key+"."+k, x)
		}
	case []any:
		for i, x := range v {
			c.checkArgs(fmt.Sprintf("%s[%d]", key, i), x)
		}
	}
}

// Path returns the path of a file or a directory of the case. One to which a symbolic link leads out of the case's directory is
// INVALID: what lies elsewhere is no part of it, and would be shown in its report.
func (c *Case) Path(name string) (string, error) {
	dir, err := filepath.EvalSymlinks(c.Dir)
	if err != nil {
		return "", err
	}
	path, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(dir, path); err != nil || !filepath.IsLocal(rel) {
		return "", types.Errorf(types.ErrInvalid, "Case", filepath.Join(c.Dir, name), "a symbolic link leads out of the case's directory")
	}
	return path, nil
}

// Content returns what is in a file of the case; see Path.
func (c *Case) Content(name string) ([]byte, error) {
	path, err := c.Path(name)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
