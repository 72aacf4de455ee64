package debug

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
)

// Filter picks events. The zero value picks all. What says that events are missing is always picked. Part of
// the wire format.
type Filter struct {
	// Classes are classes of events (see Classes), or names of syscalls; ! before one leaves these out. Without
	// one that has no !, everything else is picked.
	Classes    []string      `json:"classes,omitempty"`
	Failed     bool          `json:"failed,omitempty"`     // only what failed
	Slow       time.Duration `json:"slow_ns,omitempty"`    // only what took at least so long
	Path       string        `json:"path,omitempty"`       // only calls on paths of this form, or of files of it
	Categories []string      `json:"categories,omitempty"` // of log lines: only these
	Log        bool          `json:"log,omitempty"`        // only what belongs into a log: what was said, and what went wrong
	Level      Level         `json:"level,omitempty"`      // of log lines: this one and what is more important
}

// classes are the classes in the order in which they are shown.
var classes = []string{"tool", "llm", "fs", "shell", "mcp", "signal", "process", "wait", "message", "storage", "step", "log"}

// Classes returns the classes of events that a Filter knows.
func Classes() []string { return slices.Clone(classes) }

// ClassesOf returns the classes of an event: those of a syscall by its name, or by the device that it is about.
func ClassesOf(e *event.Event) []string {
	switch e.Kind {
	case event.Syscall, event.SyscallBegun:
		if of := syscalls[e.Name]; of != nil {
			return of
		}
		return device(e.Path)
	case event.Mounted, event.Unmounted, event.ServerLine:
		return []string{"mcp"}
	case event.Signalled, event.Paused, event.Resumed:
		return []string{"signal"}
	case event.Spawned, event.Exited, event.Reaped, event.Reparented, event.StateChanged, event.Renamed, event.Grouped, event.NodeChanged:
		return []string{"process"}
	case event.Waiting, event.Stalled, event.Leased, event.Asked, event.Answered:
		return []string{"wait"}
	case event.Messaged, event.Delivered:
		return []string{"message"}
	case event.Refused:
		return []string{"tool", "shell"}
	case event.StorageError, event.Snapshot:
		return []string{"storage"}
	case event.StepStarted, event.StepEnded, event.Compacted:
		return []string{"step"}
	case event.LogLine:
		return []string{"log"}
	}
	return nil
}

// device returns the classes of a syscall on a path.
func device(path string) []string {
	for _, d := range []struct {
		root  string
		class []string
	}{{"/dev/llm", []string{"llm"}}, {"/dev/fs", []string{"tool", "fs"}}, {"/dev/workspace", []string{"tool", "fs"}}, {"/dev/shell", []string{"tool", "shell"}},
		{"/mnt/mcp", []string{"tool", "mcp"}}, {"/proc", []string{"tool", "process"}}} {
		if below(path, d.root) {
			return d.class
		}
	}
	return []string{"tool"}
}

