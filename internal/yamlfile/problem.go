package yamlfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"rnix/types"
)

// Problem is one mistake in a file.
type Problem struct {
	File         string
	Line, Column int    // from 1; 0 = the whole file
	Key          string // such as "models.provider"; may be empty
	Message      string
	Warning      bool // the value was used all the same, or can be done without
	// Contained says that nothing is looser for the mistake: what it concerns cannot be used, or the file may not say
	// it and another one counts, which is stricter.
	Contained bool
}

// String returns "file:line:column: key: message".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems are the mistakes of one or several files. They are an error that lists one per line.
type Problems []Problem

// Error returns one problem per line.
func (ps Problems) Error() string { return strings.Join(ps.Strings(), "\n") }

// Strings returns each problem as text.
func (ps Problems) Strings() []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.String()
	}
	return out
}

// Errors returns the problems that are more than warnings.
func (ps Problems) Errors() Problems {
	var out Problems
	for _, p := range ps {
		if !p.Warning {
			out = append(out, p)
		}
	}
	return out
}

// Err returns an error of code INVALID whose cause is Errors, or nil if there are none.
func (ps Problems) Err(syscall, device string) error {
	if bad := ps.Errors(); len(bad) > 0 {
		return &types.SyscallError{Syscall: syscall, Device: device, Code: types.ErrInvalid, Err: bad}
	}
	return nil
}

// Under returns the problems of key and of the keys in it.
func (ps Problems) Under(key string) Problems {
	var out Problems
	for _, p := range ps {
		if rest, ok := strings.CutPrefix(p.Key, key); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			out = append(out, p)
		}
	}
	return out
}

// Problems returns what was wrong, in the order of the file.
func (d *Doc) Problems() Problems {
	slices.SortStableFunc(d.problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return slices.Clone(d.problems)
}

// Problemf reports a mistake in the value of a key.
func (d *Doc) Problemf(path, format string, args ...any) {
	d.report(d.find(path), path, false, format, args...)
}

// Containf is Problemf for a mistake for which nothing is looser; see Problem.Contained.
func (d *Doc) Containf(path, format string, args ...any) {
	d.report(d.find(path), path, false, format, args...)
	d.problems[len(d.problems)-1].Contained = true
}

// Contain notes of mistakes found so far that nothing is looser for them; see Problem.Contained.
func (d *Doc) Contain(which func(*Problem) bool) {
	for i := range d.problems {
		if p := &d.problems[i]; !p.Warning && which(p) {
			p.Contained = true
		}
	}
}

// Warnf reports something about a key that does not keep the file from being used.
func (d *Doc) Warnf(path, format string, args ...any) {
	d.report(d.find(path), path, true, format, args...)
}

// Forgive turns all mistakes found so far into warnings, for files that are read leniently.
func (d *Doc) Forgive() {
	for i := range d.problems {
		d.problems[i].Warning = true
	}
}

func (d *Doc) report(at position, key string, warning bool, format string, args ...any) {
	if at.line > 0 {
		at.line += d.first
	}
	d.problems = append(d.problems, Problem{
		File: d.file, Line: at.line, Column: at.column, Key: key,
		Message: fmt.Sprintf(format, args...), Warning: warning,
	})
}

// syntax reports an error of the YAML parser.
func (d *Doc) syntax(err error) {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		d.report(position{1, 1}, "", false, "%v", err)
		return
	}
	text := strings.TrimPrefix(le.Message, "yaml: ")
	if strings.Contains(text, "no documents in stream") {
		return // only comments: the file is empty
	}
	at := le.Mark
	if at.Line == 0 {
		at = le.ContextMark
	}
	pos := position{max(at.Line, 1), max(at.Column, 1)}
	switch {
	case strings.Contains(text, "mapping values are not allowed"):
		text += `; a text that contains ": " needs quotes`
	case strings.Contains(text, "tab character"), strings.Contains(text, "cannot start any token"):
		text += "; indent with spaces, and put quotes around texts that begin with a special character"
	case strings.Contains(text, "expected single document"):
		text = "a second document begins with ---; one file holds one"
	}
	if le.ContextMsg != "" {
		text = le.ContextMsg + ": " + text
	}
	d.report(pos, "", false, "%s", text)
}

// parent returns the path of what holds path, and false at the top.
func parent(path string) (string, bool) {
	if path == "" {
		return "", false
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)], true
}
