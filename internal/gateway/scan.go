package gateway

import (
	"encoding/json"
	"iter"
)

// field is where a value stands in a body.
type field struct{ from, to int }

// of returns the text of a value.
func (f field) of(b []byte) []byte { return b[f.from:f.to] }

// members yields the members of an object: their names, and where their values stand in b. b is valid JSON there; what is no object has none.
// Nothing is copied but names: a body may have 64 MiB.
func members(b []byte, at field) iter.Seq2[string, field] {
	return func(yield func(string, field) bool) {
		i := blank(b, at.from)
		if i >= at.to || b[i] != '{' {
			return
		}
		for i = blank(b, i+1); i < at.to && b[i] != '}'; i = blank(b, i) {
			if b[i] == ',' {
				i++
				continue
			}
			end := skip(b, i)
			var name string
			_ = json.Unmarshal(b[i:end], &name) // it is valid
			from := blank(b, blank(b, end)+1)
			i = skip(b, from)
			if !yield(name, field{from, i}) {
				return
			}
		}
	}
}

// elements yields where the elements of a list stand; what is no list has none. As members.
func elements(b []byte, at field) iter.Seq[field] {
	return func(yield func(field) bool) {
		i := blank(b, at.from)
		if i >= at.to || b[i] != '[' {
			return
		}
		for i = blank(b, i+1); i < at.to && b[i] != ']'; i = blank(b, i) {
			if b[i] == ',' {
				i++
				continue
			}
			from := i
			i = skip(b, from)
			if !yield(field{from, i}) {
				return
			}
		}
	}
}

// blank returns the first place from i on that is no blank.
func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skip returns the end of the value that begins at i, in valid JSON.
func skip(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			if i += 2 + literal(b[i+1:]); i > len(b) {
				i = len(b)
			}
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r': // between values
			i++
			continue
		default:
			for i++; i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' '; i++ {
			}
		}
		if depth == 0 {
			return i
		}
	}
	return len(b)
}
