package kernel

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rnix/types"
	"rnix/vfs"
)

func TestEmptyIntersectionAllowsNothing(t *testing.T) {
	parent := Rights{}.Narrow([]string{"/dev/fs"})
	child := parent.Narrow([]string{"/dev/shell"})
	if child.Allowed == nil {
		t.Fatal("no rights became all rights")
	}
	for _, p := range []string{"/dev/fs", "/dev/shell", "/dev/workspace", "/", "/proc"} {
		if child.Permits(p) {
			t.Errorf("%s is allowed", p)
		}
	}
}

func TestPrefixIsNotParent(t *testing.T) {
	r := Rights{}.Narrow([]string{"/dev/fs/"})
	for path, want := range map[string]bool{
		"/dev/fs": true, "/dev/fs/a": true, "/dev/fsx": false, "/dev": false, "/dev/fs/../shell": false, "/dev/./fs": false,
	} {
		if r.Permits(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

func TestDenyWins(t *testing.T) {
	r := Rights{}.Without([]string{"/dev/shell"})
	if r.Permits("/dev/shell") || r.Permits("/dev/shell/x") || !r.Permits("/dev/fs") {
		t.Error(r)
	}
	if r.Narrow([]string{"/dev/shell"}).Permits("/dev/shell") {
		t.Error("a later allow undid a deny")
	}
}

// Whatever is narrowed how often: nobody ever gets what one of the parties did not allow.
func TestChildNeverHasMoreThanItsParent(t *testing.T) {
	path := rapid.SampledFrom([]string{"/dev", "/dev/fs", "/dev/fs/a", "/dev/fsx", "/dev/shell", "/mnt/mcp", "/mnt/mcp/3-x", "/", "/proc"})
	list := rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(path, 0, 3))
	rapid.Check(t, func(t *rapid.T) {
		parent := Rights{}.Narrow(list.Draw(t, "p")).Without(list.Draw(t, "pd"))
		own := Rights{}.Narrow(list.Draw(t, "c")).Without(list.Draw(t, "cd"))
		child := own.Within(parent)
		p := path.Draw(t, "path")
		if child.Permits(p) != (parent.Permits(p) && own.Permits(p)) {
			t.Fatalf("%s: child %v, parent %v, own %v", p, child, parent, own)
		}
	})
}

// However often the models that it may lend are narrowed, with lists that name none and with lists that name others: a process lends none that those above
// it may not.
func TestNobodyLendsAModelThatOneAboveItMayNot(t *testing.T) {
	models := []string{"/dev/llm/a", "/dev/llm/b", "/dev/llm/c"}
	path := rapid.SampledFrom(append([]string{"/dev", "/dev/llm", "/dev/shell", "/sys/spawn", "/"}, models...))
	list := rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(path, 0, 3))
	rapid.Check(t, func(t *rapid.T) {
		r := Rights{}
		for range 5 {
			allowed, denied := list.Draw(t, "allowed"), list.Draw(t, "denied")
			below := Rights{}.Narrow(allowed).Without(denied).Within(r)
			for _, m := range models {
				if below.lends(m) && !r.lends(m) {
					t.Fatalf("%v may not lend %s, and below it %v may, by the lists %q and %q", r, m, below, allowed, denied)
				}
				if own := (Rights{}).Narrow(allowed); below.lends(m) && !own.lends(m) {
					t.Fatalf("%v may lend %s, against its own list %q", below, m, allowed)
				}
			}
			for _, p := range []string{"/dev/llm/a", "/dev/llm", "/dev/shell", "/sys/spawn"} {
				if below.Permits(p) && !r.Permits(p) {
					t.Fatalf("%v permits %s, and %v above it does not", below, p, r)
				}
			}
			r = below
		}
	})
}

// What is accepted as denied is refused when it is opened, with all below it, however it is written.
func TestWhatIsDeniedCannotBeOpened(t *testing.T) { // T4
	devices := vfs.NewDeviceRegistry()
	for _, path := range []string{"/dev/tool", "/dev/llm", "/proc"} {
		if err := devices.Register(path, vfs.NewProcFS(nil, nil).Open); err != nil {
			t.Fatal(err)
		}
	}
	k := New(Config{Devices: devices}, nil)
	defer func() { _ = k.Shutdown(t.Context()) }()
	word := rapid.SampledFrom([]string{"", "dev", "fs", "llm", "tool", "shell", "proc", "self", "7", "07", "8", "mnt", "mcp", "files", "7-files", "tools", "resources", "read", "x", "..", ".", "sys", "spawn", "wait", "sub", "*", "fallback"})
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		denied := strings.Repeat("/", rapid.IntRange(0, 1).Draw(t, "rooted")) + strings.Join(rapid.SliceOfN(word, 0, 6).Draw(t, "words"), "/")
		if known := rapid.SampledFrom([]string{"", "/dev/llm", "/dev/fs", "/mnt/mcp/files", "/mnt/mcp/files/tools", "/proc", "/sys"}).Draw(t, "known"); known != "" {
			denied = known + "/" + denied
		}
		if k.CheckDevices(nil, []string{denied}) != nil {
			return
		}
		accepted++
		p := &Process{PID: 7, card: &card{Rights: Rights{}.Without([]string{denied}), MCPMounts: []string{"/mnt/mcp/7-files"}}}
		paths := []string{denied, denied + "/" + word.Draw(t, "below")}
		if in, ok := strings.CutPrefix(denied, "/mnt/mcp/files"); ok && (in == "" || in[0] == '/') { // where it is mounted for this process
			paths = append(paths, "/mnt/mcp/7-files"+in, "/mnt/mcp/7-files"+in+"/x")
		}
		if denied == "/proc/self" || denied == "/proc/7" {
			paths = append(paths, "/proc/self/context", "/proc/7/context", "/proc//7/context", "/proc//self")
		}
		if model, ok := strings.CutPrefix(denied, "/dev/llm/"); ok {
			paths = append(paths, "/dev/llm/other/fallback/"+model, "/dev/llm/other//fallback/"+model+"/m", "/dev/llm//"+model)
		}
		for _, path := range paths {
			if err := mayOpen(p, path); types.CodeOf(err) != types.ErrPermission {
				t.Fatalf("with %q denied, %q may be opened: %v", denied, path, err)
			}
		}
	})
	if accepted == 0 {
		t.Error("nothing was accepted")
	}
	for _, void := range []string{"", "dev/fs", "/dev/fs/sub", "/dev/workspace/sub", "/dev/shell/x", "/dev/shell/..", "/dev/shell/", "/dev//shell", "//dev/shell", "/sys/nonsense", "/sys/spawn/x", "/nowhere", "/dev/tool/x", "/dev/llm/..",
		"/dev/llm/a/b", "/proc/07", "/proc/0", "/proc/x", "/proc/1/context", "/mnt/nfs", "/mnt/mcp/a b", "/mnt/mcp/files/toolz/x", "/mnt/mcp/files/tools/../x", "/mnt/mcp/files/tools/"} {
		if err := k.CheckDevices(nil, []string{void}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), strconv.Quote(void)) {
			t.Errorf("%q: %v", void, err)
		}
		if err := k.CheckDevices([]string{void}, nil); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q is allowed: %v", void, err)
		}
		if _, err := k.Spawn("x", nil, SpawnOpts{ProcSpec: types.ProcSpec{Provider: "m", DeniedDevices: []string{void}}}); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("spawned with %q denied: %v", void, err)
		}
	}
	for _, ok := range []string{"/", "/dev", "/dev/fs", "/dev/tool", "/dev/llm/claude", "/proc/1", "/sys", "/sys/signal", "/mnt", "/mnt/mcp/files", "/mnt/mcp/files/tools/read", "/mnt/mcp/files/resources/file:///x"} {
		if err := k.CheckDevices(nil, []string{ok}); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	if k.CheckDevices([]string{"/mnt/mcp/files/tools/read"}, nil) == nil {
		t.Error("a part of a server is allowed, which would give nothing")
	}
}
