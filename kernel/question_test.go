package kernel

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/permit"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// judged decides as its settings say, and counts.
type judged struct {
	permit.Settings
	n *uint64
}

func (j judged) Judge(_ *Process, c *permit.Call) permit.Verdict { return j.Settings.Judge(c) }
func (j judged) NextAsk() (uint64, error)                        { *j.n++; return *j.n, nil }

// asksOnce has the model ask a question, and end.
func asksOnce(t *testing.T, s permit.Settings, question string) (*sys, func() string) {
	k := newSys(t, func(c *Config) { c.Permissions = judged{s, new(uint64)} })
	k.model = func(_ context.Context, _ vfs.Caller, turn int) (reply, error) {
		if turn == 1 {
			return calls("ask " + question), nil
		}
		return reply{Content: "done"}, nil
	}
	pid := k.spawn(func(o *SpawnOpts) { o.Timeout = time.Minute })
	return k, func() string { // what the model is told, when it has ended
		t.Helper()
		if e, err := k.Wait(pid); err != nil || e.Code != types.ExitOK {
			t.Errorf("%+v %v", e, err)
		}
		k.stores.mu.Lock()
		defer k.stores.mu.Unlock()
		var all []step.Record
		for _, r := range k.stores.recs { // there is one
			all = append(all, r.records()...)
		}
		for _, r := range all {
			if r.Message != nil && r.Message.Role == rnixctx.RoleTool {
				return r.Message.Content
			}
		}
		return ""
	}
}

const which = `{"question":"Which?","choices":["one","two"],"default":"two"}`

func TestADefaultCountsAtItsTimeAndNotBeforeAPersonWhoIsFaster(t *testing.T) {
	patient := permit.Settings{DefaultAfter: 10 * time.Minute}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		k, told := asksOnce(t, patient, which)
		if got := told(); !strings.HasSuffix(got, "your default counts.)\ntwo") || time.Since(begun) != 10*time.Minute {
			t.Errorf("after %v it is told %q", time.Since(begun), got)
		}
		if len(k.Asks()) != 0 {
			t.Errorf("%+v", k.Asks())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		k, told := asksOnce(t, patient, which)
		time.Sleep(10*time.Minute - time.Second)
		synctest.Wait()
		if a := k.Asks(); len(a) != 1 || !a[0].Until.Equal(a[0].Since.Add(10*time.Minute)) {
			t.Fatalf("%+v", a)
		}
		if _, err := k.Answer(step.Answered{Number: 1, Allow: true, Text: "one"}); err != nil {
			t.Fatal(err)
		}
		if got := told(); !strings.HasSuffix(got, "\none") {
			t.Errorf("it is told %q", got)
		}
	})
	// Without a time, or without a default, it waits for ever, and no time limit ends it.
	for question, s := range map[string]permit.Settings{which: {}, `{"question":"Which?"}`: patient} {
		synctest.Test(t, func(t *testing.T) {
			k, told := asksOnce(t, s, question)
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			if len(k.Asks()) != 1 {
				t.Fatalf("%s waits no more", question)
			}
			if _, err := k.Answer(step.Answered{Number: 1, Because: "guess"}); err != nil {
				t.Fatal(err)
			}
			if got := told(); !strings.HasSuffix(got, "does not answer this question.)\nguess") {
				t.Errorf("it is told %q", got)
			}
		})
	}
}

func TestAQuestionWithoutAPersonIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, told := asksOnce(t, permit.Settings{Refuse: true, DefaultAfter: time.Minute}, which)
		if got := told(); !strings.HasPrefix(got, "(No person is there") || time.Since(begun) > time.Second {
			t.Errorf("after %v it is told %q", time.Since(begun), got)
		}
	})
	synctest.Test(t, func(t *testing.T) { // and a kernel without permissions has no such tool
		if k := newSys(t); k.actions.asks {
			t.Error("it can ask, and nothing asks a person")
		}
	})
}
