package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/debug"
	"rnix/ipc"
	"rnix/types"
)

// lineagePane shows where a process comes from, what was forked from it, and its runs.
type lineagePane struct {
	e    *env
	sub  subject
	get  *fetch[ipc.TargetRequest, ipc.LineageResponse]
	pick chooser
	deep []int // of each of the family
}

func newLineagePane(e *env) *lineagePane {
	p := &lineagePane{e: e, get: newFetch(e, ipc.Lineage)}
	p.pick = chooser{above: 1, label: func(i int) string { return relativeLine(e.t, &p.get.got.Family[i], 0) }}
	return p
}

func (p *lineagePane) title() string { return "Forks" }

func (p *lineagePane) chooser() *chooser {
	if p.sub.none() || !p.get.known {
		return nil
	}
	return &p.pick
}

func (p *lineagePane) show(proc *ipc.Proc) tea.Cmd {
	other, changed := p.sub.take(proc)
	if other {
		p.get.forget()
		p.pick.set(0)
		p.pick.find = finder{}
	}
	if p.sub.none() || !changed && p.get.err == nil {
		return nil
	}
	return p.get.ask(ipc.TargetRequest{Target: p.sub.target()})
}

func (p *lineagePane) update(msg tea.Msg) tea.Cmd {
	first := !p.get.known
	cmd, fresh := p.get.update(msg)
	if !fresh || !p.get.known {
		return cmd
	}
	family := p.get.got.Family
	at := map[types.UUID]int{}
	p.deep = make([]int, len(family))
	for i := range family {
		if up, ok := at[family[i].OriginUUID]; ok {
			p.deep[i] = p.deep[up] + 1
		}
		at[family[i].UUID] = i
	}
	p.pick.set(len(family))
	if first {
		p.pick.choose(slices.IndexFunc(family, func(r ipc.Relative) bool { return r.UUID == p.sub.id }))
		p.pick.tail = false
	}
	return cmd
}

// relativeLine is one of a family.
func relativeLine(t *Theme, r *ipc.Relative, deep int) string {
	from := ""
	if r.OriginUUID != (types.UUID{}) {
		from = fmt.Sprintf(" from step %d", r.OriginStep)
	}
	tree := ""
	if deep > 0 {
		tree = blanks(2*min(deep-1, 12)) + t.pick("└ ", "` ")
	}
	return fmt.Sprintf("%sPID %s %s%s, step %d  %s", tree, r.PID, t.line(r.State), from, r.Step, t.line(r.Name+with(" ", r.Intent)))
}

func (p *lineagePane) view(w, h int) string {
	t := p.e.t
	if p.sub.none() {
		return noProcess
	}
	if state := p.get.state(t); state != "" {
		return t.cut(state, w)
	}
	r := &p.get.got
	head := fmt.Sprintf("%s, %s", plural(len(r.Family), "process of one family", "processes of one family"), plural(len(r.Runs), "run of this one", "runs of this one"))
	switch {
	case p.get.err != nil:
		head = "as it was known; " + t.line(errorText(p.get.err))
	case r.Damage != "":
		head = "the history is damaged: " + t.line(r.Damage)
	}
	room := max(h-1, 0)
	runs := strings.Split(strings.TrimRight(runsText(t, r.Runs), "\n"), "\n")
	list := min(len(r.Family), max(room/2, room-len(runs)-1))
	body := p.pick.view(t, w, list, func(i int) (string, style) {
		f := &r.Family[i]
		st := plain
		if f.UUID == p.sub.id {
			st = bold
		}
		return relativeLine(t, f, p.deep[i]), st
	})
	lines := append(strings.Split(body, "\n"), append([]string{""}, runs...)...)
	lines = lines[:min(len(lines), room)]
	for i := list; i < len(lines); i++ {
		lines[i] = t.cut(lines[i], w)
	}
	return headed(t, head, w, h, strings.Join(lines, "\n"))
}

// runsText is the runs of a process, the last one first.
func runsText(t *Theme, runs []ipc.Run) string {
	var b strings.Builder
	b.WriteString("RUNS\n")
	for i := len(runs) - 1; i >= 0; i-- {
		r := &runs[i]
		end := "running"
		if r.End != "" {
			end = r.End + with(": ", r.Reason)
		}
		fmt.Fprintf(&b, "%d  %s by %s as PID %s, ran %s", r.Number, r.Began.Local().Format("2006-01-02 15:04:05"), t.line(r.How), r.PID, debug.Duration(time.Duration(r.ActiveMs)*time.Millisecond))
		if r.FirstStep > 0 {
			fmt.Fprintf(&b, ", steps %d to %d", r.FirstStep, r.LastStep)
		}
		b.WriteString(", " + t.line(end))
		if len(r.Changed) > 0 && r.Number > 1 {
			b.WriteString(", changed: " + t.line(strings.Join(r.Changed, " ")))
		}
		b.WriteString(with(", said: ", t.line(r.Input)) + "\n")
	}
	return b.String()
}

func (p *lineagePane) keys() []binding {
	return append(chooserKeys(&p.pick, "relative"), key(inPane, "enter right l", "go to the relative", "open", func(m *Model) tea.Cmd {
		if p.pick.at >= len(p.get.got.Family) {
			return nil
		}
		return goTo(m, p.get.got.Family[p.pick.at].UUID)
	}))
}
