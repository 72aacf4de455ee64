package context

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Compaction says what Compact did.
type Compaction struct {
	Before, After int // estimated tokens
	Dropped       int // messages left out
	Shortened     int // messages whose content was cut
}

// String describes the compaction in one line.
func (c Compaction) String() string {
	return fmt.Sprintf("about %d to %d tokens: %d messages left out, %d shortened", c.Before, c.After, c.Dropped, c.Shortened)
}

// Compact returns a conversation of about target tokens or less that keeps the first user message
// and as many of the last turns as fit. It works mechanically, needs no model, always returns a legal
// conversation if it was given one, and leaves ms alone.
//
// First the contents of old tool answers are cut, oldest first; then whole turns in the middle are
// left out, with a note in their place. A turn is an assistant message with the answers to its calls.
// If even the last turn is too large its contents are cut as well.
func Compact(ms []Message, target int) ([]Message, Compaction) {
	report := Compaction{Before: total(ms)}
	out := append([]Message(nil), ms...)
	turns := split(out)
	for i := 0; i < len(turns)-2 && total(out) > target; i++ { // the last two turns stay whole for now
		for j := turns[i].from; j < turns[i].to; j++ {
			if shorten(&out[j], shortAnswer) {
				report.Shortened++
			}
		}
	}
	if total(out) > target && len(turns) > 1 {
		first := turns[0].from
		cut := turns[0].to
		size := total(out)
		n := 0
		for n < len(turns)-1 && size > target-noteTokens {
			size -= total(out[turns[n].from:turns[n].to])
			cut = turns[n].to
			n++
		}
		report.Dropped = cut - first
		kept := append([]Message(nil), out[:first]...)
		out = append(withNote(kept, report.Dropped), out[cut:]...)
	}
	for limit := 4 * target; total(out) > target && limit >= 64; limit /= 2 {
		for j := range out {
			if shorten(&out[j], limit) {
				report.Shortened++
			}
		}
	}
	report.After = total(out)
	return out, report
}

const (
	shortAnswer = 400 // bytes that stay of an old tool answer
	noteTokens  = 60  // room for the note
)

// span is a turn: messages [from, to).
type span struct{ from, to int }

// split finds the turns behind the leading user messages. Each begins at a message that is no tool
// answer, so that cutting between turns keeps the order legal.
func split(ms []Message) []span {
	i := 0
	for i < len(ms) && ms[i].Role == RoleUser {
		i++
	}
	var out []span
	for i < len(ms) {
		j := i + 1
		for j < len(ms) && ms[j].Role == RoleTool {
			j++
		}
		out = append(out, span{i, j})
		i = j
	}
	return out
}

// withNote adds the note to the last user message of head, or as a message of its own.
func withNote(head []Message, dropped int) []Message {
	note := fmt.Sprintf("[%d earlier messages were left out here to fit the context window. Their effects are real: read files again before you rely on what they said.]", dropped)
	if n := len(head); n > 0 && head[n-1].Role == RoleUser {
		head[n-1].Content = stripNote(head[n-1].Content) + "\n\n" + note
		return head
	}
	return append(head, Message{Role: RoleUser, Content: note})
}

// stripNote removes the note of an earlier compaction, so that notes do not pile up.
func stripNote(s string) string {
	if i := strings.LastIndex(s, "\n\n["); i >= 0 && strings.Contains(s[i:], "earlier messages were left out here") {
		return s[:i]
	}
	return s
}

// shorten cuts the content of a tool answer, or of anything with a limit of its own, to head and
// tail. It reports whether it did. What an assistant decided (its calls) is never touched.
func shorten(m *Message, limit int) bool {
	if len(m.Content) <= limit+40 {
		return false
	}
	if m.Role != RoleTool && limit == shortAnswer {
		return false
	}
	m.Content = Elide(m.Content, limit)
	return true
}

// Elide returns s cut to about max bytes: its head and its tail, on characters' edges, with a note of
// how much was left out between them.
func Elide(s string, max int) string {
	if len(s) <= max {
		return s
	}
	head, tail := max*2/3, max/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	start := len(s) - tail
	for start < len(s) && !utf8.RuneStart(s[start]) {
		start++
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", s[:head], start-head, s[start:])
}

func total(ms []Message) int {
	n := 0
	for i := range ms {
		n += ms[i].tokens()
	}
	return n
}
