package autoresume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/compose/run"
	"rnix/internal/price"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/internal/supervisor"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

func containsAll(text, words string) bool {
	for w := range strings.SplitSeq(words, "…") {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// What was running is resumed, whoever ended the daemon. What waits for something, and what a person has decided, stays, and it is said why.
func TestWhoIsResumedAtAStartAndWhoIsNot(t *testing.T) {
	w := newWorld(t)
	w.write("running", "")
	w.write("stopped", "", stopped)
	w.write("paused", "", paused, stopped)
	w.write("waiting", "", step.Marker{Name: step.MarkerSuspended, Text: "rate limit"})
	w.write("over", "", exited)
	w.write("blamed", "", crashed, resumed, crashed, resumed) // and once more now
	w.write("alive", "")
	w.pids[w.ids["alive"]] = 7
	unburied := w.write("unburied", "", exited) // nobody had reaped it
	unburied.State = types.StateZombie
	if err := w.Stored.Cards.Journal.Index().Save(&unburied); err != nil {
		t.Fatal(err)
	}
	w.GoOn(t.Context())
	if got := w.did(); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"running", "stopped"}) {
		t.Errorf("resumed: %q", got)
	}
	for name, want := range map[string]string{"running": "the daemon ended without warning", "stopped": "the daemon was stopped", "paused": "paused", "waiting": "rate limit",
		"over": "over: ", "unburied": "over: ", "blamed": "the daemon has broken off 3 times in step 1"} {
		if got := w.shown(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q; want %q", name, got, want)
		}
	}
	if !w.noted("is resumed as PID") || !w.noted("is not resumed automatically: the daemon has broken off 3 times") {
		t.Errorf("%q", w.notes)
	}
	h, err := step.ReadHistory(t.Context(), w.Stored.Cards.Journal, w.ids["running"])
	if err != nil || h.Records[len(h.Records)-1].Marker.Name != step.MarkerInterrupted {
		t.Error("the record does not say that the daemon broke off")
	}
	if h, err = step.ReadHistory(t.Context(), w.Stored.Cards.Journal, w.ids["alive"]); err != nil || len(h.Records) != 1 {
		t.Error("the record of one that runs is written to")
	}
	if r, ok := w.Take(w.ids["stopped"]); !ok || r.PID != w.pids[w.ids["stopped"]] { // for the first who asks
		t.Errorf("%+v, %v", r, ok)
	}
	if _, ok := w.Take(w.ids["stopped"]); ok {
		t.Error("it is told twice")
	}
	for _, hold := range w.begun { // each found the others
		select {
		case <-hold:
		default:
			t.Error("it never begins")
		}
	}
}

// One that fails says why, and the others are resumed all the same.
func TestOneThatCannotBeResumedSaysWhyAndHoldsUpNobody(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "taken", "broken", "full", "z"} {
		w.write(name, "", stopped)
	}
	w.fail["taken"] = types.Errorf(types.ErrConflict, "Resume", "", "another client has resumed it")
	w.fail["broken"] = types.Errorf(types.ErrUnavailable, "Provider", "one", "no key")
	w.fail["full"] = types.Errorf(types.ErrStorage, "Resume", "", "%w", syscall.ENOSPC)
	w.GoOn(t.Context())
	if got := w.did(); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a", "waits for the disk: full", "z"}) {
		t.Errorf("%q", got)
	}
	for name, want := range map[string]string{"taken": "the daemon was stopped", "broken": "it could not be resumed automatically: no key", "full": kernel.WaitsForDisk(syscall.ENOSPC).SuspendReason} {
		if got := w.shown(name); got != want {
			t.Errorf("%s: %q; want %q", name, got, want)
		}
	}
	if !w.noted("cannot be resumed automatically: …no key") || w.noted("another client") || w.noted("space") {
		t.Errorf("%q", w.notes)
	}
}

