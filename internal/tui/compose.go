package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/debug"
	"rnix/internal/compose"
	"rnix/internal/price"
	"rnix/ipc"
	"rnix/types"
)

// composePane shows a run of a workflow as a graph: nodes in layers, each below those for which it waits.
type composePane struct {
	e      *env
	sub    subject
	status *fetch[ipc.TargetRequest, ipc.ComposeRun]
	plan   *fetch[ipc.TargetRequest, ipc.ComposePlanResponse]
	lines  []graphLine
	pick   chooser
}

// graphLine is a node in its layer.
type graphLine struct {
	node  *ipc.ComposeNode
	layer int
	first bool // of its layer
	after []string
}

func newComposePane(e *env) *composePane {
	p := &composePane{e: e, status: newFetch(e, ipc.ComposeStatus), plan: newFetch(e, ipc.ComposePlan)}
	p.pick = chooser{above: 1, label: func(i int) string { return e.t.line(p.lines[i].node.Name + " " + p.lines[i].node.State) }}
	return p
}

func (p *composePane) title() string { return "Graph" }

func (p *composePane) chooser() *chooser {
	if p.sub.none() || len(p.lines) == 0 {
		return nil
	}
	return &p.pick
}

func (p *composePane) show(proc *ipc.Proc) tea.Cmd {
	other, _ := p.sub.take(proc)
	if other {
		p.status.forget()
		p.plan.forget()
		p.lines = nil
		p.pick.set(0)
		p.pick.find = finder{}
	}
	if p.sub.none() || proc.Kind != compose.ProcessKind {
		return nil
	}
	req := ipc.TargetRequest{Target: p.sub.target()}
	cmd := p.status.ask(req) // its nodes change where its own row does not
	if !p.plan.known && !p.plan.busy {
		return tea.Batch(cmd, p.plan.ask(req))
	}
	return cmd
}

func (p *composePane) update(msg tea.Msg) tea.Cmd {
	cmd, fresh := p.status.update(msg)
	cmd2, fresh2 := p.plan.update(msg)
	if (fresh || fresh2) && p.status.known {
		var name string
		if p.pick.at < len(p.lines) {
			name = p.lines[p.pick.at].node.Name
		}
		p.lines = graph(p.plan.got.File, p.status.got.Nodes)
		p.pick.set(len(p.lines))
		if i := slices.IndexFunc(p.lines, func(l graphLine) bool { return l.node.Name == name }); i >= 0 {
			p.pick.choose(i)
		}
		p.pick.tail = false
	}
	return tea.Batch(cmd, cmd2)
}

// graph puts nodes into layers: a node stands one below the lowest of those for which it waits. What waits for itself
// in the end, which no checked file says, stands in the first layer. file may be nil: then all are in one.
func graph(file *ipc.Workflow, nodes []ipc.ComposeNode) []graphLine {
	on := func(name string) []string {
		if file == nil {
			return nil
		}
		n := file.Agents[name]
		if n == nil {
			return nil
		}
		var out []string
		if n.DependsOn != nil {
			for d := range n.DependsOn.On {
				out = append(out, d)
			}
		}
		if n.ForEach != nil && n.ForEach.From != "" && !slices.Contains(out, n.ForEach.From) {
			out = append(out, n.ForEach.From)
		}
		slices.Sort(out)
		return out
	}
	layers, under := map[string]int{}, map[string]bool{}
	var layer func(name string) int
	layer = func(name string) int {
		if n, ok := layers[name]; ok || under[name] {
			return n
		}
		under[name] = true
		n := 0
		for _, d := range on(name) {
			n = max(n, layer(d)+1)
		}
		layers[name] = n
		return n
	}
	lines := make([]graphLine, len(nodes))
	for i := range nodes {
		of, _, _ := strings.Cut(nodes[i].Name, "[")
		lines[i] = graphLine{node: &nodes[i], layer: layer(of), after: on(of)}
	}
	slices.SortStableFunc(lines, func(a, b graphLine) int { return cmp.Compare(a.layer, b.layer) })
	for i := range lines {
		lines[i].first = i == 0 || lines[i-1].layer != lines[i].layer
	}
	return lines
}

