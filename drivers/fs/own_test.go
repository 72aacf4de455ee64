package fs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/types"
	"rnix/vfs"
)

// newOwn makes a home directory with a directory of ours in it, whose parent is a link, and one of our files kept elsewhere.
func newOwn(t *testing.T) (home string, own *Own) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"real/ours/init.yaml": "key", "real/theirs.txt": "key", "elsewhere/policy.yaml": "key", "data/steps/1/scratch/out": "key",
		"data/steps/1/steps.jsonl": "key", "data/trees/1/note": "key", "data/trees/1/tree/a.txt": "key", "data/trees/1/tree/data/b.txt": "key",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{".config": "real", "real/ours/policy.yaml": "../../elsewhere/policy.yaml", "way": ".config/ours"} {
		if err := os.Symlink(to, filepath.Join(home, from)); err != nil {
			t.Fatal(err)
		}
	}
	return home, NewOwn([]OwnDir{{Path: home + "/.config/ours", What: "configuration", Links: true}, {Path: home + "/data", What: "data"}, {Path: home + "/late/ours", What: "late"}},
		WorkPlace{Path: home + "/data/trees", Depth: 2})
}

func TestOwnDirectoriesAreServedToNone(t *testing.T) { // T15
	home, own := newOwn(t)
	d := New(nil, own)
	for _, c := range []vfs.Caller{{PID: 1, WorkDir: home}, {PID: 0, WorkDir: t.TempDir(), ReadRoots: []string{"/"}}, {PID: 1, WorkDir: t.TempDir(), ReadRoots: []string{home + "/real/ours", home + "/data", home + "/data/trees/1", home}}} {
		for _, name := range []string{"real/ours", "real/ours/init.yaml", ".config/ours/init.yaml", "way/init.yaml", "real//ours/./init.yaml", "elsewhere/policy.yaml",
			"data/steps/1/steps.jsonl", "data/steps/1/scratch/out", "data/trees/1/tree/a.txt", "data/nothing", "late/ours/x"} {
			_, err := ask(t, d, c, "read_file", `{"path":"`+home+"/"+name+`"}`)
			if types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "agents may not reach") {
				t.Errorf("%s of %+v: %v", name, c, err)
			}
			f, err := d.Open(home+"/"+name, vfs.OpenRead)
			if err == nil {
				err = f.(vfs.CallerBinder).BindCaller(c)
			}
			if types.CodeOf(err) != types.ErrPermission {
				t.Errorf("open of %s: %v", name, err)
			}
		}
	}
	c := vfs.Caller{PID: 1, WorkDir: home}
	for _, tool := range []string{"list_files", "glob", "grep"} {
		out, err := ask(t, d, c, tool, `{"all":true`+map[string]string{"list_files": `,"depth":9}`, "glob": `,"pattern":"**"}`, "grep": `,"pattern":"key"}`}[tool])
		if err != nil || !strings.Contains(out, "theirs.txt") || strings.Contains(out, "init.yaml") || strings.Contains(out, "scratch") || strings.Contains(out, "a.txt") ||
			tool != "grep" && !strings.Contains(out, "[left out, because it belongs to Rnix itself and agents may not reach it: data, elsewhere/policy.yaml, real/ours]") {
			t.Errorf("%s: %v\n%s", tool, err, out)
		}
	}
	f, err := d.Open(home+"/real", vfs.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.(vfs.CallerBinder).BindCaller(c); err != nil {
		t.Fatal(err)
	}
	if b, err := f.Read(0); string(b) != "theirs.txt\n" {
		t.Errorf("%q %v", b, err)
	}
}

func TestOwnWorkIsServedToItsProcess(t *testing.T) { // T15
	home, own := newOwn(t)
	d := New(nil, own)
	c := vfs.Caller{PID: 1, WorkDir: home + "/data/trees/1/tree", Scratch: home + "/data/steps/1/scratch"}
	for name, ok := range map[string]bool{"a.txt": true, "data/b.txt": true, home + "/data/steps/1/scratch/out": true, home + "/data/trees/1/tree/a.txt": true,
		"../note": false, home + "/data/steps/1/steps.jsonl": false} {
		if _, err := ask(t, d, c, "read_file", `{"path":"`+name+`"}`); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, dir := range []string{"/data/trees/1", "/data/trees", "/data", "/data/trees/1/tree/../.."} { // they were not made to be worked in
		if _, err := ask(t, d, vfs.Caller{PID: 1, WorkDir: home + dir}, "list_files", `{}`); types.CodeOf(err) != types.ErrPermission {
			t.Errorf("%s: %v", dir, err)
		}
	}
	parent := vfs.Caller{PID: 2, WorkDir: t.TempDir(), ReadRoots: []string{home + "/data/trees/1/tree", home + "/data/trees/1"}}
	for name, ok := range map[string]bool{"/data/trees/1/tree/a.txt": true, "/data/trees/1/note": false} {
		if _, err := ask(t, d, parent, "read_file", `{"path":"`+home+name+`"}`); (err == nil) != ok {
			t.Errorf("%s for its parent: %v", name, err)
		}
	}
	r, err := own.Workspace(c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Locate(home + "/data/steps/1/scratch/out"); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("the scratch may be changed: %v", err)
	}
}

// What leads to a directory of ours only after it was looked at is refused when it is open.
func TestOwnDirectoriesAreRefusedOnceOpen(t *testing.T) { // T15
	home, own := newOwn(t)
	if nameOf(os.Stdin) == "" {
		t.Skip("needs a system that says where an open file is")
	}
	c := vfs.Caller{PID: 1, WorkDir: home}
	if err := os.Mkdir(home+"/later", 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := own.Workspace(c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := r.Locate("later/init.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(home+"/later", home+"/before"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(home+"/way", home+"/later"); err != nil { // a link that was in the workspace
		t.Fatal(err)
	}
	if f, _, err := p.Open(); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("open: %v %v", f, err)
	}
	if dir, _, err := p.Parent(); err == nil {
		t.Errorf("parent: %v", dir)
	}
}

// A directory that has another name there too, as by a bind mount, is known by what it is.
func TestOwnDirectoriesAreKnownUnderOtherNames(t *testing.T) { // T15
	home, own := newOwn(t)
	g := own.guard(vfs.Caller{PID: 1, WorkDir: home})
	for i := range g.shut {
		g.shut[i].names = []string{"/nowhere"}
	}
	for _, path := range []string{"/real/ours/init.yaml", "/real/ours", "/data/steps/9/none"} {
		if g.holding(home+path) == nil {
			t.Errorf("%s is served", path)
		}
	}
	if d := g.holding(home + "/real/theirs.txt"); d != nil {
		t.Errorf("%+v", d)
	}
	f, err := os.Open(home + "/data")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if g.listed(f) == nil {
		t.Error("it is listed")
	}
}