// No more than a setting says, and families whole: the one that has done something last first.
func TestNoMoreAreResumedThanTheSettingSaysAndTheOthersAreTold(t *testing.T) {
	for most, want := range map[int][]string{
		0: nil,
		1: {"new"},
		3: {"new", "old"}, // the family does not fit any more
		4: {"boss", "child", "grandchild", "new"},
		5: {"boss", "child", "grandchild", "new", "old"},
	} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.Max = most
				w.write("old", "", stopped)
				time.Sleep(time.Second)
				w.write("boss", "", stopped)
				w.write("child", "boss", stopped)
				w.write("grandchild", "child", stopped)
				time.Sleep(time.Second)
				w.write("new", "", stopped)
				w.write("waiting", "", step.Marker{Name: step.MarkerSuspended, Text: "rate limit"})
				w.GoOn(t.Context())
				got := slices.Sorted(slices.Values(w.did()))
				if !slices.Equal(got, want) {
					t.Errorf("%q; want %q", got, want)
				}
				told := most > 0 && most < 5 // that nothing is resumed is no news
				if w.noted(fmt.Sprintf("5 processes were running, and %d of them are resumed", len(want))) != told || most == 0 && w.notes != nil {
					t.Errorf("%q", w.notes)
				}
				for _, name := range []string{"old", "boss", "child", "grandchild", "new"} {
					why := "the daemon was stopped"
					if told && !slices.Contains(want, name) {
						why = fmt.Sprintf("more processes were running than are resumed at a start (daemon.auto_resume_max: %d); it is resumed with: rnix resume %v", most, w.card(name).PID)
					}
					if got := w.shown(name); got != why {
						t.Errorf("%s: %q; want %q", name, got, why)
					}
				}
			})
		})
	}
}

func (w *world) card(name string) *step.ProcInfo {
	info, _ := w.Stored.Get(w.ids[name])
	return info
}

func TestParentsAreResumedBeforeTheirChildren(t *testing.T) {
	w := newWorld(t)
	w.write("boss", "", stopped)
	w.write("child", "boss", stopped)
	w.write("grandchild", "child", stopped)
	ls := []left{{info: *w.card("grandchild")}, {info: *w.card("boss")}, {info: *w.card("child")}}
	var got []string
	for _, l := range parentsFirst(ls) {
		got = append(got, l.info.Name)
	}
	if !slices.Equal(got, []string{"boss", "child", "grandchild"}) {
		t.Errorf("%q", got)
	}
	if head := heads(ls); head[w.ids["grandchild"]] != w.ids["boss"] || head[w.ids["boss"]] != w.ids["boss"] {
		t.Errorf("%v", head)
	}
	loop := []left{{info: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: w.ids["boss"], ParentUUID: w.ids["child"]}}}, {info: *w.card("child")}} // of a damaged record
	if n := len(parentsFirst(loop)); n != 2 || len(heads(loop)) != 2 {
		t.Error(n)
	}
}

// One in whose step the daemon has ended twice waits, and its family with it. Who waits for one of them is told when it is there.
func TestWhatMayBringTheDaemonDownWaitsWithItsFamily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.write("boss", "", stopped)
		w.write("suspect", "boss", crashed, resumed)
		w.write("other", "", stopped)
		began := time.Now()
		w.GoOn(t.Context())
		if got := w.did(); !slices.Equal(got, []string{"other"}) || w.Delayed(w.ids["other"]) != nil || w.Delayed(w.ids["boss"]) == nil {
			t.Errorf("%q", got)
		}
		<-w.Delayed(w.ids["suspect"])
		if got := w.did(); !slices.Equal(got, []string{"boss", "suspect"}) || time.Since(began) != backOff(2) || w.Delayed(w.ids["boss"]) != nil {
			t.Errorf("%q after %v", got, time.Since(began))
		}
		w.Background.Wait()
	})
}

func TestWhatWaitsAtAStartGoesWithTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.write("suspect", "", crashed, resumed)
		ctx, cancel := context.WithCancel(t.Context())
		w.GoOn(ctx)
		late := w.Delayed(w.ids["suspect"])
		cancel()
		began := time.Now()
		w.Background.Wait()
		<-late
		if took := time.Since(began); took != 0 {
			t.Errorf("the daemon waits %v for it", took)
		}
		if got := w.did(); got != nil {
			t.Errorf("%q", got)
		}
	})
}

