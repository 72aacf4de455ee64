package permit

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxNested bounds how deep commands in words of commands (sh -c) are read.
const maxNested = 4

// line is what is known of a command line: the simple commands in it, wherever they stand.
type line struct {
	commands []command
	// inner are commands that one of these is said to run, such as behind env or in the text of sh -c.
	inner []command
	// unknown says that the line cannot be read, or that the name of a command is made when it runs; innerUnknown that so it is with
	// what one of its commands runs.
	unknown, innerUnknown bool
	// other says that it does something besides running commands: it writes a file, or sets a variable, such as PATH.
	other bool
}

// command is the words of a simple command. A word that is made when it runs is nil.
type command []*string

// parse reads a command line as bash does.
func parse(text string) *line {
	l := &line{}
	l.read(text, 0)
	return l
}

// read adds the commands of a text that is so deep in the words of others.
func (l *line) read(text string, depth int) {
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || depth > maxNested {
		l.unread(depth)
		return
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			l.other = l.other || len(n.Assigns) > 0
			if len(n.Args) > 0 {
				l.add(words(n.Args), depth)
			}
		case *syntax.DeclClause:
			l.other = true
			l.add(command{&n.Variant.Value}, depth)
		case *syntax.LetClause, *syntax.ArithmCmd, *syntax.FuncDecl, *syntax.CoprocClause:
			l.other = true
		case *syntax.Redirect:
			l.other = l.other || !harmless(n)
		}
		return true
	})
}

// unread notes that a command is not known that stands so deep.
func (l *line) unread(depth int) {
	if depth == 0 {
		l.unknown = true
	} else {
		l.innerUnknown = true
	}
}

// add adds a simple command, and those that it is said to run.
func (l *line) add(c command, depth int) {
	if depth == 0 {
		l.commands = append(l.commands, c)
	} else {
		l.inner = append(l.inner, c)
	}
	if c[0] == nil {
		l.unread(depth)
		return
	}
	switch name := path.Base(*c[0]); {
	case slices.Contains(shells, name):
		l.script(c[1:], depth)
	case name == "eval" || name == "trap":
		l.text(c[1:], depth)
	case name == "." || name == "source":
		l.innerUnknown = true
	case slices.Contains(wrappers, name):
		for i := 1; i < len(c); i++ { // somewhere behind its own options, of which each may have a value
			switch {
			case c[i] == nil:
				l.innerUnknown = true
			case depth < maxNested:
				l.add(c[i:], maxNested) // of its arguments each suffix is added here
			}
		}
	}
}

// script adds what a shell runs that has these arguments.
func (l *line) script(args command, depth int) {
	for i, w := range args {
		if w == nil {
			break
		}
		if strings.HasPrefix(*w, "-") && !strings.HasPrefix(*w, "--") && strings.Contains(*w, "c") {
			if i+1 < len(args) {
				l.text(args[i+1:i+2], depth)
				return
			}
			break
		}
	}
	l.innerUnknown = true // a file, or what it reads from its standard input
}

// text adds the commands in words that are run as a text.
func (l *line) text(args command, depth int) {
	var all []string
	for _, w := range args {
		if w == nil {
			l.innerUnknown = true
			return
		}
		all = append(all, *w)
	}
	l.read(strings.Join(all, " "), depth+1)
}

// harmless reports whether a redirection writes no file.
func harmless(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	}
	to := literal(r.Word)
	if r.Op == syntax.DplIn || r.Op == syntax.DplOut { // to another descriptor; what is no number is the name of a file
		return to != nil && strings.Trim(strings.TrimSuffix(*to, "-"), "0123456789") == ""
	}
	return to != nil && slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr"}, *to)
}

// shells run what stands behind -c; wrappers run the command that stands in their arguments.
var (
	shells   = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"}
	wrappers = []string{"env", "command", "exec", "builtin", "nohup", "nice", "ionice", "time", "timeout", "xargs", "sudo", "doas", "setsid", "stdbuf", "unbuffer", "chroot", "unshare", "flock", "watch", "parallel", "strace", "script"}
)

// words returns the words of a command.
func words(args []*syntax.Word) command {
	out := make(command, len(args))
	for i, w := range args {
		out[i] = literal(w)
	}
	return out
}

// literal returns what a word is, if that does not depend on anything; else nil.
func literal(w *syntax.Word) *string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "*?[{~") && p.Value != "[" { // [ is a command
				return nil
			}
			b.WriteString(unescaped(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar {
				return nil
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, in := range p.Parts {
				lit, ok := in.(*syntax.Lit)
				if !ok || p.Dollar {
					return nil
				}
				b.WriteString(unquoted(lit.Value))
			}
		default:
			return nil
		}
	}
	s := b.String()
	return &s
}

// unescaped takes out the backslashes of an unquoted word.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unquoted takes out the backslashes that count between double quotes.
func unquoted(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// touches reports how sure it is that a command of the line is one of the pattern.
func (l *line) touches(pattern []string) Sure {
	all := slices.Concat(l.commands, l.inner)
	switch {
	case slices.ContainsFunc(all, func(c command) bool { return c.is(pattern) || c.named().is(pattern) }):
		return Yes
	case l.unknown || l.innerUnknown || slices.ContainsFunc(all, func(c command) bool { return c.may(pattern) || c.named().may(pattern) }):
		return Maybe
	}
	return No
}

// covered reports whether the line runs commands of the pattern, and does nothing else.
func (l *line) covered(pattern []string) bool {
	return !l.unknown && !l.other && len(l.commands) > 0 && !slices.ContainsFunc(l.commands, func(c command) bool { return !c.is(pattern) })
}

// is reports whether each word is certainly one of the pattern, in which * stands for any words.
func (c command) is(pattern []string) bool {
	return match(c, pattern, func(w *string, p string) bool { return w != nil && like(p, *w) })
}

// may reports whether the words can be those of the pattern.
func (c command) may(pattern []string) bool {
	return match(c, pattern, func(w *string, p string) bool { return w == nil || like(p, *w) })
}

// named returns the command without the directory of its program.
func (c command) named() command {
	if c[0] == nil || !strings.Contains(*c[0], "/") {
		return c
	}
	base := path.Base(*c[0])
	return append(command{&base}, c[1:]...)
}

// match compares words with a pattern. A * that is a word of the pattern stands for any number of words, also for none.
func match(words command, pattern []string, same func(w *string, p string) bool) bool {
	for len(pattern) > 0 {
		if pattern[0] == "*" {
			if pattern = pattern[1:]; len(pattern) == 0 {
				return true
			}
			for i := range words {
				if match(words[i:], pattern, same) {
					return true
				}
			}
			return false
		}
		if len(words) == 0 || !same(words[0], pattern[0]) {
			return false
		}
		words, pattern = words[1:], pattern[1:]
	}
	return len(words) == 0
}
