package context

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// FullAt is the part of a model's window at which a conversation is compacted.
const FullAt = 0.80

// LeftOut returns how many bytes at the end of a message are the note of a compaction that has left messages out
// behind it; 0 = there is none.
func (m *Message) LeftOut() int {
	if m.Role != RoleUser || !strings.HasSuffix(m.Content, note) {
		return 0
	}
	return len(note)
}

// Compaction says what Compact did.
type Compaction struct {
	Before, After int // estimated tokens
	Dropped       int // messages left out
	Shortened     int // messages whose content was cut
	// Summary says that a model has summed up what was left out; else Failed is why none has, empty = none was asked.
	Summary bool
	Failed  string
}

// String describes the compaction in one line.
func (c Compaction) String() string {
	s := fmt.Sprintf("about %d to %d tokens: %d messages left out, %d shortened", c.Before, c.After, c.Dropped, c.Shortened)
	switch {
	case c.Summary:
		return fmt.Sprintf("about %d to %d tokens: %d messages summed up by the model, %d shortened", c.Before, c.After, c.Dropped, c.Shortened)
	case c.Failed != "":
		return s + "; without a summary: " + c.Failed
	}
	return s
}

// Compact returns a conversation of about target tokens or less that keeps the first user messages
// and as many of the last turns as fit. It works mechanically, needs no model, always returns a legal
// conversation if it was given one, and leaves ms alone.
//
// First what is attached to old messages gives way to a line that names it, and the contents of old tool answers are cut, oldest first; then whole turns in the middle are
// left out, with a note in their place. A turn is an assistant message with the answers to its calls.
// If even the last turn is too large its contents are cut as well; what an assistant decided, its calls,
// is never touched, so a target that they alone exceed is not reached.
func Compact(ms []Message, target int) ([]Message, Compaction) {
	size := total(ms)
	report := Compaction{Before: size}
	out := append([]Message(nil), ms...)
	cut := func(m *Message, limit int) {
		if len(m.Content) <= limit+40 {
			return
		}
		size -= m.tokens()
		m.Content = Elide(m.Content, limit)
		size += m.tokens()
		report.Shortened++
	}
	detach := func(m *Message) {
		if len(m.Attachments) > 0 {
			size -= m.tokens()
			*m = m.Showing(func(*Attachment) string { return leftOutWhy })
			size += m.tokens()
			report.Shortened++
		}
	}
	turns := split(out)
	for i := 0; i < len(turns)-2 && size > target; i++ { // the last two turns stay whole for now
		for j := turns[i].from; j < turns[i].to; j++ {
			detach(&out[j])
			if out[j].Role == RoleTool {
				cut(&out[j], shortAnswer)
			}
		}
	}
	if size > target && len(turns) > 1 {
		first, next := turns[0].from, turns[0].from // what is left out: messages [first, next)
		for _, t := range turns[:len(turns)-1] {
			if size <= target-noteTokens {
				break
			}
			size -= total(out[t.from:t.to])
			next = t.to
		}
		report.Dropped = next - first
		out = append(withNote(out[:first:first]), out[next:]...)
		size = total(out)
	}
	for j := 0; j < len(out) && size > target; j++ {
		detach(&out[j])
	}
	for limit := 4 * target; size > target && limit >= 64; limit /= 2 {
		for j := range out {
			cut(&out[j], limit)
		}
	}
	report.After = size
	return out, report
}

// leftOutWhy says why an attachment is not shown any more.
const leftOutWhy = "left out to fit the context window, read the file again if you need it"

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

// note stands where messages were left out. It is the same every time, so that notes do not pile up.
const note = "[Earlier messages were left out here to fit the context window. Their effects are real: read files again before you rely on what they said.]"

// withNote adds the note to the last user message of head, or as a message of its own. It may change
// the elements of head.
func withNote(head []Message) []Message {
	last := len(head) - 1
	if last < 0 || head[last].Role != RoleUser {
		return append(head, Message{Role: RoleUser, Content: note})
	}
	head[last].Content = strings.TrimSuffix(head[last].Content, "\n\n"+note) + "\n\n" + note
	return head
}

// Slack is how many bytes more than it should a text may have to stay as it is: a note of what was left out would take as many.
const Slack = 40

// Elide returns s cut to about max bytes: its head and its tail, on characters' edges, with a note of
// how much was left out between them. Nothing is left out that is not longer than the note.
func Elide(s string, max int) string {
	if len(s) <= max+Slack {
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
