package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"rnix/debug"
	"rnix/ipc"
	"rnix/types"
)

// stopped reports whether a process has not ended because its daemon stopped.
func stopped(r *ipc.WaitResponse) bool {
	return r.Suspended && r.Exit.Code == types.ExitOK && r.Exit.Reason == ""
}

// showSuspended says that a process is suspended on disk. why is the reason if it is not that the daemon
// has just stopped.
func showSuspended(out *output, pid types.PID, id types.UUID, e *waited, why string) error {
	out.unfinished = true
	err := types.Errorf(types.ErrUnavailable, "Wait", "", "the daemon stopped; PID %d is suspended on disk with everything that it has done", pid)
	goesOn := "it is resumed when a daemon starts again, or at once with: "
	if why != "" {
		err.Err = fmt.Errorf("PID %d is suspended on disk with everything that it has done: %s", pid, why)
		goesOn = "resume it with: "
	}
	err.PID = pid
	r := &e.r
	r.PID, r.UUID = pid, id
	mend := "rnix resume " + id.String() // a PID ends with its run, and a daemon that starts may begin the next one
	switch out.format {
	case asJSON:
		if e.err != nil { // nobody has said how far it is
			out.object(&leftAnswer{Error: types.ToWire(err), Mend: mend, Data: leftData{pid, id, true}})
			break
		}
		out.object(&runAnswer{Error: types.ToWire(err), Mend: mend, Data: suspendedData(r)})
	case asStream:
		if e.err != nil { // nobody has said how far it is: what the stream has read of it
			r = linesOf(out).leftAt()
			r.PID, r.UUID = pid, id
		}
		linesOf(out).end(linesOf(out).resultOf(r, "suspended", err))
	default:
		out.say(debug.Sanitize("[kernel] " + err.Err.Error()))
		out.say("  " + goesOn + mend)
	}
	return leave(ExitSuspended)
}

// leftAnswer is runAnswer for a process whose daemon went without a word: what is not known of it is left out, and not zero.
type (
	leftAnswer struct {
		OK    bool             `json:"ok"` // false
		Error *types.WireError `json:"error"`
		Mend  string           `json:"mend"`
		Data  leftData         `json:"data"`
	}
	leftData struct {
		PID       types.PID  `json:"pid"`
		UUID      types.UUID `json:"uuid"`
		Suspended bool       `json:"suspended"` // true
	}
)

func suspendedData(r *ipc.WaitResponse) *runData {
	return &runData{PID: r.PID, UUID: r.UUID, Result: r.Result, TokensUsed: r.TokensUsed, Estimated: r.Estimated, CostUSD: r.CostUSD,
		ElapsedMs: r.ElapsedMs, Steps: r.Steps, ExitCode: r.Exit.Code, ExitReason: r.Exit.Reason, Suspended: true}
}

// showParked says that a process is suspended because it waits for something that a person decides, such
// as more budget, and how it goes on. It returns the exit code of the end that this would have been.
func showParked(ctx context.Context, c *ipc.Client, out *output, r *ipc.WaitResponse, warnings []string) error {
	out.unfinished = true
	reason, mend := r.Exit.Reason, "rnix resume "+r.UUID.String()
	goesOn := "resume it with: "
	list, err := ipc.Call(ctx, c, ipc.ListProcs, ipc.ListRequest{})
	if err == nil { // without it less is said
		reason, mend = whatParks(list.Procs, r.UUID, reason)
		if i := slices.IndexFunc(list.Procs, func(p ipc.Proc) bool { return p.UUID == r.UUID && !p.WaitUntil.IsZero() }); i >= 0 {
			goesOn = "it is resumed at " + list.Procs[i].WaitUntil.Local().Format("15:04 on 2 Jan") + ", or at once with: "
		}
	}
	why := endError(r.Exit)
	if e, ok := errors.AsType[*types.SyscallError](why); ok {
		e.Err = errors.New("suspended: " + reason)
	}
	switch out.format {
	case asJSON:
		data := suspendedData(r)
		data.Warnings = warnings
		out.object(&runAnswer{Error: types.ToWire(why), Mend: mend, Data: data})
	case asStream:
		linesOf(out).end(linesOf(out).resultOf(r, "suspended", why))
	default:
		if !out.exact {
			out.result(r.Result)
		}
		head := "[kernel] PID " + r.PID.String() + " "
		if !out.talks() {
			head = out.err.paint(red, out.prog+": ") + "PID " + r.PID.String() + " "
		}
		out.say(strings.Join([]string{head + out.err.paint(yellow, "suspended: "+reason), plural(r.Steps, "step", "steps"),
			tokens(r.TokensUsed, r.Estimated) + " tokens", duration(r.ElapsedMs)}, " | "))
		if strings.Contains(mend, " --budget ") {
			mend += " (so many more tokens; 0 = unlimited)"
		}
		out.say("  " + goesOn + mend)
	}
	return leave(processExit(r.Exit))
}

