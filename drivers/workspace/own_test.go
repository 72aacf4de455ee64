package workspace

import (
	"strings"
	"testing"

	"rnix/drivers/fs"
	"rnix/types"
	"rnix/vfs"
)

// What belongs to Rnix is neither changed nor taken along when what holds it is moved or deleted.
func TestOwnDirectoriesAreNotChanged(t *testing.T) { // T15
	d := newDesk(t, "conf/ours/init.yaml", "x", "free/a", "x")
	own := fs.NewOwn([]fs.OwnDir{{Path: d.dir + "/conf/ours", What: "configuration"}, {Path: d.dir + "/none/ours", What: "other"}})
	device := New(d.seen, own)
	for _, c := range []struct {
		op, input string
		refused   bool
	}{
		{"write_file", `{"path":"conf/ours/init.yaml","content":"y"}`, true}, {"write_file", `{"path":"conf/ours/new","content":"y"}`, true}, {"write_file", `{"path":"none/ours/new","content":"y"}`, true},
		{"edit_file", `{"path":"conf/ours/init.yaml","old":"x","new":"y"}`, true}, {"make_dir", `{"path":"none/ours"}`, true}, {"delete", `{"path":"conf/ours/init.yaml"}`, true},
		{"delete", `{"path":"conf","recursive":true}`, true}, {"delete", `{"path":"conf/ours","recursive":true}`, true}, {"move", `{"from":"conf","to":"b"}`, true},
		{"move", `{"from":"conf/ours/init.yaml","to":"b"}`, true}, {"move", `{"from":"free","to":"none"}`, true}, {"move", `{"from":"free/a","to":"conf/ours/a"}`, true},
		{"make_dir", `{"path":"conf/theirs"}`, false}, {"move", `{"from":"free","to":"conf/free"}`, false}, {"delete", `{"path":"conf/free","recursive":true}`, false},
	} {
		f, err := device.Open("", vfs.OpenReadWrite)
		if err == nil {
			err = f.(vfs.CallerBinder).BindCaller(vfs.Caller{PID: 1, WorkDir: d.dir})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range Tools() {
			if tool.Name == c.op {
				err = f.Write(t.Context(), tool.Input([]byte(c.input)))
			}
		}
		_ = f.Close()
		if (types.CodeOf(err) == types.ErrPermission && strings.Contains(err.Error(), "agents may not reach")) != c.refused || !c.refused && err != nil {
			t.Errorf("%s %s: %v", c.op, c.input, err)
		}
	}
	for _, name := range []string{"conf/ours/init.yaml", "none/ours/new"} {
		f, err := device.Open("/"+name, vfs.OpenReadWrite)
		if err == nil {
			err = f.(vfs.CallerBinder).BindCaller(vfs.Caller{PID: 1, WorkDir: d.dir})
		}
		if types.CodeOf(err) != types.ErrPermission {
			t.Errorf("%s is opened: %v", name, err)
		}
	}
	if got := d.content("conf/ours/init.yaml"); got != "x" {
		t.Errorf("%q", got)
	}
}
