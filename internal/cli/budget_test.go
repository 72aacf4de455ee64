package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"rnix/ipc"
	"rnix/types"
)

func TestMoneyAndTokensGetIntoTheRequests(t *testing.T) {
	f := newFake(t)
	var add ipc.AddBudgetRequest
	var asked ipc.CostRequest
	limit, left, usd, rest := 2000, 500, 2.5, 0.75
	f.more = func(s *ipc.Server) {
		ipc.Handle(s, ipc.AddBudget, func(_ context.Context, _ *ipc.Peer, req ipc.AddBudgetRequest) (ipc.AddBudgetResponse, error) {
			add = req
			return ipc.AddBudgetResponse{BudgetLine: ipc.BudgetLine{PID: 3, Tokens: ipc.TokenLine{Limit: &limit, Left: &left}, USD: ipc.USDLine{Limit: &usd, Left: &rest}},
				Resumed: []types.PID{4, 5}, Warnings: []string{"PID 6 cannot go on"}}, nil
		})
		ipc.Handle(s, ipc.ShowCost, func(_ context.Context, _ *ipc.Peer, req ipc.CostRequest) (ipc.CostResponse, error) {
			asked = req
			part := 0.0123
			return ipc.CostResponse{Lines: []ipc.CostLine{{Key: "a/b", Tokens: 1500, Input: 1000, Output: 500, Answers: 2, Processes: 1, CostUSD: &part, Unpriced: 10}, {Key: "c/d", Tokens: 7, Unpriced: 7}},
				Total: ipc.CostLine{Tokens: 1507, CostUSD: &part, Unpriced: 17}}, nil
		})
	}
	f.serve()
	r := f.run("budget", "add", "night", "--tokens", "1.5k", "--usd", "$0.25", "--no-resume")
	if r.code != 0 || add.Target != "night" || add.Tokens != 1500 || add.USD != 0.25 || !add.NoResume ||
		!strings.Contains(r.err, "PID 3 has a budget of 2,000 tokens, 500 left; and of $2.50, $0.750 left") || !strings.Contains(r.err, "PID 4, PID 5") || !strings.Contains(r.err, "PID 6 cannot go on") {
		t.Errorf("%+v %+v", r, add)
	}
	r = f.run("cost", "--by", "model", "--since", "2026-11-01", "night")
	if r.code != 0 || asked.By != "model" || asked.Under != "night" || asked.Since.Format(time.DateOnly) != "2026-11-01" ||
		!strings.Contains(r.out, "$0.012+?") || !strings.Contains(r.out, "?") || !strings.Contains(r.err, "17 tokens have no known price") {
		t.Errorf("%+v %+v", r, asked)
	}
	for _, bad := range []string{"budget add night", "budget add night --usd -1", "budget add night --usd 1e9", "budget add night --tokens some", "budget a b", "cost --by moon", "cost --since x", "cost --since 9999999d", "run --budget-usd x do"} {
		if r := f.run(strings.Fields(bad)...); r.code != ExitUsage {
			t.Errorf("%s: %+v", bad, r)
		}
	}
}

func TestSince(t *testing.T) {
	now := time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	for s, want := range map[string]string{"7d": "2026-11-14", "24h": "2026-11-20", "2w": "2026-11-07", "0d": "2026-11-21", "2026-01-31": "2026-01-31"} {
		if got, err := parseSince(s, now); err != nil || got.Format(time.DateOnly) != want {
			t.Errorf("%s is %s, %v", s, got, err)
		}
	}
}

func TestWhoWaitsForTheBudgetOfAnotherIsToldWhose(t *testing.T) {
	exit := &types.ExitStatus{Code: types.ExitBudget, Reason: types.ReasonBudget}
	procs := []ipc.Proc{
		{ProcStatus: types.ProcStatus{PID: 1, UUID: id(1), Exit: exit, ContextBudget: 6}, State: suspended, Wait: "child PID 2 (x), which is suspended: budget of PID 1: 5 of 6 tokens are used"},
		{ProcStatus: types.ProcStatus{PID: 2, UUID: id(2), ParentUUID: id(1), Exit: exit}, State: suspended, Wait: "budget of PID 1: 5 of 6 tokens are used", Purse: &ipc.BudgetWait{UUID: id(1), Tokens: 6}},
		{ProcStatus: types.ProcStatus{PID: 3, UUID: id(3), Exit: exit}, State: suspended, Wait: "budget of PID 9: $1.00 of $1.00 are used", Purse: &ipc.BudgetWait{UUID: id(9), USD: 1}},
		{ProcStatus: types.ProcStatus{PID: 4, UUID: id(4), Exit: exit, BudgetUSD: 2}, State: suspended, Wait: "budget: $2.00 of $2.00 are used", Purse: &ipc.BudgetWait{UUID: id(4), USD: 2}},
	}
	for n, want := range map[byte]string{
		1: "rnix budget add " + id(1).String() + " --tokens 6", 2: "rnix budget add " + id(1).String() + " --tokens 6",
		3: "rnix budget add " + id(9).String() + " --usd 1.00", 4: "rnix resume " + id(4).String() + " --budget-usd 2.00",
	} {
		if _, mend := whatParks(procs, id(n), ""); mend != want {
			t.Errorf("%d: %s, want %s", n, mend, want)
		}
	}
}
