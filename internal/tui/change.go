package tui

import (
	"encoding/json"
	"slices"
	"strings"
)

// Edits reports whether a tool may change a file, by its name, or whether a text names such a tool.
func Edits(tool string) bool {
	tool = strings.ToLower(tool)
	return strings.Contains(tool, "edit") || strings.Contains(tool, "write")
}

const (
	changeContext = 3 // lines shown before and after a change
	sameContent   = " already has this content"
)

// editInput is the input of the tools that edit files, in the words of the kernel and of agent CLIs.
type editInput struct {
	Path      string
	FilePath  string `json:"file_path"`
	CamelPath string `json:"filePath"`
	editPair
	Edits   []editPair
	Content *string
}

// editPair is a text and what is put in its place.
type editPair struct {
	Old, New *string
	OldText  *string `json:"old_text"`
	NewText  *string `json:"new_text"`
	OldStr   *string `json:"old_string"`
	NewStr   *string `json:"new_string"`
	CamelOld *string `json:"oldString"`
	CamelNew *string `json:"newString"`
}

// Change returns the file that a call names, and the lines of the difference that it has made there, clean: the one that its result has, or what its input
// puts in the place of what. No lines = it has changed nothing, or that is not known. The call must not have failed.
func Change(t *Theme, tool, input, result string) (file string, lines []string) {
	if !Edits(tool) {
		return "", nil
	}
	var in editInput
	ok := json.Unmarshal([]byte(input), &in) == nil
	for _, name := range []string{in.CamelPath, in.FilePath, in.Path} {
		if name != "" {
			file = t.line(name)
		}
	}
	shown := strings.Split(strings.TrimRight(t.clean(result), "\n "), "\n")
	if i := slices.IndexFunc(shown, func(l string) bool { return strings.HasPrefix(l, "@@") }); i >= 0 {
		return file, shown[i:]
	}
	if !ok || strings.HasSuffix(shown[0], sameContent) {
		return file, nil
	}
	for _, p := range append([]editPair{in.editPair}, in.Edits...) {
		lines = append(lines, p.lines(t)...)
	}
	if lines == nil && in.Content != nil && strings.Contains(strings.ToLower(tool), "write") {
		lines = replaced(t, "", *in.Content)
	}
	return file, lines
}

// lines returns the difference that a pair makes.
func (p *editPair) lines(t *Theme) []string {
	for _, texts := range [][2]*string{{p.Old, p.New}, {p.OldText, p.NewText}, {p.OldStr, p.NewStr}, {p.CamelOld, p.CamelNew}} {
		if texts[0] != nil && texts[1] != nil {
			return replaced(t, *texts[0], *texts[1])
		}
	}
	return nil
}

// replaced returns the lines of a difference between two texts, clean, with what is the same before and after it. It looks at the whole texts: of two
// beginnings the ends would differ, and who shows a part of the lines says how many more there are.
func replaced(t *Theme, from, to string) (out []string) {
	a, b := linesOf(from), linesOf(to)
	head, tail := 0, 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	put := func(sign string, lines []string) {
		for _, l := range linesOf(t.clean(strings.Join(lines, "\n") + "\n")) {
			out = append(out, sign+l)
		}
	}
	put(" ", b[max(head-changeContext, 0):head])
	put("-", a[head:len(a)-tail])
	put("+", b[head:len(b)-tail])
	put(" ", b[len(b)-tail:min(len(b)-tail+changeContext, len(b))])
	return out
}

// linesOf returns the lines of a text, which may have none.
func linesOf(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// ChangeStyle is how a line of a change looks.
func ChangeStyle(line string) Style {
	switch {
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	case strings.HasPrefix(line, "@@"):
		return cyan
	}
	return plain
}
