package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/price"
	"rnix/internal/profile"
	"rnix/internal/recovery"
	"rnix/internal/sandbox"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// shown is what a process was started with, as far as a resume decides it.
func shown(o kernel.SpawnOpts) string {
	return fmt.Sprintf("%s/%s+%s/%s %s, %d steps, %d tokens, $%v, %v", o.Provider, o.Model, o.FallbackProvider, o.FallbackModel, o.Effort, *o.MaxSteps, *o.ContextBudget, *o.BudgetUSD, o.Timeout)
}

func TestAResumedProcessHasWhatItHadBeforeAndWhatIsAskedForNow(t *testing.T) {
	synctest.Test(t, resumed) // so it has lived for no time
}

func resumed(t *testing.T) {
	w := newWorld(t)
	w.used = kernel.Amount{Tokens: 300, USD: price.FromFloat(0.5)}
	n := func(i int) *int { return &i }
	usd := func(f float64) *float64 { return &f }
	ms := func(d time.Duration) *int64 { i := d.Milliseconds(); return &i }
	for name, c := range map[string]struct {
		req  ipc.ResumeRequest
		want string
	}{
		"as it is":          {ipc.ResumeRequest{}, "one/a+/ high, 10 steps, 1000 tokens, $2, 1m0s"},
		"more of all":       {ipc.ResumeRequest{MaxSteps: n(3), Budget: n(50), BudgetUSD: usd(1), TimeoutMs: ms(time.Second)}, "one/a+/ high, 3 steps, 350 tokens, $1.5, 1s"},
		"no limits":         {ipc.ResumeRequest{MaxSteps: n(0), Budget: n(0), BudgetUSD: usd(0), TimeoutMs: ms(0)}, "one/a+/ high, 0 steps, 0 tokens, $0, 0s"},
		"a model":           {ipc.ResumeRequest{Model: "b"}, "one/b+/ high, 10 steps, 1000 tokens, $2, 1m0s"},
		"a provider":        {ipc.ResumeRequest{Provider: "two"}, "two/c+/ high, 10 steps, 1000 tokens, $2, 1m0s"},
		"both in one":       {ipc.ResumeRequest{Model: "two/x"}, "two/x+/ high, 10 steps, 1000 tokens, $2, 1m0s"},
		"another to go to":  {ipc.ResumeRequest{FallbackProvider: "two"}, "one/a+two/c high, 10 steps, 1000 tokens, $2, 1m0s"},
		"more than can be":  {ipc.ResumeRequest{Budget: n(math.MaxInt)}, ""},
		"only more dollars": {ipc.ResumeRequest{BudgetUSD: usd(4)}, "one/a+/ high, 10 steps, 1000 tokens, $4.5, 1m0s"},
	} {
		was := w.settled()
		was.AllowedDevices, was.DeniedDevices, was.ReadRoots = []string{"/dev/fs"}, []string{"/dev/shell"}, []string{"/usr"}
		id := w.write(&was, step.Marker{Name: step.MarkerDaemonStop})
		resp, err := w.start(id, c.req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		o := w.opts[len(w.opts)-1]
		if got := shown(o); c.want != "" && got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
		if *o.ContextBudget < 0 {
			t.Errorf("%s: a budget of %d tokens", name, *o.ContextBudget)
		}
		if o.UUID != id || o.Name != "n" || o.WorkDir != w.dir || !slices.Equal(o.ReadRoots, was.ReadRoots) || o.ParentPID != 0 || resp.Mode != "continue" || resp.PID == 0 || resp.Seq != 7 {
			t.Errorf("%s: %+v, %+v", name, o, resp)
		}
		if f := o.From; !slices.Equal(f.Was.AllowedDevices, was.AllowedDevices) || !slices.Equal(f.Was.DeniedDevices, was.DeniedDevices) || f.Policy != recovery.Tell || f.Rec == nil {
			t.Errorf("%s: rights or record are lost: %+v", name, f)
		}
		_ = o.From.Rec.Close()
		delete(w.live, id)
	}
}

func TestWhatCannotGoOnIsRefusedWithWhatToDo(t *testing.T) {
	exit := func(code int) step.Marker {
		return step.Marker{Name: step.MarkerExit, Exit: &types.ExitStatus{Code: code, Reason: "r"}}
	}
	stop := step.Marker{Name: step.MarkerDaemonStop}
	boss := types.NewUUID()
	waits, err := json.Marshal(step.SuspendDetail{Purse: &step.PurseWait{UUID: boss, Tokens: 5}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(w *world, was *step.Settled)
		end    step.Marker
		req    ipc.ResumeRequest
		code   types.ErrCode // empty = it goes on
		want   string
	}{
		"its place is gone":           {func(w *world, was *step.Settled) { was.WorkDir = filepath.Join(w.dir, "gone") }, stop, ipc.ResumeRequest{}, types.ErrNotFound, "rnix restore"},
		"its tokens are used":         {func(w *world, _ *step.Settled) { w.used.Tokens = 1000 }, stop, ipc.ResumeRequest{}, types.ErrExhausted, "--budget N"},
		"its dollars are used":        {func(w *world, _ *step.Settled) { w.used.USD = price.FromFloat(2) }, stop, ipc.ResumeRequest{}, types.ErrExhausted, "--budget-usd X"},
		"one token is left":           {func(w *world, _ *step.Settled) { w.used.Tokens = 999 }, stop, ipc.ResumeRequest{}, "", ""},
		"a budget above is used":      {func(w *world, _ *step.Settled) { w.above[boss] = [2]kernel.Amount{{Tokens: 5}, {Tokens: 5}} }, step.Marker{Name: step.MarkerSuspended, Detail: waits}, ipc.ResumeRequest{}, types.ErrExhausted, "rnix budget add " + boss.String()},
		"a budget above was raised":   {func(w *world, _ *step.Settled) { w.above[boss] = [2]kernel.Amount{{Tokens: 9}, {Tokens: 5}} }, step.Marker{Name: step.MarkerSuspended, Detail: waits}, ipc.ResumeRequest{}, "", ""},
		"it ended by its time limit":  {func(_ *world, was *step.Settled) { was.Timeout = time.Nanosecond }, exit(types.ExitError), ipc.ResumeRequest{}, types.ErrExhausted, "--timeout TIME"},
		"it has longer now":           {func(_ *world, was *step.Settled) { was.Timeout = time.Nanosecond }, exit(types.ExitError), ipc.ResumeRequest{TimeoutMs: new(int64)}, "", ""},
		"an unknown provider":         {func(_ *world, was *step.Settled) { was.Provider = "three" }, stop, ipc.ResumeRequest{}, types.ErrNotFound, "three"},
		"an unknown way":              {nil, stop, ipc.ResumeRequest{OnInDoubt: "guess"}, types.ErrInvalid, "guess"},
		"no agent, and an input":      {func(_ *world, was *step.Settled) { was.Body = &step.BodyRecord{Kind: "x"} }, stop, ipc.ResumeRequest{NewInput: "go"}, types.ErrInvalid, "it is no agent (x)"},
		"a program of a newer rnix":   {func(_ *world, was *step.Settled) { was.Body = &step.BodyRecord{Kind: "x"} }, stop, ipc.ResumeRequest{}, types.ErrInvalid, `kind "x"`},
		"a session that is taken":     {func(_ *world, was *step.Settled) { was.Settings = json.RawMessage(`{"session":"taken"}`) }, stop, ipc.ResumeRequest{}, types.ErrConflict, "taken"},
		"the directory of a project":  {func(_ *world, was *step.Settled) { was.Settings = json.RawMessage(`{"cwd":"/gone/project"}`) }, stop, ipc.ResumeRequest{}, "", ""},
		"used up, but it only closes": {func(w *world, _ *step.Settled) { w.used.Tokens = 1000 }, exit(types.ExitOK), ipc.ResumeRequest{}, types.ErrExhausted, "--budget N"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			was := w.settled()
			if c.change != nil {
				c.change(w, &was)
			}
			id := w.write(&was, c.end)
			before := *w.card(id)
			_, err := w.start(id, c.req)
			if types.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v; want %s and %q", err, c.code, c.want)
			}
			if err == nil {
				_ = w.opts[0].From.Rec.Close()
				return
			}
			if now := *w.card(id); len(w.opts) > 0 || now.State != before.State || now.Suspended != before.Suspended {
				t.Errorf("something was changed: %+v", now)
			}
			w.free(id)
		})
	}
}

