// Package redact takes known secrets out of what is written down. It knows values, the forms in which programs show
// them, and names to put in their place; it does not guess what could be a secret, and does not know where they come from.
//
// A value is found as it is, in base64 wherever it begins in what was encoded, in hexadecimal, and as URLs, JSON, Go and HTML
// write it; also where a line was broken in the middle, or where colours and whatever else no screen shows stand within. A value that was cut, compressed or encrypted is not found: so redact
// before cutting.
package redact

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Bounds of a value, in bytes. Shorter ones stand in too many texts that have nothing to do with them; longer ones are no
// keys.
const (
	MinLen = 8
	MaxLen = 64 << 10
)

// maxValues bounds how many values a set has, so that a program that makes up variables cannot fill the memory.
const maxValues = 4096

// Set is a set of secrets. The zero value and nil are empty; without any, nothing is copied or looked at. Safe for
// concurrent use.
type Set struct {
	mu sync.Mutex // held while values are added
	// +checklocks:mu
	names map[string]string      // by value
	found atomic.Pointer[finder] // nil = the set is empty
}

// Secret is a value under a name.
type Secret struct{ Name, Value string }

// Add adds secrets. Values that are too short, too long or there already are left out, as are those beyond the 4096th; added
// says how many were not. In a nil Set nothing is kept.
func (s *Set) Add(secrets ...Secret) (added int) {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range secrets {
		value := strings.Trim(x.Value, " \t\r\n")
		if _, known := s.names[value]; known || len(value) < MinLen || len(value) > MaxLen || len(s.names) >= maxValues {
			continue
		}
		if s.names == nil {
			s.names = map[string]string{}
		}
		s.names[value] = label(x.Name)
		added++
	}
	if added > 0 {
		s.found.Store(newFinder(s.names))
	}
	return added
}

// Remove takes values out again that are worth nothing any more.
func (s *Set) Remove(values ...string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		delete(s.names, v)
	}
	if len(s.names) == 0 {
		s.found.Store(nil)
		return
	}
	s.found.Store(newFinder(s.names))
}

// Empty reports whether nothing would be replaced.
func (s *Set) Empty() bool { return s == nil || s.found.Load() == nil }

// Names returns the names of all secrets, sorted.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Compact(slices.Sorted(maps.Values(s.names)))
}

// String returns text with "[secret NAME]" in the place of each secret. If there is none, it is text itself.
func (s *Set) String(text string) string {
	if s.Empty() {
		return text
	}
	scan := s.found.Load().scan(text, true)
	h := scan.next(0)
	if h.at < 0 {
		return text
	}
	var b strings.Builder
	from := 0
	for ; h.at >= 0; h = scan.next(from) {
		b.WriteString(text[from:h.at])
		b.WriteString(h.name)
		from = h.to
	}
	b.WriteString(text[from:])
	return b.String()
}

// Bytes is String for bytes. It does not change b, and returns b itself if there is nothing to replace.
func (s *Set) Bytes(b []byte) []byte {
	if s.Empty() {
		return b
	}
	text := string(b)
	if clean := s.String(text); clean != text {
		return []byte(clean)
	}
	return b
}

// MarkIn returns the first mark of a secret of s that stands in a text where the secret would; "" if there is none.
func (s *Set) MarkIn(text []byte) string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first, at := "", len(text)
	for _, mark := range s.names {
		if i := bytes.Index(text, []byte(mark)); i >= 0 && i < at {
			first, at = mark, i
		}
	}
	return first
}

// Strings replaces the secrets in each of texts, in place.
func (s *Set) Strings(texts ...*string) {
	if s.Empty() {
		return
	}
	for _, t := range texts {
		*t = s.String(*t)
	}
}

// label returns what stands in the place of a secret of a name.
func label(name string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune("\"'\\<>&[]", r) {
			return '_'
		}
		return r
	}, name)
	return "[secret " + cmp.Or(name[:min(len(name), 64)], "value") + "]"
}
