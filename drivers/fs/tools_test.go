package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"rnix/types"
	"rnix/vfs"
)

func TestReadingSaysWhatWasCutAndHowToGoOn(t *testing.T) {
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&long, "line %d\n", i+1)
	}
	dir := tree(t, "long", long.String(), "wide", strings.Repeat("é", 3000)+"\nnext\n", "win", "a\r\nb\r\n", "bin", "\x89PNG\r\n\x1a\n\x00\x00", "latin", "caf\xe9\n", "torn", "a\nb")
	for _, c := range []struct{ input, want string }{
		{`{"path":"long"}`, "2000\tline 2000\n[lines 1 to 2000 of 5000; go on with offset 2001]\n"},
		{`{"path":"long","offset":4999}`, "4999\tline 4999\n5000\tline 5000\n[lines 4999 to 5000 of 5000, the end]\n"},
		{`{"path":"wide"}`, "... [line cut: 2000 of 6000 bytes shown]\n2\tnext\n[1 line cut"},
		{`{"path":"win"}`, "1\ta\n2\tb\n[lines end with CR LF]\n"},
		{`{"path":"bin"}`, "bin: PNG image, 10 bytes"},
		{`{"path":"latin"}`, "1\tcaf\uFFFD\n[not all of it is UTF-8"},
		{`{"path":"torn"}`, "1\ta\n2\tb\n"},
	} {
		if out := answerTo(t, dir, "read_file", c.input); !strings.Contains(out, c.want) {
			t.Errorf("%s: want %q in\n%.300s ... %s", c.input, c.want, out, out[max(0, len(out)-300):])
		}
	}
	if _, err := ask(t, New(nil, nil), vfs.Caller{PID: 1, WorkDir: dir}, "read_file", `{"path":"torn","offset":3}`); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "2 lines") {
		t.Errorf("offset past the end: %v", err)
	}
	if out := answerTo(t, dir, "read_file", `{"path":"long","limit":100000}`); len(out) > maxAnswer+200 {
		t.Errorf("the answer has %d bytes", len(out))
	}
}

