package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/price"
	"rnix/ipc"
)

// costPane shows what a process and those below it have used, and what they may use.
type costPane struct {
	e      *env
	sub    subject
	cost   *fetch[ipc.CostRequest, ipc.CostResponse]
	budget *fetch[ipc.BudgetRequest, ipc.BudgetResponse]
	by     int  // index in costBy
	all    bool // of all histories, not only of this tree
	long   *long
}

// costBy is by what costs are added up, in the order in which a key goes through them.
var costBy = []string{"model", "agent", "day", "process"}

// costEvery is the least time between two looks at the costs, for which all histories are read.
const costEvery = 3 * time.Second

func newCostPane(e *env) *costPane {
	p := &costPane{e: e, cost: newFetch(e, ipc.ShowCost), budget: newFetch(e, ipc.ShowBudget), long: newLong(e.t)}
	p.cost.least, p.budget.least = costEvery, costEvery
	return p
}

func (p *costPane) title() string { return "Cost" }
func (p *costPane) text() *long   { return p.long }

func (p *costPane) show(proc *ipc.Proc) tea.Cmd {
	other, changed := p.sub.take(proc)
	if other {
		p.cost.forget()
		p.budget.forget()
		p.long.home()
		p.render()
	}
	if p.sub.none() || !changed && p.cost.err == nil && p.budget.err == nil {
		return nil
	}
	return tea.Batch(p.cost.ask(p.request()), p.budget.ask(ipc.BudgetRequest{Target: p.sub.target()}))
}

func (p *costPane) request() ipc.CostRequest {
	req := ipc.CostRequest{By: costBy[p.by]}
	if !p.all {
		req.Under = p.sub.target()
	}
	return req
}

func (p *costPane) update(msg tea.Msg) tea.Cmd {
	cmd, fresh := p.cost.update(msg)
	cmd2, fresh2 := p.budget.update(msg)
	if fresh || fresh2 {
		p.render()
	}
	return tea.Batch(cmd, cmd2)
}

func (p *costPane) render() {
	t := p.e.t
	var b strings.Builder
	of := "of this process and all below it"
	if p.all {
		of = "of all histories"
	}
	fmt.Fprintf(&b, "COST BY %s, %s\n", strings.ToUpper(costBy[p.by]), of)
	if state := p.cost.state(t); state != "" {
		b.WriteString(state + "\n")
	} else {
		r := &p.cost.got
		key := 8
		for i := range r.Lines {
			key = max(key, min(t.cells(costKey(t, &r.Lines[i])), 32))
		}
		for i := range r.Lines {
			costLine(&b, t, costKey(t, &r.Lines[i]), key, &r.Lines[i])
		}
		costLine(&b, t, "in all", key, &r.Total)
		if r.Total.FailedCalls > 0 {
			b.WriteString(failedCalls(r.Total.FailedCalls) + "\n")
		}
		if n := r.Total.Unpriced; n > 0 {
			b.WriteString(price.Unknown(number(n)) + "\n")
		}
	}
	heading(&b, "BUDGETS", p.budget.state(t))
	if p.budget.known {
		budgetLines(&b, t, p.budget.got.Budgets)
	}
	p.long.set(b.String())
}

func costKey(t *Theme, l *ipc.CostLine) string {
	if l.PID != 0 {
		return "PID " + l.PID.String() + with(" ", t.line(l.Name))
	}
	return orNothing(t.line(l.Key))
}

func costLine(b *strings.Builder, t *Theme, name string, w int, l *ipc.CostLine) {
	usd := 0.0
	if l.CostUSD != nil {
		usd = *l.CostUSD
	}
	fmt.Fprintf(b, "%s %s %s tokens  %s", t.pad(name, w), t.right(price.Spent(usd, l.Tokens, l.Unpriced), 9), t.right(approx(l.Tokens, l.Estimated), 11), plural(l.Answers, "answer", "answers"))
	if l.CacheRead > 0 {
		fmt.Fprintf(b, ", %s read from caches", number(l.CacheRead))
	}
	b.WriteString("\n")
}

func budgetLines(b *strings.Builder, t *Theme, list []ipc.BudgetLine) {
	if len(list) == 0 {
		b.WriteString("no limit is set for it, for what is below it, or above it\n")
	}
	for i := range list {
		l := &list[i]
		name := "PID " + l.PID.String() + with(" ", t.line(l.Name))
		if l.Above {
			name += " (above it)"
		}
		fmt.Fprintf(b, "%s\n", name)
		of := "no limit"
		if l.Tokens.Limit != nil {
			of = "of " + number(*l.Tokens.Limit) + " " + gauge(t, l.Tokens.Used, *l.Tokens.Limit, 20)
		}
		fmt.Fprintf(b, "  tokens %s, %s%s\n", number(l.Tokens.Used), of, reserved(l.Tokens.Reserved > 0, number(l.Tokens.Reserved)))
		of = "no limit"
		if l.USD.Limit != nil {
			of = "of " + dollars(*l.USD.Limit) + " " + gauge(t, int(l.USD.Used*1e6), int(*l.USD.Limit*1e6), 20)
		}
		fmt.Fprintf(b, "  dollars %s, %s%s\n", dollars(l.USD.Used), of, reserved(l.USD.Reserved > 0, dollars(l.USD.Reserved)))
		if l.Wait != "" {
			fmt.Fprintf(b, "  waits: %s\n", t.line(l.Wait))
		}
	}
}

func reserved(has bool, what string) string {
	if !has {
		return ""
	}
	return ", " + what + " reserved for answers under way"
}

func (p *costPane) view(w, h int) string {
	if p.sub.none() {
		return noProcess
	}
	if p.cost.known && p.cost.err != nil {
		return headed(p.e.t, "as it was known; "+p.e.t.line(errorText(p.cost.err)), w, h, p.long.view(w, max(h-1, 0)))
	}
	return p.long.view(w, h)
}

func (p *costPane) keys() []binding {
	again := func(change func()) func(*Model) tea.Cmd {
		return func(*Model) tea.Cmd {
			if p.sub.none() {
				return nil
			}
			change()
			p.long.home()
			cmd := p.cost.about(p.request())
			p.render()
			return cmd
		}
	}
	return []binding{
		key(inPane, "v", "by model, agent, day or process", "by", again(func() { p.by = (p.by + 1) % len(costBy) })),
		key(inPane, "a", "of all histories, or of this tree only", "all", again(func() { p.all = !p.all })),
	}
}
