package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/fs"
	"rnix/types"
	"rnix/vfs"
	"rnix/vfs/vfstest"
)

// desk is a workspace with both devices over one ledger.
type desk struct {
	t    testing.TB
	dir  string
	seen *fs.Seen
	vfs  *vfs.VFS
}

func newDesk(t testing.TB, files ...string) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, dir: dir + "/ws", seen: fs.NewSeen()}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		d.put(files[i], files[i+1])
	}
	devices := vfs.NewDeviceRegistry()
	if err := devices.RegisterTools(fs.Path, fs.New(d.seen, nil).Open, fs.Tools()); err != nil {
		t.Fatal(err)
	}
	if err := devices.RegisterTools(Path, New(d.seen, nil).Open, Tools()); err != nil {
		t.Fatal(err)
	}
	d.vfs = vfs.New(devices, func(pid types.PID) (vfs.Caller, bool) { return vfs.Caller{PID: pid, WorkDir: d.dir}, true })
	t.Cleanup(d.noLeftovers)
	return d
}

func (d *desk) put(name, content string) {
	d.t.Helper()
	p := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) content(name string) string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

func (d *desk) noLeftovers() {
	_ = filepath.WalkDir(d.dir, func(p string, _ os.DirEntry, _ error) error {
		if strings.HasPrefix(filepath.Base(p), fs.TempPrefix) {
			d.t.Errorf("left behind: %s", p)
		}
		return nil
	})
}

// run runs a tool as a process does.
func (d *desk) run(pid types.PID, tool, input string) (string, error) {
	d.t.Helper()
	for _, tl := range append(fs.Tools(), Tools()...) {
		if tl.Name != tool {
			continue
		}
		f, err := d.vfs.OpenFile(pid, tl.Path, vfs.OpenReadWrite)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if err := f.Write(context.Background(), tl.Input(json.RawMessage(input))); err != nil {
			return "", err
		}
		b, err := f.Read(0)
		return string(b), err
	}
	d.t.Fatalf("no tool %s", tool)
	return "", nil
}

func (d *desk) must(pid types.PID, tool, input string) string {
	d.t.Helper()
	out, err := d.run(pid, tool, input)
	if err != nil {
		d.t.Fatalf("%s %s: %v", tool, input, err)
	}
	return out
}

// refuses fails the test unless the tool is refused with this code and a text that has all words.
func (d *desk) refuses(pid types.PID, tool, input string, code types.ErrCode, words ...string) {
	d.t.Helper()
	_, err := d.run(pid, tool, input)
	if types.CodeOf(err) != code {
		d.t.Errorf("%s %s: got %v, want %s", tool, input, err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			d.t.Errorf("%s %s: the refusal does not say %q: %v", tool, input, w, err)
		}
	}
}

func TestDevice(t *testing.T) {
	open := func(t testing.TB) (vfs.VFSFileFactory, vfs.Caller) {
		d := newDesk(t, "a.txt", "one\ntwo\n", "dir/b", "b\n")
		d.must(7, "read_file", `{"path":"a.txt"}`)
		return New(d.seen, nil).Open, vfs.Caller{PID: 7, WorkDir: d.dir}
	}
	vfstest.Run(t, vfstest.Device{
		Path: Path, Open: open, Tools: Tools(),
		Samples: []vfstest.Sample{
			{Tool: "write_file", Input: `{"path":"new/x.txt","content":"hello\n"}`, Want: "created new/x.txt: 1 line"},
			{Tool: "write_file", Input: `{"path":"a.txt","content":""}`, Want: "2 lines removed"},
			{Tool: "write_file", Input: `{"path":"a.txt"}`, WantCode: types.ErrInvalid},
			{Tool: "write_file", Input: `{"path":"dir/b","content":"x"}`, WantCode: types.ErrConflict},
			{Tool: "write_file", Input: `{"path":"dir","content":"x"}`, WantCode: types.ErrIsDirectory},
			{Tool: "write_file", Input: `{"path":"../x","content":"x"}`, WantCode: types.ErrPermission},
			{Tool: "edit_file", Input: `{"path":"a.txt","old":"two","new":"2"}`, Want: "-two\n+2\n"},
			{Tool: "edit_file", Input: `{"path":"none","old":"two","new":"2"}`, WantCode: types.ErrNotFound},
			{Tool: "make_dir", Input: `{"path":"p/q"}`, Want: "made p/q/"},
			{Tool: "move", Input: `{"from":"a.txt","to":"c/d.txt"}`, Want: "moved a.txt to c/d.txt"},
			{Tool: "move", Input: `{"from":"a.txt","to":"dir/b"}`, WantCode: types.ErrConflict},
			{Tool: "delete", Input: `{"path":"a.txt"}`, Want: "deleted a.txt"},
			{Tool: "delete", Input: `{"path":"dir"}`, WantCode: types.ErrConflict},
			{Tool: "delete", Input: `{"path":"dir","recursive":true}`, Want: "1 entry"},
		},
	})
}

