package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// commandLine is what the text of a command line says about its errors. Nothing is expanded: a word with a variable in it is only a word.
type commandLine struct {
	programs []string // the first words of its commands, without their directories
	words    []string // all other words
	start    string   // the directory that it changes to before anything else
	dirs     []string // those that it changes to later
	into     []string // where it redirects output to
	known    bool     // start and dirs are all
	hides    bool     // its exit status can be that of another command than the one that failed
	reads    bool     // all of its commands only show files: an error in their output can be the content of one
}

// readers are programs that show what is in files and reach nothing else.
var readers = strings.Fields(`cat head tail less more grep egrep fgrep zgrep rg ag sed awk gawk cut sort uniq wc tr ls find tree stat file diff cmp column nl od xxd jq tac rev
	strings du basename dirname realpath readlink`)

// shown are the commands of git that do so.
var shown = strings.Fields("log show diff grep blame status")

// quiet are commands that say nothing of files.
var quiet = strings.Fields(`cd echo printf set export true false : test [ exit pwd sleep wait date`)

// mostCommand bounds the command lines that are read, in bytes.
const mostCommand = 16 << 10

// parseLine reads a command line.
func parseLine(text string) commandLine {
	l := commandLine{known: true}
	if len(text) > mostCommand || strings.Contains(text, "<<") { // what follows may be another language
		return commandLine{hides: true}
	}
	var words []string
	end := func() {
		l.command(words)
		words = nil
	}
	into := false
	for _, token := range tokens(strings.TrimRight(text, "; \n")) {
		switch {
		case !token.operator && into:
			l.into, l.words, into = append(l.into, token.text), append(l.words, token.text), false
		case !token.operator:
			words = append(words, token.text)
		case strings.ContainsAny(token.text, "<>"):
			into = strings.Contains(token.text, ">")
			if n := len(words); n > 0 && strings.Trim(words[n-1], "0123456789") == "" {
				words = words[:n-1] // the number of a descriptor
			}
		default:
			end()
			if token.text != "&&" {
				l.hides = true
			} else if len(l.programs) == 1 && len(l.dirs) == 1 { // the rest runs only there
				l.start, l.dirs = l.dirs[0], nil
			}
		}
	}
	end()
	l.reads = l.reads && !slices.ContainsFunc(l.programs, func(p string) bool { return !slices.Contains(readers, p) && !slices.Contains(quiet, p) && p != "git" })
	return l
}

// command takes in one command of the line.
func (l *commandLine) command(words []string) {
	for len(words) > 0 && (strings.Contains(words[0], "=") || words[0] == "!") {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	program, args := filepath.Base(words[0]), words[1:]
	l.programs, l.words = append(l.programs, program), append(l.words, args...)
	switch {
	case program == "cd" && len(args) == 1 && !strings.ContainsAny(args[0], "$`*?~") && args[0] != "-":
		l.dirs = append(l.dirs, args[0])
	case program == "cd" || program == "pushd" || program == "popd" || program == "env" || slices.Contains(args, "-C"):
		l.known = false
	case slices.Contains(readers, program):
		l.reads = true
	case program == "git" && len(args) > 0 && slices.Contains(shown, args[0]):
		l.reads = true
	case program == "git":
		l.programs = append(l.programs, "git "+strings.Join(args, " ")) // it does not only show
	case strings.ContainsAny(program, "$`{"):
		l.known = false
	}
}

// saidBy reports whether a line is what one of the programs, or the shell, says in its own name.
func (l *commandLine) saidBy(line string) bool {
	name, _, ok := strings.Cut(line, ":")
	name = filepath.Base(name)
	return ok && (slices.Contains(l.programs, name) || slices.Contains([]string{"bash", "sh"}, name) || slices.Contains(l.programs, "git") && slices.Contains([]string{"fatal", "error", "warning"}, name))
}

// token is a word, or an operator, of a command line.
type token struct {
	text     string
	operator bool
}

// tokens divides a command line as a shell does, quotes and comments heeded.
func tokens(text string) (out []token) {
	var word strings.Builder
	inside, quote := false, rune(0)
	end := func() {
		if inside {
			out = append(out, token{text: word.String()})
		}
		inside = false
		word.Reset()
	}
	escaped, comment := false, false
	for _, c := range text {
		switch {
		case comment:
			if comment = c != '\n'; !comment {
				out = append(out, token{"\n", true})
			}
		case escaped:
			escaped, inside = false, true
			if c != '\n' {
				word.WriteRune(c)
			}
		case c == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, inside = c, true
		case c == '#' && !inside:
			comment = true
		case c == ' ' || c == '\t':
			end()
		case strings.ContainsRune("|&;<>()\n", c):
			joined := !inside && len(out) > 0 && out[len(out)-1].operator && c != '\n' // as in && and >&
			end()
			if joined {
				out[len(out)-1].text += string(c)
			} else {
				out = append(out, token{string(c), true})
			}
		default:
			inside = true
			word.WriteRune(c)
		}
	}
	end()
	return out
}
