package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// family makes each agent do what the test says for its intent, turn by turn; the last turn is repeated. A turn
// that begins with "hang" waits until it is killed.
type family struct {
	*sys
	plays map[string][]reply

	mu sync.Mutex
	// What came between the turns.
	got map[string][]string // +checklocks:mu
}

func newFamily(t *testing.T, plays map[string][]reply, change ...func(*Config)) *family {
	f := &family{sys: newSys(t, change...), plays: plays, got: map[string][]string{}}
	f.model = func(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
		p, _ := f.Process(c.PID)
		pr, err := f.cfg.Contexts.BuildPrompt(p.CtxID)
		if err != nil {
			return reply{}, err
		}
		f.mu.Lock()
		since := ""
		for _, m := range slices.Backward(pr.Messages) {
			if m.Role == rnixctx.RoleAssistant {
				break
			}
			since = strings.TrimSuffix(m.Content+"\n"+since, "\n")
		}
		f.got[p.Intent] = append(f.got[p.Intent], since)
		f.mu.Unlock()
		r := f.plays[p.Intent][min(turn, len(f.plays[p.Intent]))-1]
		if r.Content == "hang" {
			<-ctx.Done()
			return reply{}, ctx.Err()
		}
		r.Calls = slices.Clone(r.Calls) // agents with the same intent share the play
		for i, call := range r.Calls {
			r.Calls[i] = strings.ReplaceAll(call, "$SELF", c.PID.String())
		}
		return r, nil
	}
	return f
}

func (f *family) told(intent string, turn int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if turn > len(f.got[intent]) {
		return ""
	}
	return f.got[intent][turn-1]
}

// heard returns all that came between the turns of an intent.
func (f *family) heard(intent string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.got[intent], "\n")
}

// born returns the PID of the first process with an intent, when it works.
func (f *family) born(intent string) types.PID {
	cur := f.events.Cursor(f.events.Oldest())
	for {
		e, err := cur.Next(f.t.Context())
		if err != nil {
			f.t.Error(err)
			return 0
		}
		if e.Kind == event.Spawned && e.Intent == intent {
			return f.sys.await(e.PID, event.StepStarted).PID
		}
	}
}

func says(text string) reply        { return reply{Content: text} }
func calls(cs ...string) reply      { return reply{Calls: cs} }
func completes(result string) reply { return calls(fmt.Sprintf(`complete {"result":%q}`, result)) }

// start begins the process "top" and waits for its end.
func (f *family) run() Info {
	f.t.Helper()
	pid, err := f.Spawn("top", nil, opts())
	if err != nil {
		f.t.Fatal(err)
	}
	i, err := f.WaitInfo(context.Background(), pid)
	if err != nil {
		f.t.Fatal(err)
	}
	return i
}

func TestBackgroundChildrenRunSideBySideAndAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 12
		var all sync.WaitGroup
		all.Add(n)
		many := []string{}
		plays := map[string][]reply{"child": {says("done")}}
		for range n {
			many = append(many, `spawn {"intent":"child","background":true}`)
		}
		plays["top"] = []reply{calls(many...), calls(`wait {}`), completes("all")}
		f := newFamily(t, plays)
		release := make(chan struct{})
		inner := f.model
		f.model = func(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
			if p, _ := f.Process(c.PID); p.Intent == "child" {
				all.Done()
				all.Wait() // nobody ends before all run
				<-release
			} else if turn == 2 {
				close(release) // so that wait gets the ends
			}
			return inner(ctx, c, turn)
		}
		i := f.run()
		if i.Exit.Code != types.ExitOK || i.Result != "all" {
			t.Fatalf("%+v", i)
		}
		if got := f.told("top", 2); !strings.Contains(got, "Started as PID ") {
			t.Error(got)
		}
		var w struct {
			Children []struct {
				State, Result string
				Exit          *int `json:"exit_code"`
			}
		}
		if err := json.Unmarshal([]byte(f.told("top", 3)), &w); err != nil || len(w.Children) != n {
			t.Fatalf("%v: %s", err, f.told("top", 3))
		}
		for _, c := range w.Children {
			if c.State != "ended" || *c.Exit != 0 || c.Result != "done" {
				t.Errorf("%+v", c)
			}
		}
		if st := f.folded(i.PID); len(st.Mail) != 0 || st.Spawned != n || st.MailSeq != n {
			t.Errorf("%+v, %d spawned", st.Mailbox, st.Spawned)
		}
	})
}

