package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"rnix/ipc"
)

func TestAllOfACallIsShown(t *testing.T) {
	ask := func(tool, path, text, input string) *ipc.Ask {
		return &ipc.Ask{Number: 7, Tool: tool, Path: path, Text: text, Input: json.RawMessage(input)}
	}
	long := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		ask   *ipc.Ask
		width int
		want  string
	}{
		"the line says it":     {ask("shell", "/dev/shell", "shell ls", `{"command":"ls"}`), 80, ""},
		"long, and not cut":    {ask("shell", "/dev/shell", "shell "+long, `{"command":"`+long+`"}`), 0, ""},
		"long, and cut":        {ask("shell", "/dev/shell", "shell "+long, `{"command":"`+long+`"}`), 80, "7 runs:\n    " + long + "\n"},
		"more lines":           {ask("shell", "/dev/shell", "shell a (+1 line)", `{"command":"a\nb"}`), 0, "7 runs:\n    a\n    b\n"},
		"blanks that count":    {ask("shell", "/dev/shell", "shell a  b", `{"command":"a  b"}`), 0, "7 runs:\n    a  b\n"},
		"what is not shown":    {ask("shell", "/dev/shell", "shell a\x1b[8mb", `{"command":"a\u001b[8mb"}`), 0, "7 runs:\n    ab\n  written, with what is not shown above:\n    \"a\\x1b[8mb\"\n"},
		"a file":               {ask("read_file", "/dev/workspace", "read_file a", `{"path":"a"}`), 80, ""},
		"a file and its text":  {ask("write_file", "/dev/workspace", "write_file a", `{"path":"a","content":"b"}`), 0, "7 runs:\n    {\"path\":\"a\",\"content\":\"b\"}\n"},
		"a field that is none": {ask("post", "/mnt/mcp/x", "post", `{"to":"b"}`), 0, "7 runs:\n    {\"to\":\"b\"}\n"},
		"no input":             {ask("post", "/mnt/mcp/x", "post", `{}`), 0, ""},
	} {
		if got := wholeCall(c.ask, c.width); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	huge := ask("shell", "/dev/shell", "shell y", `{"command":"`+strings.Repeat("y", wholeMost+5)+`"}`)
	if got := wholeCall(huge, 0); !strings.HasSuffix(got, "... 5 bytes more; see: rnix asks --json\n") {
		t.Errorf("a huge one ends in %q", got[max(0, len(got)-60):])
	}
}
