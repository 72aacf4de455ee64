package billing

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"rnix/internal/launch"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Purses changes what histories that do not run may use.
type Purses struct {
	Kernel  Raiser
	Stored  *launch.Stored
	Resumer Resumer
}

// Raiser is told of the budget of a process that waits for one above it. *kernel.KernelImpl is one.
type Raiser interface {
	RaiseBudget(id types.UUID, more kernel.Amount)
}

// Resumer resumes histories. *lifecycle.Resumer is one.
type Resumer interface {
	// Continued resumes a history, with those that wait for it and those for which it waits. still is asked once nobody else can change the
	// history; if it says no, the error is CONFLICT.
	Continued(ctx context.Context, id types.UUID, req *ipc.ResumeRequest, still func(*recovery.State) bool) (ipc.ResumeResponse, error)
}

// Raise raises the budget of a history. The error is INVALID if it has no limit of that kind.
func (p Purses) Raise(ctx context.Context, id types.UUID, more kernel.Amount) error {
	a, err := p.Stored.Open(ctx, id)
	if err != nil {
		return err
	}
	defer a.Close()
	var missing string
	switch was := &a.Was; {
	case more.Tokens > 0 && was.ContextBudget == 0:
		missing = "tokens"
	case more.USD > 0 && was.BudgetUSD == 0:
		missing = "dollars"
	}
	if missing != "" {
		return &types.SyscallError{Syscall: "AddBudget", Device: a.Was.Name, PID: a.Was.PID, Code: types.ErrInvalid,
			Err: fmt.Errorf("it has no own limit of %s, so there is nothing to add to; `rnix budget` shows which budget it draws from", missing)}
	}
	detail, err := json.Marshal(step.LimitDetail{Tokens: more.Tokens, USD: more.USD.Float()})
	if err != nil {
		return types.Errorf(types.ErrInternal, "AddBudget", "", "encode: %w", err)
	}
	return p.Stored.Set(ctx, a, func() error {
		if err := a.Rec.Add(step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerLimit, Detail: detail}}); err != nil {
			return err
		}
		if err := a.Rec.Commit(); err != nil {
			return err
		}
		p.Kernel.RaiseBudget(id, more)
		return nil
	}, func(info *step.ProcInfo) { a.Rec.State().PutSet(info) })
}

// Wake resumes what is suspended because it waits for the budget of a history, each in the environment env.
func (p Purses) Wake(ctx context.Context, purse types.UUID, env []string) (pids []types.PID, warnings []string) {
	for _, info := range p.Stored.Cards.Index().Open() {
		if info.Purse == nil || info.Purse.UUID != purse || !info.Suspended {
			continue
		}
		resp, err := p.Resumer.Continued(ctx, info.UUID, &ipc.ResumeRequest{Env: env}, recovery.WaitsForBudget(purse))
		if err == nil {
			pids = append(append(pids, resp.PID), resp.Woken...)
		} else if types.CodeOf(err) != types.ErrConflict { // else somebody was quicker
			warnings = append(warnings, fmt.Sprintf("cannot resume PID %d: %v", info.PID, err))
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), warnings
}
