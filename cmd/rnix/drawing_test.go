package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// drawing renders a captured screen, with its SGR sequences, as SVG.
func drawing(captured string) string {
	const cw, ch = 8.4, 17.0 // of a cell, in pixels
	lines := strings.Split(strings.TrimRight(captured, "\n"), "\n")
	cols := 0
	var body strings.Builder
	var pen pen
	for y, l := range lines {
		x := 0
		for l != "" {
			if rest, ok := strings.CutPrefix(l, "\x1b["); ok {
				end := strings.IndexByte(rest, 'm')
				if end < 0 {
					break
				}
				pen.set(rest[:end])
				l = rest[end+1:]
				continue
			}
			n := strings.IndexByte(l, 0x1b)
			if n < 0 {
				n = len(l)
			}
			text := l[:n]
			w := utf8.RuneCountInString(text)
			pen.write(&body, text, float64(x)*cw+12, float64(y)*ch+12, float64(w)*cw, ch)
			x, l = x+w, l[n:]
		}
		cols = max(cols, x)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="monospace" font-size="14">
<rect width="100%%" height="100%%" rx="6" fill="#1b1f24"/>
%s</svg>
`, float64(cols)*cw+24, float64(len(lines))*ch+24, body.String())
}

// pen is how text is written.
type pen struct {
	bold, dim, turned bool
	color             string
}

func (p *pen) set(params string) {
	for s := range strings.SplitSeq(params, ";") {
		switch n, _ := strconv.Atoi(s); n {
		case 0:
			*p = pen{}
		case 1:
			p.bold = true
		case 2:
			p.dim = true
		case 7:
			p.turned = true
		case 31, 32, 33, 36:
			p.color = map[int]string{31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 36: "#76e3ea"}[n]
		case 39:
			p.color = ""
		}
	}
}

func (p *pen) write(b *strings.Builder, text string, x, y, w, h float64) {
	fill, style := "#d7dde3", ""
	if p.color != "" {
		fill = p.color
	}
	if p.dim {
		style = ` opacity="0.6"`
	}
	if p.bold {
		style += ` font-weight="bold"`
	}
	if p.turned {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, w, h, fill)
		fill = "#1b1f24"
	}
	if strings.TrimSpace(text) != "" {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" xml:space="preserve" fill="%s"%s>%s</text>`+"\n", x, y+h-4, w, fill, style, html.EscapeString(text))
	}
}

func TestADrawingShowsWhatWasCaptured(t *testing.T) {
	got := drawing("\x1b[1ma<b\x1b[0m \x1b[7;32mon\x1b[0m\n")
	for _, want := range []string{`font-weight="bold">a&lt;b<`, `fill="#7ee787"`, `fill="#1b1f24">on<`} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
}
