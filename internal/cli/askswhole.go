package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"rnix/debug"
	"rnix/internal/permit"
	"rnix/ipc"
)

// wholeMost bounds what is shown of one call, in bytes. More is in the JSON.
const wholeMost = 16 << 10

// callCells is how wide a call may be, in cells, to be shown whole in a row of a terminal that is width cells wide.
func callCells(width int) int {
	const others = 60 // what the other columns take at most, nearly always
	return max(width-others, leastLast)
}

// wholeCall returns all that a call would run, indented below its number; empty if its line says it. width is that of the terminal, 0 = lines
// are not cut.
func wholeCall(k *ipc.Ask, width int) string {
	if k.Question != nil {
		return wholeQuestion(k)
	}
	text, written := inputText(k)
	line := oneLine(k.Text)
	if text == "" || written == "" && line == oneLine(k.Tool)+" "+text && (width == 0 || cells(line) <= callCells(width)) {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs:\n", k.Number)
	indent(&b, text)
	if written != "" {
		b.WriteString("  written, with what is not shown above:\n")
		indent(&b, written)
	}
	return b.String()
}

// inputText returns what a call runs: its command, or its input if it is no command. written is the same with all that a terminal does not
// show; empty = it shows all.
func inputText(k *ipc.Ask) (text, written string) {
	c := permit.Call{Tool: k.Tool, Path: k.Path, Input: k.Input}
	raw := c.Command()
	if !c.Shell() || raw == "" {
		var in map[string]any
		if json.Unmarshal(k.Input, &in) != nil || len(in) == 0 || len(in) == 1 && oneLine(k.Text) != oneLine(k.Tool) { // the line has the only field
			return "", ""
		}
		raw = string(k.Input)
	}
	flat := strings.ReplaceAll(raw, "\t", " ")
	text = debug.Sanitize(flat)
	if text != flat {
		written = strconv.QuoteToASCII(raw)
	}
	return text, written
}

// indent writes lines below a heading.
func indent(b *strings.Builder, text string) {
	rest := 0
	if len(text) > wholeMost {
		rest = len(text) - wholeMost
		text = strings.ToValidUTF8(text[:wholeMost], "")
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString("    " + line + "\n")
	}
	if rest > 0 {
		fmt.Fprintf(b, "    ... %d bytes more; see: rnix asks --json\n", rest)
	}
}
