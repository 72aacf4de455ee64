package launch

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/recovery"
	"rnix/internal/rights"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// A history that is being written is waited for a little, and its process while it leaves; one that runs is not.
func TestAHistoryIsWaitedForWhoeverHasItForAMoment(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration // until it is free
		leave bool          // a process has it, and leaves
		code  types.ErrCode
		after time.Duration // at least
	}{
		"a message":              {takes: time.Second, after: time.Second},
		"somebody who stays":     {takes: time.Minute, code: types.ErrConflict, after: openTime},
		"a process that leaves":  {takes: 3 * time.Second, leave: true, after: 3 * time.Second},
		"one that does not":      {takes: time.Minute, leave: true, code: types.ErrConflict, after: LeaveTime},
		"nobody, at this moment": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				was := w.settled()
				id := w.write(&was, step.Marker{Name: step.MarkerDaemonStop})
				held := w.open(id)
				w.left = make(chan struct{})
				if c.leave {
					w.live[id] = kernel.Info{ProcStatus: types.ProcStatus{PID: 5, UUID: id}, State: types.StateRunning, Leaving: true}
				}
				began := time.Now()
				go func() {
					time.Sleep(c.takes)
					held.Close()
					close(w.left)
				}()
				synctest.Wait()
				a, err := w.l.Stored.Open(t.Context(), id)
				if took := time.Since(began); types.CodeOf(err) != c.code || took < c.after || took > c.after+100*time.Millisecond {
					t.Errorf("%v after %v", err, took)
				}
				if err == nil {
					a.Close()
				}
				<-w.left
			})
		})
	}
}

func TestWhoIsAnsweredThatAHistoryRunsIsToldAsWhat(t *testing.T) {
	w := newWorld(t)
	was := w.settled()
	id := w.write(&was, step.Marker{Name: step.MarkerDaemonStop})
	w.live[id] = kernel.Info{ProcStatus: types.ProcStatus{PID: 5, UUID: id}, State: types.StateRunning}
	if _, err := w.l.Stored.Open(t.Context(), id); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "running as PID 5") {
		t.Error(err)
	}
	if err := w.l.Stored.Dismiss(t.Context(), id, "x"); types.CodeOf(err) != types.ErrConflict {
		t.Error(err)
	}
	if err := w.l.Stored.Pause(t.Context(), id); err != nil || !slices.Equal(w.told, []string{"SIGPAUSE 5"}) { // where it lives
		t.Error(err, w.told)
	}
	delete(w.live, id)
	w.free(id) // whoever is refused has not kept it
}

// Dismiss ends what is suspended below too, and leaves alone what runs and what has ended.
func TestWhatIsSuspendedEndsWithTheOneAboveIt(t *testing.T) {
	w := newWorld(t)
	below := func(up types.UUID, more ...step.Marker) types.UUID {
		was := w.settled()
		was.ParentUUID = up
		return w.write(&was, more...)
	}
	stop, exit := step.Marker{Name: step.MarkerDaemonStop}, step.Marker{Name: step.MarkerExit, Exit: &types.ExitStatus{Reason: "done"}}
	head := below(types.UUID{}, stop)
	child := below(head, stop)
	grandchild := below(child, stop)
	runs, ended, other := below(head, stop), below(head, exit), below(types.UUID{}, stop)
	w.live[runs] = kernel.Info{ProcStatus: types.ProcStatus{PID: 9, UUID: runs}, State: types.StateRunning}
	if err := w.l.Stored.Dismiss(t.Context(), head, "its time is over"); err != nil {
		t.Fatal(err)
	}
	if err := w.l.Stored.Dismiss(t.Context(), ended, "x"); err != nil {
		t.Error(err)
	}
	for id, want := range map[types.UUID]string{head: "its time is over", child: "its time is over", grandchild: "its time is over", runs: "", ended: "done", other: ""} {
		got := ""
		if i := w.card(id); i.Over() {
			got = i.Exit.Reason
		}
		if got != want {
			t.Errorf("PID %d: %q, want %q", w.card(id).PID, got, want)
		}
	}
	if err := w.l.Stored.Dismiss(t.Context(), types.NewUUID(), "x"); types.CodeOf(err) != types.ErrNotFound {
		t.Error(err)
	}
}

