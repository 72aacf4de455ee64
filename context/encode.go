package context

import (
	"bytes"
	"encoding/json"
)

// chunkMax is the size at which a chunk stops growing, in bytes.
const chunkMax = 64 << 10

// chunkMin is the size of the first, in bytes: an intent of a line or two.
const chunkMin = 128

// encoding is a list of messages as JSON, separated by commas. Bytes once written never change, so a
// snapshot only has to remember how far it goes.
type encoding struct {
	chunks [][]byte
	any    bool
}

func (e *encoding) add(m *Message) error {
	var b bytes.Buffer
	if e.any {
		b.WriteByte(',')
	}
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return err
	}
	line := b.Bytes()
	e.write(line[:len(line)-1]) // without the newline of Encode
	e.any = true
	return nil
}

// write appends to the last chunk while it has room. Chunks double up to chunkMax, so that a short
// conversation stays small.
func (e *encoding) write(b []byte) {
	n := len(e.chunks)
	if n > 0 && cap(e.chunks[n-1])-len(e.chunks[n-1]) >= len(b) {
		e.chunks[n-1] = append(e.chunks[n-1], b...)
		return
	}
	size := chunkMin
	if n > 0 {
		size = min(2*cap(e.chunks[n-1]), chunkMax)
	}
	e.chunks = append(e.chunks, append(make([]byte, 0, max(size, len(b))), b...))
}

// mark remembers how far the encoding goes, for back.
func (e *encoding) mark() (m encodingMark) {
	if m.chunks, m.any = len(e.chunks), e.any; m.chunks > 0 {
		m.last = len(e.chunks[m.chunks-1])
	}
	return m
}

// back takes back what was added since m.
func (e *encoding) back(m encodingMark) {
	if e.chunks, e.any = e.chunks[:m.chunks], m.any; m.chunks > 0 {
		e.chunks[m.chunks-1] = e.chunks[m.chunks-1][:m.last]
	}
}

type encodingMark struct {
	chunks, last int
	any          bool
}

func (e *encoding) snapshot() [][]byte {
	out := make([][]byte, len(e.chunks))
	for i, c := range e.chunks {
		out[i] = c[:len(c):len(c)]
	}
	return out
}

func (e *encoding) len() int {
	n := 0
	for _, c := range e.chunks {
		n += len(c)
	}
	return n
}

// EstimateTokens guesses how many tokens a model counts for s: a quarter of the ASCII bytes, and one
// for every other character, so that text without spaces between words is not underrated. It is used
// where no provider has counted.
func EstimateTokens(s string) int {
	ascii, other := 0, 0
	for _, r := range s {
		if r < 0x80 {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+3)/4 + other
}

// tokens estimates one message, with a few for its frame.
func (m *Message) tokens() int {
	content, calls, reasoning := m.Parts()
	return content + calls + reasoning
}

// Parts estimates the tokens of one message: what is said and attached, with a few for its frame, the calls, and the
// provider's own blocks.
func (m *Message) Parts() (content, calls, reasoning int) {
	content = 4 + EstimateTokens(m.Content)
	for _, c := range m.ToolCalls {
		calls += 8 + EstimateTokens(c.Name) + EstimateTokens(string(c.Input))
	}
	for i := range m.Attachments {
		content += m.Attachments[i].tokens()
	}
	for _, b := range m.Reasoning {
		reasoning += len(b.Data) / 4
	}
	return content, calls, reasoning
}
