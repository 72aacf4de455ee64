package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rnix/internal/price"
	"rnix/ipc"
	"rnix/types"
)

func budgetCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:        "budget [PROCESS]",
		SuggestFor: []string{"quota", "limit"},
		Short:      "show what processes may use and have used, and give them more",
		Long: `Budget shows what a process may use, in tokens and in dollars, what it has used with all that descend
from it, ended ones too, what is reserved for answers under way, and what is left; above it the ancestors
with budgets that limit it too, below it its descendants. Without PROCESS: all that run or are suspended and
have a budget.

A budget is that of a whole family: children draw from their parent's, and may have one of their own
below it. Before a model is asked, the most that the answer can take is reserved, from all budgets above;
when the answer is there it is settled for what it took. So a budget in dollars is not exceeded, and one
in tokens by one call at most: while anything of it is left, one process of the family may ask, alone. A
model with answers that cannot be bounded (the CLIs) has the whole budget to itself while it answers,
and can go over it by that one answer. No provider tells what it bills for an answer that broke off.

A process that runs out of budget is suspended until you raise it with: rnix budget add`,
		Example:           examples(`rnix budget`, `rnix budget night`, `rnix budget add night --tokens 200k`, `rnix budget add 3 --usd 2.50 --no-resume`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(0, 1, process),
		ValidArgsFunction: completeProcs(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			var req ipc.BudgetRequest
			if len(args) > 0 {
				req.Target = args[0]
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return showBudgets(c.Context(), client, a.out, req)
		},
	}
	c.AddCommand(budgetAddCmd(a))
	return c
}