func TestHugeFilesAreReadInParts(t *testing.T) {
	dir := tree(t, "huge", "first\nsecond\n")
	if err := os.Truncate(dir+"/huge", 1<<40); err != nil { // a sparse terabyte
		t.Skip("needs sparse files: ", err)
	}
	out := answerTo(t, dir, "read_file", `{"path":"huge","limit":1}`)
	if !strings.Contains(out, "1099511627776 bytes") {
		t.Errorf("got %q", out)
	}
	d := New(nil, nil)
	f, err := d.Open(dir+"/huge", vfs.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.(vfs.CallerBinder).BindCaller(vfs.Caller{WorkDir: dir}); err != nil {
		t.Fatal(err)
	}
	if b, err := f.Read(13); err != nil || string(b) != "first\nsecond\n" {
		t.Errorf("Read(13): %q, %v", b, err)
	}
	if _, err := f.Read(0); types.CodeOf(err) != types.ErrExhausted {
		t.Errorf("Read of all of it: %v", err)
	}
}

func TestReadingMakesKnown(t *testing.T) {
	dir := tree(t, "a", "one\ntwo\n", "b", "x", "bin", "\x00\x01")
	seen := NewSeen()
	d, c := New(seen, nil), vfs.Caller{PID: 3, WorkDir: dir}
	for name, content := range map[string]string{"a": "one\ntwo\n", "bin": "\x00\x01"} {
		if _, err := ask(t, d, c, "read_file", fmt.Sprintf(`{"path":%q,"limit":1}`, name)); err != nil {
			t.Fatal(err)
		}
		if sum, ok := seen.Known(3, dir+"/"+name); !ok || sum != SumOf([]byte(content)) {
			t.Errorf("%s is not known after it was read", name)
		}
	}
	f, _ := d.Open(dir+"/b", vfs.OpenRead)
	defer f.Close()
	if err := f.(vfs.CallerBinder).BindCaller(c); err != nil {
		t.Fatal(err)
	}
	if _, ok := seen.Known(3, dir+"/b"); ok {
		t.Error("b is known before it was read")
	}
	_, _ = f.Read(0)
	if _, ok := seen.Known(3, dir+"/b"); !ok {
		t.Error("b is not known after it was read to its end")
	}
	seen.Drop(3)
	if _, ok := seen.Known(3, dir+"/a"); ok {
		t.Error("a process that has ended still knows")
	}
}

func TestListingsLeaveOutWhatIsIgnoredAndSaySo(t *testing.T) {
	dir := tree(t, ".gitignore", "*.o\n/build/\n!keep.o\n", "a.c", "", "a.o", "", "keep.o", "", "build/x", "", "sub/build/y", "", "sub/.gitignore", "y\n", "node_modules/m/i.js", "", ".git/config", "", TempPrefix+"1", "")
	out := answerTo(t, dir, "list_files", `{"depth":5}`)
	want := ".gitignore\t20\na.c\t0\nkeep.o\t0\nsub/\nsub/.gitignore\t2\nsub/build/\n[left out: .git, a.o, build, node_modules, sub/build/y; name one as path, or give \"all\": true, to see it]\n"
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if out := answerTo(t, dir, "list_files", `{"path":"node_modules/m"}`); out != "i.js\t0\n" {
		t.Errorf("a place that is named is not shown: %q", out)
	}
	if out := answerTo(t, dir, "list_files", `{"all":true,"depth":5}`); !strings.Contains(out, ".git/config") || !strings.Contains(out, "a.o") || strings.Contains(out, TempPrefix) {
		t.Errorf("all: %s", out)
	}
	if out := answerTo(t, dir, "list_files", `{"path":"sub/build"}`); !strings.Contains(out, "left out: y") {
		t.Errorf("rules above the start do not count: %q", out)
	}
}

func TestLongListingsSayHowMuchThereIs(t *testing.T) {
	dir := t.TempDir()
	for i := range listEntries + 5 {
		if err := os.WriteFile(fmt.Sprintf("%s/%04d", dir, i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out := answerTo(t, dir, "list_files", `{}`); !strings.Contains(out, "[1000 of 1005 entries shown") || strings.Count(out, "\n") != 1001 {
		t.Errorf("got %s", out[len(out)-200:])
	}
}

func TestGlobShowsTheNewestBeforeItCuts(t *testing.T) {
	dir := tree(t, "a/1.go", "", "a/b/2.go", "", "3.go", "", "x.txt", "")
	base := time.Now()
	for i, name := range []string{"a/1.go", "a/b/2.go", "3.go"} {
		if err := os.Chtimes(filepath.Join(dir, name), base, base.Add(time.Duration(i-10)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ input, want string }{
		{`{"pattern":"*.go"}`, "3.go\na/b/2.go\na/1.go\n"},
		{`{"pattern":"*.go","limit":1}`, "3.go\n[the newest 1 of 3 files shown: narrow the pattern or the path, or raise limit]\n"},
		{`{"pattern":"./*.go"}`, "3.go\n"},
		{`{"pattern":"a/**/*.go"}`, "a/b/2.go\na/1.go\n"},
		{`{"pattern":"{a,x}/*.go"}`, "a/1.go\n"},
		{`{"pattern":"*.go","path":"a/b"}`, "a/b/2.go\n"},
		{fmt.Sprintf(`{"pattern":%q}`, dir+"/a/*.go"), "a/1.go\n"},
		{`{"pattern":"*.rs"}`, "[no file matches *.rs]\n"},
	} {
		if out := answerTo(t, dir, "glob", c.input); out != c.want {
			t.Errorf("%s: got %q, want %q", c.input, out, c.want)
		}
	}
}

func TestGrepFinds(t *testing.T) {
	filler := strings.Repeat("-", 999) + "\n"
	big := strings.Repeat(filler, grepWhole/1000+10) + "the needle\n"
	if out, want := answerTo(t, tree(t, "big", big), "grep", `{"pattern":"needle"}`), fmt.Sprintf("big:%d:the needle\n", grepWhole/1000+11); out != want {
		t.Errorf("a large file: got %.500q, want %q", out, want)
	}
	dir := tree(t, "a.go", "one\ntwo\nthree\nfour\nfive\n", "b/c.txt", "Two twos\n", "bin", "two\x00two", "wide", strings.Repeat("x", 5000)+"needle"+strings.Repeat("y", 5000))
	for _, c := range []struct{ input, want string }{
		{`{"pattern":"two"}`, "a.go:2:two\nb/c.txt:1:Two twos\n"},
		{`{"pattern":"^two$"}`, "a.go:2:two\n"},
		{`{"pattern":"\\Atwo\\z"}`, "a.go:2:two\n"},
		{`{"pattern":"^TWO","ignore_case":true,"output":"count"}`, "a.go:1\nb/c.txt:1\n"},
		{`{"pattern":"two","output":"files","glob":"*.txt"}`, "b/c.txt\n"},
		{`{"pattern":"three","context":1}`, "a.go-2-two\na.go:3:three\na.go-4-four\n"},
		{`{"pattern":"one|four","context":1}`, "a.go:1:one\na.go-2-two\na.go-3-three\na.go:4:four\na.go-5-five\n"},
		{`{"pattern":"one|five","context":1}`, "a.go:1:one\na.go-2-two\n--\na.go-4-four\na.go:5:five\n"},
		{`{"pattern":"o[^x]*e$","path":"a.go"}`, "a.go:1:one\n"},
		{`{"pattern":"o","limit":1}`, "a.go:1:one\n[cut after 1: there may be more; narrow the pattern, path or glob, or raise limit]\n"},
		{`{"pattern":"o","limit":1,"path":"a.go"}`, "a.go:1:one\n[cut after 1: there may be more; narrow the pattern, path or glob, or raise limit]\n"},
		{`{"pattern":"zebra"}`, "[no match in 4 files]\n"},
	} {
		if out := answerTo(t, dir, "grep", c.input); out != c.want {
			t.Errorf("%s:\n got %.500q\nwant %q", c.input, out, c.want)
		}
	}
	if out := answerTo(t, dir, "grep", `{"pattern":"needle","path":"wide"}`); !strings.Contains(out, "xneedley") || len(out) > 600 {
		t.Errorf("a long line: %q", out)
	}
}

// TestGrepOfAHugeTreeCanBeCancelled cancels from inside the walk: the context ends when the first
// file has been searched.
func TestGrepOfAHugeTreeCanBeCancelled(t *testing.T) {
	dir := tree(t, "a", "x", "b", "x", "c", "x")
	roots, err := OpenRoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	ctx, cancel := context.WithCancel(context.Background())
	s := &search{call: &call{roots: roots}, grepRequest: grepRequest{Limit: 10, Output: "content"}, line: regexp.MustCompile("x")}
	w := &walker{root: roots.dirs[0].dir}
	w.visit = func(e entry) error {
		defer cancel()
		return s.file(ctx, Place{Root: w.root, Rel: e.rel, Name: e.rel})
	}
	if err := w.walk(ctx, "."); types.CodeOf(err) != types.ErrCancelled || s.files != 1 {
		t.Errorf("%d files were searched, then %v", s.files, err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	endless := readerFunc(func(b []byte) (int, error) { cancel(); return copy(b, "no match here\n"), nil })
	if err := s.lines(ctx, untilEnded{ctx, endless}, Place{Name: "endless"}); types.CodeOf(err) != types.ErrCancelled {
		t.Errorf("an endless file: %v", err)
	}
}

// A search holds nobody: a file with a hole is left as soon as it is seen to be no text, however long its first line is, and what takes
// too long ends with what was found.
func TestGrepHoldsNobody(t *testing.T) {
	dir := tree(t, "a.txt", "needle\n", "z.txt", "needle\n")
	f, err := os.Create(filepath.Join(dir, "hole"))
	if err == nil {
		err = f.Truncate(1 << 42)
	}
	if err != nil {
		t.Skip("needs a file system with sparse files:", err)
	}
	defer f.Close()
	if out := answerTo(t, dir, "grep", `{"pattern":"needle"}`); !strings.Contains(out, "a.txt:1:needle") || !strings.Contains(out, "z.txt:1:needle") {
		t.Errorf("%q", out)
	}
	l := newLineReader(f, grepKeep)
	l.text = true
	if _, length, err := l.next(); err != nil || length > 1<<20 || !l.binary {
		t.Errorf("%d bytes of a hole were read as a line: %v", length, err)
	}
	roots, err := OpenRoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	s := &search{call: &call{roots: roots}, grepRequest: grepRequest{Pattern: "needle"}}
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	if err := s.run(t.Context(), func(string) bool { return true }); err != nil || !strings.Contains(s.text.String()+fmt.Sprint(s.call.notes), "not finished") {
		t.Errorf("%q %v: %v", s.text.String(), s.call.notes, err)
	}
}

// readerFunc makes a function an io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestIgnoreRules(t *testing.T) {
	files := []ignoreFile{
		parseIgnore(".", "# comment\n\n*.log\n!important.log\n/top\nsub/deep\ndir/\n**/gen/*.go\n\\#hash\nsp\\ ace\n{a,b}\nbad[\ntrail \n"),
		parseIgnore("sub", "local\n!x.log\n"),
	}
	for _, c := range []struct {
		rel  string
		dir  bool
		want bool
	}{
		{"a.log", false, true}, {"sub/a.log", false, true}, {"important.log", false, false}, {"sub/x.log", false, false},
		{"top", false, true}, {"sub/top", false, false}, {"sub/deep", false, true}, {"x/sub/deep", false, false},
		{"dir", true, true}, {"dir", false, false}, {"x/dir", true, true}, {"a/gen/x.go", false, true}, {"gen/x.go", false, true}, {"gen/a/x.go", false, false},
		{"#hash", false, true}, {"sp ace", false, true}, {"a", false, false}, {"{a,b}", false, true}, {"trail", false, true},
		{"sub/local", false, true}, {"sub/q/local", false, true},
	} {
		if got := ignored(files, c.rel, c.dir); got != c.want {
			t.Errorf("ignored(%q, dir %v) = %v", c.rel, c.dir, got)
		}
	}
}

func FuzzIgnoreRulesNeverPanic(f *testing.F) {
	f.Add("*.o\n!a\n/b/\n**/c\n", "x/y.o")
	f.Add("[", "[")
	f.Fuzz(func(t *testing.T, rules, name string) {
		ignored([]ignoreFile{parseIgnore(".", rules)}, name, true)
	})
}

// FuzzLinesGiveBackTheFile: lines joined again are the file, whatever is in it.
func FuzzLinesGiveBackTheFile(f *testing.F) {
	f.Add([]byte("a\nb\r\n\r\n\x00"), 3)
	f.Add([]byte("\r\r\n"), 1)
	f.Fuzz(func(t *testing.T, content []byte, keep int) {
		keep = 1 + (keep&0x7fffffff)%50
		l := newLineReader(bytes.NewReader(content), keep)
		want := strings.Split(string(content), "\n")
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
		for i := 0; ; i++ {
			line, length, err := l.next()
			if errors.Is(err, io.EOF) {
				if i != len(want) {
					t.Fatalf("%d lines of %d", i, len(want))
				}
				return
			}
			if err != nil || i >= len(want) {
				t.Fatalf("line %d: %v", i, err)
			}
			w := want[i]
			full := i < len(want)-1 || bytes.HasSuffix(content, []byte("\n"))
			if full && len(w) <= keep+2 {
				w = strings.TrimSuffix(w, "\r")
			}
			if string(line) != w[:min(len(w), keep)] || length != len(w) {
				t.Fatalf("line %d: %q of %d, want %q of %d", i, line, length, w, len(w))
			}
		}
	})
}
