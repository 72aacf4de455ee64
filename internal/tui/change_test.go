package tui

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAChangeIsThatOfTheResultOrOfTheInput(t *testing.T) {
	for _, c := range []struct{ tool, input, result, file, want string }{
		{"edit_file", `{"path":"a.txt","old":"x","new":"y"}`, "changed a.txt: 1 line removed, 1 added, 2 lines now\n@@ -1,2 +1,2 @@\n-x\n+y\n z\n", "a.txt", "@@ -1,2 +1,2 @@|-x|+y| z"},
		{"write_file", `{"path":"a.txt","content":"one\ntwo\n"}`, "created a.txt: 2 lines, 8 bytes\n", "a.txt", "+one|+two"},
		{"write_file", `{"path":"a.txt","content":"one\n"}`, "a.txt already has this content\n", "a.txt", ""},
		{"write_file", `{"path":"a.txt","content":""}`, "created a.txt: 0 lines, 0 bytes\n", "a.txt", ""},
		// agent CLIs
		{"Edit", `{"file_path":"/w/a.txt","old_string":"0\n1\n2\n3\nold\nend","new_string":"0\n1\n2\n3\nnew\nend"}`, "The file has been updated.", "/w/a.txt", " 1| 2| 3|-old|+new| end"},
		{"MultiEdit", `{"file_path":"b","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":""}]}`, "Done", "b", "-a|+b|-c"},
		{"Write", `{"file_path":"b","content":"all"}`, "Written", "b", "+all"},
		{"edit", `{"filePath":"c","oldString":"a","newString":"a\nb"}`, "", "c", " a|+b"},
		{"TodoWrite", `{"todos":[{"content":"x"}]}`, "Done", "", ""},
		{"edit_file", `no JSON`, "Done", "", ""},
		{"shell", `{"command":"git diff"}`, "@@ -1 +1 @@\n-x\n+y\n", "", ""},
		// nothing in it is obeyed by a terminal
		{"edit_file", "{\"path\":\"\\u001b[2J\u202ea\"}", "@@ -1 +1 @@\n+\x1b]0;title\a\tb\u202e\n", "<U+202E>a", "@@ -1 +1 @@|+   b<U+202E>"},
	} {
		file, lines := Change(&Theme{}, c.tool, c.input, c.result)
		if got := strings.Join(lines, "|"); got != c.want || file != c.file {
			t.Errorf("%s %s: %q in %q, want %q in %q", c.tool, c.input, got, file, c.want, c.file)
		}
	}
}

// A difference is that of the whole texts, however long they are: where it is shown in part, the rest is counted.
func TestAChangeOfALongTextIsWhole(t *testing.T) {
	same := strings.Repeat("the same line\n", 20_000)
	edit := func(from, to string) string {
		in, err := json.Marshal(map[string]string{"path": "a", "old": from, "new": to})
		if err != nil {
			t.Fatal(err)
		}
		return string(in)
	}
	for _, c := range []struct{ name, input, result, want string }{
		{"at the end", edit(same+"old", same+"new"), "", " the same line| the same line| the same line|-old|+new"},
		{"at the beginning", edit(same, "new\n"+same), "", "+new| the same line| the same line| the same line"},
		{"behind a long line break", edit("a\u2028b\n\nx", "a\u2028b\n\ny"), "", " a| b| |-x|+y"},
		{"of one side alone", edit("", same), "", strings.Repeat("+the same line|", 20_000)},
		{"in the result", edit("", ""), "changed a: many lines\n@@ -0,0 +1,20000 @@\n" + strings.Repeat("+one more line\n", 20_000), "@@ -0,0 +1,20000 @@|" + strings.Repeat("+one more line|", 20_000)},
	} {
		_, lines := Change(&Theme{}, "edit_file", c.input, c.result)
		if got := strings.Join(lines, "|"); got != strings.TrimSuffix(c.want, "|") {
			t.Errorf("%s: %d lines, %.200q", c.name, len(lines), got)
		}
	}
}

// In a conversation the difference that an edit has made has colours, and a list in an answer has none.
func TestTheTalkColoursADifference(t *testing.T) {
	l := newLong(&Theme{Color: true})
	l.add("#3 assistant\n- one\n+ two")
	from := len(l.parts)
	l.add("#4 tool\nchanged a: 1 line removed\n@@ -1 +1 @@\n-old\n+" + strings.Repeat("n", maxPart+1) + "\n same")
	l.tint(from)
	view := strings.Split(l.view(8, 2000), "\n")
	for _, want := range []string{"- one", "+ two", "\x1b[36m@@ -1 +1\x1b[m", "\x1b[31m-old\x1b[m", "\x1b[32m+nnnnnnn\x1b[m", "\x1b[32mnnnnnnnn\x1b[m", " same"} {
		found := false
		for _, l := range view {
			found = found || l == want
		}
		if !found {
			t.Errorf("no line %q", want)
		}
	}
	for _, row := range view {
		if strings.Trim(row, "n") == "" && row != "" {
			t.Errorf("a part of a long line is shown plainly: %q", row)
		}
	}
}
