package shell

import (
	"strings"
	"unicode/utf8"

	"rnix/vfs"
)

// pieces is a writer that hands on what is written to it as valid text: a character that comes in
// two writes is held back until it is whole. It is exclusive to whoever copies the output, and then to
// whoever has waited for that.
type pieces struct {
	notify func(vfs.StreamPart)
	rest   []byte // the beginning of a character
}

// Write hands on p. It never fails.
func (p *pieces) Write(b []byte) (int, error) {
	all := append(p.rest, b...)
	end := len(all)
	for i := 1; i <= len(all) && i < utf8.UTFMax; i++ {
		if tail := all[len(all)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				end -= i
			}
			break
		}
	}
	p.send(all[:end])
	p.rest = append([]byte(nil), all[end:]...)
	return len(b), nil
}

// flush hands on what was held back.
func (p *pieces) flush() {
	p.send(p.rest)
	p.rest = nil
}

func (p *pieces) send(b []byte) {
	if len(b) > 0 && p.notify != nil {
		text := strings.ToValidUTF8(string(b), "\uFFFD")
		p.notify(vfs.StreamPart{Kind: "output", Text: strings.ReplaceAll(text, "\x00", "\uFFFD")})
	}
}
