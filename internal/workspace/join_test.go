package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/internal/soak"
)

// Where git writes no marks a merge has one side alone, so there is none.
func TestWhatHasNoMarksIsNotMerged(t *testing.T) {
	large := func(end string) string { return strings.Repeat("the same line\n", maxMarked/14+1) + end }
	gone := func(b *bench, dir, name string) { must(b, os.Remove(filepath.Join(dir, name))) }
	text := func(name, s string) func(*bench, string) {
		return func(b *bench, dir string) { b.write(dir, map[string]string{name: s}) }
	}
	const marks = "<<<<<<< here\n=======\n>>>>>>> there\n"
	for name, c := range map[string]struct {
		at, one, two func(b *bench, dir string)
		file         string // that has no marks; empty = all have some
	}{
		"texts":         {text("f", "0\n"), text("f", "1\n"), text("f", "2\n"), ""},
		"new texts":     {text("x", ""), text("f", "1\n"), text("f", "2\n"), ""},
		"a moved text":  {text("f", "0\n"+strings.Repeat("same\n", 20)), text("f", "1\n"+strings.Repeat("same\n", 20)), func(b *bench, dir string) { gone(b, dir, "f"); text("g", "2\n"+strings.Repeat("same\n", 20))(b, dir) }, ""},
		"binary files":  {text("f", "0\x00"), text("f", "1\x00"), text("f", "2\x00"), "f"},
		"binary, marks": {text("f", "0\x00"), text("f", marks+"1\x00"), text("f", marks+"2\x00"), "f"},
		"removed":       {text("f", "0\n"), text("f", "1\n"), func(b *bench, dir string) { gone(b, dir, "f") }, "f"},
		"removed here":  {text("f", "0\n"), func(b *bench, dir string) { gone(b, dir, "f") }, text("f", marks), "f"},
		"large files":   {text("f", large("0\n")), text("f", large("1\n")), text("f", large("2\n")), "f"},
		"other marks":   {text(".gitattributes", "f conflict-marker-size=20\n"), text("f", "1\n"), text("f", "2\n"), "f"},
		"beside a text": {text("f", "0\x00"), func(b *bench, dir string) { text("f", "1\x00")(b, dir); text("g", "1\n")(b, dir) }, func(b *bench, dir string) { text("f", "2\x00")(b, dir); text("g", "2\n")(b, dir) }, "f"},
		"links":         {text("x", ""), func(b *bench, dir string) { must(b, os.Symlink("1", filepath.Join(dir, "f"))) }, func(b *bench, dir string) { must(b, os.Symlink("2", filepath.Join(dir, "f"))) }, "f"},
		"submodules":    {text("x", ""), module("1"), module("2"), "f"},
	} {
		t.Run(name, func(t *testing.T) {
			soak.Turn(t)
			b := newBench(t)
			repo := b.repo(map[string]string{"README": "x\n"})
			c.at(b, repo)
			base := b.commit(repo, "base")
			tree := b.plant(repo)
			var lines []Line
			for i, change := range []func(*bench, string){c.one, c.two} {
				b.user(repo, "checkout", "-q", "--detach", base)
				change(b, repo)
				lines = append(lines, Line{ID: b.id, Name: string(rune('a' + i)), Tree: tree, Commit: b.commit(repo, "work")})
			}
			commit, clashes, err := Join(t.Context(), b.grove(), b.id, "", lines, true)
			if err != nil || len(clashes) != 1 || (commit == "") != (c.file != "") {
				t.Fatalf("%q %+v %v", commit, clashes, err)
			}
			if bare := clashes[0].Bare; c.file == "" && bare != nil || c.file != "" && (!slices.Equal(bare, []string{c.file}) || !slices.Contains(clashes[0].Files, c.file)) {
				t.Errorf("%+v", clashes[0])
			}
			if commit != "" && !strings.Contains(b.user(repo, "grep", "-h", "-e", "^[<>]", commit), ">>>>>>> ") {
				t.Error("there are no marks")
			}
		})
	}
}

// module puts a repository into a directory, as a submodule.
func module(text string) func(b *bench, dir string) {
	return func(b *bench, dir string) {
		sub := filepath.Join(dir, "f")
		must(b, os.RemoveAll(sub))
		must(b, os.Mkdir(sub, 0o755))
		b.write(sub, map[string]string{"s": text})
		b.user(sub, "init", "-q")
		b.commit(sub, text)
	}
}
