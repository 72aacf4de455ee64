package kernel

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/kernel/internal/actions"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// syscallsOf returns what the event log tells of the syscalls of a process.
func (s *sys) syscallsOf(pid types.PID, names ...string) (out []event.Event) {
	s.t.Helper()
	cur := s.events.Cursor(s.events.Oldest())
	for {
		e, ok, err := cur.TryNext()
		if err != nil {
			s.t.Fatal(err)
		}
		if !ok {
			return out
		}
		if debug.OfSyscall(&e) && e.PID == pid && (len(names) == 0 || slices.Contains(names, e.Name)) {
			out = append(out, e)
		}
	}
}

func lines(es []event.Event) string {
	var b strings.Builder
	for i := range es {
		b.WriteString(debug.Line(&es[i]) + "\n")
	}
	return b.String()
}

// Each name that the sources of the kernel give to a syscall is registered, and none else is.
func TestNamesOfSyscallsAreThoseThatTheSourcesUse(t *testing.T) {
	used := map[string]bool{}
	forked := &recovery.State{Life: step.Life{Origin: &step.ForkDetail{}}}
	for _, f := range []*From{nil, {State: forked}, {State: &recovery.State{Life: step.Life{Runs: 1}}}} {
		used[birthCall(f)] = true
	}
	for _, name := range actions.Calls {
		used[name] = true
	}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "call" {
				return true
			}
			for _, a := range call.Args {
				if lit, ok := a.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if name, _ := strconv.Unquote(lit.Value); name != "" {
						used[name] = true
						break
					}
				}
			}
			return true
		})
	}
	for name := range used {
		if !debug.Registered(name) {
			t.Errorf("%q is emitted and not registered in debug/syscalls.go", name)
		}
	}
	for _, name := range debug.Syscalls() {
		if !used[name] {
			t.Errorf("%q is registered and nothing emits it", name)
		}
		if debug.Untraced(name) != "" {
			t.Errorf("%q is registered, and said not to be traced", name)
		}
	}
}

// A method of a sub-interface is a syscall (000 §1.2), or it is said why it is not in the trace.
func TestEachMethodOfTheKernelsInterfacesIsTracedOrSaidWhyNot(t *testing.T) {
	for _, i := range []reflect.Type{reflect.TypeFor[ProcessManager](), reflect.TypeFor[MountManager](), reflect.TypeFor[IPCManager](), reflect.TypeFor[SignalManager](),
		reflect.TypeFor[SubtreeManager](), reflect.TypeFor[ProcGroupManager](), reflect.TypeFor[SupervisorManager]()} {
		for m := range i.Methods() {
			if !debug.Registered(m.Name) && debug.Untraced(m.Name) == "" {
				t.Errorf("%s.%s is no syscall of the trace, and debug/syscalls.go does not say why", i.Name(), m.Name)
			}
		}
	}
}

func TestParentThatWaitsIsSeenToWait(t *testing.T) { // A4
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, map[string][]reply{
			"top":  {calls(`spawn {"intent":"long"}`), completes("done")},
			"long": {calls(`tool {}`), completes("worked")},
		})
		f.tool = func(context.Context, vfs.Caller) (string, error) { time.Sleep(10 * time.Minute); return "ok", nil }
		pid, err := f.Spawn("top", nil, opts())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		half := f.syscallsOf(pid, "Spawn", "Wait")
		if got := lines(half); len(half) != 2 || !strings.Contains(got, `Spawn({"intent":"long"}) = PID 2`) || !strings.HasSuffix(got, " 1 Wait(2) <unfinished ...>\n") {
			t.Errorf("after five minutes:\n%s", got)
		}
		if _, err := f.WaitInfo(t.Context(), pid); err != nil {
			t.Fatal(err)
		}
		whole := f.syscallsOf(pid, "Wait")
		if len(whole) != 2 || whole[1].Begin != whole[0].Seq || whole[1].Dur != 10*time.Minute || whole[1].Result != "exit 0 (completed)" {
			t.Errorf("at the end:\n%s", lines(whole))
		}
		if p0 := lines(f.syscallsOf(0, "Spawn", "Wait")); !strings.Contains(p0, "0 Spawn(top) = PID 1") || !strings.Contains(p0, "0 Wait(1) <unfinished") {
			t.Errorf("of the person:\n%s", p0)
		}
	})
}

