package plumbing

import (
	"strings"
)

// Gitlink is the mode of a place at which another repository belongs: a submodule.
const Gitlink = "160000"

// Records splits the output of a -z option.
func Records(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// Zlist is the input of a -z option.
func Zlist(paths []string) []byte {
	if len(paths) == 0 {
		return []byte{}
	}
	return []byte(strings.Join(paths, "\x00") + "\x00")
}

// Lines is the input of a git that reads lines.
func Lines(list []string) []byte { return []byte(strings.Join(list, "\n") + "\n") }

// Line returns output without its line end.
func Line(b []byte) string { return strings.TrimSuffix(string(b), "\n") }

// Answers returns the lines of a git that was asked so many questions at once. nil if it has not answered each with one line: a path may hold a line
// end, and what git does not find it leaves out.
func Answers(b []byte, questions int) []string {
	a := strings.Split(Line(b), "\n")
	if len(a) != questions {
		return nil
	}
	return a
}

// IsObject reports whether a text is the whole name of an object.
func IsObject(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// EscapeGlob makes a name mean itself in a pattern.
func EscapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// ShellQuote writes a text as one word for a shell.
func ShellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Tracked is one entry of an index.
type Tracked struct {
	Flag byte   // as ls-files -v prints it: H as usual, S not in the work tree, lower case: taken for unchanged
	Mode string // octal
	OID  string
	Path string
}

// ParseTracked reads the output of ls-files -s -v -z.
func ParseTracked(out []byte) (all []Tracked) {
	for _, r := range Records(out) {
		meta, path, ok := strings.Cut(r, "\t")
		f := strings.Fields(meta)
		if ok && len(f) == 4 && len(f[0]) == 1 {
			all = append(all, Tracked{Flag: f[0][0], Mode: f[1], OID: f[2], Path: path})
		}
	}
	return all
}

// Status is one line of git status --porcelain=v2 -z --no-renames about a file.
type Status struct {
	Kind      byte   // 1 a change, u a conflict, ? untracked, ! ignored
	XY        string // of the kinds 1 and u: what is staged, what is changed
	Submodule bool   // of the kinds 1 and u: as far as it is one on the disk or in the index
	Mode      string // of the kind 1: in HEAD
	Object    string // of the kind 1: in HEAD
	Path      string
}

// ParseStatus reads the output of git status --porcelain=v2 -z --no-renames. odd is the first line that it does not understand; "" = none.
func ParseStatus(out []byte) (all []Status, odd string) {
	for _, l := range Records(out) {
		kind, rest, _ := strings.Cut(l, " ")
		switch kind {
		case "?", "!":
			all = append(all, Status{Kind: kind[0], Path: rest})
		case "1", "u":
			n := 8 // see "Porcelain Format Version 2" of git-status
			if kind == "u" {
				n = 10
			}
			f := strings.SplitN(rest, " ", n)
			if len(f) != n || len(f[0]) != 2 || f[1] == "" {
				return all, l
			}
			s := Status{Kind: kind[0], XY: f[0], Submodule: f[1][0] == 'S', Path: f[n-1]}
			if kind == "1" {
				s.Mode, s.Object = f[2], f[5]
			}
			all = append(all, s)
		}
	}
	return all, ""
}

// Worktree is a work tree of a repository, as git worktree list has it.
type Worktree struct{ Path, Branch string }

// ParseWorktrees reads the output of git worktree list --porcelain -z.
func ParseWorktrees(out []byte) (list []Worktree) {
	for _, field := range Records(out) {
		key, value, _ := strings.Cut(field, " ")
		switch {
		case key == "worktree":
			list = append(list, Worktree{Path: value})
		case key == "branch" && len(list) > 0:
			list[len(list)-1].Branch = value
		}
	}
	return list
}