func budgetAddCmd(a *app) *cobra.Command {
	var tokens count
	var usd money
	var req ipc.AddBudgetRequest
	c := &cobra.Command{
		Use:   "add PROCESS",
		Short: "raise the budget of a process, and resume what waits for it",
		Long: `Add raises the budget of a process, running or suspended, durably. What is suspended because it waits for
this budget, the process and any of its descendants, is resumed, unless --no-resume is
given.

A process without its own limit has nothing to add to: raise the budget of the ancestor that it draws
from, which rnix budget PROCESS shows. With --subtree each of the family that has its own limit gets
so much more.`,
		Example:           examples(`rnix budget add night --tokens 200k`, `rnix budget add --subtree night --tokens 50k`, `rnix budget add 3 --tokens 50000 --usd 2.50`, `rnix budget add 3 --usd 1 --no-resume`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, process),
		ValidArgsFunction: completeProcs(a, false),
		RunE: func(c *cobra.Command, args []string) error {
			if tokens == 0 && usd == 0 {
				return usagef("say how much: --tokens 200k, --usd 2.50 or both", "nothing is to be added")
			}
			req.Target, req.Tokens, req.USD, req.Env = args[0], int(tokens), price.USD(usd).Float(), a.host.Environ
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return addBudget(c.Context(), client, a.out, req)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.Var(&tokens, "tokens", "so many tokens more, such as 200k")
	f.Var(&usd, "usd", "so many dollars more, such as 2.50")
	f.BoolVarP(&req.Tree, "subtree", "t", false, "also each descendant that has its own limit")
	f.BoolVar(&req.NoResume, "no-resume", false, "leave what waits for the budget suspended")
	return c
}

// money is an amount of money that people write: 2.50 or $2.50.
type money price.USD

// String is empty for nothing, so that help does not call that a default.
func (d *money) String() string {
	if *d == 0 {
		return ""
	}
	return price.USD(*d).String()
}
func (d *money) Type() string { return "usd" }

// Set reads an amount of at least 0.
func (d *money) Set(s string) error {
	u, err := price.ParseUSD(s)
	if err != nil {
		return errors.New("want an amount of US dollars such as 2.50")
	}
	*d = money(u)
	return nil
}

// showBudgets lists budgets.
func showBudgets(ctx context.Context, c *ipc.Client, out *output, req ipc.BudgetRequest) error {
	r, err := ipc.Call(ctx, c, ipc.ShowBudget, req)
	if err != nil {
		return err
	}
	if out.json() {
		for i := range r.Budgets {
			out.object(&r.Budgets[i])
		}
		return nil
	}
	if len(r.Budgets) == 0 {
		out.talk("no process that runs or is suspended has a budget; give one with: rnix run --budget 200k, or --budget-usd 2.50")
		return nil
	}
	cols := []column{{name: "PID", right: true}, {name: "STATE", drop: 2}, {name: "LIMIT", right: true}, {name: "USED", right: true}, {name: "RESERVED", right: true, drop: 3},
		{name: "LEFT", right: true}, {name: "LIMIT $", right: true, drop: 4}, {name: "USED $", right: true, drop: 5}, {name: "LEFT $", right: true, drop: 6}, {name: "INTENT"}}
	var rows [][]cell
	depth := map[types.UUID]int{}
	for i := range r.Budgets {
		l := &r.Budgets[i]
		if up, ok := depth[l.ParentUUID]; ok {
			depth[l.UUID] = up + 1
		} else {
			depth[l.UUID] = 0
		}
		mark := ""
		if l.Above {
			mark = "above: "
		}
		name := strings.Repeat("  ", depth[l.UUID]) + mark + behind(oneLine(l.Name), ": ") + oneLine(l.Intent)
		rows = append(rows, []cell{text(l.PID.String()), text(l.State), text(limitText(l.Tokens.Limit)), text(number(l.Tokens.Used)), text(number(l.Tokens.Reserved)),
			text(limitText(l.Tokens.Left)), text(usdText(l.USD.Limit)), text(usedText(l)), text(usdText(l.USD.Left)), text(cut(name, intentMax))})
	}
	out.table(cols, rows)
	for i := range r.Budgets {
		if l := &r.Budgets[i]; l.State == suspended && types.SuspendFor(l.WaitKind, l.Wait).Why() == types.SuspendBudget {
			out.talk("PID %s waits: %s", l.PID, oneLine(l.Wait))
		}
	}
	return nil
}

// behind is s with something behind it, if it is not empty.
func behind(s, sep string) string {
	if s == "" {
		return ""
	}
	return s + sep
}

// limitText is a number of tokens that may be without limit.
func limitText(n *int) string {
	if n == nil {
		return "-"
	}
	return number(*n)
}

// usdText is an amount that may be without limit.
func usdText(usd *float64) string {
	if usd == nil {
		return "-"
	}
	return price.FromFloat(*usd).String()
}

// usedText is what was used of a budget: here nothing is $0, since "-" is what has no limit.
func usedText(l *ipc.BudgetLine) string {
	if l.USD.Used == 0 && l.Unpriced == 0 {
		return usdText(&l.USD.Used)
	}
	return price.Spent(l.USD.Used, l.Tokens.Used, l.Unpriced)
}

// usdOf is an amount of which null says that none is known.
func usdOf(usd *float64) float64 {
	if usd == nil {
		return 0
	}
	return *usd
}

// addBudget raises a budget.
func addBudget(ctx context.Context, c *ipc.Client, out *output, req ipc.AddBudgetRequest) error {
	r, err := ipc.Call(ctx, c, ipc.AddBudget, req)
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
	} else {
		if req.Tree {
			out.talk("[kernel] raised: %s", namedPIDs(r.Raised))
		}
		var parts []string
		if r.Tokens.Limit != nil {
			parts = append(parts, fmt.Sprintf("%s tokens, %s left", number(*r.Tokens.Limit), number(*r.Tokens.Left)))
		}
		if r.USD.Limit != nil {
			parts = append(parts, fmt.Sprintf("%s, %s left", usdText(r.USD.Limit), usdText(r.USD.Left)))
		}
		if len(parts) > 0 {
			out.talk("[kernel] PID %s has a budget of %s", r.PID, strings.Join(parts, "; and of "))
		}
		if len(r.Resumed) > 0 {
			out.talk("[kernel] resumed with it: %s", namedPIDs(r.Resumed))
		}
	}
	for _, text := range r.Warnings {
		out.warn(text)
	}
	return nil
}
