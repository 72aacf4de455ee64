package chat

import (
	"strings"
	"sync"

	"rnix/internal/tui"
)

// coder colours code line by line: comments, texts, numbers and words of the language. It knows what nearly all languages have in common, and needs
// no more than one pass over a line.
type coder struct {
	lang  *language // nil = it is shown as it is
	diff  bool
	until string // what ends the comment or text in which the next line begins
	a     attr
}

// language is what tells a language from others.
type language struct {
	words    map[string]bool
	comments []string // that end with the line
	blocks   [][2]string
	quotes   string // characters that begin and end a text on one line
	long     []string
}

// languages are the languages by the names that are written behind the fence.
var languages = sync.OnceValue(func() map[string]*language {
	c := [][2]string{{"/*", "*/"}}
	slash, hash := []string{"//"}, []string{"#"}
	words := func(s string) map[string]bool {
		m := map[string]bool{}
		for w := range strings.FieldsSeq(s) {
			m[w] = true
		}
		return m
	}
	golang := &language{words("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false"), slash, c, `"'`, []string{"`"}}
	js := &language{words("async await break case catch class const continue default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null of private protected public readonly return static super switch this throw true try type typeof undefined var void while yield"), slash, c, `"'`, []string{"`"}}
	py := &language{words("and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case"), hash, nil, `"'`, []string{`"""`, "'''"}}
	sh := &language{words("case do done elif else esac exit export fi for function if in local return set then until unset while cd echo source"), hash, nil, `"'`, nil}
	clike := &language{words("alignas auto bool boolean break byte case catch char class const constexpr continue default delete do double else enum extends extern false final finally float for goto if implements import inline int interface internal long namespace new null nullptr operator override package private protected public return short signed sizeof static struct super switch template this throw throws true try typedef union unsigned using var virtual void volatile while fun val when object data"), slash, c, `"'`, nil}
	rust := &language{words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while"), slash, c, `"`, nil}
	sql := &language{words("select from where insert into values update set delete create table index drop alter join left right inner outer on group by order having limit as and or not null primary key begin commit SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX DROP ALTER JOIN LEFT RIGHT INNER OUTER ON GROUP BY ORDER HAVING LIMIT AS AND OR NOT NULL PRIMARY KEY BEGIN COMMIT"), []string{"--"}, c, `'"`, nil}
	data := &language{words("true false null yes no"), hash, nil, `"'`, nil}
	ruby := &language{words("begin break case class def do else elsif end ensure false for if in module next nil not or rescue return self then true unless until when while yield require"), hash, nil, `"'`, nil}
	out := map[string]*language{}
	for names, l := range map[string]*language{"go golang": golang, "js javascript jsx ts typescript tsx mjs": js, "py python python3": py, "sh bash shell zsh console fish": sh,
		"c h cpp c++ cc hpp java cs csharp kotlin kt swift scala dart php proto": clike, "rust rs": rust, "sql": sql, "json json5 jsonc yaml yml toml ini dockerfile makefile make": data, "rb ruby perl elixir": ruby} {
		for n := range strings.FieldsSeq(names) {
			out[n] = l
		}
	}
	return out
})

// newCoder returns the coder of what is written behind a fence.
func newCoder(info string) coder {
	name, _, _ := strings.Cut(strings.ToLower(info), " ")
	name, _, _ = strings.Cut(name, "{")
	return coder{lang: languages()[name], diff: name == "diff" || name == "patch"}
}

// maxColored is the longest line that is coloured, in bytes.
const maxColored = 2 << 10

// line colours the next line.
func (c *coder) line(s string) (out []span) {
	switch {
	case c.diff:
		return []span{{s, diffAttr(s)}}
	case c.lang == nil || len(s) > maxColored:
		return []span{{s, 0}}
	}
	plain := 0
	put := func(from, to int, a attr) {
		if from > plain {
			out = append(out, span{s[plain:from], 0})
		}
		if to > from {
			out = append(out, span{s[from:to], a})
		}
		plain = to
	}
	i := 0
	if c.until != "" {
		end := strings.Index(s, c.until)
		if end < 0 {
			return []span{{s, c.a}}
		}
		i = end + len(c.until)
		put(0, i, c.a)
		c.until = ""
	}
	for i < len(s) {
		if to, a := c.piece(s, i); to > i {
			if a != 0 {
				put(i, to, a)
			}
			i = to
			continue
		}
		i++
	}
	put(len(s), len(s), 0)
	return out
}

// piece returns where what begins at i ends, and how it looks.
func (c *coder) piece(s string, i int) (to int, a attr) {
	rest := s[i:]
	for _, m := range c.lang.comments {
		if strings.HasPrefix(rest, m) && (m != "#" || i == 0 || s[i-1] == ' ') {
			return len(s), dim
		}
	}
	opens := func(open, end string, a attr) (int, attr) {
		if n := strings.Index(rest[len(open):], end); n >= 0 {
			return i + len(open) + n + len(end), a
		}
		c.until, c.a = end, a
		return len(s), a
	}
	for _, b := range c.lang.blocks {
		if strings.HasPrefix(rest, b[0]) {
			return opens(b[0], b[1], dim)
		}
	}
	for _, q := range c.lang.long {
		if strings.HasPrefix(rest, q) {
			return opens(q, q, green)
		}
	}
	switch ch := rest[0]; {
	case strings.IndexByte(c.lang.quotes, ch) >= 0:
		for n := 1; n < len(rest); n++ {
			if rest[n] == '\\' {
				n++
			} else if rest[n] == ch {
				return i + n + 1, green
			}
		}
		return i + 1, 0 // an apostrophe
	case wordy(ch):
		n := 1
		for n < len(rest) && (wordy(rest[n]) || rest[n] >= '0' && rest[n] <= '9') {
			n++
		}
		if c.lang.words[rest[:n]] {
			return i + n, cyan
		}
		return i + n, 0
	case ch >= '0' && ch <= '9':
		n := 1
		for n < len(rest) && (wordy(rest[n]) || rest[n] >= '0' && rest[n] <= '9' || rest[n] == '.') {
			n++
		}
		return i + n, yellow
	}
	return i, 0
}

func wordy(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 }

// changeAttr is how a line of a change of one file looks.
func changeAttr(s string) attr {
	switch tui.ChangeStyle(s) {
	case tui.Green:
		return green
	case tui.Red:
		return red
	case tui.Cyan:
		return cyan
	}
	return 0
}

// diffAttr is how a line of a difference looks, which has headers of files.
func diffAttr(s string) attr {
	if strings.HasPrefix(s, "+++") || strings.HasPrefix(s, "---") {
		return bold
	}
	return changeAttr(s)
}
