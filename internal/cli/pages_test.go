package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// TestEachCommandInThePagesIsACommandThatIsTaken reads the blocks of commands of README.md and of all pages below docs as a shell
// does, and gives each command of this program to the real parser.
func TestEachCommandInThePagesIsACommandThatIsTaken(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, n := []string{filepath.Join(root, "README.md")}, 0
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range commandBlocks(string(text)) {
			file, err := syntax.NewParser().Parse(strings.NewReader(b.text), "")
			if err != nil {
				t.Errorf("%s:%d: %v", page, b.line, err)
				continue
			}
			for _, words := range callsIn(file) {
				if words[0] != "rnix" {
					continue
				}
				n++
				if err := parses(words[1:]); err != nil {
					t.Errorf("%s:%d: %q: %v", page, b.line, words, err)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d commands were found in %d pages", n, len(pages))
	}
}

// commandBlock is what can be run of a block, and where that begins.
type commandBlock struct {
	text string
	line int
}

// commandBlocks returns each block of sh, and of every other block the lines that stand behind a "$ ".
func commandBlocks(page string) (out []commandBlock) {
	inside, kind := false, ""
	for i, line := range strings.Split(page, "\n") {
		prompt, isPrompt := strings.CutPrefix(line, "$ ")
		switch fence, isFence := strings.CutPrefix(line, "```"); {
		case isFence:
			inside, kind = !inside, fence
			if inside && kind == "sh" {
				out = append(out, commandBlock{line: i + 1})
			}
		case inside && kind == "sh":
			out[len(out)-1].text += line + "\n"
		case inside && isPrompt:
			out = append(out, commandBlock{prompt, i + 1})
		}
	}
	return out
}
