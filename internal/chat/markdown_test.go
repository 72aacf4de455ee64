package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rnix/internal/soak"
	"rnix/internal/tui"
)

const sample = "# Head\n\nA *few* **bold** words and `code`,\non two lines.\n\n- one\n- two\n  more of it\n1. first\n\n> said\n> so\n\n```go\nfunc main() { // x\n\treturn \"a\"\n}\n```\n\n| a | b |\n|---|--:|\n| 1 | `2` |\n\n---\n\n[here](https://x.example/y) and snake_case_word and 2 * 3 * 4.\n"

// drawn is Markdown as it is drawn, in pieces of n bytes.
func drawn(t *tui.Theme, w int, text string, n int) string {
	m := markdown{t: t, w: w}
	var out []string
	for len(text) > 0 {
		k := min(n, len(text))
		out = append(out, m.write(text[:k])...)
		_ = m.open() // changes nothing
		text = text[k:]
	}
	return strings.Join(append(out, m.end()...), "\n")
}

func TestMarkdownIsDrawnForATerminal(t *testing.T) {
	want := strings.Join([]string{"Head", "", "A few bold words and code,", "on two lines.", "", "• one", "• two more of it", "1. first", "", "│ said so", "",
		"  func main() { // x", "      return \"a\"", "  }", "", "a  b", "────", "1  2", "", "──────────────────────────", "",
		"here (https://x.example/y)", "and snake_case_word and 2", "* 3 * 4."}, "\n")
	bare := &tui.Theme{Bare: true}
	if got := drawn(bare, 26, sample, 1000); got != want {
		t.Errorf("drawn:\n%s\nwant:\n%s", got, want)
	}
	color := drawn(&tui.Theme{Color: true}, 26, sample, 1000)
	for _, piece := range []string{"\x1b[1mbold\x1b[m", "\x1b[3mfew\x1b[m", "\x1b[36mcode\x1b[m", "\x1b[36mfunc\x1b[m", "\x1b[2m// x\x1b[m", "\x1b[32m\"a\"\x1b[m"} {
		if !strings.Contains(color, piece) {
			t.Errorf("%q is missing in %q", piece, color)
		}
	}
	if strings.Contains(drawn(&tui.Theme{}, 26, sample, 1000), "\x1b[36m") {
		t.Error("a colour without colours")
	}
}

// However it comes in pieces, it is drawn the same, no line is too wide, and nothing in it is obeyed.
func TestMarkdownInPiecesIsTheSame(t *testing.T) {
	pieces := []string{"# ", "* ", "**", "_", "`", "```", "```go\n", "~~~", "\n", "\n\n", "> ", "- ", "12. ", "| a | b |\n", "|---|---|\n", "word ", "long", "\x1b[31m", "\u202e", "世界", "e\u0301", "[a](b)", "\t", "  ", "\\", "\"", "/*", "*/", "\r\n", "\x00"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(t, "text"), "")
		w := rapid.IntRange(20, 60).Draw(t, "width")
		bare := &tui.Theme{Bare: true}
		whole := drawn(bare, w, text, len(text)+1)
		if got := drawn(bare, w, text, rapid.IntRange(1, 9).Draw(t, "bytes")); got != whole {
			t.Fatalf("in pieces:\n%q\nat once:\n%q", got, whole)
		}
		for line := range strings.SplitSeq(whole, "\n") {
			if n := tui.Cells(bare, line); n > w+24 { // the lead of a deep list may take room
				t.Fatalf("a line of %d cells: %q", n, line)
			}
			if strings.ContainsAny(line, "\x1b\x00\r\t") || strings.Contains(line, "\u202e") {
				t.Fatalf("something is obeyed: %q", line)
			}
		}
	})
}

// What is held back of an answer is bounded, however long its lines, paragraphs and tables are.
func TestMarkdownHoldsLittleBack(t *testing.T) {
	bare := &tui.Theme{Bare: true}
	size := soak.Pick(t, "KiB of Markdown of each kind", 128, 1024) << 10
	for _, text := range []string{strings.Repeat("x", size), strings.Repeat("word ", size/4), strings.Repeat("line\n", size/4), strings.Repeat("| a |\n", size/16), "```\n" + strings.Repeat("code", size/4), strings.Repeat("*", size/4), strings.Repeat("[", size/4), strings.Repeat("`a", size/8)} {
		m := markdown{t: bare, w: 80}
		lines := 0
		for i := 0; i < len(text); i += 4096 {
			lines += len(m.write(text[i:min(i+4096, len(text))]))
			if held := len(m.rest) + len(m.block.text) + len(m.table)*16; held > maxOpenLine+maxOpenBlock+4096+maxTable*16 {
				t.Fatalf("%d bytes of %.20q are held back", held, text)
			}
		}
		if lines += len(m.end()); lines < size/(10<<10) {
			t.Errorf("%.20q made %d lines", text, lines)
		}
	}
}

func BenchmarkMarkdown(b *testing.B) {
	th := &tui.Theme{Color: true}
	b.SetBytes(int64(len(sample)))
	for b.Loop() {
		_ = drawn(th, 80, sample, 64)
	}
}
