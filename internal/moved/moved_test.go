package moved

import (
	"os"
	"path/filepath"
	"testing"

	"rnix/types"
)

func TestAPathOfAnOtherDataDirectoryIsFoundHere(t *testing.T) {
	data, fork, tree, elsewhere := t.TempDir(), types.NewUUID().String(), types.NewUUID().String(), types.NewUUID().String()
	for _, dir := range []string{"workspaces/" + fork, "worktrees/" + tree + "/project"} {
		if err := os.MkdirAll(filepath.Join(data, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/old/data/workspaces/" + fork:                      data + "/workspaces/" + fork,
		"/old/data/workspaces/" + fork + "/a/b":             data + "/workspaces/" + fork + "/a/b",
		"/old/data/worktrees/" + tree + "/project/a":        data + "/worktrees/" + tree + "/project/a",
		"/old/data/workspaces/" + elsewhere:                 "", // of another data directory, which was not moved here
		"/old/data/worktrees/" + fork:                       "",
		"/home/u/workspaces/project":                        "",
		data + "/workspaces/" + elsewhere:                   "",
		link + "/workspaces/" + fork:                        "", // the same directory
		"workspaces/" + fork:                                "",
		"/x/workspaces/" + elsewhere + "/worktrees/" + tree: data + "/worktrees/" + tree,
		"": "",
	} {
		if want == "" {
			want = path
		}
		if got := Here(data, path); got != want {
			t.Errorf("%s is in %s, want %s", path, got, want)
		}
	}
	was := `{"cwd":"/old/workspaces/` + fork + `/a","n":12345678901234567890,"roots":["/x","/old/worktrees/` + tree + `"],"prompt":"a <b> /old/workspaces/` + fork + `"}`
	want := `{"cwd":"` + data + `/workspaces/` + fork + `/a","n":12345678901234567890,"prompt":"a <b> /old/workspaces/` + fork + `","roots":["/x","` + data + `/worktrees/` + tree + `"]}`
	if got := string(JSON(data, []byte(was))); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if other := `{ "cwd":"/home/workspaces/x" }`; string(JSON(data, []byte(other))) != other {
		t.Error("a value without such a path is another one")
	}
}