// below reports whether a path is dir, or lies below it.
func below(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// Matcher returns what decides whether an event is picked. An unknown class, category or level, a negative
// duration and a path that is no pattern are INVALID, with what there is. It is safe for concurrent use.
func (f *Filter) Matcher() (func(*event.Event) bool, error) {
	if f == nil {
		return func(*event.Event) bool { return true }, nil
	}
	with, without, err := f.split()
	if err != nil {
		return nil, err
	}
	if f.Slow < 0 {
		return nil, types.Errorf(types.ErrInvalid, "Filter", "slow", "%s is less than nothing", f.Slow)
	}
	for _, c := range f.Categories {
		if !slices.Contains(categories, c) {
			return nil, types.Errorf(types.ErrInvalid, "Filter", "category", "%q is invalid: want one of %s", c, strings.Join(categories, ", "))
		}
	}
	if f.Level != "" && f.Level.rank() < 0 {
		return nil, types.Errorf(types.ErrInvalid, "Filter", "level", "%q is invalid: want one of %s", f.Level, levelNames())
	}
	var path *regexp.Regexp
	if f.Path != "" {
		if path, err = glob(f.Path); err != nil {
			return nil, err
		}
	}
	by := *f
	return func(e *event.Event) bool {
		if e.Kind == event.Lag {
			return true
		}
		of := ClassesOf(e)
		named := func(list []string) bool {
			return slices.ContainsFunc(list, func(c string) bool {
				return slices.Contains(of, c) || OfSyscall(e) && strings.EqualFold(c, e.Name)
			})
		}
		switch {
		case len(with) > 0 && !named(with), named(without):
			return false
		case by.Failed && !Failed(e):
			return false
		case by.Slow > 0 && (e.Dur < by.Slow || !timed(e)):
			return false
		case path != nil && !onPath(path, strings.Contains(by.Path, "/"), e):
			return false
		case by.Log && e.Kind != event.LogLine && e.Kind != event.Stalled && e.Kind != event.Refused && e.Kind != event.Asked && e.Kind != event.Answered && !unowned(e) && !broken(e):
			return false
		case len(by.Categories) > 0 && !slices.Contains(by.Categories, CategoryOf(e)):
			return false
		}
		return by.Level == "" || LevelOf(e).rank() >= by.Level.rank()
	}, nil
}

// split divides the classes into those that are wanted and those that are not.
func (f *Filter) split() (with, without []string, err error) {
	for _, c := range f.Classes {
		name, not := strings.CutPrefix(c, "!")
		if !slices.Contains(classes, name) && !slices.ContainsFunc(Syscalls(), func(s string) bool { return strings.EqualFold(s, name) }) {
			return nil, nil, types.Errorf(types.ErrInvalid, "Filter", "class", "%s", unknownClass(name))
		}
		if not {
			without = append(without, name)
		} else {
			with = append(with, name)
		}
	}
	return with, without, nil
}

// unknownClass says that a name is none that a filter knows, and why if one may expect it.
func unknownClass(name string) string {
	for known, why := range untraced {
		if strings.EqualFold(known, name) {
			return fmt.Sprintf("%q is no syscall of the trace: %s", name, why)
		}
	}
	return fmt.Sprintf("%q is no class (%s) and no syscall (%s)", name, strings.Join(classes, ", "), strings.Join(Syscalls(), ", "))
}

// FailureOf says how a syscall failed; zero if it did not, or is none. That a command failed stands in what is read of
// it, and not in the error of a call.
func FailureOf(e *event.Event) step.Failure {
	if e.Kind != event.Syscall || e.Name != "Read" && e.Err == "" && e.Code == "" {
		return step.Failure{}
	}
	return step.FailureOf(e.Path, e.Result, e.Err, e.Code)
}

// Failed reports whether an event tells of a failure, also of a command that answered with its exit code.
func Failed(e *event.Event) bool {
	if broken(e) || e.Kind == event.Refused {
		return true
	}
	f := FailureOf(e)
	return f.Kind != ""
}

// broken reports whether an event tells of a failure that is not only the answer of a command: what a log has.
func broken(e *event.Event) bool {
	switch e.Kind {
	case event.Exited:
		return e.Exit != nil && e.Exit.Code != types.ExitOK
	case event.NodeChanged:
		return e.Result == "failed"
	case event.StorageError:
		return true
	}
	return e.Err != "" || e.Code != ""
}

// unowned reports whether an event says that the session of a process is not, or may not be, ours.
func unowned(e *event.Event) bool { return e.Kind == event.Leased && e.Result != "ours" }

// timed reports whether the duration of an event is that of something that was done.
func timed(e *event.Event) bool {
	switch e.Kind {
	case event.Syscall, event.Mounted, event.Snapshot, event.StepEnded:
		return true
	}
	return false
}

// named finds the file that a call on a device names.
var named = regexp.MustCompile(`"(?:path|file_path)":"((?:[^"\\]|\\.)*)"`)

// onPath reports whether the path of an event, or a file that it names, has a form: all of it, or its last
// element if the form has no slash.
func onPath(form *regexp.Regexp, whole bool, e *event.Event) bool {
	fits := func(p string) bool {
		if !whole {
			p = p[strings.LastIndexByte(p, '/')+1:]
		}
		return p != "" && form.MatchString(p)
	}
	if fits(e.Path) {
		return true
	}
	for _, m := range named.FindAllStringSubmatch(e.Args, -1) {
		if fits(m[1]) {
			return true
		}
	}
	return false
}

// maxGlob bounds a pattern, in bytes.
const maxGlob = 1000

// glob compiles a pattern: * is anything but a slash, ** anything, ? one character, [a-z] one of these.
func glob(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxGlob {
		return nil, types.Errorf(types.ErrInvalid, "Filter", "path", "the pattern has more than %d bytes", maxGlob)
	}
	var b strings.Builder
	b.WriteString(`(?s)^`)
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*':
			if i+1 < len(pattern) && pattern[i+1] == '*' {
				b.WriteString(`.*`)
				i++
			} else {
				b.WriteString(`[^/]*`)
			}
		case '?':
			b.WriteString(`[^/]`)
		case '[':
			end := strings.IndexByte(pattern[i:], ']')
			if end < 2 {
				return nil, types.Errorf(types.ErrInvalid, "Filter", "path", "%q has a [ without what it stands for, or without its ]", pattern)
			}
			b.WriteString(pattern[i : i+end+1])
			i += end
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	b.WriteByte('$')
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Filter", "path", "%q is no pattern: %w", pattern, err)
	}
	return re, nil
}
