package fs

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// alwaysLeftOut are names of directories that hold what nobody edits by hand.
var alwaysLeftOut = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true,
	"node_modules": true, "__pycache__": true, ".venv": true,
}

// ignoreFile is the rules of one .gitignore, for what is below its directory. What git knows besides
// (info/exclude, the user's own file, files that are tracked all the same) is not read.
type ignoreFile struct {
	dir   string // with slashes, relative to the root; "." for the root
	rules []ignoreRule
}

type ignoreRule struct {
	pattern  string
	suffix   string // what a name must end with, for the common "*.o"; else ""
	anchored bool   // the pattern is for the path below dir, not for a name
	negate   bool
	dirOnly  bool
}

// parseIgnore reads a .gitignore. Lines that are no pattern are passed over, as git does.
func parseIgnore(dir, content string) ignoreFile {
	f := ignoreFile{dir: dir}
	for line := range strings.Lines(content) {
		if r, ok := parseRule(strings.TrimRight(line, "\r\n")); ok {
			f.rules = append(f.rules, r)
		}
	}
	return f
}

func parseRule(line string) (r ignoreRule, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return r, false
	}
	if line[0] == '!' {
		r.negate, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly, line = true, strings.TrimRight(line, "/")
	}
	r.anchored = strings.Contains(line, "/")
	// Braces are no alternatives in a .gitignore.
	r.pattern = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(strings.TrimPrefix(line, "/"))
	if !r.anchored && strings.HasPrefix(line, "*") && !strings.ContainsAny(line[1:], `*?[\`) {
		r.suffix = line[1:]
	}
	return r, r.pattern != "" && doublestar.ValidatePattern(r.pattern)
}

// match reports whether the rule is about rel, a path below the directory of its file.
func (r ignoreRule) match(rel string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if r.anchored {
		return doublestar.MatchUnvalidated(r.pattern, rel)
	}
	name := path.Base(rel)
	if r.suffix != "" {
		return strings.HasSuffix(name, r.suffix)
	}
	return name == r.pattern || doublestar.MatchUnvalidated(r.pattern, name)
}

// ignored decides about rel, a path relative to the root: the last rule that is about it counts,
// and deeper files stand behind those above them.
func ignored(files []ignoreFile, rel string, isDir bool) bool {
	for i := len(files) - 1; i >= 0; i-- {
		below := rel
		if d := files[i].dir; d != "." {
			below = strings.TrimPrefix(rel, d+"/")
		}
		for j := len(files[i].rules) - 1; j >= 0; j-- {
			if r := files[i].rules[j]; r.match(below, isDir) {
				return !r.negate
			}
		}
	}
	return false
}