func TestPaths(t *testing.T) {
	vfstest.Run(t, vfstest.Device{
		Path: Path, RawWrite: true,
		Open: func(t testing.TB) (vfs.VFSFileFactory, vfs.Caller) {
			d := newDesk(t, "a.txt", "one\ntwo\n", "dir/b", "b\n")
			return New(d.seen, nil).Open, vfs.Caller{PID: 0, WorkDir: d.dir}
		},
		Samples: []vfstest.Sample{
			{Name: "read", Subpath: "/a.txt", Want: "one\ntwo\n"},
			{Name: "list", Subpath: "/dir", Want: "b\n"},
			{Name: "write", Subpath: "/a.txt", Input: "three\n", Want: "+three"},
			{Name: "create", Subpath: "/n/e/w", Input: "x", Want: "created n/e/w"},
			{Name: "git", Subpath: "/.git/config", Input: "x", WantCode: types.ErrPermission},
			{Name: "outside", Subpath: "/../x", Input: "x", WantCode: types.ErrPermission},
			{Name: "none", Subpath: "/none", WantCode: types.ErrNotFound},
		},
	})
}

func TestNothingUnseenIsOverwritten(t *testing.T) {
	d := newDesk(t, "a", "one\ntwo\n")
	d.refuses(1, "write_file", `{"path":"a","content":"x"}`, types.ErrConflict, "not read", "read_file")
	d.refuses(1, "edit_file", `{"path":"a","old":"one","new":"1"}`, types.ErrConflict, "not read")
	d.must(1, "read_file", `{"path":"a","limit":1}`)
	d.must(2, "read_file", `{"path":"a"}`)
	d.must(1, "edit_file", `{"path":"a","old":"one","new":"1"}`)
	d.must(1, "edit_file", `{"path":"a","old":"1","new":"uno"}`) // its own writing is known to it
	d.refuses(2, "edit_file", `{"path":"a","old":"two","new":"2"}`, types.ErrConflict, "changed", "process 1 wrote it")
	d.refuses(3, "write_file", `{"path":"a","content":""}`, types.ErrConflict, "not read", "process 1 wrote it")
	d.put("a", "by hand\n")
	d.refuses(1, "edit_file", `{"path":"a","old":"uno","new":"1"}`, types.ErrConflict, "changed")
	if got := d.content("a"); got != "by hand\n" {
		t.Errorf("a is %q", got)
	}
	d.must(1, "read_file", `{"path":"a"}`)
	d.must(1, "move", `{"from":"a","to":"b"}`)
	d.must(1, "write_file", `{"path":"b","content":"moved\n"}`)
	d.seen.Drop(1)
	d.refuses(1, "write_file", `{"path":"b","content":"x"}`, types.ErrConflict, "not read")
	d.must(0, "write_file", `{"path":"b","content":"the user has the last word\n"}`)
}

