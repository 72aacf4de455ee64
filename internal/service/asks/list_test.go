package asks

import (
	"context"
	"testing"
	"time"

	"rnix/internal/permit"
	"rnix/internal/recovery"
	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

type nothingRuns struct{ Kernel }

func (nothingRuns) Asks() []kernel.Ask { return nil }

func (nothingRuns) AsksShown(context.Context) {}

// resuming is a kernel in which a process was resumed whose loop has not come to its ask yet.
type resuming struct {
	Kernel
	shown bool
}

func (r *resuming) AsksShown(context.Context) { r.shown = true }

func (r *resuming) Asks() []kernel.Ask {
	if !r.shown {
		return nil
	}
	return []kernel.Ask{{Ask: step.Ask{Number: 7}}}
}

// After a restart nobody is told that nothing is asked while a process is being resumed that asks.
func TestAsksOfAResumedProcessAreWaitedFor(t *testing.T) {
	d := &Service{Kernel: &resuming{}, Index: histories{}, Secrets: &redact.Set{}}
	if got := d.all(t.Context(), func(uint64) bool { return true }); len(got) != 1 || got[0].Number != 7 {
		t.Errorf("%+v", got)
	}
}

// reads counts which histories are read.
type reads struct {
	Stored
	of []types.UUID
}

func (r *reads) Read(_ context.Context, id types.UUID) (*recovery.State, error) {
	r.of = append(r.of, id)
	return &recovery.State{}, nil
}

type histories []step.ProcInfo

func (h histories) Get(types.UUID) (step.ProcInfo, bool) { return step.ProcInfo{}, false }
func (h histories) List() []step.ProcInfo                { return h }
func (h histories) Open() []step.ProcInfo                { return h }

// Who answers one ask does not wait for the histories of all others.
func TestOneAskReadsOneHistory(t *testing.T) {
	var all histories
	for i := range 100 {
		p := step.ProcInfo{Asks: []step.Ask{{Number: uint64(i)}}}
		p.UUID, p.Suspended = types.UUID{byte(i), 1}, true
		all = append(all, p)
	}
	r := &reads{}
	d := &Service{Kernel: nothingRuns{}, Stored: r, Index: all}
	got := d.all(t.Context(), func(n uint64) bool { return n == 7 })
	if len(got) != 1 || got[0].Number != 7 || len(r.of) != 1 || r.of[0] != (types.UUID{7, 1}) {
		t.Errorf("%+v, %v were read", got, r.of)
	}
	if r.of = nil; len(d.all(t.Context(), func(uint64) bool { return true })) != 100 || len(r.of) != 100 {
		t.Errorf("%d were read", len(r.of))
	}
}

// granted are histories that have each granted something, under the number of their first byte.
type granted struct{ Stored }

func (granted) Read(_ context.Context, id types.UUID) (*recovery.State, error) {
	s := &recovery.State{}
	s.Grants = []permit.Grant{{Number: uint64(id[0]), Scope: permit.ForProcess, Tool: "shell"}}
	if id[0] == 3 {
		s.Grants[0].Until = time.Now().Add(-time.Minute)
	}
	return s, nil
}

// What a process was granted counts when it is resumed, and so can be seen, and taken back, after its end.
func TestGrantsOfEndedProcessesAreListed(t *testing.T) {
	all := make(histories, 3)
	for i := range all {
		all[i].UUID = types.UUID{byte(i + 1)}
	}
	all[0].State = types.StateRunning
	all[1].State, all[2].State = types.StateDead, types.StateDead
	d := &Service{Kernel: nothingRuns{}, Stored: granted{}, Index: all}
	got := d.grantList(types.UUID{})
	if len(got) != 2 || got[0].Number != 1 || got[0].Ended || got[1].Number != 2 || !got[1].Ended {
		t.Errorf("%+v", got)
	}
}
