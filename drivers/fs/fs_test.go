package fs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rnix/types"
	"rnix/vfs"
	"rnix/vfs/vfstest"
)

// tree writes files, given as pairs of name and content, below a fresh directory. A name that ends
// with a slash is a directory.
func tree(t testing.TB, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		p := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(files[i], "/") {
			err = os.MkdirAll(p, 0o755)
		} else {
			err = os.WriteFile(p, []byte(files[i+1]), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ask runs a tool the way the kernel does.
func ask(t testing.TB, d *Device, c vfs.Caller, tool, input string) (string, error) {
	t.Helper()
	f, err := d.Open("", vfs.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.(vfs.CallerBinder).BindCaller(c); err != nil {
		return "", err
	}
	for _, tl := range Tools() {
		if tl.Name == tool {
			if err := f.Write(context.Background(), tl.Input(json.RawMessage(input))); err != nil {
				return "", err
			}
			b, _ := f.Read(0) // io.EOF for an empty answer
			return string(b), nil
		}
	}
	t.Fatalf("no tool %s", tool)
	return "", nil
}

func answerTo(t testing.TB, dir, tool, input string) string {
	t.Helper()
	out, err := ask(t, New(nil, nil), vfs.Caller{PID: 1, WorkDir: dir}, tool, input)
	if err != nil {
		t.Fatalf("%s %s: %v", tool, input, err)
	}
	return out
}

func TestDevice(t *testing.T) {
	open := func(t testing.TB) (vfs.VFSFileFactory, vfs.Caller) {
		dir := tree(t, "a.go", "package a\n\nfunc A() {}\n", "sub/b.txt", "one\ntwo\nthree\n", "empty", "")
		return New(nil, nil).Open, vfs.Caller{PID: 7, WorkDir: dir}
	}
	vfstest.Run(t, vfstest.Device{
		Path: Path, Open: open, Tools: Tools(),
		Samples: []vfstest.Sample{
			{Tool: "read_file", Input: `{"path":"a.go"}`, Want: "3\tfunc A() {}"},
			{Tool: "read_file", Input: `{"path":"empty"}`, Want: "empty"},
			{Tool: "read_file", Input: `{"path":"sub/b.txt","offset":2,"limit":1}`, Want: "go on with offset 3"},
			{Tool: "read_file", Input: `{"path":"nope"}`, WantCode: types.ErrNotFound},
			{Tool: "read_file", Input: `{"path":"sub"}`, WantCode: types.ErrIsDirectory},
			{Tool: "read_file", Input: `{"path":"/etc/passwd"}`, WantCode: types.ErrPermission},
			{Tool: "read_file", Input: `{"path":"a.go","lines":4}`, WantCode: types.ErrInvalid},
			{Tool: "read_file", Input: `{"path":"a.go","offset":"2"}`, WantCode: types.ErrInvalid},
			{Tool: "list_files", Input: `{}`, Want: "sub/\n"},
			{Tool: "list_files", Want: "a.go\t"},
			{Tool: "glob", Input: `{"pattern":"*.txt"}`, Want: "sub/b.txt"},
			{Tool: "grep", Input: `{"pattern":"t[wh]","context":1}`, Want: "sub/b.txt:2:two"},
			{Tool: "grep", Input: `{"pattern":"("}`, WantCode: types.ErrInvalid},
		},
	})
}

func TestHostFiles(t *testing.T) {
	dir := tree(t, "a.txt", strings.Repeat("0123456789", 500), "d/x", "", "d/y", "")
	vfstest.Run(t, vfstest.Device{
		Path: Path, ReadOnly: true,
		Open: func(testing.TB) (vfs.VFSFileFactory, vfs.Caller) {
			return New(nil, nil).Open, vfs.Caller{PID: 7, WorkDir: dir}
		},
		Samples: []vfstest.Sample{
			{Name: "file", Subpath: dir + "/a.txt", Want: "0123456789"},
			{Name: "dir", Subpath: dir + "/d", Want: "x\ny\n"},
			{Name: "none", Subpath: dir + "/none", WantCode: types.ErrNotFound},
			{Name: "outside", Subpath: "/etc/passwd", WantCode: types.ErrPermission},
		},
	})
}

func TestPathsCannotLeaveTheRoots(t *testing.T) {
	base := tree(t, "ws/in.txt", "inside\n", "ws2/secret", "no\n", "lib/l.txt", "library\n", "out/secret", "no\n")
	ws := base + "/ws"
	links := map[string]string{
		"out": base + "/out", "rel": "../out/secret", "chain": "rel", "good": "in.txt", "abs": ws + "/in.txt", "lib": base + "/lib/l.txt", "loop": "loop", "dangling": "../out/none",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(ws+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	caller := vfs.Caller{PID: 1, WorkDir: ws, ReadRoots: []string{base + "/lib", base + "/missing"}}
	for _, c := range []struct {
		path string
		want types.ErrCode // "" = readable
	}{
		{"in.txt", ""}, {ws + "/in.txt", ""}, {"./x/../in.txt", ""}, {"good", ""}, {"abs", ""}, {"lib", ""}, {base + "/lib/l.txt", ""}, {"../lib/l.txt", ""},
		{"../ws2/secret", types.ErrPermission}, {base + "/ws2/secret", types.ErrPermission}, {"../out/secret", types.ErrPermission},
		{"out/secret", types.ErrPermission}, {"rel", types.ErrPermission}, {"chain", types.ErrPermission},
		{"/etc/passwd", types.ErrPermission}, {"/", types.ErrPermission}, {"/proc/self/environ", types.ErrPermission}, {base + "/missing/x", types.ErrPermission},
		{"loop", types.ErrInvalid}, {"fifo", types.ErrPermission}, {"in.txt/x", types.ErrNotFound}, {"nope", types.ErrNotFound}, {"dangling", types.ErrPermission},
		{"in.txt\\u0000", types.ErrInvalid}, {strings.Repeat("x", 300), types.ErrInvalid}, {strings.Repeat("x/", 4000), types.ErrInvalid},
	} {
		_, err := ask(t, New(nil, nil), caller, "read_file", fmt.Sprintf(`{"path":"%s"}`, c.path))
		if types.CodeOf(err) != c.want {
			t.Errorf("read_file %.60s: %v, want %q", c.path, err, c.want)
		}
	}
	_, err := ask(t, New(nil, nil), caller, "read_file", `{"path":"../out/secret"}`)
	if !strings.Contains(err.Error(), ws) || !strings.Contains(err.Error(), base+"/lib") {
		t.Errorf("the refusal does not name the roots: %v", err)
	}
}

func TestFilesOfTheKernelAreNotServed(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("needs a proc file system")
	}
	_, err := ask(t, New(nil, nil), vfs.Caller{PID: 1, WorkDir: t.TempDir(), ReadRoots: []string{"/"}}, "read_file", `{"path":"/proc/self/environ"}`)
	if types.CodeOf(err) != types.ErrPermission {
		t.Errorf("the daemon's own environment can be read: %v", err)
	}
}

func TestRootsBehindSymbolicLinksWork(t *testing.T) {
	dir := tree(t, "real/a", "x\n")
	if err := os.Symlink(dir+"/real", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"a", dir + "/link/a", dir + "/real/a"} {
		if out := answerTo(t, dir+"/link", "read_file", fmt.Sprintf(`{"path":%q}`, p)); out != "1\tx\n" {
			t.Errorf("%s: %q", p, out)
		}
	}
}

func TestCallerWithoutWorkspaceReadsNothing(t *testing.T) {
	_, err := ask(t, New(nil, nil), vfs.Caller{PID: 1}, "list_files", `{}`)
	if types.CodeOf(err) != types.ErrPermission {
		t.Errorf("got %v", err)
	}
}

// TestASwapBetweenCheckAndUseIsRefused replaces a directory by a link to the outside after its path
// was checked.
func TestASwapBetweenCheckAndUseIsRefused(t *testing.T) {
	base := tree(t, "ws/d/f", "inside", "out/f", "secret")
	roots, err := OpenRoots(base + "/ws")
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	p, err := roots.Locate("d/f")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(base+"/ws/d", base+"/ws/e"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(base+"/out", base+"/ws/d"); err != nil {
		t.Fatal(err)
	}
	if f, _, err := p.Open(); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("got %v, %v", f, err)
	}
}

func TestHardLinksToFilesOfOthersAreRefused(t *testing.T) {
	dir := tree(t, "own", "o\n", "theirs", "secret\n")
	for _, n := range []string{"own", "theirs"} {
		if err := os.Link(dir+"/"+n, dir+"/"+n+"2"); err != nil {
			t.Skip("needs hard links: ", err)
		}
	}
	if err := os.Chown(dir+"/theirs", 12345, 12345); err != nil {
		t.Skip("needs to be root: ", err)
	}
	if out := answerTo(t, dir, "read_file", `{"path":"own2"}`); out != "1\to\n" {
		t.Errorf("a hard link to a file of one's own: %q", out)
	}
	if _, err := ask(t, New(nil, nil), vfs.Caller{PID: 1, WorkDir: dir}, "read_file", `{"path":"theirs2"}`); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("got %v", err)
	}
	if out := answerTo(t, dir, "grep", `{"pattern":"secret"}`); !strings.Contains(out, "no match") {
		t.Errorf("grep reads what read_file refuses: %q", out)
	}
}

func TestAProcessReadsItsInputsUnderTheNameOfProc(t *testing.T) {
	work, inputs := tree(t, "a", "x"), tree(t, "log", "needle\n")
	d := New(nil, nil)
	c := vfs.Caller{PID: 7, WorkDir: work, Inputs: inputs}
	for _, path := range []string{"/proc/self/inputs/log", "/proc/7/inputs/log", "/proc/self/./inputs/log", inputs + "/log"} {
		if got, err := ask(t, d, c, "read_file", `{"path":"`+path+`"}`); err != nil || !strings.Contains(got, "needle") {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if got, err := ask(t, d, c, "list_files", `{"path":"/proc/self/inputs"}`); err != nil || !strings.Contains(got, "log") {
		t.Errorf("list: %q, %v", got, err)
	}
	for _, path := range []string{"/proc/self/inputs/../status", "/proc/8/inputs/log", "/proc/self/environ", "/proc/self/inputs/../../1/environ"} {
		if got, err := ask(t, d, c, "read_file", `{"path":"`+path+`"}`); types.CodeOf(err) != types.ErrPermission {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if _, err := ask(t, d, vfs.Caller{PID: 7, WorkDir: work}, "read_file", `{"path":"/proc/self/inputs/log"}`); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("without inputs: %v", err)
	}
}
