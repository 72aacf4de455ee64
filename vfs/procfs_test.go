package vfs_test

import (
	"strings"
	"testing"
	"time"

	"rnix/types"
	"rnix/vfs"
	"rnix/vfs/vfstest"
)

// twoProcs is a ProcSource with the processes 1 and 4.
type twoProcs struct{ status map[types.PID]vfs.ProcStatus }

func (s twoProcs) Processes() []types.PID { return []types.PID{1, 4} }

func (s twoProcs) Status(pid types.PID) (vfs.ProcStatus, bool) {
	st, ok := s.status[pid]
	return st, ok
}

// Sees lets 1 see all, and 4 itself.
func (s twoProcs) Sees(reader, pid types.PID) bool { return reader == 1 || reader == pid }

func (s twoProcs) Context(types.PID) (string, error) { return "user: hello\n", nil }

func (s twoProcs) Steps(types.PID) ([]vfs.ProcStep, error) {
	return []vfs.ProcStep{
		{Number: 1, Action: "tool_call", Tokens: 120, Duration: 1500 * time.Millisecond, Summary: "reads\na file"},
		{Number: 2, Action: "complete", Tokens: 80, Error: "broken"},
	}, nil
}

func (s twoProcs) Calls(types.PID) ([]vfs.ProcCall, error) {
	return []vfs.ProcCall{{Step: 1, Verdict: "done", ID: "call_1", Tool: "grep", Effect: "none", Duration: 2 * time.Millisecond, Text: "a\tb"}}, nil
}

func (s twoProcs) Input(_ types.PID, name string) (string, error) {
	if name != "pipe" {
		return "", types.Errorf(types.ErrNotFound, "Read", "", "no input %s", name)
	}
	return "handed over", nil
}

func (s twoProcs) Messages(types.PID) ([]vfs.ProcMessage, error) {
	return []vfs.ProcMessage{{Number: 1, Kind: "steer", Delivered: true, From: "the user", Text: "look\there\nand there"}, {Number: 2, Kind: "message", From: "PID 3", Text: "x"}}, nil
}

func (s twoProcs) Threads(types.PID) ([]vfs.ProcThread, error) {
	return []vfs.ProcThread{{Kind: "thread", ID: 1, State: "running", Intent: "Analyze\nsecurity"}, {Kind: "coroutine", ID: 1, State: "suspended", Intent: "stream"}}, nil
}

func (s twoProcs) Step(_ types.PID, n int) (any, error) {
	if n > 2 {
		return nil, types.Errorf(types.ErrNotFound, "Step", "", "no step %d", n)
	}
	return map[string]any{"step_number": n}, nil
}

// proc returns a VFS with /proc and a process 4 that has two open files.
func proc(t testing.TB) (*vfs.VFS, *vfs.ProcFS, twoProcs) {
	t.Helper()
	src := twoProcs{map[types.PID]vfs.ProcStatus{
		1: {PID: 1, State: "running", Intent: "watch", AllowedDevices: []string{}, MCPDown: []types.MCPDown{"db: a secret"}},
		4: {
			PID: 4, PPID: 1, State: "suspended", Wait: "rate limit", Intent: "first line\nsecond", Skills: []string{"review", "go"}, TokensUsed: 200, BudgetUsed: 200, MaxSteps: 50, Step: 2,
			Elapsed: 90 * time.Second, MCPMounts: []string{"/mnt/mcp/4-db"}, MCPDown: []types.MCPDown{"db: no such file", "web: refused"}, WorkDir: "/w", Inputs: []string{"pipe", "plan"}, Children: []types.PID{7, 9}, Exit: &types.ExitStatus{Code: 2, Reason: "budget_exceeded"},
			Tools: []vfs.Tool{{Name: "write_file", Effect: vfs.EffectReversible, Path: "/dev/workspace"}, {Name: "grep", Effect: vfs.EffectNone, Path: "/dev/fs"}},
		},
	}}
	r := vfs.NewDeviceRegistry()
	v := vfs.New(r, nil)
	p := vfs.NewProcFS(src, v)
	if err := r.Register("/proc", p.Open); err != nil {
		t.Fatal(err)
	}
	v.Admit(4)
	for _, path := range []string{"/proc/4/status", "/proc"} {
		if _, err := v.Open(4, path, vfs.OpenRead); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = v.CloseAll(4) })
	return v, p, src
}

