// Package permit decides which calls of an agent are made, which are refused, and which a person is asked about: rules, what they match, and
// grants. It is pure: it reads no file and knows no process.
package permit

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"rnix/internal/hosts"
	"rnix/types"
)

// maxRule bounds a rule, in bytes.
const maxRule = 1024

// Rule names calls: a tool, and what it acts on. As text it is the name of the tool or the path of its device, and maybe a pattern behind a
// blank:
//
//	shell               each command
//	shell git push *    a command line in which "git push" stands, with anything behind it
//	write_file docs/**  a file below docs of the working directory
//	/mnt/mcp/github     each tool of this server
//	github_*            each tool whose name begins so
//	host *.example.com  what commands connect to by their proxy, as package hosts has it; no other rule is about that
//	web_fetch go.dev    a page of this host, as package hosts has it
//	*                   each tool
type Rule struct {
	tool    string // a name, in which * stands for any characters, or a path
	pattern string // empty = whatever it acts on
}

// Parse reads a rule. INVALID says what is wrong with it.
func Parse(text string) (Rule, error) {
	bad := func(why string) (Rule, error) {
		return Rule{}, types.Errorf(types.ErrInvalid, "rule", text, `%q is no rule: %s; write a tool or a device, and maybe what it acts on, such as "shell", "shell git push *" or "write_file docs/**"`, cut(text), why)
	}
	switch {
	case strings.TrimSpace(text) == "":
		return bad("it is empty")
	case len(text) > maxRule:
		return bad("it is too long")
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return bad("it has control characters")
	}
	tool, pattern, _ := strings.Cut(strings.TrimSpace(text), " ")
	r := Rule{tool, strings.Join(strings.Fields(pattern), " ")}
	if strings.HasPrefix(tool, "/") && (path.Clean(tool) != tool || tool == "/") {
		return bad("the path of a device has no slash at its end, and no dots")
	}
	if strings.ContainsAny(tool, "?[]{}()'\"") {
		return bad("the name of a tool has letters, digits, - and _, and * for any")
	}
	if (r.tool == HostTool || r.tool == WebTool) && r.pattern != "" {
		if _, err := hosts.ParseAll([]string{r.pattern}); err != nil {
			return Rule{}, err
		}
		return r, nil
	}
	if r.tool == SearchTool && r.pattern == "*" { // as a person may say it of a grant
		r.pattern = ""
	}
	if r.tool == SearchTool && r.pattern != "" {
		return bad("rules about searches have no pattern; write " + SearchTool + " alone")
	}
	if r.pattern != "" && !doublestar.ValidatePattern(r.pattern) {
		return bad("its pattern cannot be read")
	}
	return r, nil
}

// Reason is an error of Parse without what was called.
func Reason(err error) error {
	if e, ok := errors.AsType[*types.SyscallError](err); ok {
		return e.Err
	}
	return err
}

func cut(text string) string {
	if len(text) > 80 {
		return strings.ToValidUTF8(text[:80], "") + "..."
	}
	return text
}

// String returns the rule as it is written.
func (r Rule) String() string {
	if r.pattern == "" {
		return r.tool
	}
	return r.tool + " " + r.pattern
}

// names reports whether the rule is about the tool of a call.
func (r Rule) names(c *Call) bool {
	if r.tool == HostTool || c.Host() {
		return r.tool == HostTool && c.Host()
	}
	if strings.HasPrefix(r.tool, "/") {
		return c.Path == r.tool || strings.HasPrefix(c.Path, r.tool+"/")
	}
	return like(r.tool, c.Tool) || c.Own != "" && like(r.tool, c.Own)
}

// like reports whether a text is that of a pattern in which * stands for any characters.
func like(pattern, text string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text, rest = text[i+len(part):], after
	}
}

// Sure is how sure it is that a rule is about a call.
type Sure int

// How sure.
const (
	No Sure = iota
	Maybe
	Yes
)

// touches reports how sure it is that a call acts on something that the rule is about.
func (r Rule) touches(c *Call) Sure {
	switch {
	case !r.names(c):
		return No
	case r.pattern == "":
		return Yes
	case c.Host():
		return r.meansHost(c)
	case c.unclear() != "":
		return Maybe
	case c.Web():
		return r.meansHost(c)
	case c.Shell():
		return c.line().touches(strings.Fields(r.pattern))
	}
	files, known := c.places()
	switch {
	case slices.ContainsFunc(files, r.hasFile):
		return Yes
	case len(files) == 0 || !known:
		return Maybe
	}
	return No
}

// covers reports whether the rule is about everything that a call acts on. What is not known it does not cover.
func (r Rule) covers(c *Call) bool {
	switch {
	case !r.names(c):
		return false
	case r.pattern == "":
		return true
	case c.Host():
		return r.coversHost(c)
	case c.unclear() != "":
		return false
	case c.Web():
		return r.coversHost(c)
	case c.Shell():
		return c.line().covered(strings.Fields(r.pattern))
	}
	files, known := c.places()
	return known && len(files) > 0 && !slices.ContainsFunc(files, func(f string) bool { return !r.hasFile(f) })
}

// hasFile reports whether the pattern is about a file: absolute, or relative to the working directory. One without a slash is about names.
func (r Rule) hasFile(file string) bool {
	if path.IsAbs(file) != path.IsAbs(r.pattern) {
		return false
	}
	if !strings.Contains(r.pattern, "/") {
		file = path.Base(file)
	}
	return doublestar.MatchUnvalidated(r.pattern, file)
}