func TestAPauseOnDiskIsOnceAndNeverOfWhatHasEnded(t *testing.T) {
	w := newWorld(t)
	was, over := w.settled(), w.settled()
	id := w.write(&was, step.Marker{Name: step.MarkerDaemonStop})
	ended := w.write(&over, step.Marker{Name: step.MarkerExit, Exit: new(types.ExitStatus)})
	for range 2 {
		for _, one := range []types.UUID{id, ended, types.NewUUID()} {
			if err := w.l.Stored.Pause(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
	}
	if i := w.card(id); i.Why() != types.SuspendPaused || !w.card(ended).Over() {
		t.Errorf("%+v", i)
	}
	h, err := step.ReadHistory(t.Context(), w.l.Stored.Cards.Journal, id)
	if err != nil || len(h.Records) != 3 {
		t.Errorf("%d records, %v", len(h.Records), err)
	}
}

// The daemon may have ended between the record and what lists show: a start does not look at the records of what has an exit status.
func TestAPauseThatListsDoNotShowIsShownByTheNext(t *testing.T) {
	w := newWorld(t)
	was := w.settled()
	detail := json.RawMessage(`{"kind":"budget"}`)
	suspended := step.Marker{Name: step.MarkerSuspended, Text: "budget", Exit: new(types.ExitStatus), Detail: detail}
	id := w.write(&was, suspended, step.Marker{Name: step.MarkerPause})
	stale := *w.card(id)
	stale.State, stale.Suspension, stale.PausedAt = types.StateDead, types.SuspendFor(types.SuspendBudget, "budget"), time.Time{}
	w.l.Stored.Cards.Put(&stale)
	for range 2 {
		if err := w.l.Stored.Pause(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if i := w.card(id); i.Why() != types.SuspendPaused || i.PausedAt.IsZero() {
		t.Errorf("lists show %+v", i)
	}
	h, err := step.ReadHistory(t.Context(), w.l.Stored.Cards.Journal, id)
	if err != nil || len(h.Records) != 3 {
		t.Errorf("%d records, %v", len(h.Records), err)
	}
}

// The budget of a process was raised when it had been suspended and nobody had reaped it, and the daemon ended before lists showed that.
func TestABudgetThatListsDoNotShowIsShownAtTheNextStart(t *testing.T) {
	w := newWorld(t)
	was := w.settled()
	suspended := step.Marker{Name: step.MarkerSuspended, Text: "budget", Exit: new(types.ExitStatus), Detail: json.RawMessage(`{"kind":"budget"}`)}
	id := w.write(&was, suspended, step.Marker{Name: step.MarkerLimit, Detail: json.RawMessage(`{"tokens":50,"usd":1}`)})
	stale := *w.card(id)
	stale.State, stale.ContextBudget, stale.BudgetUSD = types.StateZombie, was.ContextBudget, was.BudgetUSD
	w.l.Stored.Cards.Put(&stale)
	w.l.Stored.Cards.Bury(t.Context(), *w.card(id))
	if i := w.card(id); i.ContextBudget != was.ContextBudget+50 || i.BudgetUSD != was.BudgetUSD+1 || !i.Over() {
		t.Errorf("lists show %d tokens and $%v of one that is %s", i.ContextBudget, i.BudgetUSD, i.State)
	}
}

// The same of a pause.
func TestAPauseThatListsDoNotShowIsShownAtTheNextStart(t *testing.T) {
	w := newWorld(t)
	was := w.settled()
	suspended := step.Marker{Name: step.MarkerSuspended, Text: "budget", Exit: new(types.ExitStatus), Detail: json.RawMessage(`{"kind":"budget"}`)}
	id := w.write(&was, suspended, step.Marker{Name: step.MarkerPause})
	stale := *w.card(id)
	stale.State, stale.Suspension, stale.PausedAt, stale.Exit = types.StateZombie, types.SuspendFor(types.SuspendBudget, "budget"), time.Time{}, new(types.ExitStatus)
	w.l.Stored.Cards.Put(&stale)
	w.l.Stored.Cards.Bury(t.Context(), *w.card(id))
	if i := w.card(id); i.Why() != types.SuspendPaused || i.PausedAt.IsZero() {
		t.Errorf("lists show %+v", i)
	}
}

// What lists say of a history that does not run: why, and whether a person has to act.
func TestWhyAHistoryIsSuspendedIsSaid(t *testing.T) {
	w := newWorld(t)
	broken := step.Marker{Name: step.MarkerInterrupted}
	resumed := func() step.Marker {
		return step.Marker{Name: step.MarkerResumed, Detail: []byte(`{"intent":"do"}`)}
	}
	for want, more := range map[string][]step.Marker{
		"the daemon ended without warning": {broken},
		"the daemon was stopped":           {{Name: step.MarkerDaemonStop}},
		"paused":                           {{Name: step.MarkerPause}, {Name: step.MarkerDaemonStop}},
		"rate limit":                       {{Name: step.MarkerSuspended, Text: "rate limit"}},
		"the daemon has broken off 3 times in step 1; it stays susp": {broken, resumed(), broken, resumed(), broken},
	} {
		was := w.settled()
		id := w.write(&was, more...)
		s, _, _, err := w.l.Stored.Store.Read(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if i := w.l.Stored.Cards.Refreshed(*w.card(id), s); !i.Suspended || !strings.HasPrefix(i.SuspendReason, want) {
			t.Errorf("%q; want %q", i.SuspendReason, want)
		}
	}
	var s recovery.State
	s.Crashes = 4
	if w.l.Stored.Cards.Crashes(&s) != 4 {
		t.Error("crashes are not counted")
	}
	s.Settled = []byte(`{"body":{"kind":"supervisor","spec":null}}`) // it does nothing itself
	if w.l.Stored.Cards.Crashes(&s) != 0 {
		t.Error("a supervisor is blamed for what others do")
	}
}

// Every setting of a resume either changes the process or is known to leave it as it is: a new one must be decided.
func TestEverySettingOfAResumeChangesTheProcessOrIsKnownNotTo(t *testing.T) {
	leave := []string{"Target", "Fork", "Tree", "FromStep", "Name", "Cwd", "OnInDoubt", "Choices", "TrustProject", "AcceptRights", "Env", "Person", "Tighter"}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[ipc.ResumeRequest]()) {
		var req ipc.ResumeRequest
		v := reflect.ValueOf(&req).Elem().FieldByIndex(f.Index)
		switch v.Kind() {
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		case reflect.String:
			v.SetString("x")
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Struct:
			if first := v.Field(0); first.CanInt() {
				first.SetInt(1)
			} else {
				first.Set(reflect.ValueOf([]string{"x"}))
			}
		}
		if Changes(&req) == slices.Contains(leave, f.Name) {
			t.Errorf("%s: changes the process: %v", f.Name, Changes(&req))
		}
		if Changes(&req) && Changes(OnlyOn(&req)) {
			t.Errorf("%s is meant for one process, and goes to others", f.Name)
		}
	}
}

func TestAResumeThatCannotBeMeantIsRefused(t *testing.T) {
	n, usd, ms := -1, -1.0, int64(-1)
	for what, req := range map[string]ipc.ResumeRequest{
		"a family that is changed": {Tree: true, Model: "m"}, "a family that is copied": {Tree: true, Fork: true}, "a cut without a copy": {FromStep: new(int)},
		"a step below none": {Fork: true, FromStep: &n}, "a name of what has one": {Name: "x"}, "another directory": {Cwd: "/"}, "tokens below none": {Budget: &n},
		"dollars below none": {BudgetUSD: &usd}, "time below none": {TimeoutMs: &ms}, "steps below none": {MaxSteps: &n}, "too long an input": {NewInput: strings.Repeat("x", maxInput+1)},
		"no text": {NewInput: "\xff"}, "a blank input": {NewInput: " \n"}, "no policy": {Choices: map[string]string{"c": "guess"}},
	} {
		if err := CheckResume(&req); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := CheckResume(&ipc.ResumeRequest{Fork: true, FromStep: new(int), Name: "x", Cwd: "/", Budget: new(int), NewInput: "go"}); err != nil {
		t.Error(err)
	}
}

func TestARenameOnDiskIsInTheRecordAndInLists(t *testing.T) {
	w := newWorld(t)
	was := w.settled()
	id := w.write(&was, step.Marker{Name: step.MarkerExit, Exit: new(types.ExitStatus)})
	old, err := w.l.Stored.Rename(context.Background(), id, was.PID, "new")
	if err != nil || old != "n" || w.card(id).Name != "new" {
		t.Fatalf("%q, %v, %+v", old, err, w.card(id))
	}
	a := w.open(id)
	defer a.Close()
	if a.Was.Name != "new" || a.State.Phase != recovery.Ended {
		t.Errorf("%q, %s", a.Was.Name, a.State.Phase)
	}
}

// A rename whose record cannot be written changes nothing that lists show: what has ended is not open again until a restart.
func TestARenameThatFailsLeavesAnEndAsItWas(t *testing.T) {
	var calls []string
	rename := func(at int) error {
		disk := faultfs.New("/data")
		w := newWorldOn(t, disk, "/data")
		w.l.Stored.Cards.Note = t.Logf
		was := w.settled()
		id := w.write(&was, step.Marker{Name: step.MarkerExit, Exit: new(types.ExitStatus)})
		disk.Fail(faultfs.Fault{At: at, Err: syscall.EIO})
		_, err := w.l.Stored.Rename(context.Background(), id, was.PID, "new")
		calls = disk.Trace()
		disk.Fail(faultfs.Fault{})
		h, herr := step.ReadHistory(t.Context(), w.l.Stored.Cards.Journal, id)
		if herr != nil {
			t.Fatal(herr)
		}
		i, says := w.card(id), h.Info()
		if !i.Over() || i.State != types.StateDead || i.Name != says.Name || err == nil && i.Name != "new" {
			t.Errorf("call %d fails (%v): it is %s and called %q, and its record says %q", at, err, i.State, i.Name, says.Name)
		}
		return err
	}
	if err := rename(0); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for i, call := range slices.Clone(calls) {
		if strings.HasSuffix(call, step.IndexFile) { // made anew at the next start
			continue
		}
		if rename(i+1) != nil {
			failed++
		}
	}
	if failed == 0 {
		t.Error("no rename has failed")
	}
}

// What a record says about rights is obeyed only with a seal that fits, unless a person accepts it.
func TestRightsThatWereChangedInTheRecordAreNotObeyed(t *testing.T) {
	w := newWorld(t)
	seals, err := rights.Open(durable.OS, t.TempDir(), "/data", func() ([]types.UUID, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	w.l.Stored.Store.Seals = seals
	stop := step.Marker{Name: step.MarkerDaemonStop}
	sealed := func() step.Settled {
		was := w.settled()
		was.UUID, was.DeniedDevices = types.NewUUID(), []string{"/dev/shell"}
		was.Seal = seals.Seal(&was)
		return was
	}
	donor := w.settled()
	donor.UUID = types.NewUUID()
	donor.Seal = seals.Seal(&donor)
	detail, err := json.Marshal(donor)
	if err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(*step.Settled) []step.Marker{
		"more devices": func(s *step.Settled) []step.Marker { s.DeniedDevices = nil; return nil },
		"no limit":     func(s *step.Settled) []step.Marker { s.MaxSteps = 0; return nil },
		"no seal":      func(s *step.Settled) []step.Marker { s.Seal = ""; return nil },
		"rights of another": func(*step.Settled) []step.Marker {
			return []step.Marker{{Name: step.MarkerResumed, PID: 9, Detail: detail}}
		},
	} {
		was := sealed()
		more := forge(&was)
		id := w.write(&was, append(more, stop)...)
		if _, err := w.start(id, ipc.ResumeRequest{}); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "rnix resume --accept-rights") {
			t.Errorf("%s: %v", name, err)
		}
		if name == "rights of another" {
			continue // the record is of nobody now
		}
		if _, err := w.start(id, ipc.ResumeRequest{AcceptRights: true}); err != nil {
			t.Errorf("%s, accepted: %v", name, err)
		}
	}
	was := sealed()
	if _, err := w.start(w.write(&was, stop), ipc.ResumeRequest{}); err != nil {
		t.Errorf("as it was written: %v", err)
	}
}