// What begins has one line more, and only if it may take long: else the begins would push out all else.
func TestOnlyCallsThatMayTakeLongSayThatTheyBegin(t *testing.T) {
	var many []string
	for range 50 {
		many = append(many, `tool {}`)
	}
	f := newFamily(t, map[string][]reply{"top": {calls(many...), completes("done")}})
	f.tool = func(context.Context, vfs.Caller) (string, error) { return "ok", nil }
	i := f.run()
	begun, ended := 0, 0
	for _, e := range f.syscallsOf(i.PID) {
		if e.Kind == event.Syscall {
			ended++
			continue
		}
		if begun++; e.Path != "/dev/llm/m" {
			t.Errorf("%s", debug.Line(&e))
		}
	}
	if begun != 2 || ended < 200 {
		t.Errorf("%d begun, %d ended", begun, ended)
	}
}

func TestModelIsOpenedInTheTraceAndAFailedCallFailsOnce(t *testing.T) { // A4
	f := newFamily(t, map[string][]reply{"top": {calls(`tool {}`), completes("too early"), calls(`tool {}`, `complete {"result":"in one breath"}`), completes("done")}})
	f.tool = func(context.Context, vfs.Caller) (string, error) {
		return "", types.Errorf(types.ErrNotFound, "Tool", "", "not there")
	}
	i := f.run()
	trace := lines(f.syscallsOf(i.PID))
	if !strings.Contains(trace, "Open(/dev/llm/m) = fd 3") {
		t.Errorf("the model is not opened in\n%s", trace)
	}
	for _, e := range f.syscallsOf(i.PID) {
		if e.Name == "Read" && e.Path == "/dev/tool" {
			t.Errorf("a read after a failed write: %s", debug.Line(&e))
		}
		if strings.HasSuffix(e.Name, "?") {
			t.Errorf("%s is not registered", e.Name)
		}
	}
	if n := strings.Count(trace, "Write(/dev/tool, {}) = error"); n != 1 {
		t.Errorf("%d failed writes in\n%s", n, trace)
	}
	if !strings.Contains(trace, "Complete(") {
		t.Errorf("no Complete in\n%s", trace)
	}
}

// A refused action is in the trace too, with its error and without its secrets; what waits for days has not failed.
func TestTraceHasRefusalsAndNoSecrets(t *testing.T) {
	secrets := new(redact.Set)
	secrets.Add(redact.Secret{Name: "S", Value: "hunter2-hunter2"})
	f := newFamily(t, map[string][]reply{
		"top": {calls(`spawn {"intent":"x","agent":"nobody"}`), calls(`send {"pid":77,"text":"hunter2-hunter2"}`), calls(`wait {"pids":[99]}`), completes("done")},
	}, func(c *Config) { c.Secrets = secrets })
	i := f.run()
	for name, want := range map[string]string{"Spawn": "this kernel has no agents by name", "Send": "error: ", "Wait": "it is no child of yours"} {
		es := f.syscallsOf(i.PID, name)
		if got := lines(es); !strings.Contains(got, want) || !debug.Failed(&es[len(es)-1]) || strings.Contains(got, "hunter2") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	c := f.tracer.call(nil, "Wait", "")
	c.ends("2", "", &loop.Waiting{For: types.SuspendFor(types.SuspendChild, "child PID 2")})
	es := f.syscallsOf(0, "Wait")
	if last := es[len(es)-1]; last.Err != "" || !strings.Contains(last.Result, "waits for child PID 2") {
		t.Errorf("%+v", last)
	}
}

// What a process calls after its trace is closed belongs to PID 0: its file is not opened again.
func TestCallOfAProcessThatIsGoneIsInNoTrace(t *testing.T) {
	f := newFamily(t, map[string][]reply{"top": {says("hang")}})
	pid, err := f.Spawn("top", nil, opts())
	if err != nil {
		t.Fatal(err)
	}
	p, _ := f.Process(pid)
	if err := f.Kill(pid, types.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Gone()
	c := f.tracer.call(p, "Recv", "")
	c.ends("", "", errors.New("late"))
	e, last := event.Event{}, f.events.Last()
	for cur := f.events.Cursor(last); e.Seq != last; {
		if e, err = cur.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if e.Name != "Recv" || e.PID != 0 || e.UUID != (types.UUID{}) {
		t.Errorf("%+v", e)
	}
	if _, err := f.RecvContext(t.Context(), pid); types.CodeOf(err) != types.ErrNotFound {
		t.Error(err)
	}
}