func TestProcDevice(t *testing.T) {
	vfstest.Run(t, vfstest.Device{
		Path: "/proc", ReadOnly: true,
		Open: func(t testing.TB) (vfs.VFSFileFactory, vfs.Caller) {
			_, p, _ := proc(t)
			return p.Open, vfs.Caller{PID: 4}
		},
		Samples: []vfstest.Sample{
			{Subpath: "", Want: "1\n4\nself\n"},
			{Subpath: "/4", Want: "children\ncontext\nfd\ninputs/\nintent\nledger\nlimits\nmessages\nmounts\nstatus\nsteps\nthreads\ntools\n"},
			{Subpath: "/self/", Want: "status\n"},
			{Subpath: "/self/status", Want: "pid:\t4\nppid:\t1\n"},
			{Subpath: "/4/status", Want: "wait:\trate limit\n"},
			{Subpath: "/4/status", Want: "intent:\tfirst line\\nsecond\n"},
			{Subpath: "/4/status", Want: "skills:\treview go\n"},
			{Subpath: "/4/status", Want: "tokens_used:\t200\n"},
			{Subpath: "/4/status", Want: "elapsed_ms:\t90000\n"},
			{Subpath: "/4/status", Want: "allowed_devices:\tall\n"},
			{Subpath: "/1/status", Want: "allowed_devices:\tnone\n"},
			{Subpath: "/4/status", Want: "exit:\t2 (budget_exceeded)\n"},
			{Subpath: "/4/status", Want: "mcp_down:\tdb: no such file (start it again: rnix mcp reload --process 4 db); web: refused (start it again: rnix mcp reload --process 4 web)\n"},
			{Subpath: "/1/status", Want: "mcp_down:\tdb (start it again: rnix mcp reload --process 1 db)\n"}, // of another: the reason is not for 4
			{Subpath: "/4/intent", Want: "first line\nsecond\n"},
			{Subpath: "/4/context", Want: "user: hello\n"},
			{Subpath: "/4/messages", Want: "1\tsteer\tdelivered\tthe user\tlook here\n2\tmessage\twaits\tPID 3\tx\n"},
			{Subpath: "/4/messages/1", Want: "look\there\nand there"},
			{Subpath: "/4/messages/3", WantCode: types.ErrNotFound},
			{Subpath: "/4/messages/x", WantCode: types.ErrNotFound},
			{Subpath: "/4/inputs", Want: "pipe\nplan\n"},
			{Subpath: "/4/inputs/pipe", Want: "handed over"},
			{Subpath: "/4/inputs/none", WantCode: types.ErrNotFound},
			{Subpath: "/4/inputs/pipe/x", WantCode: types.ErrNotFound},
			{Subpath: "/4/threads", Want: "thread\t1\trunning\tAnalyze\\nsecurity\ncoroutine\t1\tsuspended\tstream\n"},
			{Subpath: "/4/fd", Want: "3\t/proc/4/status\n4\t/proc\n"},
			{Subpath: "/4/children", Want: "7\n9\n"},
			{Subpath: "/4/mounts", Want: "/mnt/mcp/4-db\n"},
			{Subpath: "/4/tools", Want: "grep\tnone\t/dev/fs\nwrite_file\treversible\t/dev/workspace\n"},
			{Subpath: "/4/limits", Want: "max_steps:\t50 (at 2)\ncontext_budget:\tunlimited (used 200)\n"},
			{Subpath: "/4/steps", Want: "1\ttool_call\t120 tokens\t1500 ms\treads\\na file\n2\tcomplete\t80 tokens\t0 ms\terror: broken\n"},
			{Subpath: "/4/ledger", Want: "1\tdone\tcall_1\tgrep\tnone\t2 ms\ta b\n"},
			{Subpath: "/4/steps/2", Want: `"step_number": 2`},
			{Subpath: "/4/steps/3", WantCode: types.ErrNotFound},
			{Subpath: "/4/steps/x", WantCode: types.ErrNotFound},
			{Subpath: "/4/none", WantCode: types.ErrNotFound},
			{Subpath: "/4/status/x", WantCode: types.ErrNotFound},
			{Subpath: "/5", WantCode: types.ErrNotFound},
			{Subpath: "/04", WantCode: types.ErrNotFound},
			{Subpath: "/nobody/status", WantCode: types.ErrNotFound},
			{Subpath: "/-1", WantCode: types.ErrNotFound},
			{Subpath: "/99999999999999999999", WantCode: types.ErrNotFound},
		},
	})
}

func TestProcIsASnapshotAndReadOnly(t *testing.T) {
	v, _, src := proc(t)
	f, err := v.OpenFile(4, "/proc/self/status", vfs.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src.status[4] = vfs.ProcStatus{PID: 4, State: "zombie"}
	b, err := f.Read(0)
	if err != nil || !strings.Contains(string(b), "state:\tsuspended\n") {
		t.Errorf("got %v\n%s", err, b)
	}
	if _, err := v.OpenFile(4, "/proc/1/status", vfs.OpenReadWrite); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("opened for writing: %v", err)
	}
	if _, err := v.OpenFile(0, "/proc/self/status", vfs.OpenRead); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("self of the user: %v", err)
	}
}

// Who may read /proc sees how others stand, and not what they say.
func TestProcTellsWhatIsSaidToThoseAboveOnly(t *testing.T) {
	_, p, _ := proc(t)
	for path, private := range map[string]bool{
		"/context": true, "/inputs": true, "/inputs/pipe": true, "/ledger": true, "/messages": true, "/messages/1": true, "/steps": true, "/steps/1": true,
		"": false, "/children": false, "/fd": false, "/intent": false, "/limits": false, "/mounts": false, "/status": false, "/threads": false, "/tools": false,
	} {
		for _, c := range []struct{ reader, pid types.PID }{{0, 1}, {1, 1}, {1, 4}, {4, 4}, {4, 1}} {
			f, err := p.Open("/"+c.pid.String()+path, vfs.OpenRead)
			if err == nil {
				err = f.(vfs.CallerBinder).BindCaller(vfs.Caller{PID: c.reader})
			}
			if refused := types.CodeOf(err) == types.ErrPermission; refused != (private && c.reader == 4 && c.pid == 1) || err != nil && !refused {
				t.Errorf("%d opens /proc/%d%s: %v", c.reader, c.pid, path, err)
			}
		}
	}
}
