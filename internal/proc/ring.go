package proc

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// RingSize is how much a ring keeps by default, in bytes: enough of a standard error to see what was
// wrong.
const RingSize = 64 << 10

// Ring is a writer that keeps the last bytes written to it. Safe for concurrent use.
type Ring struct {
	size int

	mu sync.Mutex
	// +checklocks:mu
	buf []byte // grows up to size, then wraps around
	// +checklocks:mu
	next  int   // where the oldest byte is, once buf is full
	total int64 // +checklocks:mu
}

// NewRing returns a ring of size bytes; RingSize for 0 or less.
func NewRing(size int) *Ring {
	if size <= 0 {
		size = RingSize
	}
	return &Ring{size: size}
}

// Write keeps p, or as much of its end as there is room for. It never fails.
func (r *Ring) Write(p []byte) (int, error) {
	n := len(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total += int64(n)
	p = p[max(0, n-r.size):]
	grow := min(r.size-len(r.buf), len(p))
	r.buf = append(r.buf, p[:grow]...)
	for p = p[grow:]; len(p) > 0; {
		k := copy(r.buf[r.next:], p)
		r.next = (r.next + k) % r.size
		p = p[k:]
	}
	return n, nil
}

// Bytes returns a copy of what is kept, oldest first.
func (r *Ring) Bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append(append(make([]byte, 0, len(r.buf)), r.buf[r.next:]...), r.buf[:r.next]...)
}

// Total returns how many bytes were written.
func (r *Ring) Total() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// String returns what is kept as valid text; a character that was cut in two at its beginning is left
// out.
func (r *Ring) String() string {
	b := r.Bytes()
	if r.Total() > int64(len(b)) {
		b = cutStart(b)
	}
	return validText(b)
}

// cutStart cuts what is left of a character in the middle of which b begins.
func cutStart(b []byte) []byte {
	for i := 0; i < len(b) && i < utf8.UTFMax-1; i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b[min(len(b), utf8.UTFMax-1):]
}

// cutEnd cuts the beginning of a character in the middle of which b ends.
func cutEnd(b []byte) []byte {
	for i := 1; i <= len(b) && i < utf8.UTFMax; i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// validText returns b as text that any reader takes: valid UTF-8, without NUL.
func validText(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}
