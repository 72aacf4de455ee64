package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"rnix/internal/tui"
)

// attr is how a piece of text stands out, several at once.
type attr uint16

const (
	bold attr = 1 << iota
	dim
	italic
	struck
	inverse
	cyan
	green
	yellow
	red
)

// sgr are the parameters of the attributes, in their order.
var sgr = [...]string{"1", "2", "3", "9", "7", "36", "32", "33", "31"}

// colors are the attributes that are colours.
const colors = cyan | green | yellow | red

// paint returns clean text with attributes.
func paint(t *tui.Theme, a attr, text string) string {
	if !t.Color {
		a &^= colors
	}
	if a == 0 || text == "" || t.Bare {
		return text
	}
	var codes []string
	for i, code := range sgr {
		if a&(1<<i) != 0 {
			codes = append(codes, code)
		}
	}
	return "\x1b[" + strings.Join(codes, ";") + "m" + text + "\x1b[m"
}

// span is a piece of text with its attributes.
type span struct {
	text string
	a    attr
}

// inline reads the emphasis, code and links of a text.
func inline(text string, a attr) (out []span) {
	plain := 0
	put := func(to int) {
		if to > plain {
			out = append(out, span{text[plain:to], a})
		}
	}
	for i := 0; i < len(text); {
		c := text[i]
		switch c {
		case '\\':
			if i+1 < len(text) && strings.IndexByte("\\`*_{}[]()#+-.!~|<>", text[i+1]) >= 0 {
				put(i)
				plain, i = i+1, i+2
				continue
			}
		case '`':
			n := run(text[i:], '`')
			if end := closing(text[i+n:], strings.Repeat("`", n)); end >= 0 {
				put(i)
				out = append(out, span{text[i+n : i+n+end], a | cyan})
				i += n + end + n
				plain = i
				continue
			}
			i += n
			continue
		case '*', '_', '~':
			if n, inner, st := emphasis(text, i); n > 0 {
				put(i)
				out = append(out, inline(inner, a|st)...)
				i += n
				plain = i
				continue
			}
			i += run(text[i:], c)
			continue
		case '[':
			if n, label, url := link(text[i:]); n > 0 {
				put(i)
				out = append(out, inline(label, a)...)
				if url != label {
					out = append(out, span{" (" + url + ")", a | dim})
				}
				i += n
				plain = i
				continue
			}
		}
		i++
	}
	put(len(text))
	return out
}

// run returns how often c stands at the beginning of s.
func run(s string, c byte) int {
	n := 0
	for n < len(s) && s[n] == c {
		n++
	}
	return n
}

// maxSpan is how far the end of an emphasis may be away, in bytes.
const maxSpan = 2 << 10

// closing returns where a run of just these characters begins, or -1.
func closing(s, mark string) int {
	s = s[:min(len(s), maxSpan)]
	for from := 0; ; {
		i := strings.Index(s[from:], mark)
		if i < 0 {
			return -1
		}
		i += from
		n := run(s[i:], mark[0])
		if n == len(mark) {
			return i
		}
		from = i + n
	}
}

// emphasis reads what is emphasized at i, and returns how long it is with its marks; 0 = it is none.
func emphasis(text string, i int) (n int, inner string, st attr) {
	c := text[i]
	k := run(text[i:], c)
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	if k > 3 || c == '~' && k != 2 || c == '_' && (unicode.IsLetter(before) || unicode.IsDigit(before)) {
		return 0, "", 0
	}
	rest := text[i+k:]
	if rest == "" || rest[0] == ' ' || rest[0] == '\n' {
		return 0, "", 0
	}
	end := closing(rest, text[i:i+k])
	if end <= 0 || rest[end-1] == ' ' {
		return 0, "", 0
	}
	after, _ := utf8.DecodeRuneInString(rest[end+k:])
	if c == '_' && (unicode.IsLetter(after) || unicode.IsDigit(after)) {
		return 0, "", 0
	}
	switch {
	case c == '~':
		st = struck
	case k == 1:
		st = italic
	case k == 2:
		st = bold
	default:
		st = bold | italic
	}
	return k + end + k, rest[:end], st
}

// link reads [label](url).
func link(s string) (n int, label, url string) {
	s = s[:min(len(s), maxSpan)]
	end := strings.Index(s, "](")
	if end < 0 || strings.ContainsAny(s[1:end], "[\n") {
		return 0, "", ""
	}
	stop := strings.IndexByte(s[end:], ')')
	if stop < 0 || strings.ContainsAny(s[end+2:end+stop], " \n") {
		return 0, "", ""
	}
	return end + stop + 1, s[1:end], s[end+2 : end+stop]
}

// wrap returns spans in lines of at most w cells, broken at blanks. lead stands before the first line, hang before the others.
func wrap(t *tui.Theme, spans []span, lead, hang string, w int) (out []string) {
	var b strings.Builder
	width, blank := tui.Cells(t, lead), false
	b.WriteString(lead)
	empty := true // nothing but the lead
	room := func() int { return max(w, tui.Cells(t, hang)+8) }
	next := func() {
		out = append(out, strings.TrimRight(b.String(), " "))
		b.Reset()
		b.WriteString(hang)
		width, blank, empty = tui.Cells(t, hang), false, true
	}
	for _, s := range spans {
		for i, part := range strings.Split(s.text, "\n") {
			if i > 0 {
				next()
			}
			for j, word := range strings.Split(part, " ") {
				if j > 0 {
					blank = !empty
				}
				if word == "" {
					continue
				}
				n := tui.Cells(t, word)
				if !empty && blank && width+1+n > room() {
					next()
				}
				if blank {
					b.WriteByte(' ')
					width++
				}
				for blank = false; width+n > room(); n = tui.Cells(t, word) { // too long for any line
					if width >= room() && !empty {
						next()
						continue
					}
					piece := ansi.Truncate(word, max(room()-width, 1), "")
					if piece == "" {
						if !empty {
							next()
							continue
						}
						_, k := utf8.DecodeRuneInString(word)
						piece = word[:k]
					}
					b.WriteString(paint(t, s.a, piece))
					word, empty = word[len(piece):], false
					if word == "" {
						break
					}
					next()
				}
				if word != "" {
					b.WriteString(paint(t, s.a, word))
					width += tui.Cells(t, word)
					empty = false
				}
			}
		}
	}
	return append(out, strings.TrimRight(b.String(), " "))
}

// hardWrap returns spans in lines of at most w cells, broken anywhere.
func hardWrap(t *tui.Theme, spans []span, w int) []string {
	var out []string
	var b strings.Builder
	width := 0
	for _, s := range spans {
		for text := s.text; text != ""; {
			piece := beginning(t, text, w-width)
			if tui.Cells(t, piece) > w-width {
				if piece = ansi.Truncate(piece, w-width, ""); piece == "" {
					if width == 0 {
						_, k := utf8.DecodeRuneInString(text)
						piece = text[:k]
					} else {
						out = append(out, b.String())
						b.Reset()
						width = 0
						continue
					}
				}
			}
			b.WriteString(paint(t, s.a, piece))
			width += tui.Cells(t, piece)
			text = text[len(piece):]
		}
	}
	return append(out, b.String())
}

// beginning returns as much of a text as takes more than w cells, or all of it: a long one is not looked through for each of its lines.
func beginning(t *tui.Theme, text string, w int) string {
	for n := 8*max(w, 0) + 64; n < len(text); n *= 2 {
		head := strings.ToValidUTF8(text[:n], "") // without half a character
		if tui.Cells(t, head) > w {
			return head
		}
	}
	return text
}
