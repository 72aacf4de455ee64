package redact

import (
	"bytes"
	"encoding/json"
)

// JSON is Bytes for a JSON document: it stays one, with the same spelling of everything that is no secret. What is in a string is
// found however it is escaped, in keys too; a number that is a secret becomes a string. What is no JSON is treated as text.
func (s *Set) JSON(b []byte) []byte {
	if s.Empty() {
		return b
	}
	f := s.found.Load()
	var out []byte // nil as long as nothing was replaced
	from := 0
	for i := 0; i < len(b); {
		end := i + 1
		switch c := b[i]; {
		case c == '"':
			end = stringEnd(b, i)
		case c == '-' || '0' <= c && c <= '9':
			for end < len(b) && (b[end] == '.' || b[end] == '+' || b[end] == '-' || b[end]|0x20 == 'e' || '0' <= b[end] && b[end] <= '9') {
				end++
			}
		default:
			i++
			continue
		}
		if end < 0 {
			return s.Bytes(b)
		}
		clean, changed, ok := s.token(f, b[i:end])
		if !ok {
			return s.Bytes(b)
		}
		if changed {
			out = append(append(out, b[from:i]...), clean...)
			from = end
		}
		i = end
	}
	if out == nil {
		if f.scan(string(b), true).next(0).at < 0 || json.Valid(b) {
			return b
		}
		return s.Bytes(b)
	}
	if out = append(out, b[from:]...); !json.Valid(out) {
		return s.Bytes(b) // it was none before
	}
	return out
}

// token returns a string or a number without secrets; ok is false for a string that is none.
func (s *Set) token(f *finder, t []byte) (clean []byte, changed, ok bool) {
	if t[0] != '"' || bytes.IndexByte(t, '\\') < 0 {
		if f.scan(string(t), true).next(0).at < 0 {
			return t, false, true
		}
	}
	text := string(t)
	if t[0] == '"' && json.Unmarshal(t, &text) != nil {
		return nil, false, false
	}
	without := s.String(text)
	if without == text {
		return t, false, true
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(without) // a string
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), true, true
}

// stringEnd returns the place behind the string that begins at i, or -1 if it does not end.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}
