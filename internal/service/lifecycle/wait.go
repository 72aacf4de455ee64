package lifecycle

import (
	"context"
	"errors"

	"rnix/internal/price"
	"rnix/internal/procview"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// wait waits for the end of a process, wherever it lies.
func (d *Service) wait(ctx context.Context, _ *ipc.Peer, req ipc.WaitRequest) (ipc.WaitResponse, error) {
	if err := d.Ground.Settled(ctx); err != nil {
		return ipc.WaitResponse{}, err
	}
	t, err := d.Names.Resolve(req.Target)
	if err != nil {
		return ipc.WaitResponse{}, err
	}
	switch {
	case req.TimeoutMs < 0:
		return ipc.WaitResponse{}, types.Errorf(types.ErrInvalid, "Wait", "", "the time limit is negative; 0 means none")
	case req.TimeoutMs > 0:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, service.Timeout(req.TimeoutMs))
		defer cancel()
	}
	if t, err = d.Await(ctx, t); err != nil {
		return ipc.WaitResponse{}, err
	}
	if t.Live == nil {
		i := d.Stored.Cards.Whole(t.Info)
		return d.withFamily(waitedOnDisk(i), i.Provider), nil
	}
	i, err := d.Kernel.WaitInfo(ctx, t.PID)
	if err != nil {
		return ipc.WaitResponse{}, err
	}
	r := ipc.WaitResponse{PID: i.PID, UUID: i.UUID, Result: i.Result, TokensUsed: i.TokensUsed, Estimated: i.Estimated,
		CostUSD: i.CostUSD, ElapsedMs: i.Elapsed.Milliseconds(), Steps: i.Step, FailedCalls: i.FailedCalls, Unpriced: i.Unpriced, UnpricedModels: procview.Unpriced(i.Spending, &i.ProcStatus), Provider: i.Provider, Model: i.Model, Suspended: i.Suspended || i.Exit == nil, MCPDown: i.MCPDown, Denials: i.Denials, Schema: i.Schema}
	if i.Exit != nil {
		r.Exit = *i.Exit
	}
	return d.withFamily(r, i.Provider), nil
}

// withFamily adds what the descendants of a process have used, if it has any. One that has no provider shows what they have
// used as its own.
func (d *Service) withFamily(r ipc.WaitResponse, provider string) ipc.WaitResponse {
	if provider == "" {
		return r
	}
	own, tree := d.Costs.Together(r.UUID)
	if tree.Processes < 2 {
		return r
	}
	usd := func(l *ipc.CostLine) price.USD {
		if l.CostUSD == nil {
			return 0
		}
		return price.FromFloat(*l.CostUSD)
	}
	r.FamilyTokens, r.FamilyUSD = r.TokensUsed+tree.Tokens-own.Tokens, (price.FromFloat(r.CostUSD) + usd(&tree) - usd(&own)).Float()
	r.FamilyUnpriced, r.FamilyFailed = r.Unpriced+tree.Unpriced-own.Unpriced, r.FailedCalls+tree.FailedCalls-own.FailedCalls
	return r
}

// waitedOnDisk answers for a process that ended before this daemon started.
func waitedOnDisk(i *step.ProcInfo) ipc.WaitResponse {
	r := ipc.WaitResponse{PID: i.PID, UUID: i.UUID, Result: i.Result, TokensUsed: i.TokensUsed, Estimated: procview.Estimated(i), CostUSD: i.CostUSD,
		ElapsedMs: procview.Elapsed(i).Milliseconds(), Steps: i.Step, FailedCalls: i.FailedCalls, Unpriced: i.Unpriced, UnpricedModels: procview.Unpriced(i.Spending, &i.ProcStatus), Provider: i.Provider, Model: i.Model, Suspended: i.Suspended || i.Exit == nil, MCPDown: i.MCPDown, Denials: i.Denials, Schema: i.Schema}
	if i.Exit != nil {
		r.Exit = *i.Exit
	}
	return r
}

// Await waits until a process is resumed that is to be resumed a little later, after a start of the daemon, and says what it is then.
func (d *Service) Await(ctx context.Context, t service.Target) (service.Target, error) {
	done := d.Auto.Delayed(t.UUID)
	if t.Live != nil || done == nil {
		return t, nil
	}
	select {
	case <-done:
		return d.Names.Resolve(t.UUID.String())
	case <-ctx.Done():
	}
	code := types.ErrCancelled
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		code = types.ErrTimeout
	}
	return t, types.Errorf(code, "Wait", t.UUID.String(), "%w", context.Cause(ctx))
}