func TestParentIsToldOfEveryEndOfAChildWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, map[string][]reply{
			"top": {calls(`spawn {"intent":"good","background":true,"name":"g"}`, `spawn {"intent":"bad","background":true}`, `spawn {"intent":"victim","background":true}`),
				calls(`recv {"timeout_s":1}`), calls(`recv {"timeout_s":1}`), calls(`recv {"timeout_s":1}`), calls(`recv {"timeout_s":1}`), completes("fine")},
			"good": {says("good result")}, "bad": {calls(`tool {}`)}, "victim": {says("hang")},
		})
		f.tool = func(context.Context, vfs.Caller) (string, error) { return "again", nil }
		go func() { // ends with the process
			_ = f.Kill(f.born("victim"), types.SIGKILL)
		}()
		i := f.run()
		all := f.heard("top")
		for _, want := range []string{"has completed.", "good result", "has failed: it ended with exit code 1 (max steps exceeded)", "killed"} {
			if !strings.Contains(all, want) {
				t.Errorf("no %q in\n%s", want, all)
			}
		}
		if !strings.Contains(i.Result, "child processes that failed: ") || strings.Count(i.Result, "PID ") != 2 || !strings.Contains(i.Exit.Reason, "failed child processes: 2") {
			t.Errorf("%q %q", i.Result, i.Exit.Reason)
		}
		if st := f.folded(i.PID); len(st.FailedChildren) != 2 || slices.ContainsFunc(st.Children, func(c recovery.Child) bool { return !c.Ended }) {
			t.Errorf("%+v %v", st.Children, st.FailedChildren)
		}
	})
}

func TestWhoFinishesIsToldOnceThatChildrenStillRun(t *testing.T) {
	for name, end := range map[string]reply{"complete": completes("r"), "text": says("r")} {
		t.Run(name, func(t *testing.T) {
			f := newFamily(t, map[string][]reply{"top": {calls(`spawn {"intent":"long","background":true,"name":"l"}`), end, end}, "long": {says("hang")}})
			i := f.run()
			if i.Exit.Code != types.ExitOK || !strings.Contains(i.Result, "[child processes that still run: PID 2 (l)]") || !strings.HasPrefix(i.Result, "r") {
				t.Errorf("%+v", i)
			}
			if got := f.told("top", 3); !strings.Contains(got, "child processes still run: PID 2 (l). Wait for them") {
				t.Error(got)
			}
			if c, err := f.Info(2); err != nil || c.PPID != 0 { // it lives on, as Unix has it
				t.Errorf("%+v %v", c, err)
			}
			_ = f.Kill(2, types.SIGKILL)
		})
	}
}

// Programs read a result that fits a schema, so what became of the children is in the reason alone.
func TestAResultThatFitsASchemaHasNothingOfChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, map[string][]reply{
			"top": {calls(`spawn {"intent":"long","background":true}`, `spawn {"intent":"bad","background":true}`), calls(`recv {"timeout_s":1}`), says(`{"n":1}`)},
			"bad": {calls(`tool {}`)}, "long": {says("hang")},
		})
		f.tool = func(context.Context, vfs.Caller) (string, error) { return "again", nil }
		o := opts()
		o.OutputSchema = json.RawMessage(`{"type":"object","required":["n"]}`)
		pid, err := f.Spawn("top", nil, o)
		if err != nil {
			t.Fatal(err)
		}
		i, err := f.WaitInfo(t.Context(), pid)
		if err != nil || i.Exit.Code != types.ExitOK || i.Result != `{"n":1}` || !i.Schema || !strings.HasSuffix(i.Exit.Reason, "; failed child processes: 1; child processes that still run: 1") {
			t.Errorf("%q, %+v, %v", i.Result, i.Exit, err)
		}
		_ = f.Kill(2, types.SIGKILL)
	})
}

func TestWaitEndsWithTheFirstOrWithTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, map[string][]reply{
			"top": {calls(`spawn {"intent":"quick","background":true}`), calls(`spawn {"intent":"long","background":true}`), calls(`wait {"any":true,"pids":[2,3]}`),
				calls(`wait {"timeout_s":5}`), calls(`wait {"pids":[1]}`), calls(`wait {"pids":[3],"timeout_s":-1}`), calls(`signal {"pid":3,"signal":"KILL"}`), calls(`wait {"pids":[3]}`), completes("r")},
			"quick": {says("q")}, "long": {says("hang")},
		})
		began := time.Now()
		f.run()
		if d := time.Since(began); d < 5*time.Second || d > 6*time.Second {
			t.Errorf("took %s", d)
		}
		for turn, want := range map[int]string{4: `"state":"ended"`, 5: `"note":"the time is over"`, 6: "no child of yours", 7: "error (invalid)", 8: "SIGKILL sent", 9: `"reason":"killed"`} {
			if got := f.told("top", turn); !strings.Contains(got, want) {
				t.Errorf("%d: %s", turn, got)
			}
		}
		if got := f.told("top", 5); strings.Contains(got, `"pid":2`) {
			t.Errorf("the end of PID 2 was told twice: %s", got)
		}
		if got := f.told("top", 9); !strings.HasPrefix(got, "error (driver): 1 of the 1 that have ended have failed") {
			t.Error(got)
		}
	})
}

func TestSteerEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, map[string][]reply{"top": {calls(`spawn {"intent":"long","background":true}`), calls(`wait {}`), calls(`signal {"pid":2,"signal":"TERM"}`), completes("r"), completes("r")}, "long": {says("hang")}})
		pid, err := f.Spawn("top", nil, opts())
		if err != nil {
			t.Fatal(err)
		}
		f.await(2, event.StepStarted)
		synctest.Wait()
		if _, err := f.Post(t.Context(), pid, step.Mail{Kind: step.MailSteer, Text: "stop it"}, true); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Wait(pid); err != nil {
			t.Fatal(err)
		}
		if got := f.told("top", 3); !strings.HasSuffix(got, "which you get now; call wait again after it\"}\nstop it") {
			t.Error(got)
		}
	})
}

func TestRelativesSendEachOtherMessagesAndStrangersDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, map[string][]reply{
			"top": {calls(`spawn {"intent":"ear","background":true}`), calls(`send {"pid":3,"text":"hello"}`), calls(`send {"pid":1,"text":"x"}`), calls(`send {"pid":$SELF,"text":"x"}`),
				calls(`send {"pid":0,"text":"x"}`), calls(`recv {}`), calls(`send {"pid":9,"text":"x"}`), calls(`signal {"pid":1,"signal":"KILL"}`), calls(`signal {"pid":$SELF,"signal":"KILL"}`), calls(`ps {}`), calls(`wait {}`), completes("r"), completes("r")},
			"ear":  {calls(`recv {}`), calls(`send {"pid":2,"text":"heard"}`), calls(`recv {"timeout_s":100}`), says("bye")},
			"else": {says("hang")},
		})
		stranger, err := f.Spawn("else", nil, opts())
		if err != nil {
			t.Fatal(err)
		}
		if i := f.run(); i.Exit.Code != types.ExitOK {
			t.Fatalf("%+v", i)
		}
		if all := f.heard("top"); !strings.Contains(all, `"from":3,"name":"2.1","text":"heard"`) && !strings.Contains(all, "| heard\n") {
			t.Error(all)
		}
		for turn, want := range map[int]string{4: "does not belong to the agents", 5: "is yourself", 6: "reads your result", 8: "no such process of your family", 9: "is not below you", 10: "is not below you", 11: `"pid":3,"ppid":2,`} {
			if got := f.told("top", turn); !strings.Contains(got, want) {
				t.Errorf("%d: %s", turn, got)
			}
		}
		if all := f.heard("ear"); !strings.Contains(all, `{"messages":[{"seq":1,"from":2,"text":"hello"}]}`) && !strings.Contains(all, "| hello\n") || !strings.Contains(all, "no message has come") {
			t.Error(all)
		}
		_ = f.Kill(stranger, types.SIGKILL)
	})
}