// whatParks returns why a process is suspended and the command that lets it go on: that for the process at
// the end of the chain of suspended ones which wait for each other, since those above it go on with it.
// Without the process among procs the reason is the given one.
func whatParks(procs []ipc.Proc, id types.UUID, given string) (reason, mend string) {
	last := &ipc.Proc{ProcStatus: types.ProcStatus{UUID: id}, State: suspended, Wait: given}
	find := func(is func(*ipc.Proc) bool) bool {
		i := slices.IndexFunc(procs, func(p ipc.Proc) bool { return p.State == suspended && is(&p) })
		if i >= 0 {
			last = &procs[i]
		}
		return i >= 0
	}
	if find(func(p *ipc.Proc) bool { return p.UUID == id }) {
		given = waitReason(last)
	}
	for range procs { // a chain has no more links; damaged files may make a circle
		if why := last.Why(); why != types.SuspendChild && why != types.SuspendNodes || !find(func(p *ipc.Proc) bool { return p.ParentUUID == last.UUID }) {
			break
		}
	}
	mend = "rnix resume " + last.UUID.String()
	switch last.Why() {
	case types.SuspendBudget:
		if last.Purse != nil && last.Purse.UUID != last.UUID {
			return given, purseMend(last)
		}
		mend = budgetMend(last, mend)
	case types.SuspendContext:
		mend += " --model MODEL"
	}
	return given, mend
}

// budgetMend is the command, which begins with again, that gives a process enough of its own budget to go on: as much as
// it had, or as it has used.
func budgetMend(p *ipc.Proc, again string) string {
	if strings.Contains(p.Wait, "$") || p.ContextBudget == 0 && p.BudgetUSD > 0 {
		return dollarMend(p, again)
	}
	return tokenMend(p, again)
}

// tokenMend is budgetMend for a budget of tokens. The flag is so many more than were used.
func tokenMend(p *ipc.Proc, again string) string {
	more := cmp.Or(p.Purse, new(ipc.BudgetWait)).MoreTokens - max(p.TokensUsed-p.ContextBudget, 0)
	return again + fmt.Sprintf(" --budget %d", max(cmp.Or(p.ContextBudget, p.TokensUsed), more, 1))
}

// dollarMend is budgetMend for a budget in dollars.
func dollarMend(p *ipc.Proc, again string) string {
	usd := p.BudgetUSD
	if more := cmp.Or(p.Purse, new(ipc.BudgetWait)).MoreUSD; more > usd {
		usd = more + max(p.BudgetUSD-p.CostUSD, 0)
	}
	return again + " --budget-usd " + cents(usd)
}

// runMend is the command that lets a run of a workflow go on.
func runMend(r *ipc.ComposeRun) string {
	again := fmt.Sprintf("rnix compose resume %d", r.PID)
	switch p := r.Purse; {
	case r.State != suspended || p == nil:
		return again
	case p.UUID != r.UUID:
		return purseMend(&ipc.Proc{Purse: p})
	case p.MoreUSD > 0:
		return again + " --budget-usd " + cents(max(r.BudgetUSD, p.MoreUSD))
	default:
		return again + fmt.Sprintf(" --budget %d", max(r.Budget, r.TokensUsed, 1))
	}
}

// purseMend is the command that raises the budget of an ancestor for which a process waits.
func purseMend(p *ipc.Proc) string {
	mend := "rnix budget add " + p.Purse.UUID.String()
	if strings.Contains(p.Wait, "$") || p.Purse.MoreUSD > 0 {
		return mend + " --usd " + cents(max(p.Purse.MoreUSD, p.Purse.USD))
	}
	return mend + fmt.Sprintf(" --tokens %d", max(p.Purse.MoreTokens, p.Purse.Tokens, 1))
}

// cents writes an amount of dollars for a flag, rounded up.
func cents(usd float64) string { return fmt.Sprintf("%.2f", max(math.Ceil(usd*100-1e-6)/100, 0.01)) }

// waitReason is why a process is suspended, on one line.
func waitReason(p *ipc.Proc) string {
	return oneLine(p.Wait)
}
