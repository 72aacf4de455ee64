// Package hidden knows what of a text no screen shows: control characters, escape sequences and characters without width. What
// takes that away from a text before a person sees it, and what looks for secrets in a text, must agree on it: else a secret with
// colours inside would pass the one and be put together by the other.
package hidden

import (
	"strings"
	"unicode/utf8"
)

// MaxSequence is the longest control string that is hidden with its contents, in bytes. What is longer, or does not end, loses
// only its introducer, so that nothing long is hidden by it.
const MaxSequence = 4096

// Len returns how many bytes at the start of s are not shown: a control character but newline and tab, an escape sequence (CSI,
// OSC, DCS, APC, PM, SOS, in both forms), or a character without width. 0 means that what stands there is shown. open reports
// that s ends before it is known how long the sequence is; n is what it is if nothing follows.
func Len(s string) (n int, open bool) {
	if s == "" {
		return 0, false
	}
	c := s[0]
	switch {
	case c >= ' ' && c < 0x7f || c == '\n' || c == '\t':
		return 0, false
	case c == 0x1b:
		n, open = escape(s[1:])
		return n + 1, open
	case c < utf8.RuneSelf:
		return 1, false
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size == 1:
		return 0, !utf8.FullRuneInString(s)
	case r < 0xa0:
		n, open = sequence(r-0x40, s[size:])
		return n + size, open
	case Widthless(r), joining(r):
		return size, false
	}
	return 0, false
}

// joining reports whether r joins, turns or varies what stands around it, or is a tag, and is not seen itself. A screen needs it
// for some scripts and pictures; who looks for a word in a text does not.
func joining(r rune) bool {
	switch {
	case r >= 0x200c && r <= 0x200f, r == 0x061c, r >= 0x202a && r <= 0x202e, r >= 0x180b && r <= 0x180f, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}

// Widthless reports whether r takes no cell and says nothing to who reads.
func Widthless(r rune) bool {
	switch {
	case r == 0xad, r == 0x34f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x180e, r == 0x200b, r == 0x3164, r == 0xfeff, r == 0xffa0:
	case r >= 0x2060 && r <= 0x206f, r >= 0xfe00 && r <= 0xfe0f, r >= 0xfff0 && r <= 0xfffb, r >= 0x1bca0 && r <= 0x1bca3, r >= 0x1d173 && r <= 0x1d17a:
	default:
		return false
	}
	return true
}

// Strip returns s without what is not shown.
func Strip(s string) string {
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); {
		n, _ := Len(s[i:])
		if n == 0 {
			_, n = utf8.DecodeRuneInString(s[i:])
			i += n
			continue
		}
		b.WriteString(s[from:i])
		i += n
		from = i
	}
	if from == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// escape returns how many bytes behind an ESC belong to its sequence.
func escape(s string) (n int, open bool) {
	if s == "" {
		return 0, true
	}
	c := s[0]
	switch {
	case strings.IndexByte("[]PX^_", c) >= 0:
		n, open = sequence(rune(c), s[1:])
		return 1 + n, open
	case c >= 0x20 && c <= 0x2f: // intermediate bytes, then a final one
		for i := 0; i < len(s) && i < 16; i++ {
			if s[i] >= 0x30 && s[i] <= 0x7e {
				return i + 1, false
			}
			if s[i] < 0x20 || s[i] > 0x2f {
				return i, false
			}
		}
		return 1, len(s) < 16
	case c >= 0x30 && c <= 0x7e:
		return 1, false
	}
	return 0, false
}

// sequence returns how many bytes of s belong to the control sequence that introducer has begun, or 0 if it is none.
func sequence(introducer rune, s string) (n int, open bool) {
	switch introducer {
	case '[': // CSI: parameters, intermediates, one final byte
		for i := 0; i < len(s) && i < MaxSequence; i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1, false
			}
			if s[i] < 0x20 || s[i] > 0x3f {
				return i, false
			}
		}
	case ']', 'P', 'X', '^', '_': // OSC, DCS, SOS, PM, APC: a string up to ST; OSC also up to BEL
		for i := 0; i < len(s) && i < MaxSequence; i++ {
			switch {
			case s[i] == 0x07 && introducer == ']':
				return i + 1, false
			case s[i] == 0x1b && i+1 == len(s):
				return 0, true
			case s[i] == 0x1b && s[i+1] == '\\':
				return i + 2, false
			case strings.HasPrefix(s[i:], "\u009c"):
				return i + 2, false
			case s[i] == 0xc2 && i+1 == len(s):
				return 0, true
			case s[i] == 0x1b || s[i] == 0x18 || s[i] == 0x1a || s[i] == 0xc2 && s[i+1] < 0xa0: // aborted, or another begins: it has no end
				return 0, false
			}
		}
	default:
		return 0, false
	}
	return 0, len(s) < MaxSequence
}