func TestActionsAreOfferedOnlyWithTheirRights(t *testing.T) {
	for name, c := range map[string]struct {
		deny []string
		want string
	}{
		"all":     {nil, "complete plan ps recv replan send signal spawn wait"},
		"spawn":   {[]string{"/sys/spawn"}, "complete plan ps recv replan send"},
		"send":    {[]string{"/sys/send"}, "complete plan ps replan signal spawn wait"},
		"signal":  {[]string{"/sys/signal"}, "complete plan ps recv replan send spawn wait"},
		"nothing": {[]string{"/sys"}, "complete plan replan"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSys(t)
			s.model = untilKilled
			pid := s.spawn(func(o *SpawnOpts) { o.DeniedDevices = c.deny })
			p, _ := s.Process(pid)
			var got []string
			for n := range p.kit.meta {
				got = append(got, n)
			}
			slices.Sort(got)
			if strings.Join(got, " ") != c.want {
				t.Errorf("%v", got)
			}
			_ = s.Kill(pid, types.SIGKILL)
		})
	}
}

func TestChildHasNoMoreThanItWasGiven(t *testing.T) {
	for name, c := range map[string]struct {
		call string
		want string // in the answer; else the child is looked at
		look func(t *testing.T, i Info)
	}{
		"allow": {`spawn {"intent":"long","background":true,"allow":["/dev/tool"],"name":"n"}`, "", func(t *testing.T, i Info) {
			if len(i.Rights.Allowed) != 1 || i.Rights.Permits("/sys/spawn") || i.Name != "n" {
				t.Errorf("%+v", i)
			}
		}},
		"deny": {`spawn {"intent":"long","background":true,"deny":["/dev/tool"],"budget":70,"max_steps":3}`, "", func(t *testing.T, i Info) {
			if i.Rights.Permits("/dev/tool") || !i.Rights.Permits("/sys/spawn") || i.ContextBudget != 70 || i.MaxSteps != 3 {
				t.Errorf("%+v", i)
			}
		}},
		"a slip":    {`spawn {"intent":"long","deny":["/dev/tol"]}`, "did you mean /dev/tool", nil},
		"no path":   {`spawn {"intent":"long","allow":["shell"]}`, "device paths begin with a slash", nil},
		"a number":  {`spawn {"intent":"long","name":"7"}`, "must not be a number", nil},
		"no budget": {`spawn {"intent":"long","budget":0}`, "give at least 1", nil},
		"unknown":   {`spawn {"intent":"long","colour":"red"}`, "colour", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFamily(t, map[string][]reply{"top": {calls(c.call), says("hang")}, "long": {says("hang")}})
				pid, err := f.Spawn("top", nil, opts())
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // the model has been told, and hangs
				if c.look == nil {
					if got := f.told("top", 2); !strings.Contains(got, c.want) || !strings.HasPrefix(got, "error (") {
						t.Error(got)
					}
				} else if i, err := f.Info(pid + 1); err != nil {
					t.Error(err)
				} else {
					c.look(t, i)
				}
				if _, err := f.SignalTree(pid, types.SIGKILL); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestALookForMessagesDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, map[string][]reply{"top": {calls(`recv {"timeout_s":0}`), completes("fine")}})
		began := time.Now()
		if i := f.run(); i.Result != "fine" || !strings.Contains(f.heard("top"), "no message has come") || time.Since(began) > 0 {
			t.Errorf("%q after %s: %v", i.Result, time.Since(began), f.heard("top"))
		}
	})
}
