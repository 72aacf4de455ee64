package trace

import (
	"fmt"
	"strings"
	"unicode/utf8"

	rnixctx "rnix/context"
	"rnix/internal/step"
)

// remember keeps the conversation, for those who ask for content.
func (b *builder) remember(r *step.Record) {
	if !b.src.Content {
		return
	}
	switch {
	case r.Message != nil:
		b.said = append(b.said, r.Message)
	case r.Marker != nil:
		if ms, ok := step.Compacted(r.Marker); ok {
			b.said, b.prompt = nil, 0
			for i := range ms {
				b.said = append(b.said, &ms[i])
			}
		}
	}
}

// promptOf returns what a prompt of n messages has beyond the one before it.
func (b *builder) promptOf(n int) string {
	if !b.src.Content {
		return ""
	}
	n = min(max(n, 0), len(b.said))
	var t strings.Builder
	for _, m := range b.said[min(b.prompt, n):n] {
		if m.Role != rnixctx.RoleAssistant && t.Len() < maxContent {
			fmt.Fprintf(&t, "[%s]\n%s\n", m.Role, m.Content)
		}
	}
	b.prompt = n
	return b.content(t.String())
}

// What bounds the texts of a trace, in bytes.
const (
	maxContent  = 64 << 10 // one
	maxContents = 32 << 20 // all of them
)

// texts counts the texts of a trace. The zero value has none.
type texts struct {
	bytes    int
	withheld int // left out, since there was no room for them
}

// content is a text as a span has it, if there is room for it.
func (b *builder) content(s string) string {
	if !b.src.Content || s == "" {
		return ""
	}
	s = rnixctx.Elide(strings.ToValidUTF8(s, "\uFFFD"), maxContent)
	if b.texts.bytes+len(s) > maxContents {
		b.texts.withheld++
		return ""
	}
	b.texts.bytes += len(s)
	return s
}

// bounded is an error as a span keeps it.
func bounded(s string) string { return rnixctx.Elide(strings.ToValidUTF8(s, "\uFFFD"), 2000) }

// line returns the first line of s, at most limit characters of it.
func line(s string, limit int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD")), "\n")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}