// What a person does between the look and the resume counts.
func TestWhatAPersonDoesMeanwhileIsNotUndone(t *testing.T) {
	for name, do := range map[string]func(w *world, id types.UUID) error{
		"paused": func(w *world, id types.UUID) error { return w.Stored.Pause(t.Context(), id) },
		"ended": func(w *world, id types.UUID) error {
			return w.Stored.End(t.Context(), w.card("one"), types.ExitStatus{Code: types.ExitCancelled, Reason: "x"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("one", "", stopped)
			l, ok := w.look(t.Context(), *w.card("one"))
			if !ok {
				t.Fatal("it is not due")
			}
			if err := do(w, w.ids["one"]); err != nil {
				t.Fatal(err)
			}
			before := w.shown("one")
			w.again(t.Context(), l, make(chan struct{}))
			if got := w.did(); got != nil || w.shown("one") != before || w.notes != nil {
				t.Errorf("%q, %q, %q", got, w.shown("one"), w.notes)
			}
		})
	}
}

// What an earlier daemon was ending is ended, and what was never begun is removed.
func TestWhatWasEndingIsBroughtToItsEnd(t *testing.T) {
	w := newWorld(t)
	w.writeAs(step.ProcInfo{ProcStatus: types.ProcStatus{Name: "pool", Kind: supervisor.Kind}}, "", exited)
	w.write("orphan", "pool", stopped)
	w.write("survivor", "pool", stopped)
	w.left[w.ids["pool"]] = []types.UUID{w.ids["orphan"]}
	w.writeAs(step.ProcInfo{ProcStatus: types.ProcStatus{Name: "flow", Kind: run.Kind}}, "", stopped)
	w.write("node", "", paused, stopped)
	w.left[w.ids["flow"]], w.ending[w.ids["flow"]] = []types.UUID{w.ids["node"], types.NewUUID()}, types.ExitStatus{Code: types.ExitCancelled, Reason: "ended by a person"}
	w.GoOn(t.Context())
	if got := w.did(); !slices.Equal(got, []string{"survivor"}) {
		t.Errorf("%q", got)
	}
	for name, want := range map[string]string{"orphan": "over: terminated: its supervisor has ended", "node": "over: " + run.ReasonEnded, "flow": "over: ended by a person"} {
		if got := w.shown(name); got != want {
			t.Errorf("%s: %q; want %q", name, got, want)
		}
	}
	if !w.noted("is ended, as its supervisor was") || !w.noted("is ended with its nodes") || w.noted("cannot") {
		t.Errorf("%q", w.notes)
	}
}

// Each waits for its time and a little more of its own. What cannot be resumed then waits for a person.
func TestWhatWaitsForATimeIsResumedThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		suspended := step.Marker{Name: step.MarkerSuspended, Text: "rate limit", Exit: &types.ExitStatus{Code: types.ExitError}}
		at := after(time.Minute)
		id := types.NewUUID()
		id[14], id[15] = 30000>>8, 30000&255 // half of it in milliseconds
		for _, s := range []types.ProcStatus{{Name: "one", UUID: id}, {Name: "broken"}} {
			w.writeAs(step.ProcInfo{ProcStatus: s, WakeAt: at}, "", suspended)
		}
		w.writeAs(step.ProcInfo{ProcStatus: types.ProcStatus{Name: "resumed"}, WakeAt: at}, "", stopped) // a person was quicker
		w.fail["broken"] = types.Errorf(types.ErrUnavailable, "Provider", "one", "no key")
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { w.Wake(ctx); close(over) }()
		time.Sleep(time.Minute + 14*time.Second)
		if got := w.did(); got != nil {
			t.Errorf("before its time: %q", got)
		}
		time.Sleep(time.Minute)
		if got := w.did(); !slices.Equal(got, []string{"with its family one"}) {
			t.Errorf("%q", got)
		}
		if i := w.card("broken"); !i.WakeAt.IsZero() || i.SuspendReason != "it could not be resumed automatically: no key" || !w.noted("cannot be resumed automatically") {
			t.Errorf("%+v", i)
		}
		if i := w.card("resumed"); i.WakeAt.IsZero() {
			t.Error("what is not as it was is written to")
		}
		cancel()
		<-over
	})
	if a, b := spread(types.UUID{15: 1}), spread(types.UUID{14: 255, 15: 255}); a < 0 || a == b || b > time.Minute {
		t.Error(a, b)
	}
}

func TestAFullDiskEndsTheRoundAndIsNotBlamedOnAnybody(t *testing.T) {
	w := newWorld(t)
	info := w.write("one", "", step.Marker{Name: step.MarkerSuspended, Text: "the disk is full"})
	w.fail["one"] = types.Errorf(types.ErrStorage, "Resume", "", "%w", syscall.ENOSPC)
	if w.ContinueQuietly(t.Context(), info) || w.notes != nil || w.shown("one") != "the disk is full" {
		t.Errorf("%q, %q", w.notes, w.shown("one"))
	}
	w.fail["one"] = errors.New("no key")
	if !w.ContinueQuietly(t.Context(), info) || len(w.notes) != 1 {
		t.Errorf("%q", w.notes)
	}
}

