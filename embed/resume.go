package embed

import (
	"context"
	"errors"
	"slices"

	"rnix/agent"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// History is one that is kept, as it was when it was last written.
type History struct {
	types.ProcStatus
	Ended            bool   // it can be read, and not resumed
	Result           string // of one that has ended
	types.Suspension        // why one that has not ended did not run; its zero value: it ran, to the end of the program
}

// Histories returns all that are kept, the oldest first.
func (s *System) Histories() []History {
	if s.journal == nil {
		return nil
	}
	var out []History
	for _, i := range s.journal.Index().List() {
		out = append(out, History{ProcStatus: i.ProcStatus, Ended: i.Over(), Result: i.Result, Suspension: i.Suspension})
	}
	slices.SortFunc(out, func(a, b History) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out
}

// Steps returns what a history says that was done, in JSON Lines as docs/format.md describes. NOT_FOUND if there is none.
func (s *System) Steps(id types.UUID) ([]step.StepRecord, error) {
	if s.records == nil {
		return nil, kept(id)
	}
	return s.records.Steps(id)
}

func kept(id types.UUID) error {
	return types.Errorf(types.ErrNotFound, "Resume", id.String(), "nothing is kept here: give Options.Dir")
}

// Resume lets everything go on that an earlier run has cut off, children before those that have started them, and returns the PIDs by history. One that
// waits for something that is not there yet, such as more budget, is left alone. One that cannot be resumed is named in the error, and keeps
// no other from it.
func (s *System) Resume(ctx context.Context) (map[types.UUID]types.PID, error) {
	began := map[types.UUID]types.PID{}
	var errs []error
	all := s.Histories()
	slices.Reverse(all) // a child is younger than its parent
	for i := range all {
		if h := &all[i]; h.Ended || !slices.Contains(cutOff, h.Why()) || s.runs(h.UUID) {
			continue
		}
		pid, err := s.ResumeOne(ctx, all[i].UUID, "")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		began[all[i].UUID] = pid
	}
	return began, errors.Join(errs...)
}

// cutOff are the reasons that end with the next run.
var cutOff = []types.SuspendKind{"", types.SuspendStopped, types.SuspendBroken, types.SuspendChild}

func (s *System) runs(id types.UUID) bool { _, ok := s.Kernel.ByUUID(id); return ok }

// ResumeOne lets one history go on where it was, with something to say to it if input is not empty. A call of which nobody knows whether it has run is
// told to its model, and not made again. CONFLICT if it runs, or has ended and nothing is said to it.
func (s *System) ResumeOne(ctx context.Context, id types.UUID, input string) (types.PID, error) {
	return s.resume(ctx, id, input, 0)
}

func (s *System) resume(ctx context.Context, id types.UUID, input string, parent types.PID) (types.PID, error) {
	if s.records == nil {
		return 0, kept(id)
	}
	rec, state, _, _, err := s.records.Open(ctx, id)
	if err != nil {
		return 0, err
	}
	was, err := state.Was()
	switch {
	case err != nil:
	case was.Body != nil:
		err = types.Errorf(types.ErrUnavailable, "Resume", id.String(), "it is no agent (%s)", was.Body.Kind)
	case state.Phase == recovery.Ended && input == "":
		err = types.Errorf(types.ErrConflict, "Resume", id.String(), "it has ended; give it an input, with which it is resumed")
	}
	if err != nil {
		return 0, errors.Join(err, rec.Close())
	}
	o := kernel.SpawnOpts{UUID: id, ParentPID: parent, WorkDir: was.WorkDir, ReadRoots: was.ReadRoots, Timeout: was.Timeout,
		ProcSpec: types.ProcSpec{Name: was.Name, Provider: was.Provider, Model: was.AskedModel, FallbackProvider: was.FallbackProvider,
			FallbackModel: was.FallbackModel, Effort: was.Effort, MaxSteps: &was.MaxSteps, ContextBudget: &was.ContextBudget, BudgetUSD: &was.BudgetUSD},
		From: &kernel.From{State: state, Rec: rec, Was: was, Input: input, Person: input != "", Policy: recovery.Tell}}
	pid, err := s.Kernel.SpawnContext(ctx, was.Intent, &agent.Agent{Manifest: agent.Manifest{Name: was.Agent}}, o)
	if err != nil {
		return 0, types.Errorf(types.CodeOf(err), "Resume", id.String(), "%w", err)
	}
	return pid, nil
}

// life is what becomes of processes outside of the kernel: they have numbers that no earlier one had, and histories.
type life struct {
	kernel.NoLifecycle
	sys *System
}

func (l *life) NextPID() (types.PID, error) {
	n, err := l.sys.pids.Next()
	return types.PID(n), err
}

func (l *life) Stored(id types.UUID) (*step.ProcInfo, error) {
	info, ok := l.sys.journal.Index().Get(id)
	if !ok {
		return nil, types.Errorf(types.ErrNotFound, "Info", id.String(), "there is no such history")
	}
	return &info, nil
}

func (l *life) Revive(ctx context.Context, parent *kernel.Process, id types.UUID) (types.PID, error) {
	return l.sys.resume(ctx, id, "", parent.PID)
}
