package step

import "strings"

// maxDepth is how deep raw values may be nested. encoding/json allows more.
const maxDepth = 100

// endOfValue returns where the JSON value ends that begins at t[i], or -1 if none does.
func endOfValue(t string, i, depth int) int {
	if i >= len(t) || depth == 0 {
		return -1
	}
	switch c := t[i]; c {
	case '"':
		return endOfString(t, i)
	case '{', '[':
		return endOfMembers(t, i+1, c+2, depth-1) // the closing bracket is two behind the opening one
	case 't':
		return endOfWord(t, i, "true")
	case 'f':
		return endOfWord(t, i, "false")
	case 'n':
		return endOfWord(t, i, "null")
	}
	return endOfNumber(t, i)
}

func endOfWord(t string, i int, word string) int {
	if !strings.HasPrefix(t[i:], word) {
		return -1
	}
	return i + len(word)
}

// endOfMembers returns where an object or an array ends, of which the first member is to be at t[i].
func endOfMembers(t string, i int, end byte, depth int) int {
	for first := true; ; first = false {
		i = behindSpace(t, i)
		if i < len(t) && t[i] == end && first {
			return i + 1
		}
		if end == '}' {
			if i = endOfString(t, i); i < 0 {
				return -1
			}
			if i = behindSpace(t, i); i >= len(t) || t[i] != ':' {
				return -1
			}
			i = behindSpace(t, i+1)
		}
		if i = endOfValue(t, i, depth); i < 0 {
			return -1
		}
		i = behindSpace(t, i)
		switch {
		case i >= len(t):
			return -1
		case t[i] == end:
			return i + 1
		case t[i] != ',':
			return -1
		}
		i++
	}
}

func behindSpace(t string, i int) int {
	for i < len(t) {
		switch t[i] {
		case ' ', '\t', '\r', '\n':
			i++
		default:
			return i
		}
	}
	return i
}

// endOfString is endOfValue for a string. Bytes that are no UTF-8 may stand in it.
func endOfString(t string, i int) int {
	if i >= len(t) || t[i] != '"' {
		return -1
	}
	for i++; ; {
		if i = plain(t, i); i >= len(t) {
			return -1
		}
		switch c := t[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c != '\\':
			i++
		case i+1 < len(t) && short[t[i+1]] != 0:
			i += 2
		default:
			_, n := hex4(t[i:])
			if n == 0 {
				return -1
			}
			i += n
		}
	}
}

// endOfNumber is endOfValue for a number.
func endOfNumber(t string, i int) int {
	digits := func() bool {
		was := i
		for i < len(t) && t[i] >= '0' && t[i] <= '9' {
			i++
		}
		return i > was
	}
	if i < len(t) && t[i] == '-' {
		i++
	}
	first := i
	ok := digits() && (i-first == 1 || t[first] != '0')
	if ok && i < len(t) && t[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(t) && t[i]|0x20 == 'e' {
		i++
		if i < len(t) && (t[i] == '+' || t[i] == '-') {
			i++
		}
		ok = digits()
	}
	if !ok {
		return -1
	}
	return i
}
