package workspace

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"rnix/internal/pattern"
	"rnix/types"
	"rnix/vfs"
)

// editFile replaces text in a file.
func (c *call) editFile(ctx context.Context) (string, error) {
	var in struct {
		Op   string `json:"op"`
		Path string `json:"path"`
		Old  string `json:"old"`
		New  string `json:"new"`
		All  bool   `json:"replace_all"`
	}
	if err := vfs.DecodeRequest(c.data, &in); err != nil {
		return "", err
	}
	switch {
	case in.Old == "":
		return "", types.Errorf(types.ErrInvalid, c.op, in.Path, "no old text given: use write_file for new files and whole contents")
	case in.Old == in.New:
		return "", types.Errorf(types.ErrInvalid, c.op, in.Path, "old and new text are the same: nothing to do")
	}
	return c.replace(ctx, in.Path, func(cur current) ([]byte, error) {
		if !cur.exists() {
			return nil, types.Errorf(types.ErrNotFound, c.op, in.Path, "no such file: create it with write_file")
		}
		out, problem := edit(string(cur.content), in.Old, in.New, in.All)
		if problem != "" {
			return nil, types.Errorf(types.ErrInvalid, c.op, in.Path, "%s", problem)
		}
		return []byte(out), nil
	})
}

// edit replaces old by new in content, or says why it cannot. In a file whose lines end with CR LF,
// texts with plain line ends are taken to mean those.
func edit(content, old, new string, all bool) (out, problem string) {
	if !strings.Contains(content, old) && strings.Contains(content, "\r\n") && !strings.Contains(old, "\r") {
		old = strings.ReplaceAll(old, "\n", "\r\n")
		new = strings.ReplaceAll(strings.ReplaceAll(new, "\r\n", "\n"), "\n", "\r\n")
	}
	switch n := strings.Count(content, old); {
	case n == 0:
		return "", "the old text does not occur in the file" + hint(content, old)
	case n > 1 && !all:
		return "", fmt.Sprintf("the old text occurs %d times, in lines %s: give more of the text around the right one, or set replace_all", n, occurrences(content, old))
	}
	return strings.ReplaceAll(content, old, new), ""
}

// occurrences names the lines in which text begins, the first ten of them.
func occurrences(content, text string) string {
	var out []string
	line, from := 1, 0
	for {
		i := strings.Index(content[from:], text)
		if i < 0 {
			return strings.Join(out, ", ")
		}
		if len(out) == 10 {
			return strings.Join(out, ", ") + " and more"
		}
		line += strings.Count(content[from:from+i], "\n")
		out = append(out, fmt.Sprint(line))
		line += strings.Count(text, "\n")
		from += i + len(text)
	}
}

var numbered = pattern.New(`^\d+\t`)

// hint guesses why a text was not found.
func hint(content, old string) string {
	lines := strings.Split(old, "\n")
	if numbered().MatchString(lines[0]) {
		return ": leave out the line numbers that read_file puts before each line"
	}
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	want := squeeze(lines[0])
	if want == "" && len(lines) > 1 {
		want = squeeze(lines[1])
	}
	if want == "" {
		return ": read it again"
	}
	number := 0
	for line := range bytes.Lines([]byte(content)) {
		number++
		if squeeze(string(line)) == want {
			return fmt.Sprintf("; line %d is like its beginning, but white space or what follows differs: read it again from there", number)
		}
	}
	return ": read it again"
}
