package run

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"rnix/internal/compose"
	"rnix/internal/testcase"
	"rnix/ipc"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPathsOfARunHaveAWord(t *testing.T) {
	var k tokens
	k.add("/d/steps/u", testcase.History)
	k.add("/w/p", testcase.Workspace)
	k.add("/", testcase.Workspace)
	for text, want := range map[string]string{
		"/w/p":                  "@WORKSPACE@",
		"cat /w/p/a.go /w/pq":   "cat @WORKSPACE@/a.go /w/pq",
		"/x/w/p and \"/w/p\"":   "/x/w/p and \"@WORKSPACE@\"",
		"a/w/p":                 "a/w/p",
		"/d/steps/u/inputs/one": "@HISTORY@/inputs/one",
		"/w/p.old /w/p:1":       "/w/p.old @WORKSPACE@:1",
	} {
		if got := k.out(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := in("see @WORKSPACE@/a", "/tmp/x"); got != "see /tmp/x/a" {
		t.Error(got)
	}
}

func TestProcessesAreAskedForByTheNumbersOfANewDaemon(t *testing.T) {
	change := renumbering(&ipc.ExportResponse{Procs: []ipc.ExportedProc{{ProcStatus: types.ProcStatus{PID: 40}}, {ProcStatus: types.ProcStatus{PID: 57}}, {ProcStatus: types.ProcStatus{PID: 61}}}})
	for _, c := range [][3]string{
		{"wait", `{"pids":[61,57,99]}`, `{"pids":[3,2,99]}`},
		{"send", `{"pid":57,"text":"57"}`, `{"pid":2,"text":"57"}`},
		{"shell", `{"pid":57}`, `{"pid":57}`},
		{"wait", `not json`, `not json`},
		{"wait", `{"pids":null}`, `{"pids":null}`},
	} {
		if got := change(c[0], c[1]); got != c[2] {
			t.Errorf("%s %s became %s", c[0], c[1], got)
		}
	}
}

func TestSecretsAreNotHandedOn(t *testing.T) {
	m := &importer{top: &ipc.ExportedProc{}, o: ImportOptions{Env: []string{"API_TOKEN=s3cret-value-1234", "HOME=/h"}}, before: map[string][]byte{
		"a.go": []byte("package a"), ".env": []byte("A=1"), ".env.example": []byte("A="), "deploy/server.key": []byte("x"), "id_rsa": []byte("x"),
		"notes.txt": []byte("the token is s3cret-value-1234"), "cert": []byte("-----BEGIN EC PRIVATE KEY-----\nx")}}
	m.before["later.txt"] = []byte("nothing yet")
	m.after = map[string][]byte{"b.txt": []byte("s3cret-value-1234"), "c.txt": []byte("fine"), "later.txt": []byte("now s3cret-value-1234")}
	m.choose()
	if got := fmt.Sprint(sorted(m.before), sorted(m.after)); got != "[.env.example a.go] [c.txt]" {
		t.Error(got)
	}
	if len(m.notes) != 1 || !strings.Contains(m.notes[0], "notes.txt") {
		t.Error(m.notes)
	}
}

func TestOfManyFilesThoseAreTakenThatTheRunNeeds(t *testing.T) {
	m := &importer{x: ipc.ExportResponse{Procs: []ipc.ExportedProc{{ProcStatus: types.ProcStatus{WorkDir: "/w"}, Turns: []ipc.Turn{{Calls: []ipc.TurnCall{
		{Name: "read_file", Input: `{"path":"/w/docs/one.md"}`}, {Name: "shell", Input: `{"command":"go vet ./sub && cat x.go"}`}}}}}}}}
	m.top = &m.x.Procs[0]
	m.before = map[string][]byte{"docs/one.md": nil, "docs/two.md": nil, "sub/a.go": nil, "x.go": nil, ".rnix/agents/a/agent.yaml": nil, "sub/AGENTS.md": nil, "changed.txt": []byte("1")}
	m.after = map[string][]byte{}
	for n := range fewFiles {
		m.before[fmt.Sprint("other/", n)] = []byte("x")
	}
	for name, b := range m.before {
		m.after[name] = b
	}
	m.after["changed.txt"] = []byte("2")
	m.choose()
	if got := fmt.Sprint(sorted(m.before)); got != "[.rnix/agents/a/agent.yaml changed.txt docs/one.md sub/AGENTS.md sub/a.go x.go]" {
		t.Error(got)
	}
	if !m.part {
		t.Error("what was left out is forgotten: what looks at many files is expected to find it")
	}
	if len(m.notes) != 1 || !strings.Contains(m.notes[0], "201 of 207 files are left out") {
		t.Error(m.notes)
	}
}

func TestWhatCannotBePlayedAgainIsRefused(t *testing.T) {
	good := ipc.ExportedProc{ProcStatus: types.ProcStatus{PID: 3, Exit: &types.ExitStatus{}}, State: "dead", Driver: "anthropic", Turns: []ipc.Turn{{}}, Runs: 1}
	for want, spoil := range map[string]func(*ipc.ExportedProc){
		"is suspended":                        func(p *ipc.ExportedProc) { p.State = "suspended" },
		"is still running":                    func(p *ipc.ExportedProc) { p.State = "running" },
		"agent's command line":                func(p *ipc.ExportedProc) { p.Driver = "claude-agent" },
		"MCP servers (/dev/mcp/x)":            func(p *ipc.ExportedProc) { p.MCPMounts = []string{"/dev/mcp/x"} },
		"is a supervisor":                     func(p *ipc.ExportedProc) { p.Kind = "supervisor" },
		"is a run of a workflow":              func(p *ipc.ExportedProc) { p.Kind = compose.ProcessKind },
		"no answer of a model":                func(p *ipc.ExportedProc) { p.Turns = nil },
		"read to the end, see rnix fsck: cut": func(p *ipc.ExportedProc) { p.Damage, p.State, p.Exit = "cut", "suspended", nil },
	} {
		p := good
		spoil(&p)
		m := &importer{x: ipc.ExportResponse{Procs: []ipc.ExportedProc{p}}}
		m.top = &m.x.Procs[0]
		if err := m.playable(); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	good.OriginUUID, good.OriginStep, good.Said, good.Runs = types.NewUUID(), 2, 1, 2
	m := &importer{x: ipc.ExportResponse{Procs: []ipc.ExportedProc{good, good}}}
	m.top = &m.x.Procs[0]
	if err := m.playable(); err != nil || len(m.notes) != 7 {
		t.Errorf("%v, %q", err, m.notes)
	}
}

func TestCasesAreFoundBelowDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a", "b/c", "b/c/workspace/d", ".hidden/e", "empty"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
		if d != "empty" {
			if err := os.WriteFile(filepath.Join(dir, d, testcase.File), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := Find([]string{dir, filepath.Join(dir, "a")})
	if want := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b/c")}; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v", got, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if got, err := Find([]string{link}); err != nil || len(got) != 2 || got[0] != filepath.Join(link, "a") {
		t.Errorf("by a link: %v, %v", got, err)
	}
	for _, d := range []string{"empty", "missing"} {
		if _, err := Find([]string{filepath.Join(dir, d)}); types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("%s: %v", d, err)
		}
	}
}

func TestFilesAreCopiedAsTheyAre(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for name, mode := range map[string]os.FileMode{"a.sh": 0o755, "b": 0o644} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("b", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(from, "sub/.git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, "sub/.git/HEAD"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := tree(from)
	if err != nil || fmt.Sprint(sorted(files)) != "[a.sh b link]" {
		t.Fatalf("%v, %v", sorted(files), err)
	}
	if err := write(to, files, special(from, files)); err != nil {
		t.Fatal(err)
	}
	again, err := tree(to)
	if err != nil || len(testcase.Statuses(files, again)) != 0 || special(to, again)["a.sh"] == 0 || special(to, again)["b"] != 0 || special(to, again)["link"] != fs.ModeSymlink {
		t.Errorf("%v, %v", again, err)
	}
	if files, err := tree(filepath.Join(from, "missing")); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
}

// What is said of a link stands in the expected files as a text, and a file that only reads like one stays a file.
func TestATextThatReadsLikeALinkIsNone(t *testing.T) {
	dir := t.TempDir()
	text := []byte(linkMark + "b")
	if err := write(dir, map[string][]byte{"workspace/link": text, "expected/link": text}, map[string]fs.FileMode{"workspace/link": fs.ModeSymlink}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "expected/link")); err != nil || string(b) != string(text) {
		t.Errorf("%q, %v", b, err)
	}
	if to, err := os.Readlink(filepath.Join(dir, "workspace/link")); err != nil || to != "b" {
		t.Errorf("%q, %v", to, err)
	}
}

// Links in a workspace lead neither what is written nor what is read out of it.
func TestNoLinkLeadsOutOfAWorkspace(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "there"), []byte("private"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, map[string][]byte{"out/new": []byte("x")}, nil); err == nil {
		t.Error("it was written through a link")
	}
	if l, err := os.ReadDir(other); err != nil || len(l) != 1 {
		t.Errorf("%v, %v", l, err)
	}
	if err := write(dir, map[string][]byte{"out": []byte("x"), "near": []byte("y")}, nil); err != nil {
		t.Errorf("a file in the place of a link: %v", err)
	}
	if err := os.Symlink(other, filepath.Join(dir, "again")); err != nil {
		t.Fatal(err)
	}
	m := &importer{x: ipc.ExportResponse{Procs: []ipc.ExportedProc{{ProcStatus: types.ProcStatus{WorkDir: dir}, Turns: []ipc.Turn{{Calls: []ipc.TurnCall{{Input: `{"command":"cat again/there near ../x /etc/passwd"}`}}}}}}}}
	m.top = &m.x.Procs[0]
	if files, err := m.some(dir); err != nil || fmt.Sprint(sorted(files)) != "[near]" {
		t.Errorf("%v, %v", sorted(files), err)
	}
}

func TestWhatMayNotBeWrittenIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	if err := os.MkdirAll(filepath.Join(dir, "b", "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{filepath.Join(dir, "b"), dir} {
		if err := os.Chmod(d, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeAll(dir); err != nil {
		t.Error(err)
	}
}