// A parent is resumed when none of its children is suspended any more, and one that waited for a budget when that was raised.
func TestAnEndWakesThoseThatWaitForIt(t *testing.T) {
	w := newWorld(t)
	purse := &step.PurseWait{UUID: types.NewUUID(), Tokens: 5, USD: 1}
	detail := step.Marker{Name: step.MarkerSuspended, Text: "budget", Detail: []byte(`{"purse":{"uuid":"` + purse.UUID.String() + `","tokens":5,"usd":1}}`)}
	w.writeAs(step.ProcInfo{ProcStatus: types.ProcStatus{Name: "poor"}, Purse: purse}, "", detail)
	w.wakeBroke(t.Context(), w.ids["poor"]) // nobody knows the budget
	w.budget[purse.UUID] = kernel.Amount{Tokens: 5, USD: price.FromFloat(1)}
	w.wakeBroke(t.Context(), w.ids["poor"]) // it is as it was
	if got := w.did(); got != nil {
		t.Errorf("%q", got)
	}
	for _, more := range []kernel.Amount{{Tokens: 6, USD: price.FromFloat(1)}, {Tokens: 5, USD: price.FromFloat(2)}} {
		w.budget[purse.UUID] = more
		clear(w.pids)
		w.wakeBroke(t.Context(), w.ids["poor"])
		w.wakeBroke(t.Context(), w.ids["poor"]) // it runs
		if got := w.did(); !slices.Equal(got, []string{"with its family poor"}) {
			t.Errorf("%v: %q", more, got)
		}
	}
}

func TestOnlyTheLatestResumeIsToldToWhoAsks(t *testing.T) {
	var w wentOn
	id := types.NewUUID()
	of := func(pid types.PID) ipc.ResumeResponse {
		return ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{UUID: id, PID: pid}}
	}
	w.moved(of(1)) // nothing was resumed at the start
	if _, ok := w.take(id); ok {
		t.Error("it is told of what a start did not do")
	}
	w.put(of(2))
	w.moved(of(3))
	if r, ok := w.take(id); !ok || r.PID != 3 {
		t.Errorf("%+v", r)
	}
}

// Who waits for all of its children waits until none is suspended, and for any until one is not.
func TestAParentGoesOnWhenWhatItWaitsForDoes(t *testing.T) {
	w := newWorld(t)
	done, sleeps, lost := w.write("done", "", exited).UUID, w.write("sleeps", "", stopped).UUID, types.NewUUID()
	for name, c := range map[string]struct {
		children []types.UUID
		any      bool
		change   func(s *recovery.State)
		want     bool
	}{
		"its child has ended":      {[]types.UUID{done}, false, nil, true},
		"its child is suspended":   {[]types.UUID{sleeps}, false, nil, false},
		"its child was taken away": {[]types.UUID{lost}, false, nil, false},
		"one of two is suspended":  {[]types.UUID{done, sleeps}, false, nil, false},
		"any of two":               {[]types.UUID{done, sleeps}, true, nil, true},
		"any, and all suspended":   {[]types.UUID{sleeps}, true, nil, false},
		"any, and there is word":   {[]types.UUID{sleeps}, true, func(s *recovery.State) { s.Mail = []step.Mail{{Kind: step.MailChild, Child: done}} }, true},
		"it waits for nothing":     {nil, false, nil, false},
		"it is paused":             {[]types.UUID{done}, false, func(s *recovery.State) { s.Paused = true }, false},
		"it has ended":             {[]types.UUID{done}, false, func(s *recovery.State) { s.Phase = recovery.Ended }, false},
		"its budget is used up":    {[]types.UUID{done}, false, func(s *recovery.State) { s.Tokens, s.Settled = 9, []byte(`{"context_budget":9}`) }, false},
	} {
		s := &recovery.State{Life: step.Life{Phase: recovery.Suspended, Settled: []byte(`{}`)}, Open: &recovery.Open{}}
		for i, id := range c.children {
			call := recovery.Call{ID: fmt.Sprint(i), Name: "spawn", Begun: true, Intent: &step.Intent{Child: &id}}
			if c.any {
				call = recovery.Call{ID: "w", Name: recovery.WaitTool, Begun: true, Intent: &step.Intent{Path: recovery.WaitPath}}
				s.Children = append(s.Children, recovery.Child{UUID: id})
				s.Messages = []rnixctx.Message{{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{{ID: "w", Name: recovery.WaitTool, Input: []byte(`{"any":true}`)}}}}
				s.Open.Calls = nil
			}
			s.Open.Calls = append(s.Open.Calls, call)
		}
		if c.change != nil {
			c.change(s)
		}
		if got := w.mayGoOn(s); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