// TestTwoWritersNeverLoseAChange: of processes that read the same content and change it at once, one
// succeeds, and the others are told.
func TestTwoWritersNeverLoseAChange(t *testing.T) {
	d := newDesk(t, "n", "0\n")
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for pid := types.PID(1); pid <= 4; pid++ {
		wg.Go(func() {
			for range 10 {
				d.must(pid, "read_file", `{"path":"n"}`)
				old := strings.TrimSpace(d.content("n"))
				_, err := d.run(pid, "edit_file", fmt.Sprintf(`{"path":"n","old":%q,"new":%q}`, old+"\n", fmt.Sprintf("%s%d\n", old, pid)))
				if err == nil {
					mu.Lock()
					done++
					mu.Unlock()
				} else if c := types.CodeOf(err); c != types.ErrConflict && c != types.ErrInvalid {
					t.Errorf("%v", err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(strings.TrimSpace(d.content("n"))) - 1; n != done {
		t.Errorf("%d changes succeeded, %d are in the file: %q", done, n, d.content("n"))
	}
}

func TestEditsSayWhyTheyFail(t *testing.T) {
	d := newDesk(t, "a", "x = 1\ny = 1\n\tif a {\n\t}\nx = 1\n", "win", "a\r\nb\r\nc\r\n")
	d.must(1, "read_file", `{"path":"a"}`)
	d.must(1, "read_file", `{"path":"win"}`)
	d.refuses(1, "edit_file", `{"path":"a","old":"x = 1","new":"x = 2"}`, types.ErrInvalid, "2 times", "lines 1, 5", "replace_all")
	d.refuses(1, "edit_file", `{"path":"a","old":"  if a {","new":""}`, types.ErrInvalid, "line 3", "white space")
	d.refuses(1, "edit_file", `{"path":"a","old":"2\ty = 1","new":"y"}`, types.ErrInvalid, "line numbers")
	d.refuses(1, "edit_file", `{"path":"a","old":"nothing like it","new":"y"}`, types.ErrInvalid, "does not occur")
	d.refuses(1, "edit_file", `{"path":"a","old":"","new":"y"}`, types.ErrInvalid, "write_file")
	d.refuses(1, "edit_file", `{"path":"a","old":"y","new":"y"}`, types.ErrInvalid, "the same")
	if out := d.must(1, "edit_file", `{"path":"a","old":"x = 1","new":"x = 2","replace_all":true}`); !strings.Contains(out, "changed a: 5 lines removed, 5 added") {
		t.Errorf("got %s", out)
	}
	d.must(1, "edit_file", `{"path":"win","old":"a\nb\n","new":"1\n2\n3\n"}`)
	if got := d.content("win"); got != "1\r\n2\r\n3\r\nc\r\n" {
		t.Errorf("line ends are lost: %q", got)
	}
	out := d.must(1, "edit_file", `{"path":"win","old":"3","new":"drei"}`)
	if want := "changed win: 1 line removed, 1 added, 4 lines now\n@@ -1,4 +1,4 @@\n 1\n 2\n-3\n+drei\n c\n"; out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestWritesStayInside(t *testing.T) {
	d := newDesk(t, "in", "in\n", "sub/f", "f\n")
	outside := filepath.Dir(d.dir)
	for name, target := range map[string]string{"out": outside, "outfile": "../victim", "dangling": "../none", "gone": "nowhere", "good": "sub", "goodfile": "sub/f", "abs": d.dir + "/sub"} {
		if err := os.Symlink(target, filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(outside+"/victim", []byte("untouched"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"../x", "/etc/x", outside + "/x", "out/x", "outfile", d.dir + "2/x", "good/../../x"} {
		d.refuses(1, "write_file", fmt.Sprintf(`{"path":%q,"content":"x"}`, p), types.ErrPermission, d.dir)
		d.refuses(1, "make_dir", fmt.Sprintf(`{"path":%q}`, p), types.ErrPermission)
		if p != "outfile" { // as an entry it is the link, which is inside
			d.refuses(1, "move", fmt.Sprintf(`{"from":"in","to":%q}`, p), types.ErrPermission)
			d.refuses(1, "delete", fmt.Sprintf(`{"path":%q}`, p), types.ErrPermission)
		}
	}
	d.refuses(1, "write_file", `{"path":"dangling","content":"x"}`, types.ErrInvalid, "symbolic link")
	d.refuses(1, "write_file", `{"path":"gone","content":"x"}`, types.ErrInvalid, "symbolic link")
	for _, p := range []string{".", "", "sub/..", d.dir} {
		if _, err := d.run(1, "delete", fmt.Sprintf(`{"path":%q,"recursive":true}`, p)); err == nil {
			t.Fatalf("the workspace can be deleted as %q", p)
		}
	}
	d.must(1, "read_file", `{"path":"goodfile"}`)
	d.must(1, "write_file", `{"path":"goodfile","content":"through\n"}`)
	d.must(1, "write_file", `{"path":"abs/new","content":"n\n"}`)
	if d.content("sub/f") != "through\n" || d.content("sub/new") != "n\n" {
		t.Error("links inside are not followed")
	}
	d.must(1, "delete", `{"path":"out","recursive":true}`)
	d.must(1, "delete", `{"path":"outfile"}`)
	if b, err := os.ReadFile(outside + "/victim"); err != nil || string(b) != "untouched" {
		t.Errorf("deleting a link has touched its target: %q, %v", b, err)
	}
}

func TestGitIsNotTouched(t *testing.T) {
	d := newDesk(t, ".git/config", "c", "lib/dep/.git/HEAD", "h", "lib/x", "x", "a", "a")
	for _, p := range []string{".git/hooks/pre-commit", ".git/config", ".git", ".GIT/config", "lib/dep/.git/HEAD", "new/.git"} {
		d.refuses(1, "write_file", fmt.Sprintf(`{"path":%q,"content":"x"}`, p), types.ErrPermission, "use git")
		d.refuses(1, "delete", fmt.Sprintf(`{"path":%q,"recursive":true}`, p), types.ErrPermission)
		d.refuses(1, "move", fmt.Sprintf(`{"from":"a","to":%q}`, p), types.ErrPermission)
		d.refuses(1, "make_dir", fmt.Sprintf(`{"path":%q}`, p), types.ErrPermission)
	}
	d.refuses(1, "delete", `{"path":"lib","recursive":true}`, types.ErrPermission, "lib/dep/.git", "repository")
	if d.content("lib/x") != "x" {
		t.Error("something was deleted all the same")
	}
}

func TestReplacingKeepsModeAndBreaksHardLinks(t *testing.T) {
	d := newDesk(t, "tool.sh", "#!/bin/sh\n")
	outside := filepath.Dir(d.dir) + "/outside"
	if err := os.WriteFile(outside, []byte("shared\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(outside, d.dir+"/linked"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(d.dir+"/tool.sh", 0o750); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"tool.sh", "linked"} {
		d.must(1, "read_file", fmt.Sprintf(`{"path":%q}`, p))
		d.must(1, "write_file", fmt.Sprintf(`{"path":%q,"content":"new\n"}`, p))
	}
	if info, err := os.Stat(d.dir + "/tool.sh"); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	if b, _ := os.ReadFile(outside); string(b) != "shared\n" || d.content("linked") != "new\n" {
		t.Errorf("a change went through a hard link: %q", b)
	}
}

func TestReplacingKeepsTheOwner(t *testing.T) {
	d := newDesk(t, "a", "a\n")
	if err := os.Chown(d.dir+"/a", 12345, 12345); err != nil {
		t.Skip("needs to be root: ", err)
	}
	d.must(1, "read_file", `{"path":"a"}`)
	d.must(1, "write_file", `{"path":"a","content":"b\n"}`)
	info, err := os.Stat(d.dir + "/a")
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 12345 || st.Gid != 12345 {
		t.Errorf("the owner is %d:%d now", st.Uid, st.Gid)
	}
}

// TestAWriteAfterASwapIsRefused replaces a directory by a link to the outside after its path was
// checked.
func TestAWriteAfterASwapIsRefused(t *testing.T) {
	d := newDesk(t, "d/f", "f")
	c, err := New(d.seen, nil).begin(vfs.Caller{PID: 1, WorkDir: d.dir}, "write_file")
	if err != nil {
		t.Fatal(err)
	}
	defer c.roots.Close()
	p, err := c.target("d/new")
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Dir(d.dir) + "/outside"
	if err := os.Rename(d.dir+"/d", outside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, d.dir+"/d"); err != nil {
		t.Fatal(err)
	}
	if err := fs.Failure("write_file", p.Name, c.put(p, []byte("x"), nil)); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(outside + "/new"); err == nil {
		t.Error("the file was written outside")
	}
}

func TestFilesThatAreNoneAreRefused(t *testing.T) {
	d := newDesk(t)
	if err := syscall.Mkfifo(d.dir+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	d.refuses(0, "write_file", `{"path":"pipe","content":"x"}`, types.ErrPermission, "named pipe")
	d.refuses(1, "write_file", fmt.Sprintf(`{"path":%q,"content":"x"}`, strings.Repeat("n", 300)), types.ErrInvalid)
	d.refuses(1, "write_file", `{"path":"`+fs.TempPrefix+`x","content":"x"}`, types.ErrInvalid)
	d.refuses(1, "move", `{"from":"pipe","to":"pipe/in"}`, types.ErrInvalid, "itself")
	d.refuses(1, "move", `{"from":"none","to":"x"}`, types.ErrNotFound)
}

func TestLeftoversOfAKilledRunGoAway(t *testing.T) {
	d := newDesk(t, "a", "a", fs.TempPrefix+"OLD-1", "half", fs.TempPrefix+"OTHER-2", "under way")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(d.dir+"/"+fs.TempPrefix+"OLD-1", old, old); err != nil {
		t.Fatal(err)
	}
	d.must(1, "write_file", `{"path":"b","content":"b"}`)
	if _, err := os.Lstat(d.dir + "/" + fs.TempPrefix + "OLD-1"); err == nil {
		t.Error("an old temporary file is still there")
	}
	if err := os.Remove(d.dir + "/" + fs.TempPrefix + "OTHER-2"); err != nil {
		t.Errorf("the file of a run that may be alive is gone: %v", err)
	}
}

func TestDeletingATreeCanBeCancelled(t *testing.T) {
	d := newDesk(t, "t/a", "", "t/b", "")
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if n, err := remove(ctx, root, "t", "delete"); n != 0 || types.CodeOf(err) != types.ErrCancelled {
		t.Errorf("%d entries were deleted, then %v", n, err)
	}
}

func TestSummariesStayShort(t *testing.T) {
	old := current{content: []byte(strings.Repeat("a\n", 1000)), info: fileInfo(t)}
	s := summary("f", old, []byte(strings.Repeat("b\n", 2000)+strings.Repeat("x", 5000)))
	if len(s) > 1000 || !strings.Contains(s, "970 lines more") || !strings.Contains(s, "1000 lines removed, 2001 added") {
		t.Errorf("%d bytes:\n%s", len(s), s)
	}
	if s := summary("f", current{content: []byte{0, 1}, info: fileInfo(t)}, []byte("text")); s != "replaced f: 4 bytes, 2 before\n" {
		t.Errorf("binary: %s", s)
	}
}

func fileInfo(t *testing.T) os.FileInfo {
	t.Helper()
	info, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return info
}
