package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/types"
	"rnix/vfs"
)

// What a person has looked at is pinned whatever lies there now, and what is started besides is said.
func TestWhatAServerStartsIsPinnedWhateverLiesThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"here.sh": "x", "data.db": "x", "new.sh": "x", "tools/bin": "#!/bin/sh\n"})
	was := []File{{Path: "here.sh", Sum: "1"}, {Path: "gone.sh", Sum: "2", Kind: "executable"}, {Path: "gone", Sum: "3"}, {Path: "tools/bin", Sum: "4"}}
	for name, c := range map[string]struct {
		server agent.MCPServer
		pinned string // arguments and paths
		unseen string
	}{
		"the command":                   {agent.MCPServer{Command: "./here.sh"}, "-1 here.sh", ""},
		"by its whole path":             {agent.MCPServer{Command: dir + "/here.sh"}, "-1 here.sh", ""},
		"one that has gone":             {agent.MCPServer{Command: "./gone.sh"}, "-1 gone.sh", ""},
		"a script that has gone":        {agent.MCPServer{Command: "sh", Args: []string{"-e", "gone"}}, "1 gone", ""},
		"a flag":                        {agent.MCPServer{Command: "node", Args: []string{"--import=./here.sh", "tools/bin"}}, "0 --import= here.sh, 1 tools/bin", ""},
		"a database":                    {agent.MCPServer{Command: "./here.sh", Args: []string{"data.db", "none.db"}}, "-1 here.sh", ""},
		"a program in PATH":             {agent.MCPServer{Command: "gone"}, "", ""},
		"what lies elsewhere":           {agent.MCPServer{Command: "/bin/sh", Args: []string{"/bin/sh", "/none/x.sh"}}, "", ""},
		"a script nobody has looked at": {agent.MCPServer{Command: "sh", Args: []string{"new.sh"}}, "", "new.sh"},
		"a script that never was":       {agent.MCPServer{Command: "python3", Args: []string{"never.py"}}, "", "never.py"},
		"a command that never was":      {agent.MCPServer{Command: "./never"}, "", "never"},
		"a word of a program":           {agent.MCPServer{Command: "uv", Args: []string{"run", "here.sh"}}, "1 here.sh", ""},
		"an output":                     {agent.MCPServer{Command: "./here.sh", Args: []string{"out/never.js"}}, "-1 here.sh", ""},
	} {
		pins, unseen := Pin(was, dir, dir, c.server)
		var got []string
		for _, f := range pins {
			got = append(got, strings.Join(strings.Fields(string(rune('0'+f.Arg))+" "+f.Flag+" "+f.Path), " "))
		}
		if text := strings.ReplaceAll(strings.Join(got, ", "), "/ ", "-1 "); text != c.pinned || unseen != c.unseen {
			t.Errorf("%s: pinned %q, unseen %q", name, text, unseen)
		}
	}
}

func TestCopyIsOfWhatWasLookedAtOrIsNone(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{"a/b/run.sh": "x", "a/b/lib.sh": "lib", "a/other": "o", "top": "t"})
	files, err := Look(dir, "a/b/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	p := &vfs.Pinned{Root: dir, Files: []vfs.PinnedFile{{Arg: 1, Flag: "--f=", Path: "a/b/run.sh", Sum: files[0].Sum, Kind: files[0].Kind}}}
	if err := Copy(to, p); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"a/b/run.sh": "y"})
	for name, want := range map[string]string{"a/b/run.sh": "x", "a/b/lib.sh": "lib", "a/other": "o", "top": "t"} {
		if text, err := os.ReadFile(filepath.Join(to, name)); string(text) != want || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	args := []string{"0", "1"}
	if command, got := Instead(to, p, "sh", args); command != "sh" || got[1] != "--f="+to+"/a/b/run.sh" || args[1] != "1" {
		t.Errorf("%s %q, %q", command, got, args)
	}
	for name, other := range map[string]func() error{
		"changed": func() error { return nil },
		"a link":  func() error { return relink(filepath.Join(dir, "a/b/run.sh"), "lib.sh") },
		"gone":    func() error { return os.Remove(filepath.Join(dir, "a/b/run.sh")) },
	} {
		if err := other(); err != nil {
			t.Fatal(err)
		}
		if err := Copy(t.TempDir(), p); err == nil || name != "gone" && types.CodeOf(err) != types.ErrPermission {
			t.Errorf("%s: %v", name, err)
		}
		_ = os.Remove(filepath.Join(dir, "a/b/run.sh"))
		write(t, dir, map[string]string{"a/b/run.sh": "y"})
	}
}
