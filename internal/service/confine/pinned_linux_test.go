package confine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rnix/agent"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/sandbox"
	"rnix/internal/soak"
	"rnix/internal/trust"
	"rnix/runtime/env"
	"rnix/types"
	"rnix/vfs"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Word {
		os.Exit(sandbox.Helper(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// pinnedServers are servers of a project, each with the file that it starts, what that is, and what it says then.
var pinnedServers = []struct {
	entry            agent.MCPServer
	file, text, says string
}{
	{agent.MCPServer{Name: "script", Command: "./tools/srv.sh"}, "tools/srv.sh", "#!/bin/sh\n. \"$(dirname \"$0\")/lib.sh\"\necho good $lib\n", "good lib\n"},
	{agent.MCPServer{Name: "argument", Command: "sh", Args: []string{"-e", "tools/run.sh", "x"}}, "tools/run.sh", "echo good $1; cat ../p/note\n", "good x\nnote\n"},
	{agent.MCPServer{Name: "module", Command: "python3", Args: []string{"./srv.py"}}, "srv.py", "import pack.part\nprint('good', pack.part.name)\n", "good part\n"},
	{agent.MCPServer{Name: "link", Command: "./linked", Args: []string{"y"}}, "tools/real.sh", "#!/bin/sh\necho good $1\n", "good y\n"},
	{agent.MCPServer{Name: "program", Command: "bin/tool", Args: []string{"-c", "echo good elf"}}, "bin/tool", "", "good elf\n"},
}

// pinnedProject makes these servers' project, trusts it, and returns what makes transports of the trusted ones: none, but that of what would be started.
func pinnedProject(t *testing.T, w *world) (start func(name string, pin bool) (said string, err error)) {
	t.Helper()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(w.work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	var entries []string
	for _, s := range pinnedServers {
		if s.text == "" {
			s.text = string(shell)
		}
		write(s.file, s.text, 0o755)
		entries = append(entries, fmt.Sprintf(`%q: {"command": %q, "args": ["%s"]}`, s.entry.Name, s.entry.Command, strings.Join(s.entry.Args, `","`)))
	}
	write(".mcp.json", `{"mcpServers": {`+strings.ReplaceAll(strings.Join(entries, ","), `[""]`, `[]`)+`}}`, 0o644)
	for name, text := range map[string]string{"tools/lib.sh": "lib=lib\n", "note": "note\n", "pack/__init__.py": "", "pack/part.py": "name = 'part'\n", "tools/deep/x": ""} {
		write(name, text, 0o644)
	}
	if err := os.Symlink("tools/real.sh", filepath.Join(w.work, "linked")); err != nil {
		t.Fatal(err)
	}
	files, err := trust.Look(w.work)
	if err != nil {
		t.Fatal(err)
	}
	reader := &profile.Reader{UserDir: filepath.Join(w.Home, "config"), Home: w.Home, Lookup: func(string) (string, bool) { return "", false }, Learn: func([]env.Secret) {}}
	if err := trust.In(reader.UserDir).Put(trust.Entry{Dir: w.work, Since: time.Now(), Files: files}); err != nil {
		t.Fatal(err)
	}
	p, err := reader.Read(w.work, []string{"HOME=" + w.Home}, false)
	if err != nil || !p.Trusts() {
		t.Fatalf("%v, %q", err, p.Problems)
	}
	p.Sandbox = w.profile.Sandbox
	w.caller.Profile, w.caller.Env = p, []string{"PATH=" + os.Getenv("PATH")}
	m, err := proc.NewManager(filepath.Join(w.Data, "children"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return func(name string, pin bool) (string, error) {
		for _, s := range pinnedServers {
			if s.entry.Name != name {
				continue
			}
			var out bytes.Buffer
			_, err := profile.Guarded(func(cfg vfs.MCPConfig) (vfs.MCPTransport, error) {
				if !pin {
					cfg.Pinned = nil
				}
				box, err := w.Server(cfg, w.caller.Env)
				if err != nil {
					return nil, err
				}
				c, err := m.Start(t.Context(), proc.Spec{Kind: proc.KindMCP, Owner: 1, Path: cfg.Command, Args: cfg.Args, Dir: cfg.Dir, Env: w.caller.Env, Stdout: &out, Stderr: &out, Box: box})
				if err != nil {
					return nil, err
				}
				c.Wait()
				return nil, nil
			})(vfs.MCPConfig{MCPServer: s.entry, Dir: w.work, Owner: w.caller})
			return out.String(), err
		}
		panic(name)
	}
}

// sandboxes runs a test with each mechanism that works here, and without any.
func sandboxes(t *testing.T, test func(t *testing.T, w *world)) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m, err := proc.NewManager(filepath.Join(t.TempDir(), "children"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	host := sandbox.Probe(t.Context(), func(ctx context.Context, plan sandbox.Plan, c sandbox.Command) (int, string, error) {
		errs := proc.NewRing(4 << 10)
		child, err := m.Start(ctx, proc.Spec{Kind: proc.KindShell, Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stderr: errs, Box: &proc.Box{Plan: plan}})
		if err != nil {
			return 0, "", err
		}
		exit := child.Wait()
		return exit.Code, errs.String(), exit.Err
	}, self, sandbox.FindBwrap(os.Getenv("PATH")))
	for level, proof := range map[sandbox.Level]sandbox.Proof{sandbox.LevelBwrap: host.Bwrap, sandbox.LevelLandlock: host.Landlock, sandbox.LevelOff: {Proved: true}} {
		t.Run(string(level), func(t *testing.T) {
			if !proof.Proved {
				t.Skipf("needs a host where %s works: %s", level, proof.Reason)
			}
			w := newWorld(t)
			w.Self = self
			w.profile.Sandbox.Level = level
			w.mu.Lock()
			w.host = host
			w.host.Key = sandbox.HostKey("")
			w.mu.Unlock()
			test(t, w)
		})
	}
}

// noCopies checks that nothing is left of what was started.
func noCopies(t *testing.T, w *world) {
	t.Helper()
	left, _ := filepath.Glob(filepath.Join(temps(w.Data), "*.*.*"))
	if len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestServerOfAProjectFindsWhatLiesBesideIt(t *testing.T) {
	sandboxes(t, func(t *testing.T, w *world) {
		start := pinnedProject(t, w)
		for _, s := range pinnedServers {
			if said, err := start(s.entry.Name, true); err != nil || said != s.says {
				t.Errorf("%s: says %q, %v; want %q", s.entry.Name, said, err, s.says)
			}
		}
		noCopies(t, w)
	})
}

// TestNothingIsStartedInPlaceOfWhatWasLookedAt has a file swapped without a pause while servers start it.
func TestNothingIsStartedInPlaceOfWhatWasLookedAt(t *testing.T) {
	const evil = "#!/bin/sh\necho EVIL\n"
	length := soak.Pick(t, "time of swapping for each server", 300*time.Millisecond, 20*time.Second)
	sandboxes(t, func(t *testing.T, w *world) {
		start := pinnedProject(t, w)
		for _, s := range pinnedServers {
			path := filepath.Join(w.work, s.file)
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			bad := evil
			if s.entry.Command == "python3" {
				bad = "print('EVIL')\n"
			}
			stop := make(chan struct{})
			var work sync.WaitGroup
			work.Go(func() { // ends with stop
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					for _, text := range []string{bad, string(good)} {
						if i%8 == 7 {
							_ = os.WriteFile(path, []byte(text), 0o755) // in place
						} else if os.WriteFile(path+".new", []byte(text), 0o755) == nil {
							_ = os.Rename(path+".new", path)
						}
						<-time.After(time.Duration(i%5) * 200 * time.Microsecond)
					}
				}
			})
			ran, refused, unpinned := 0, 0, 0
			for until := time.Now().Add(length); time.Now().Before(until) || ran == 0 || unpinned == 0; {
				switch said, err := start(s.entry.Name, true); {
				case strings.Contains(said, "EVIL"):
					t.Fatalf("%s: what nobody has looked at was run: %q", s.entry.Name, said)
				case err == nil && said == s.says:
					ran++
				case err != nil:
					refused++
				default:
					t.Fatalf("%s: says %q, %v", s.entry.Name, said, err)
				}
				if said, _ := start(s.entry.Name, false); strings.Contains(said, "EVIL") {
					unpinned++ // else the test tests nothing
				}
				if time.Since(until) > time.Minute {
					t.Fatalf("%s: ran %d times, %d refused, %d without the pin", s.entry.Name, ran, refused, unpinned)
				}
			}
			close(stop)
			work.Wait()
			t.Logf("%s: %d ran, %d were refused; without the pin another one ran %d times", s.entry.Name, ran, refused, unpinned)
			if err := os.WriteFile(path, good, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		noCopies(t, w)
	})
}

func TestChangedFileIsRefusedWithWhatToDo(t *testing.T) {
	w := newWorld(t)
	start := pinnedProject(t, w)
	cfg := vfs.MCPConfig{MCPServer: pinnedServers[0].entry, Dir: w.work, Owner: w.caller, Pinned: &vfs.Pinned{Root: w.work, Files: []vfs.PinnedFile{{Arg: -1, Path: "tools/srv.sh", Sum: "00", Kind: "executable"}}}}
	if _, err := w.Server(cfg, w.caller.Env); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "rnix trust "+w.work) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(w.work, "tools/srv.sh"), []byte("other"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := start("script", true); types.CodeOf(err) != types.ErrPermission {
		t.Error(err)
	}
	noCopies(t, w)
}