// A process goes on below its parent if that is alive, and a fork below nobody. The platform hears of each start what became of it, and a start that
// fails leaves the history as it was.
func TestAStartThatFailsLeavesTheHistoryAsItWas(t *testing.T) {
	w := newWorld(t)
	boss := w.settled()
	w.live[w.write(&boss)] = kernel.Info{ProcStatus: types.ProcStatus{PID: 50, UUID: boss.UUID}, State: types.StateRunning}
	was := w.settled()
	was.ParentUUID = boss.UUID
	id := w.write(&was, step.Marker{Name: step.MarkerExit, Exit: &types.ExitStatus{Code: types.ExitCancelled}})
	w.fails = []error{errors.New("too many processes")}
	if _, err := w.start(id, ipc.ResumeRequest{}); err == nil || !slices.Equal(w.told, []string{"session  one", "ended"}) {
		t.Fatal(err, w.told)
	}
	if now := w.card(id); !now.Over() || now.Exit == nil || now.State != types.StateDead {
		t.Errorf("it looks as if it ran: %+v", now)
	}
	w.free(id)
	w.told = nil
	if _, err := w.start(id, ipc.ResumeRequest{}); err != nil || !slices.Equal(w.told, []string{"session  one", "begun"}) {
		t.Fatal(err, w.told)
	}
	if now := w.card(id); now.Over() || w.opts[0].ParentPID != 50 {
		t.Errorf("the next start would not look at it, or it has no parent: %+v, %d", now, w.opts[0].ParentPID)
	}
	_ = w.opts[0].From.Rec.Close()
	delete(w.live, id)
	a := w.open(id)
	a.Fork = true
	if _, err := w.l.Start(t.Context(), a, &ipc.ResumeRequest{Env: []string{"KEY=k"}}, nil); err != nil || w.opts[1].ParentPID != 0 {
		t.Error(err, w.opts[1].ParentPID)
	}
	_ = a.Rec.Close()
}

