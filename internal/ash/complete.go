package ash

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Words is the part of a line that is being typed: the words of the command before the one at the cursor,
// and the beginning of that one.
type Words struct {
	Before []string
	Word   string
	Head   string // the line up to the word
	Tail   string // what stands behind the cursor
}

// Typed takes a line apart at the cursor, which stands at pos bytes. It is good enough for what people
// type: quotes hold words together, and | & ; ( { begin a new command.
func Typed(line string, pos int) Words {
	pos = min(max(pos, 0), len(line))
	w := Words{Tail: line[pos:]}
	start, quoted, any := 0, byte(0), false
	var cur strings.Builder
	flush := func() {
		if any {
			w.Before = append(w.Before, cur.String())
		}
		cur.Reset()
		any = false
	}
	for i := 0; i < pos; i++ {
		switch b := line[i]; {
		case quoted != 0:
			if b == quoted {
				quoted = 0
			} else {
				cur.WriteByte(b)
			}
		case b == '\'' || b == '"':
			if !any {
				start = i
			}
			quoted, any = b, true
		case b == '\\' && i+1 < pos:
			if !any {
				start = i
			}
			i++
			cur.WriteByte(line[i])
			any = true
		case b == ' ' || b == '\t':
			flush()
			start = i + 1
		case strings.IndexByte("|&;({", b) >= 0:
			flush()
			w.Before, start = nil, i+1
		case b == '<' || b == '>':
			flush()
			w.Before, start = []string{"<"}, i+1 // a file
		default:
			if !any {
				start = i
			}
			cur.WriteByte(b)
			any = true
		}
	}
	w.Word, w.Head = cur.String(), line[:start]
	return w
}

// Files returns the names of files of this system that begin with a word; directories end in a slash.
func Files(dir, word string) []string {
	at, prefix := filepath.Split(word)
	entries, err := os.ReadDir(absolute(dir, orDot(at)))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, prefix) || name[0] == '.' && prefix == "" {
			continue
		}
		if st, err := os.Stat(filepath.Join(absolute(dir, orDot(at)), name)); err == nil && st.IsDir() {
			name += "/"
		}
		out = append(out, escaped(at+name))
	}
	return out
}

func orDot(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// escaped returns a word as it is typed.
func escaped(word string) string {
	var b strings.Builder
	for i := range len(word) {
		if strings.IndexByte(" \t\n'\"\\$`&|;<>()*?[]!#{}", word[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(word[i])
	}
	return b.String()
}

// Programs returns the programs of PATH that begin with a word.
func (s *Shell) Programs(word string) []string {
	var out []string
	for _, dir := range filepath.SplitList(s.runner.Env.Get("PATH").String()) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), word) {
				out = append(out, e.Name())
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// InSpace reports whether a path is one of the name space of agents.
func InSpace(p string) bool { return inSpace(p) }
