package debug

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"rnix/internal/hidden"
)

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
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < ' ' || r >= 0x7f && r < 0xa0:
			n, _ = hidden.Len(s[i:])
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
