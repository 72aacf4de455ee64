package step

import (
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// lexer reads JSON as this program writes it: without spaces outside of raw values, keys in the order of
// the struct, each at most once, null only as a raw value. What it reads is what encoding/json reads of
// the same text. Anything else is refused: bad is set, every later call returns the zero value, and the
// text is to be given to encoding/json. Strings share the memory of the text.
type lexer struct {
	text string
	at   int
	bad  bool
	buf  []byte // for strings with escapes

	minute string    // the last time up to its minute, as it stands in a text
	began  time.Time // of that minute
}

func (s *lexer) refuse() { s.bad, s.at = true, len(s.text) }

// done reports whether all of the text was read.
func (s *lexer) done() bool { return !s.bad && s.at == len(s.text) }

// skip passes over a literal text, if it is next.
func (s *lexer) skip(lit string) bool {
	if strings.HasPrefix(s.text[s.at:], lit) {
		s.at += len(lit)
		return true
	}
	return false
}

// next is skip for one byte.
func (s *lexer) next(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// need is next for what has to be there.
func (s *lexer) need(c byte) {
	if !s.next(c) {
		s.refuse()
	}
}

// must is skip for what has to be next.
func (s *lexer) must(lit string) {
	if !s.skip(lit) {
		s.refuse()
	}
}

// fields are the members of an object, in their order.
type fields struct {
	s     *lexer
	first bool
}

// object begins an object. end must follow.
func (s *lexer) object() fields {
	s.need('{')
	return fields{s, true}
}

// has reports whether the next member has a key, and passes over the key.
func (f *fields) has(key string) bool {
	s, at := f.s, f.s.at
	if !f.first {
		if at >= len(s.text) || s.text[at] != ',' {
			return false
		}
		at++
	}
	rest := s.text[at:]
	if len(rest) < len(key)+3 || rest[1] != key[0] || rest[0] != '"' || rest[1+len(key)] != '"' || rest[2+len(key)] != ':' || rest[1:1+len(key)] != key {
		return false
	}
	s.at, f.first = at+len(key)+3, false
	return true
}

// end ends the object: it has no other members.
func (f *fields) end() { f.s.need('}') }

// list reads an array, element by element.
func (s *lexer) list(element func()) {
	s.need('[')
	if s.next(']') {
		return
	}
	for !s.bad {
		element()
		if !s.next(',') {
			s.need(']')
			return
		}
	}
}

// The bytes of a word that a string may hold as they are have none of these properties.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain returns how many bytes of t, from i on, are ASCII and neither control characters, quotes nor
// backslashes. It goes eight at a time and so may stop early, but never late.
func plain(t string, i int) int {
	for i+8 <= len(t) {
		w := uint64(t[i]) | uint64(t[i+1])<<8 | uint64(t[i+2])<<16 | uint64(t[i+3])<<24 |
			uint64(t[i+4])<<32 | uint64(t[i+5])<<40 | uint64(t[i+6])<<48 | uint64(t[i+7])<<56
		quote, slash := w^ones*'"', w^ones*'\\'
		odd := (w | (w - ones*' ') | (quote - ones) | (slash - ones)) & highs
		if odd != 0 {
			return i + bits.TrailingZeros64(odd)/8
		}
		i += 8
	}
	return i
}

// string reads a string.
func (s *lexer) string() string {
	t, start := s.text, s.at+1
	if s.at >= len(t) || t[s.at] != '"' {
		s.refuse()
		return ""
	}
	ascii := true
	for i := start; ; i++ {
		i = plain(t, i)
		if i >= len(t) {
			break
		}
		switch c := t[i]; {
		case c == '"':
			s.at = i + 1
			if !ascii && !utf8.ValidString(t[start:i]) {
				s.refuse()
				return ""
			}
			return t[start:i]
		case c == '\\':
			return s.escaped(start, i)
		case c < ' ':
			s.refuse()
			return ""
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	s.refuse()
	return ""
}

// escaped is string for one that begins at start and has its first backslash at i.
func (s *lexer) escaped(start, i int) string {
	t := s.text
	b := append(s.buf[:0], t[start:i]...)
	for i < len(t) {
		j := plain(t, i)
		b, i = append(b, t[i:j]...), j
		if i >= len(t) {
			break
		}
		switch c := t[i]; {
		case c == '"':
			s.buf, s.at = b, i+1
			if !utf8.Valid(b) {
				s.refuse()
				return ""
			}
			return string(b)
		case c < ' ':
			s.refuse()
			return ""
		case c != '\\':
			b = append(b, c)
			i++
		case i+1 < len(t) && short[t[i+1]] != 0:
			b = append(b, short[t[i+1]])
			i += 2
		default:
			r, n := unescape(t[i:])
			if n == 0 {
				s.refuse()
				return ""
			}
			b, i = utf8.AppendRune(b, r), i+n
		}
	}
	s.refuse()
	return ""
}

// short has what a byte stands for behind a backslash; 0 = nothing.
var short = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape reads \uXXXX, or a pair of them that is one character. n is 0 if it is none.
func unescape(t string) (r rune, n int) {
	if r, n = hex4(t); n > 0 && utf16.IsSurrogate(r) {
		low, m := hex4(t[n:])
		if r = utf16.DecodeRune(r, low); m == 0 || r == utf8.RuneError {
			return 0, 0
		}
		n += m
	}
	return r, n
}

// hex4 reads \uXXXX.
func hex4(t string) (rune, int) {
	if len(t) < 6 || t[0] != '\\' || t[1] != 'u' {
		return 0, 0
	}
	var r rune
	for _, c := range []byte(t[2:6]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, 0
		}
		r = r<<4 | rune(c)
	}
	return r, 6
}

// int reads an integer of at most 18 digits.
func (s *lexer) int() int64 {
	t, i, minus := s.text, s.at, false
	if i < len(t) && t[i] == '-' {
		minus = true
		i++
	}
	start, n := i, int64(0)
	for ; i < len(t) && i-start < 19 && t[i] >= '0' && t[i] <= '9'; i++ {
		n = n*10 + int64(t[i]-'0')
	}
	if d := i - start; d == 0 || d > 18 || d > 1 && t[start] == '0' || i < len(t) && strings.IndexByte(".eE", t[i]) >= 0 {
		s.refuse()
		return 0
	}
	if s.at = i; minus {
		return -n
	}
	return n
}

// count is int for what is an int in memory.
func (s *lexer) count() int {
	n := s.int()
	if int64(int(n)) != n {
		s.refuse()
		return 0
	}
	return int(n)
}

// uint is int for what is never negative.
func (s *lexer) uint() uint64 {
	if s.at < len(s.text) && s.text[s.at] == '-' {
		s.refuse()
	}
	return uint64(s.int())
}

func (s *lexer) float() float64 {
	end := endOfNumber(s.text, s.at)
	if end < 0 {
		s.refuse()
		return 0
	}
	f, err := strconv.ParseFloat(s.text[s.at:end], 64)
	if err != nil {
		s.refuse()
		return 0
	}
	s.at = end
	return f
}

func (s *lexer) bool() bool {
	if s.skip("true") {
		return true
	}
	s.must("false")
	return false
}

// time reads a time. encoding/json gives the type the text between the quotes as it stands.
func (s *lexer) time() (t time.Time) {
	start := s.at + 1
	text := s.string()
	if s.bad || len(text) != s.at-1-start || len(text) > 64 {
		s.refuse()
		return t
	}
	const minute = len("2006-01-02T15:04:")
	if len(text) > minute && text[:minute] == s.minute {
		if d, ok := seconds(text[minute:]); ok {
			return s.began.Add(d)
		}
	}
	if t.UnmarshalText([]byte(text)) != nil {
		s.refuse()
		return time.Time{}
	}
	if d, ok := time.Duration(0), false; len(text) > minute {
		if d, ok = seconds(text[minute:]); ok {
			s.minute, s.began = text[:minute], t.Add(-d)
		}
	}
	return t
}

// seconds reads what stands behind the minute of a time in UTC, such as 05.25Z.
func seconds(t string) (time.Duration, bool) {
	n := len(t) - 1
	if n < 2 || t[n] != 'Z' || n > 2 && t[2] != '.' || n == 3 || n > 12 {
		return 0, false
	}
	var d time.Duration
	for i := range 12 {
		c := byte('0')
		if i < n {
			c = t[i]
		}
		if i == 2 {
			continue
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		d = d*10 + time.Duration(c-'0')
	}
	return d, d < time.Minute
}

// raw reads any value as it stands.
func (s *lexer) raw() json.RawMessage {
	end := endOfValue(s.text, s.at, maxDepth)
	if end < 0 {
		s.refuse()
		return nil
	}
	b := json.RawMessage(s.text[s.at:end])
	s.at = end
	return b
}

// into reads any value but null into what v points to, with encoding/json.
func (s *lexer) into(v any) {
	if b := s.raw(); b != nil && (b[0] == 'n' || json.Unmarshal(b, v) != nil) {
		s.refuse()
	}
}