func (p *composePane) view(w, h int) string {
	t := p.e.t
	switch {
	case p.sub.none():
		return noProcess
	case p.sub.proc.Kind != compose.ProcessKind:
		return t.cut("this process is no run of a workflow; start one with: rnix compose up", w)
	}
	if state := p.status.state(t); state != "" {
		return t.cut(state, w)
	}
	r := &p.status.got
	var counts []string
	for _, state := range []string{"running", "waiting", "paused", "suspended", "stopped", "retrying", "expanded", "succeeded", "failed", "skipped"} {
		if n := r.Counts[state]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	head := t.line(r.Name) + ": " + strings.Join(counts, t.dot()) + t.dot() + number(r.TokensUsed) + " tokens" + price.Behind(r.CostUSD, r.TokensUsed, r.Unpriced)
	if err := cmp.Or(p.status.err, p.plan.err); err != nil {
		head = "as it was known; " + t.line(errorText(err))
	}
	if len(p.lines) == 0 {
		return headed(t, head, w, h, "no node")
	}
	name := 4
	for _, l := range p.lines {
		name = max(name, t.cells(t.line(l.node.Name)))
	}
	name = min(name, max(w/3, 8))
	return headed(t, head, w, h, p.pick.view(t, w, h-1, func(i int) (string, style) {
		l := &p.lines[i]
		rail := t.pick("│", "|")
		last := i+1 == len(p.lines) || p.lines[i+1].first
		switch {
		case l.first && last:
			rail = t.pick("─", "-")
		case l.first:
			rail = t.pick("┌", ",")
		case last:
			rail = t.pick("└", "`")
		}
		layer := "  "
		if l.first {
			layer = fmt.Sprintf("%2d", l.layer+1)
		}
		text := fmt.Sprintf("%s%s %s %s", layer, rail, t.pad(t.line(l.node.Name), name), nodeText(t, l, p.e.now()))
		return text, nodeStyle(l.node.State)
	}))
}

// nodeText says how a node stands, and for what it waits.
func nodeText(t *Theme, l *graphLine, now time.Time) string {
	n := l.node
	s := n.State
	if n.State == "waiting" && len(n.Needs) > 0 {
		s += " for " + strings.Join(n.Needs, ", ")
	} else if n.Why != "" {
		s += ": " + n.Why
	}
	parts := []string{t.line(s)}
	if !n.Until.IsZero() {
		parts = append(parts, "until "+clock(n.Until, now))
	}
	if n.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", n.Attempt))
	}
	if n.Step > 0 {
		parts = append(parts, fmt.Sprintf("step %d", n.Step))
	}
	if n.TokensUsed > 0 {
		parts = append(parts, number(n.TokensUsed)+" tokens"+price.Behind(n.CostUSD, n.TokensUsed, n.Unpriced))
	}
	if n.ElapsedMs > 0 {
		parts = append(parts, debug.Age(time.Duration(n.ElapsedMs)*time.Millisecond))
	}
	if len(l.after) > 0 && n.State != "waiting" {
		parts = append(parts, t.pick("← ", "<- ")+t.line(strings.Join(l.after, ", ")))
	}
	if n.Item != "" {
		parts = append(parts, t.line(n.Item))
	}
	return strings.Join(parts, "  ")
}

func nodeStyle(state string) style {
	switch state {
	case "failed":
		return red
	case "running":
		return green
	case "paused", "suspended", "stopped", "retrying":
		return yellow
	case "skipped":
		return dim
	}
	return plain
}

func (p *composePane) keys() []binding {
	return append(chooserKeys(&p.pick, "node"), key(inPane, "enter right l", "go to the process of the node", "open", func(m *Model) tea.Cmd {
		if p.pick.at >= len(p.lines) {
			return nil
		}
		n := p.lines[p.pick.at].node
		if n.UUID == (types.UUID{}) {
			m.say(m.env.t.line(n.Name) + " has no process yet")
			return nil
		}
		for i, other := range m.panes {
			if _, ok := other.(*stepsPane); ok { // this pane has nothing to show of it
				turnTo(m, i)
			}
		}
		return goTo(m, n.UUID)
	}))
}

// goTo chooses a process, which the list may not have.
func goTo(m *Model, id types.UUID) tea.Cmd {
	if m.rows.by[id] != nil {
		chooseID(m, id)
		return nil
	}
	return ask(m.env, ipc.GetProcDetail, ipc.TargetRequest{Target: id.String()}, func(d ipc.ProcDetail, err error) tea.Msg {
		return goneTo{id, d, err}
	})
}

// goneTo is a process that is to be chosen.
type goneTo struct {
	id  types.UUID
	d   ipc.ProcDetail
	err error
}

func arrive(m *Model, g goneTo) {
	if g.err != nil {
		m.fail(g.err)
		return
	}
	m.list.sel = g.id // before the row comes, which else would not stay
	m.rows.put(&g.d.Proc, m.env.now())
	chooseID(m, g.id)
}
