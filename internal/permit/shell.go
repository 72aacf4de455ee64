package permit

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxNested bounds how deep commands in words of commands (sh -c) are read.
const maxNested = 4

// maxWrapped bounds how many arguments of a command are tried that runs one that stands in them, and maxArguments how many it may have for that.
const (
	maxWrapped   = 400
	maxArguments = 4000
)

// maxShells bounds before which argument of such a command a shell is looked for whose text is read.
const maxShells = 16

// line is what is known of a command line: the simple commands in it, wherever they stand.
type line struct {
	commands []command
	// inner are commands that one of these is said to run, such as behind env or in the text of sh -c.
	inner []command
	// texts are those in arguments that one of these may run, or take for something else.
	texts []command
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
	if depth > maxNested || !readable(text) {
		l.unread(depth)
		return
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
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
		default:
			l.besides(n)
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
	l.other = l.other || sets(c)
	switch name := path.Base(*c[0]); {
	case slices.Contains(shells, name):
		l.script(c[1:], depth)
	case name == "eval" || name == "trap":
		l.text(c[1:], depth)
	case slices.Contains(unseen, name):
		l.innerUnknown = true
	case depth < maxNested:
		l.runs(name, c[1:], depth)
	}
	l.git(c)
}

// wrapped adds what a command may run that runs one that stands in its arguments: somewhere behind its own options, of which each may have a value,
// or as a text in one of them, as behind env -S.
func (l *line) wrapped(args command, depth int) {
	if len(args) > maxArguments {
		l.innerUnknown = true
		return
	}
	for i, w := range args {
		switch {
		case w == nil:
			l.innerUnknown = true
			continue
		case i >= maxWrapped:
			l.innerUnknown = true
			return
		}
		if i < maxShells && slices.Contains(shells, path.Base(*w)) {
			l.inner = append(l.inner, args[i:])
			l.script(args[i+1:], depth)
		} else {
			l.suffix(args[i:], depth)
		}
		if !strings.ContainsAny(*w, " \t\n;|&") {
			continue
		}
		texts := []string{*w}
		if _, value, option := strings.Cut(*w, "="); option { // --split-string=
			texts = append(texts, value)
		}
		if strings.HasPrefix(*w, "-") && len(*w) > 2 { // -S
			texts = append(texts, (*w)[2:])
		}
		for _, text := range texts {
			in := &line{}
			in.read(text, depth+1)
			l.texts = slices.Concat(l.texts, in.inner, in.texts)
			l.innerUnknown = l.innerUnknown || in.innerUnknown
		}
	}
}

// suffix adds what stands in the arguments of a command and may be the one that it runs. Of its own arguments each suffix is added by itself.
func (l *line) suffix(c command, depth int) {
	l.inner = append(l.inner, c)
	l.other = l.other || sets(c)
	switch name := path.Base(*c[0]); {
	case slices.Contains(shells, name):
		l.innerUnknown = true
	case name == "eval" || name == "trap":
		l.text(c[1:], depth)
	case slices.Contains(exact, name):
		l.runs(name, c[1:], depth+1)
	}
	l.git(c)
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
			if strings.ContainsAny(strings.ReplaceAll(p.Value, "{}", ""), "*?[{~") && p.Value != "[" { // [ is a command, and {} a word
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
	case l.unknown || l.innerUnknown || slices.ContainsFunc(slices.Concat(all, l.texts), func(c command) bool { return c.may(pattern) || c.named().may(pattern) }):
		return Maybe
	}
	return No
}

// covered reports whether the line runs commands of the patterns, each one of any of them, and does nothing else.
func (l *line) covered(patterns ...[]string) bool {
	return !l.unknown && !l.other && len(l.commands) > 0 && !slices.ContainsFunc(l.commands, func(c command) bool { return !slices.ContainsFunc(patterns, c.is) })
}

// moves reports whether a command of the line changes the directory of later ones: another rule may be meant for here.
func (l *line) moves() bool {
	return slices.ContainsFunc(l.commands, func(c command) bool { return c[0] == nil || *c[0] == "cd" || *c[0] == "pushd" || *c[0] == "popd" })
}

// is reports whether each word is certainly one of the pattern, in which * stands for any words.
func (c command) is(pattern []string) bool {
	return match(c, pattern, func(w *string, p string) bool { return w != nil && like(p, *w) })
}

// may reports whether the words can be those of the pattern. One that is made when it runs may be none, one or many.
func (c command) may(pattern []string) bool {
	can := make([]bool, len(pattern)+1) // the words so far can be so many of the pattern
	can[0] = true
	skip := func() {
		for i, p := range pattern {
			can[i+1] = can[i+1] || can[i] && p == "*"
		}
	}
	skip()
	for _, w := range c {
		if w == nil {
			for i := range pattern {
				can[i+1] = can[i+1] || can[i]
			}
			continue
		}
		for i := len(pattern); i > 0; i-- {
			can[i] = can[i-1] && like(pattern[i-1], *w) || can[i] && pattern[i-1] == "*"
		}
		can[0] = false
		skip()
	}
	return can[len(pattern)]
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
	again, from := -1, 0 // what is behind the last such *, and from which word it was tried
	at, word := 0, 0
	for word < len(words) {
		switch {
		case at < len(pattern) && pattern[at] == "*":
			at++
			again, from = at, word
		case at < len(pattern) && same(words[word], pattern[at]):
			at++
			word++
		case again >= 0:
			from++
			at, word = again, from
		default:
			return false
		}
	}
	return !slices.ContainsFunc(pattern[at:], func(p string) bool { return p != "*" })
}
