package debug

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxSequence is the longest control string that is removed with its contents, in bytes. What is
// longer, or does not end, loses only its introducer, so that nothing long is hidden by it.
const maxSequence = 4096

// Sanitize returns s without anything that a terminal would obey: control characters except newline
// and tab, escape sequences (CSI, OSC, DCS, APC, PM, SOS, in both forms), and bytes that are no
// UTF-8, which become U+FFFD. Characters that change the order of text or are invisible tags are
// shown as <U+202E>, so that what is read is what is there. Clean text is returned as it is.
func Sanitize(s string) string {
	start := firstUnclean(s)
	if start == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:start])
	for i := start; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteRune(utf8.RuneError)
		case r == 0x1b:
			n += escape(s[i+n:])
		case r >= 0x80 && r < 0xa0:
			n += sequence(r-0x40, s[i+n:])
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
		case deceptive(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// firstUnclean returns the offset of the first byte that Sanitize has to look at.
func firstUnclean(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if (c < ' ' && c != '\n' && c != '\t') || c == 0x7f {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || r < 0xa0 || deceptive(r) {
			return i
		}
		i += n
	}
	return len(s)
}

// deceptive reports whether r changes the direction of text or is a tag that nobody sees.
func deceptive(r rune) bool {
	switch {
	case r == 0x061c, r == 0x200e, r == 0x200f:
	case r >= 0x202a && r <= 0x202e:
	case r >= 0x2066 && r <= 0x2069:
	case r >= 0xe0000 && r <= 0xe007f:
	default:
		return false
	}
	return true
}

// escape returns how many bytes behind an ESC belong to its sequence.
func escape(s string) int {
	if s == "" {
		return 0
	}
	c := s[0]
	switch {
	case strings.IndexByte("[]PX^_", c) >= 0:
		return 1 + sequence(rune(c), s[1:])
	case c >= 0x20 && c <= 0x2f: // intermediate bytes, then a final one
		for i := 0; i < len(s) && i < 16; i++ {
			if s[i] >= 0x30 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x2f {
				return i
			}
		}
		return 1
	case c >= 0x30 && c <= 0x7e:
		return 1
	}
	return 0
}

// sequence returns how many bytes of s belong to the control sequence that introducer has begun, or
// 0 if it is none.
func sequence(introducer rune, s string) int {
	switch introducer {
	case '[': // CSI: parameters, intermediates, one final byte
		for i := 0; i < len(s) && i < maxSequence; i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x3f {
				return i
			}
		}
	case ']', 'P', 'X', '^', '_': // OSC, DCS, SOS, PM, APC: a string up to ST; OSC also up to BEL
		for i := 0; i < len(s) && i < maxSequence; i++ {
			switch {
			case s[i] == 0x07 && introducer == ']':
				return i + 1
			case s[i] == 0x1b && strings.HasPrefix(s[i+1:], `\`):
				return i + 2
			case strings.HasPrefix(s[i:], "\u009c"):
				return i + 2
			case s[i] == 0x1b || s[i] == 0x18 || s[i] == 0x1a: // aborted: it has no end
				return 0
			}
		}
	}
	return 0
}

// Cut returns s in at most limit bytes: of a longer text the beginning and the end, and between them
// how many bytes are missing. It cuts between characters. A limit under 32 counts as 32.
func Cut(s string, limit int) string {
	limit = max(limit, 32)
	if len(s) <= limit {
		return s
	}
	room := limit - len(fmt.Sprintf("…(%d bytes)…", len(s)))
	head, tail := room-room/3, len(s)-room/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s…(%d bytes)…%s", s[:head], tail-head, s[tail:])
}
