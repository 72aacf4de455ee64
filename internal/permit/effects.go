package permit

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// The most that is read of a command line, in bytes, and how often something may begin in it: the parser is slow where these stand in one another.
const (
	maxLine   = 128 << 10
	maxBegins = 5000
)

// readable reports whether a text is surely the same to bash as to the parser, which takes "\r" for a blank, also behind a backslash, and NUL for
// nothing; and that it is read soon.
func readable(text string) bool {
	return len(text) <= maxLine && strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "[") <= maxBegins && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f })
}

// hidden finds commands in the index of an array: bash runs them wherever it calculates with the text, as in [[ 'a[$(x)]' -eq 0 ]].
var hidden = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?s)\\w\\[.*(\\$\\(|`)") })

// runs are variables whose text bash runs.
var runs = []string{"PS0", "PS4", "PROMPT_COMMAND", "BASH_ENV", "ENV"}

// besides notes what a line does besides running commands: it sets a variable, writes a file, connects, or calculates, for which bash may run
// commands that stand in the text of a variable.
func (l *line) besides(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.LetClause, *syntax.ArithmCmd, *syntax.ArithmExp, *syntax.CStyleLoop, *syntax.FuncDecl, *syntax.CoprocClause:
		l.other = true
	case *syntax.Assign:
		l.innerUnknown = l.innerUnknown || n.Name != nil && slices.Contains(runs, n.Name.Value)
	case *syntax.WordIter:
		l.other = l.other || !own(n.Name.Value)
		l.innerUnknown = l.innerUnknown || slices.Contains(runs, n.Name.Value)
	case *syntax.ParamExp:
		l.other = l.other || !plain(n)
		l.innerUnknown = l.innerUnknown || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word != nil && n.Exp.Word.Lit() == "P" // it is run
	case *syntax.Word:
		if text := static(n); strings.Contains(text, "[") && hidden().MatchString(text) {
			l.other, l.innerUnknown = true, true
		}
	case *syntax.BinaryTest:
		l.other = l.other || slices.Contains(sums, n.Op.String())
	case *syntax.UnaryTest:
		l.other = l.other || n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar
	case *syntax.Redirect:
		l.other = l.other || !harmless(n)
	}
}

// setters are commands of a shell that change what later commands are, by variables, options or names.
var setters = []string{"alias", "declare", "enable", "export", "getopts", "hash", "local", "mapfile", "read", "readarray", "readonly", "set", "shopt", "typeset", "unalias", "unset"}

// sets reports whether a command changes what later ones of the line are. What it is, is known.
func sets(c command) bool {
	name := *c[0]
	return slices.Contains(setters, name) || (name == "printf" || name == "wait") && slices.ContainsFunc(c[1:], func(w *string) bool { return w == nil || strings.HasPrefix(*w, "-") })
}

// sums are the tests that calculate.
var sums = []string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}

// static returns what is certain of a word.
func static(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, in := range p.Parts {
				if lit, ok := in.(*syntax.Lit); ok {
					b.WriteString(unquoted(lit.Value))
				}
			}
		}
	}
	return b.String()
}

// own reports whether a variable of a loop means nothing to programs: PATH and GIT_DIR, and http_proxy, are others.
func own(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// plain reports whether what stands for a variable is its text, or a part of it, and nothing else happens.
func plain(p *syntax.ParamExp) bool {
	if p.Excl || p.Index != nil || p.Slice != nil {
		return false
	}
	return p.Exp == nil || !slices.Contains([]syntax.ParExpOperator{syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.OtherParamOps}, p.Exp.Op)
}

// harmless reports whether a redirection writes no file, connects to nothing, and sets no variable.
func harmless(r *syntax.Redirect) bool {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		return false
	}
	to := literal(r.Word)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	case syntax.RdrIn:
		return to != nil && !strings.HasPrefix(*to, "/dev/tcp/") && !strings.HasPrefix(*to, "/dev/udp/")
	case syntax.DplIn, syntax.DplOut: // to another descriptor; what is no number is the name of a file
		return to != nil && strings.Trim(strings.TrimSuffix(*to, "-"), "0123456789") == ""
	}
	return to != nil && slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr"}, *to)
}