// passing is the error of a start below a parent that has left, as the kernel says it.
func passing(t *testing.T) error {
	_, err := kernel.New(kernel.Config{Devices: vfs.NewDeviceRegistry()}, nil).Spawn("x", nil, kernel.SpawnOpts{ParentPID: 9})
	if !kernel.Passing(err) {
		t.Fatal(err)
	}
	return err
}

func TestAStartBelowAParentThatLeavesIsMadeAgainUnlessAPersonWasQuicker(t *testing.T) {
	w := newWorld(t)
	was := w.settled()
	id := w.write(&was, step.Marker{Name: step.MarkerDaemonStop})
	w.fails = []error{passing(t), passing(t)}
	if resp, err := w.start(id, ipc.ResumeRequest{}); err != nil || resp.PID == 0 || len(w.fails) > 0 {
		t.Fatal(resp, err)
	}
	_ = w.opts[0].From.Rec.Close()
	delete(w.live, id)
	for name, do := range map[string]func(id types.UUID) error{
		"ended": func(id types.UUID) error {
			return w.l.Stored.End(t.Context(), w.card(id), types.ExitStatus{Code: types.ExitCancelled})
		},
		"paused": func(id types.UUID) error { return w.l.Stored.Pause(t.Context(), id) },
	} {
		was := w.settled()
		id := w.write(&was, step.Marker{Name: step.MarkerDaemonStop})
		r, err := w.l.Plan(w.open(id), &ipc.ResumeRequest{Env: []string{"KEY=k"}})
		if err != nil {
			t.Fatal(err)
		}
		leave := r.leave
		w.fails, r.leave = []error{passing(t)}, func() { // between the two tries
			leave()
			if err := do(id); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.l.Launch(t.Context(), r, nil); types.CodeOf(err) != types.ErrConflict || len(w.opts) != 1 {
			t.Errorf("%s: %v", name, err)
		}
		w.free(id)
	}
}

func TestWhatAModelIsToldWhenItGoesOn(t *testing.T) {
	w := newWorld(t)
	for want, m := range map[string]step.Marker{
		noteDone:    {Name: step.MarkerExit, Exit: new(types.ExitStatus)},
		noteRefused: {Name: step.MarkerExit, Exit: &types.ExitStatus{Code: types.ExitRefused, Reason: types.ReasonRefused}},
		"":          {Name: step.MarkerDaemonStop},
	} {
		was, end := w.settled(), m.Name
		a := w.open(w.write(&was, m))
		f, _, err := w.l.fromOf(a, &ipc.ResumeRequest{NewInput: "go", Person: true})
		if err != nil || f.Note != want || f.Input != "go" || !f.Person {
			t.Errorf("%s: %+v, %v", end, f, err)
		}
		a.Fork = true // nobody has said that the task of a copy is done
		if f, _, err = w.l.fromOf(a, &ipc.ResumeRequest{}); err != nil || f.Note != "" {
			t.Errorf("%s: a fork is told %q, %v", end, f.Note, err)
		}
		a.Close()
	}
}

// Another configuration than the one of before must not come to a process unseen.
func TestSettingsOfBeforeComeBack(t *testing.T) {
	w := newWorld(t)
	was := w.settled()
	was.Settings = json.RawMessage(`{"cwd":"` + w.dir + `","session":"s","variables":["KEY"]}`)
	was.Agent = "lost"
	id := w.write(&was, step.Marker{Name: step.MarkerDaemonStop})
	resp, err := w.start(id, ipc.ResumeRequest{})
	if err != nil || len(resp.Warnings) == 0 || !strings.Contains(strings.Join(resp.Warnings, "\n"), "the agent lost cannot be read any more") {
		t.Fatal(resp.Warnings, err)
	}
	if set := profile.SettingsIn(&step.Settled{Settings: w.opts[0].Settings}); set.Cwd != w.dir || w.told[0] != "session s one" {
		t.Errorf("%+v, %q", set, w.told)
	}
	_ = w.opts[0].From.Rec.Close()
	delete(w.live, id)
	_, err = w.l.Start(t.Context(), w.open(id), &ipc.ResumeRequest{}, nil) // without its key
	if types.CodeOf(err) != types.ErrUnavailable {
		t.Error(err)
	}
	w.free(id)
	if err := os.WriteFile(filepath.Join(w.l.Profiles.UserDir, "config.yaml"), []byte("limit: {depth: 2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.start(id, ipc.ResumeRequest{}); types.CodeOf(err) != types.ErrInvalid { // a mistake in the configuration forbids each start
		t.Error(err)
	}
}

// How a person has a program confine what it starts is kept for the next run of it, and is as before if nobody says anything.
func TestTheSandboxThatAProgramIsResumedWithIsKept(t *testing.T) {
	for _, c := range []struct {
		req  ipc.ResumeRequest
		want sandbox.Settings
	}{
		{ipc.ResumeRequest{}, sandbox.Settings{Level: sandbox.LevelAuto, Net: sandbox.NetOpen}},
		{ipc.ResumeRequest{Net: "none"}, sandbox.Settings{Level: sandbox.LevelAuto, Net: sandbox.NetNone}},
		{ipc.ResumeRequest{Sandbox: "off"}, sandbox.Settings{Level: sandbox.LevelOff, Net: sandbox.NetOpen}},
	} {
		w := newWorld(t)
		had := sandbox.Settings{}
		w.l.Programs = map[string]Program{"x": func(p *profile.Profile, _ json.RawMessage) (kernel.Body, error) {
			had = p.Sandbox
			return nil, nil
		}}
		was := w.settled()
		was.Body, was.Settings = &step.BodyRecord{Kind: "x"}, json.RawMessage(`{"cwd":"`+w.dir+`","sandbox":{"level":"auto","net":"open"}}`)
		id := w.write(&was, step.Marker{Name: step.MarkerDaemonStop})
		if _, err := w.start(id, c.req); err != nil {
			t.Fatal(err)
		}
		o := w.opts[0]
		kept := profile.SettingsIn(&step.Settled{Settings: o.Settings})
		if had.Text() != c.want.Text() || kept.Sandbox == nil || kept.Sandbox.Text() != c.want.Text() || kept.Cwd != w.dir || o.Sandbox != string(c.want.Level) {
			t.Errorf("%+v: it has %q, and %s is kept", c.req, had.Text(), o.Settings)
		}
		_ = o.From.Rec.Close()
		delete(w.live, id)
	}
}
