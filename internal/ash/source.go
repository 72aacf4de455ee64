package ash

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"rnix/types"
)

// What is run at once is bounded: the parser and the interpreter go down into nested code by calling
// themselves, and a Go program that runs out of stack is gone.
const (
	MaxSource  = 64 << 10 // bytes of one script, line, or argument of eval
	maxNesting = 1000     // levels of the syntax tree; a $( ) in a $( ) is four
)

// source is a piece of shell text that is run: a script, a line of an interactive shell, what source
// and eval are given. It never changes once it has been compiled.
type source struct {
	id    int
	name  string // as messages name it
	text  string // as it was written
	run   string // as it is interpreted
	edits []edit // what makes run of text, in order of their places in text
	funcs []string
}

// edit replaces cut bytes of the text at an offset.
type edit struct {
	at, cut int
	put     string
}

// compile checks a text and makes it ready for the interpreter. Errors name file, line and column.
func compile(name, text string) (*source, error) {
	s := &source{name: name, text: text}
	if len(text) > MaxSource {
		return nil, &IncompleteError{Err: types.Errorf(types.ErrInvalid, "", "", "%s: the script has %d bytes, and %d are allowed; divide it into files and use: source FILE", name, len(text), MaxSource)}
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return nil, wrong(name, text, syntax.NewPos(uint(i), 0, 0), "there is a zero byte: this is not the text of a script")
	}
	file, err := parse(name, text)
	if err != nil {
		return nil, syntaxError(text, err)
	}
	if err := s.check(file); err != nil {
		return nil, err
	}
	s.rewrite(file)
	slices.SortStableFunc(s.edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	from := 0
	for _, e := range s.edits {
		b.WriteString(text[from:e.at])
		b.WriteString(e.put)
		from = e.at + e.cut
	}
	b.WriteString(text[from:])
	s.run = b.String()
	return s, nil
}

func parse(name, text string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), name)
}

// file returns what the interpreter runs.
func (s *source) file() (*syntax.File, error) {
	f, err := parse(s.name, s.run)
	if err != nil {
		return nil, types.Errorf(types.ErrInternal, "", "", "%s: the text became something else on its way to the interpreter: %w", s.name, err)
	}
	return f, nil
}

// IncompleteError says that a text ends too early, or is too long, to be one that can be run.
type IncompleteError struct {
	Err  error
	More bool // further lines may complete it
}

// Error returns the text of what was wrong.
func (e *IncompleteError) Error() string { return e.Err.Error() }

// Unwrap returns what was wrong.
func (e *IncompleteError) Unwrap() error { return e.Err }

func syntaxError(text string, err error) error {
	out := error(types.Errorf(types.ErrInvalid, "", "", "%s", strings.TrimSpace(err.Error())))
	var p syntax.ParseError
	var l syntax.LangError
	switch {
	case errors.As(err, &p):
		out = wrong(p.Filename, text, p.Pos, p.Text)
	case errors.As(err, &l):
		out = wrong(l.Filename, text, l.Pos, fmt.Sprintf("%s is not known in this shell", l.Feature))
	}
	if syntax.IsIncomplete(err) {
		return &IncompleteError{Err: out, More: true}
	}
	return out
}

// wrong makes an error about a place of a text. What a person has typed has no name, and its place is seen.
func wrong(name, text string, pos syntax.Pos, what string) error {
	if name == "" {
		return types.Errorf(types.ErrInvalid, "", "", "%s", what)
	}
	line, col := place(text, int(pos.Offset())) // the parser counts no column beyond some thousands
	return types.Errorf(types.ErrInvalid, "", "", "%s:%d:%d: %s", name, line, col, what)
}

// check refuses what must not be run: code that is nested too deeply, and assignments that would make
// every program that is started load code from elsewhere.
func (s *source) check(file *syntax.File) error {
	var bad error
	depth := 0
	refuse := func(pos syntax.Pos, format string, args ...any) {
		if bad == nil {
			bad = wrong(s.name, s.text, pos, fmt.Sprintf(format, args...))
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return true
		}
		depth++
		if depth > maxNesting {
			refuse(n.Pos(), "the code is nested too deeply; use functions")
		}
		if as, ok := n.(*syntax.Assign); ok && as.Name != nil && loadsCode(as.Name.Value) {
			refuse(as.Pos(), "%s may not be set here: it would make programs load code from elsewhere; set it before the shell is started, or use: env %s=... COMMAND", as.Name.Value, as.Name.Value)
		}
		if bad != nil {
			depth--
			return false
		}
		return true
	})
	return bad
}

// at returns where an offset of the text that is run stands in the text that was written, counted from 1.
func (s *source) at(offset int) (line, col int) {
	shift := 0 // how much longer what is run is, so far
	for _, e := range s.edits {
		start := e.at + shift // of the edit, in what is run
		if offset < start {
			break
		}
		if offset < start+len(e.put) { // within what was put in
			return place(s.text, e.at)
		}
		shift += len(e.put) - e.cut
	}
	return place(s.text, offset-shift)
}

// place returns line and column of an offset, from 1, the column in bytes.
func place(text string, offset int) (line, col int) {
	before := text[:min(max(offset, 0), len(text))]
	return strings.Count(before, "\n") + 1, len(before) - strings.LastIndexByte(before, '\n')
}
